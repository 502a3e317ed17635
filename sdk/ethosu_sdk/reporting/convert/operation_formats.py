"""A profile's operations in other formats: CSV and Parquet, and node data for Model Explorer."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

from ethosu_sdk.base import plain_text, tools
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.records import kinds, profile_words
from ethosu_sdk.records.profile import Operation, cycles
from ethosu_sdk.reporting.convert.conversion_inputs import MACS, ConversionInputs

ROWS_KINDS = (kinds.PROFILE.schema,)
ROWS_LEFT_OUT = ("totals, delegates and provenance: a table has rows of operations alone",)
_TEXTS = {
    *("runs_on", "name", "kind", "tosa_operator", "vela_operator", "module", "file", "function"),
    *("ifm", "ofm", "kernel", "stride", "block", "ifm_dtype", "ofm_dtype", "bound_by", "job_source"),
}
_NUMBERS = {"utilisation"}  # what is neither is a whole number
_LARGEST = (1 << 63) - 1


def to_parquet(inputs: ConversionInputs) -> bytes:
    """The rows of the profile of `inputs` with types. InputError for a number that no column holds."""
    arrow = tools.load_extra("pyarrow", tools.FORMATS)
    parquet = tools.load_extra("pyarrow.parquet", tools.FORMATS)
    profile = inputs.the(kinds.PROFILE)
    rows: list[dict[str, Any]] = []
    for entry in profile.operations:
        row: dict[str, Any] = profile_words.csv_row(entry)
        for name, value in row.items():
            if isinstance(value, str):
                row[name] = plain_text.line(value)
            elif isinstance(value, float) and name not in _NUMBERS:
                row[name] = int(value)
            if isinstance(row[name], int) and row[name] > _LARGEST:
                raise InputError(f"{inputs.path}: {name} of an operation is more than 64 bits hold")
        rows.append(row)
    types = {name: arrow.int64() for name in profile_words.CSV_COLUMNS}
    types |= dict.fromkeys(_TEXTS, arrow.string()) | dict.fromkeys(_NUMBERS, arrow.float64())
    # What the rows are of, in the file's own metadata.
    target = profile.target.to_json() if profile.target is not None else {}
    facts = {"model": profile.model.file, "model_sha256": profile.model.sha256, **target}
    facts |= {"clock_hz": profile.clock.hz} if profile.clock is not None else {}
    metadata = {f"ethosu-sdk.{key}": plain_text.line(value) for key, value in facts.items()}
    schema = arrow.schema([(name, types[name]) for name in profile_words.CSV_COLUMNS], metadata)
    sink = arrow.BufferOutputStream()
    parquet.write_table(arrow.Table.from_pylist(rows, schema=schema), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


NODES_KINDS = (kinds.PROFILE.schema,)
NODES_LEFT_OUT = (
    "operations whose TOSA operator is not known: there is no node that they belong to",
    "operators on the CPU: they are no nodes of the delegates' graphs",
)
_REGION = "main"
# The data's name, by the figure; what is no source of cycles are the MACs.
_NAMES = {
    "modelled": "cycles, modelled",
    "estimated": "cycles, estimated by Vela",
    "measured": "cycles, measured",
    MACS: "MACs",
}


def to_model_explorer(inputs: ConversionInputs) -> bytes:
    """The figure of the delegate that `inputs` ask for, by the nodes of its TOSA graph. InputError when no operation
    of it has a TOSA operator, or none has the figure.

    Model Explorer 0.1.34 takes one figure for each graph of a file. The nodes are those of Arm's adapter for TOSA
    (tosa-adapter-model-explorer 0.1.0), which names them ``REGION/opINDEX`` and each graph by its region. TOSA's
    serializer calls the region of a single graph ``main``.
    """
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
    gradient = [{"stop": 0, "bgColor": "#ffffff"}, {"stop": 1, "bgColor": "#e4572e"}]
    found = {_REGION: {"results": values, "name": name, "gradient": gradient}}
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
