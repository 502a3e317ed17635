"""Node data for Model Explorer: figures of the profile, by the names of the TOSA graph's tensors."""

from __future__ import annotations

import json
import sys
from collections import Counter

from ethosu_sdk import redaction
from ethosu_sdk.errors import InputError
from ethosu_sdk.readers.convert.inputs import Inputs
from ethosu_sdk.records import Record
from ethosu_sdk.results.reading import PROFILE
from ethosu_sdk.tables import figures

KINDS = (PROFILE,)
LEFT_OUT = (
    "operations whose TOSA operator is not known: there is no node that they belong to",
    "operators on the CPU: they are no nodes of the delegates' graphs",
)
_GRADIENT = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#e4572e"}]
# Name of the data, and the source of the cycles; None for what is no cycles.
_DATA = (("cycles, modelled", "modelled"), ("cycles, estimated by Vela", "estimated"), ("MACs", None))


def convert(inputs: Inputs) -> bytes:
    """The figures of `inputs` for the graph of each delegate. InputError when no operation has a TOSA operator."""
    rows = [
        row
        for row in inputs.the(PROFILE)["operations"]
        if row["runs_on"] == "NPU" and "tensor" in row.get("tosa", {})
    ]
    if not rows:
        raise InputError(
            f"{inputs.path} has no TOSA operators: there are no nodes to attach figures to",
            "profile a program that has its NAME.compile.json beside it",
        )
    found = {}
    for delegate in sorted({row["delegate"] for row in rows}):
        part = [row for row in rows if row["delegate"] == delegate]
        for name, source in _DATA:
            if values := _values(part, source):
                data = {"results": values, "name": name, "gradient": _GRADIENT}
                found[f"delegate{delegate}.tosa: {name}"] = data
    return (json.dumps(redaction.value(found), indent=2, allow_nan=False) + "\n").encode()


def _values(rows: list[Record], source: str | None) -> dict[str, dict[str, int]]:
    """The sum of each node's NPU operations in all of their calls."""
    sums: Counter[str] = Counter()
    for row in rows:
        value = row["macs"] if source is None else figures.cycles(row, source)
        if value is not None:
            sums[row["tosa"]["tensor"]] += int(value) * int(row["calls"])
    if max(sums.values(), default=0) > sys.float_info.max:
        raise InputError("the sum of a node's figures is larger than any number of the format")
    return {name: {"value": value} for name, value in sums.items()}
