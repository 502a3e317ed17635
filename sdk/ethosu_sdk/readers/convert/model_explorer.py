"""Node data for Model Explorer: one figure of one delegate's operations, by the nodes of its TOSA graph.

Model Explorer 0.1.34 takes one figure for each graph of a file. The nodes are those of Arm's adapter for TOSA
(tosa-adapter-model-explorer 0.1.0), which names them ``REGION/opINDEX`` and each graph by its region. TOSA's
serializer calls the region of a single graph ``main``.
"""

from __future__ import annotations

import json
import sys
from collections import Counter

from ethosu_sdk.errors import InputError
from ethosu_sdk.readers.convert.inputs import MACS, Inputs
from ethosu_sdk.records import kinds
from ethosu_sdk.records.profile import Operation, cycles

KINDS = (kinds.PROFILE.schema,)
LEFT_OUT = (
    "operations whose TOSA operator is not known: there is no node that they belong to",
    "operators on the CPU: they are no nodes of the delegates' graphs",
)
_GRADIENT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#e4572e"}]
_REGION = "main"
# The data's name, by the figure; what is no source of cycles are the MACs.
_NAMES = {
    "modelled": "cycles, modelled",
    "estimated": "cycles, estimated by Vela",
    "measured": "cycles, measured",
    MACS: "MACs",
}


def convert(inputs: Inputs) -> bytes:
    """The figure of the delegate that `inputs` ask for. InputError when no operation of it has a TOSA operator, or
    none has the figure."""
    delegate, figure = inputs.nodes.delegate, inputs.nodes.figure
    rows = [
        row for row in inputs.the(kinds.PROFILE).operations if row.runs_on == "NPU" and row.tosa is not None
    ]
    if not rows:
        raise InputError(
            f"{inputs.path} has no TOSA operators: there are no nodes to attach figures to",
            "profile a program that has its NAME.compile.json beside it",
        )
    known = sorted({row.delegate for row in rows if row.delegate is not None})
    if delegate not in known:
        raise InputError(
            f"{inputs.path} has no operations of delegate {delegate}",
            f"choose with --delegate: {', '.join(map(str, known))}",
        )
    values = _values([row for row in rows if row.delegate == delegate], figure)
    if not values:
        raise InputError(f"{inputs.path} has no {_NAMES[figure]}", "choose another with --figure")
    name = f"delegate{delegate}: {_NAMES[figure]}"
    found = {_REGION: {"results": values, "name": name, "gradient": _GRADIENT}}
    return (json.dumps(found, indent=2, allow_nan=False) + "\n").encode()


def _values(rows: list[Operation], figure: str) -> dict[str, dict[str, int]]:
    """The sum of each node's NPU operations in all of their calls."""
    sums: Counter[int] = Counter()
    for row in rows:
        value = row.macs if figure == MACS else cycles(row.cycles, figure)
        if value is not None and row.tosa is not None:
            sums[row.tosa.index] += value * row.calls
    if max(sums.values(), default=0) > sys.float_info.max:
        raise InputError("the sum of a node's figures is larger than any number of the format")
    return {f"{_REGION}/op{index}": {"value": value} for index, value in sums.items()}
