"""Node data for Model Explorer: figures of the profile, by the names of the TOSA graph's tensors."""

from __future__ import annotations

import json
import sys
from collections import Counter

from ethosu_sdk import redaction
from ethosu_sdk.errors import InputError
from ethosu_sdk.readers.convert.inputs import Inputs
from ethosu_sdk.records import kinds
from ethosu_sdk.records.profile import Operation, cycles

KINDS = (kinds.PROFILE.schema,)
LEFT_OUT = (
    "operations whose TOSA operator is not known: there is no node that they belong to",
    "operators on the CPU: they are no nodes of the delegates' graphs",
)
_GRADIENT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#e4572e"}]
# Name of the data, and the source of the cycles; None for what is no cycles.
_DATA = (("cycles, modelled", "modelled"), ("cycles, estimated by Vela", "estimated"), ("MACs", None))


def convert(inputs: Inputs) -> bytes:
    """The figures of `inputs` for the graph of each delegate. InputError when no operation has a TOSA operator."""
    rows: dict[int, list[Operation]] = {}
    for row in inputs.the(kinds.PROFILE).operations:
        if row.runs_on == "NPU" and row.delegate is not None and _tensor(row) is not None:
            rows.setdefault(row.delegate, []).append(row)
    if not rows:
        raise InputError(
            f"{inputs.path} has no TOSA operators: there are no nodes to attach figures to",
            "profile a program that has its NAME.compile.json beside it",
        )
    found = {}
    for delegate, part in sorted(rows.items()):
        for name, source in _DATA:
            if values := _values(part, source):
                data = {"results": values, "name": name, "gradient": _GRADIENT}
                found[f"delegate{delegate}.tosa: {name}"] = data
    return (json.dumps(redaction.value(found), indent=2, allow_nan=False) + "\n").encode()


def _tensor(row: Operation) -> str | None:
    return row.tosa.tensor if row.tosa is not None else None


def _values(rows: list[Operation], source: str | None) -> dict[str, dict[str, int]]:
    """The sum of each node's NPU operations in all of their calls."""
    sums: Counter[str] = Counter()
    for row in rows:
        value = row.macs if source is None else cycles(row.cycles, source)
        if value is not None:
            sums[_tensor(row) or ""] += value * row.calls
    if max(sums.values(), default=0) > sys.float_info.max:
        raise InputError("the sum of a node's figures is larger than any number of the format")
    return {name: {"value": value} for name, value in sums.items()}
