"""What lowers and compiles a model on this machine: part of what a result is known by."""

from __future__ import annotations

import functools
import json
from pathlib import Path

from ethosu_sdk import __version__, provenance, resources
from ethosu_sdk.files import hashing
from ethosu_sdk.records import Record

_PACKAGES = ("torch", "torchao", "executorch", "ethos-u-vela", "tosa-tools", "numpy")
_SOURCES = (".py", ".toml", ".cpp", ".hpp", ".h", ".ld", ".cmake", ".txt", ".json")


@functools.cache
def identity() -> Record:
    """The SDK's version and its sources of that part, and the versions of the packages."""
    return {
        "sdk": __version__,
        "packages": {name: provenance.package_version(name) for name in _PACKAGES},
        "aot": tree(resources.PACKAGE_ROOT / "aot"),
        "kernels": tree(resources.directory("firmware") / "kernels"),  # what a program may leave to the CPU
    }


@functools.cache
def tree(folder: Path) -> str:
    """One digest of the sources below `folder`."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in _SOURCES and path.is_file())
    digests = {str(path.relative_to(folder)): hashing.sha256_file(path) for path in paths}
    return hashing.sha256_bytes(json.dumps(digests, sort_keys=True).encode())
