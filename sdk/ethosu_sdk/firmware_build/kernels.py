"""Which kernels a program needs, against the manifest of those that the firmware has (kernels.toml)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.errors import BuildError

_OPERATOR = re.compile(r"[A-Za-z0-9_]+::[A-Za-z0-9_]+\.?[A-Za-z0-9_]*")
_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Kernel:
    """One row of the manifest: the operator and the C++ function that computes it."""

    operator: str  # such as aten::_softmax.out
    function: str
    source: str

    @property
    def name(self) -> str:
        """The operator without its overload, such as ``aten::_softmax``."""
        return self.operator.partition(".")[0]

    @property
    def overload(self) -> str:
        """The overload, such as ``out``; may be empty."""
        return self.operator.partition(".")[2]


def manifest(path: Path) -> dict[str, Kernel]:
    """All kernels of kernels.toml by operator. BuildError when the file is not a valid manifest."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        rows = [Kernel(row["operator"], row["function"], row["source"]) for row in table["kernel"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BuildError(f"{path} is not a kernel manifest: {error}", "install the SDK again") from error
    for row in rows:
        if not (_OPERATOR.fullmatch(row.operator) and _FUNCTION.fullmatch(row.function)):
            raise BuildError(f"{path}: '{row.operator}' = '{row.function}' is not a valid row")
    return {row.operator: row for row in rows}


def select(operators: Iterable[str], known: Mapping[str, Kernel]) -> tuple[Kernel, ...]:
    """The kernels for `operators`, each once, sorted. BuildError names every operator that has none."""
    wanted = sorted(set(operators))
    missing = [operator for operator in wanted if operator not in known]
    if missing:
        raise BuildError(
            "the firmware has no kernel for " + ", ".join(missing),
            "let the NPU take these operators (`ethosu-sdk inspect` shows what is delegated), or add them to "
            f"firmware/kernels; docs/kernels.md lists the {len(known)} that it has",
        )
    return tuple(known[operator] for operator in wanted)
