"""Selects the kernels that a program needs from the manifest of the firmware's kernels (kernels.toml)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.base import resources
from ethosu_sdk.base.errors import BuildError, InputError

_OPERATOR = re.compile(r"[A-Za-z0-9_]+::[A-Za-z0-9_]+\.?[A-Za-z0-9_]*")
_FOLDER = "operators"  # below firmware/kernels
_INCLUDE = re.compile(rb'#include "kernels/operators/([a-z_0-9]+)\.hpp"')
_SIGNATURE = re.compile(r"([a-z_][a-z0-9_]*)\(([A-Za-z_][A-Za-z0-9_]*(?:, [A-Za-z_][A-Za-z0-9_]*)*)\)")


@dataclass(frozen=True)
class Kernel:
    """One row of the manifest: the operator, the C++ function that computes it, and where that is."""

    operator: str  # such as aten::_softmax.out
    function: str
    parameters: tuple[str, ...]  # the operator's, outputs last
    source: str  # its file in firmware/kernels/operators

    @property
    def name(self) -> str:
        """The operator without its overload, such as ``aten::_softmax``."""
        return self.operator.partition(".")[0]

    @property
    def overload(self) -> str:
        """The overload, such as ``out``; may be empty."""
        return self.operator.partition(".")[2]


def known_kernels() -> dict[str, Kernel]:
    """All kernels of the firmware by operator."""
    return kernel_manifest(resources.directory("firmware") / "kernels" / "kernels.toml")


def kernel_manifest(path: Path) -> dict[str, Kernel]:
    """All kernels of kernels.toml by operator. BuildError when the file is not a valid manifest."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        rows = [(source, *item) for source, group in table.items() for item in group.items()]
    except (OSError, ValueError, AttributeError) as error:
        raise BuildError(f"{path} is not a kernel manifest: {error}", "install the SDK again") from error
    return {
        operator: _kernel(path, f"{source}.cpp", operator, signature) for source, operator, signature in rows
    }


def _kernel(path: Path, source: str, operator: str, signature: object) -> Kernel:
    match = _SIGNATURE.fullmatch(signature) if isinstance(signature, str) else None
    if match is None or not _OPERATOR.fullmatch(operator):
        raise BuildError(f"{path}: '{operator}' = '{signature}' is not a valid row", "install the SDK again")
    return Kernel(operator, match[1], tuple(match[2].split(", ")), source)


def select_kernels(operators: Iterable[str], known: Mapping[str, Kernel]) -> tuple[Kernel, ...]:
    """The kernels for `operators`, each once, sorted. InputError names every operator without a kernel."""
    names = sorted(set(operators))
    missing = [operator for operator in names if operator not in known]
    if missing:
        raise InputError(
            "the firmware has no kernel for " + ", ".join(missing),
            "let the NPU take these operators (`ethosu-sdk inspect` shows what is delegated), or add them to "
            f"firmware/kernels; docs/reference/kernels.md lists the {len(known)} that it has",
        )
    return tuple(known[operator] for operator in names)


def source_list(kernels: Iterable[Kernel], sources: Mapping[str, bytes]) -> str:
    """The text of operators.txt: the files with the functions of `kernels`, and those with what these call.

    `sources` are the firmware's by their names. A file of operators/ calls another's functions by its header only.
    """
    found: set[str] = set()
    left = {row.source for row in kernels}
    while left:
        found |= left
        texts = [sources.get(f"kernels/{_FOLDER}/{name}", b"") for name in left]
        left = {f"{name.decode()}.cpp" for text in texts for name in _INCLUDE.findall(text)} - found
    return "".join(f"{_FOLDER}/{name}\n" for name in sorted(found))
