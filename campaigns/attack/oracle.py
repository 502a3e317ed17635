"""What must hold of every command, whatever it was given."""

import json
import os
import re
import signal
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from campaigns.attack.process import Ended
from ethosu_sdk.records import validation

CODES = (0, 2, 3, 4, 5, 6, 7, 130)  # docs/reference/commands.md
_NOISE = ("Traceback (most recent call last)", "internal error", "Exception ignored", "Segmentation fault")
_CONTROL = tuple(chr(code) for code in (*range(9), 11, 12, *range(14, 32), 127, 0x9B, 0x202E))
_RECORD_TYPE = re.compile(r"[a-z-]+/[0-9]+")
_LEFT = (".part", ".tmp")  # ends of files that nobody should see

PLANTED = "the user's own\n"  # the content of files that cases plant: under another name, it is no result


def problems(ended: Ended, folder: Path, sent: signal.Signals | None = None) -> list[str]:
    """What is wrong with the command, which worked in `folder` and was `sent` a signal, or was not."""
    found = [f"survivor: {words[:300]}" for words in ended.survivors]
    if ended.stopped:
        return [*found, f"stopped for {ended.stopped}: {ended.seconds:.1f} s, {ended.peak_bytes:,} bytes"]
    if ended.code not in CODES and not (sent and ended.code == -sent):
        found.append(f"exit code {ended.code}, which is none of the documented ones")
    found += [f"it says {word!r}" for word in _NOISE if word in ended.out + ended.err]
    codes = sorted({ascii(code) for code in _CONTROL if code in ended.out + ended.err})
    found += [f"control codes reach the terminal: {', '.join(codes)}"] if codes else []
    if ended.code in CODES[1:-1] and not ended.err.strip():
        found.append("it fails without a word")
    return found + list(unsound(folder, killed=sent is not None))


def unsound(folder: Path, *, killed: bool) -> Iterator[str]:
    """Results below `folder` that are half-written. A killed command may have left something under other names."""
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "given"))]
        for name in sorted(files):
            path = Path(root, name)
            if path.is_symlink() or not path.is_file() or name.startswith("given"):  # pipes among them
                continue
            if name.endswith(_LEFT):
                if not killed:
                    yield f"{path.relative_to(folder)} was left"
            elif reason := _broken(path):
                yield f"{path.relative_to(folder)} is half-written or invalid: {reason[:300]}"


def _broken(path: Path) -> str:
    """Why the file at `path` is no sound record or archive of arrays; nothing for other files."""
    if path.stat().st_size == len(PLANTED) and path.read_text(errors="replace") == PLANTED:
        return ""
    try:
        if path.suffix == ".json":
            record = json.loads(path.read_bytes())
            # Some files of a build have a key of this name for something else.
            if isinstance(record, dict) and _RECORD_TYPE.fullmatch(str(record.get("schema", ""))):
                return "; ".join(validation.record_problems(record))
        elif path.suffix == ".npz":
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
                for name in arrays.files:
                    arrays[name]
        elif path.suffix == ".elf" and path.read_bytes()[:4] != b"\x7fELF":
            return "no ELF"
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        return f"{type(error).__name__}: {error}"
    return ""
