"""Checks a ``.pt2`` file for code that could run when ``torch.export.load`` reads it.

torch unpickles members with ``weights_only=False`` (tensor subclasses, the state of old files, example inputs that
are no plain tensors), gives symbolic expressions to ``sympy.sympify`` and guards to ``exec``, both of which evaluate
Python, puts names into source code that it generates, imports modules that a tree of inputs names, calls whatever
function of ``torch`` a node names, and loads shared libraries. What plain ``torch.export.save`` writes of a network
needs none of that: it passes, and everything else is refused unless the user trusts the file.

It stays: the author of a ``.pt2`` is not trusted (docs/internals/threat-model.md), and torch has no
loader that does none of it.

Sources: torch 2.13, ``torch/export/__init__.py``, ``torch/export/_unlift.py``, ``torch/utils/_pytree.py``,
``torch/export/pt2_archive/_package.py`` and ``torch/_export/serde/serialize.py``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ethosu_sdk.aot.model.saved_program import archive, members
from ethosu_sdk.aot.model.saved_program.finding import UnsafeError
from ethosu_sdk.errors import InputError
from ethosu_sdk.files import opening

_HINT = (
    "save the model again with torch.export.save, or give it as FILE.py, whose code you can read; --trust loads the "
    "file unchecked and may run code in it: use it only if you trust the source of the file"
)


def read(path: Path, *, trust: bool) -> bytes:
    """The content of the ``.pt2`` at `path`, checked unless `trust`: load these bytes, not the file again.

    Raises InputError that names the member and what it holds when loading it could run code.
    """
    data = opening.content(path, sys.maxsize - 1)
    if not trust:
        _check(data, path)
    return data


def _check(data: bytes, path: Path) -> None:
    try:
        found = archive.members(data)
    except UnsafeError as finding:
        raise InputError(f"{path} is not a well-formed ZIP archive: {finding}", _HINT) from finding
    try:
        members.check(found)
    except UnsafeError as finding:
        raise InputError(f"{path} is not loaded, because it could run code: {finding}", _HINT) from finding
