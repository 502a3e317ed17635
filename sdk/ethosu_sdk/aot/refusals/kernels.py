"""Refuses programs with CPU operators for which no runtime has a kernel."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence

from ethosu_sdk import resources
from ethosu_sdk.aot.facts.compilation import OperatorCount
from ethosu_sdk.aot.refusals import rows
from ethosu_sdk.errors import InputError

_WAY_OUT = (
    "compute it outside the model, or write it with operators of docs/reference/kernels.md; --no-check compiles it "
    "anyway"
)


def check(operators: Sequence[OperatorCount], *, strict: bool) -> tuple[str, ...]:
    """A warning of operators that the firmware has no kernel for. If `strict`, InputError with the line of an
    operator for which ExecuTorch has no kernel either."""
    lacking = _lacking(operators)
    missing = [row for row in lacking if row.name not in _portable()] if lacking else []
    if missing and strict:
        raise _refusal(missing)
    if not lacking:
        return ()
    names = "; ".join(map(_at, lacking))
    where = "" if missing else ": the program runs on the host simulator and on ExecuTorch's own runner"
    return (f"The firmware has no kernel for {names}, and `build` refuses the program{where}.",)


def _refusal(missing: Sequence[OperatorCount]) -> InputError:
    row = rows.refusal_of(missing[0].name)
    others = f", nor for {', '.join(other.name for other in missing[1:])}" if len(missing) > 1 else ""
    return InputError(
        f"{_at(missing[0])} stays on the CPU, but neither the firmware nor ExecuTorch has a kernel for it{others}"
        + (f": {row.reason}" if row else ""),
        row.way_out if row else _WAY_OUT,
    )


def _lacking(operators: Sequence[OperatorCount]) -> list[OperatorCount]:
    path = resources.directory("firmware") / "kernels" / "kernels.toml"
    known = {name for table in tomllib.loads(path.read_text(encoding="utf-8")).values() for name in table}
    return [row for row in operators if row.name not in known]


def _portable() -> frozenset[str]:
    """The operators that ExecuTorch's own runtime has, as its wheel registers them."""
    from executorch.extension.pybindings import portable_lib

    return frozenset(portable_lib._get_operator_names())


def _at(row: OperatorCount) -> str:
    source = row.sites[0].source if row.sites else None
    return row.name if source is None else f"{row.name} (at {source.words})"
