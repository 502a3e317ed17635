"""The files that a model reads while it is loaded: what it imports, and weights or data beside it."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ethosu_sdk import resources
from ethosu_sdk.files import hashing

_SYSTEM = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/include/", "/usr/lib/", "/usr/share/")
_UNKNOWN = "0" * 64  # the digest of no file
_LIBRARIES = ("stdlib", "platstdlib", "purelib", "platlib")
_COMPILED = re.compile(rf"(.+)\.{re.escape(sys.implementation.cache_tag)}(?:\.opt-\w+)?\.pyc")
_READ_MODES = ("r", "rb", "rt", None)


class Reads:
    """Keeps the names of files that this process opens to read, from now on."""

    def __init__(self, own: Sequence[Path]) -> None:
        self._start = time.time()
        self._names: dict[str, None] = {}
        self._made: set[str] = set()
        environment = (sys.prefix,) if sys.prefix != sys.base_prefix else ()
        installed = (*environment, *(sysconfig.get_path(name) for name in _LIBRARIES))
        data = (resources.directory(name) for name in ("firmware", "schemas"))  # the SDK's own
        folders = [*map(Path, installed), resources.PACKAGE_ROOT, *data, *own]
        found = {str(folder.resolve()) for folder in folders}
        self._left_out = tuple(f"{path}/" for path in found if path != "/")
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes):
            path, mode, flags = arguments
            writes = isinstance(flags, int) and flags & os.O_ACCMODE != os.O_RDONLY
            name = os.path.abspath(os.fsdecode(path))  # now: a model may change the folder
            if mode in _READ_MODES and not writes:
                self._names[name] = None
            else:
                self._made.add(name)

    def digests(self, folder: Path) -> dict[str, str]:
        """Digests of the files by their paths from `folder`, but for those of installed packages and those that the
        process made itself. A file that changed meanwhile has none: nobody knows what of it was read."""
        found, now = {}, time.time()
        for name in self._names.keys() - self._made:
            path = _source(Path(name)).resolve()
            text = str(path)
            if (
                text.startswith((*_SYSTEM, *self._left_out))
                or "/site-packages/" in text
                or not path.is_file()
            ):
                continue
            changed = self._start <= path.stat().st_mtime <= now
            found[os.path.relpath(path, folder)] = _UNKNOWN if changed else hashing.sha256_file(path)
        return dict(sorted(found.items()))


def _source(path: Path) -> Path:
    """The Python file of a compiled one. Its own name may have dots, which importlib does not expect."""
    found = _COMPILED.fullmatch(path.name)
    if found is not None and path.parent.name == "__pycache__":
        return path.parent.parent / f"{found[1]}.py"
    return path
