"""Damaged data files (`.ptd`): read, described, and run on both simulators."""

import hashlib
import json
import random
import struct
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from campaigns.attack import damage
from campaigns.attack.case import Case, Context, Kind, Probe
from campaigns.attack.kinds.programs import both
from campaigns.attack.process import Ended
from ethosu_sdk.program import named_data, pte
from tests.places import GOLDEN_PTD

_PROGRAMS = {"split": ("weights", "biases"), "ethos_u55_128_two": ("fast", "slow")}
_HEADER_WORDS = (16, 24, 32, 40)  # where they stand, each 8 bytes


def _mutated(choice: random.Random, data: bytes) -> bytes:
    """A damaged file: by a word of its header, by its tables alone, which are a few hundred bytes, or anywhere."""
    way = choice.random()
    if way < 0.2:
        copy = bytearray(data)
        value = choice.choice((0, 1, 48, 56, len(data), len(data) - 1, 1 << 31, 1 << 63, (1 << 64) - 16))
        struct.pack_into("<Q", copy, choice.choice(_HEADER_WORDS), value)
        return bytes(copy)
    if way < 0.7:
        tables, size = struct.unpack_from("<QQ", data, _HEADER_WORDS[0])
        end = tables + size
        return damage.words(choice, data[:end]) + data[end:]
    return damage.damaged(choice, data)


def _files(choice: random.Random) -> tuple[str, dict[str, bytes]]:
    """The name of a program; it and its data files, one of which is damaged."""
    name, parts = choice.choice(sorted(_PROGRAMS.items()))
    files = {f"given_{part}.ptd": (GOLDEN_PTD / f"{part}.ptd").read_bytes() for part in parts}
    damaged = choice.choice(sorted(files))
    files[damaged] = _mutated(choice, files[damaged])
    return name, {"given.pte": (GOLDEN_PTD / f"{name}.pte").read_bytes(), **files}


def _probe(context: Context, choice: random.Random) -> Probe:
    name, files = _files(choice)
    return Probe(f"read {name}", files, lambda folder: _read(folder / "given.pte"))


def _read(program: Path) -> None:
    """Every blob lies in its file, and what a delegate gets is what was compiled."""
    content = pte.read(program)
    content.check_data()
    for row in content.data_files:
        for blob in row.blobs.values():
            assert 0 <= blob.offset <= blob.offset + len(blob.data) <= row.size
    intact = {
        key: bytes(blob.data)
        for path in GOLDEN_PTD.glob("*.ptd")
        for key, blob in named_data.read_data_file(path).blobs.items()
    }
    for delegate in content.delegates:
        assert delegate.vela is not None
        assert {bytes(delegate.vela.command_data), bytes(delegate.vela.weights)} <= set(intact.values())


def _case(context: Context, choice: random.Random) -> Case:
    name, files = _files(choice)
    if choice.random() < 0.3:
        return Case(f"inspect {name} with its data files", files, ("inspect", "given.pte"))
    case = both(context, f"{name} with its data files", files, ())
    return replace(
        case, judge=lambda ended, folder: [*case.judge(ended, folder), *_told(ended, folder, files)]
    )


def _told(ended: Ended, folder: Path, files: Mapping[str, bytes]) -> list[str]:
    """A run that passes lists every data file that it used as it is."""
    record = folder / "qemu" / "run.json"
    if ended.code != 0:
        return []
    rows = json.loads(record.read_bytes())["provenance"]["inputs"]
    found = {row["file"]: row["sha256"] for row in rows if row["role"] == "data"}
    wanted = {name: hashlib.sha256(data).hexdigest() for name, data in files.items() if name.endswith(".ptd")}
    return [] if found == wanted else [f"exit code 0, but the record has other data files: {sorted(found)}"]


KIND = Kind("data", _case, _probe)
