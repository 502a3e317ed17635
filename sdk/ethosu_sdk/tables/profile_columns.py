"""profile.csv: a row for each operation, one figure in each column."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.records.profile import Operation, cycles
from ethosu_sdk.tables import figures

_PLAIN = ("index", "instruction", "calls", "runs_on", "name", "kind", "delegate", "offset", "macs", "bytes")
_SHAPES = ("ifm", "ofm", "kernel", "stride", "block")
_STAGES = ("mac", "output", "weight_decoder", "memory")
_SOURCES = ("modelled", "estimated", "measured")
# Column → the member of the record's operation, with the way to it.
_MEMBERS = {
    **{name: name for name in (*_PLAIN, "utilisation", "bound_by", "scratch_bytes")},
    **{name: f"source.{name}" for name in ("module", "file", "line", "function")},
    **{name: f"shapes.{name}" for name in _SHAPES},
    **{f"{stage}_cycles": f"stages.{stage}" for stage in _STAGES},
    "tosa_operator": "tosa.operator",
    "vela_operator": "vela.operator",
    "ifm_dtype": "dtypes.ifm",
    "ofm_dtype": "dtypes.ofm",
    "weight_bytes": "weights.bytes",
    "encoded_weight_bytes": "weights.encoded_bytes",
    "cpu_instructions": "instructions.value",
    "cpu_cycles": "cpu_cycles.value",
    "job_operations": "job.operations",
    "job_cycles": "job.cycles.value",
    "job_source": "job.cycles.source",
}
COLUMNS = (
    *_PLAIN,
    *("tosa_operator", "vela_operator", "module", "file", "line", "function"),
    *_SHAPES,
    *("ifm_dtype", "ofm_dtype"),
    *(f"cycles_{source}" for source in _SOURCES),
    *(f"{stage}_cycles" for stage in _STAGES),
    *("utilisation", "bound_by", "weight_bytes", "encoded_weight_bytes", "scratch_bytes"),
    *("read_bytes", "write_bytes", "cpu_instructions", "cpu_cycles"),
    *("job_operations", "job_cycles", "job_source"),
)


def row(entry: Operation) -> dict[str, object]:
    """An operation of the record by COLUMNS; what it does not have is None. Shapes are ``HxWxC``."""
    found = {column: _member(entry, member) for column, member in _MEMBERS.items()}
    found |= {f"cycles_{source}": cycles(entry.cycles, source) for source in _SOURCES}
    if entry.traffic is not None:
        found |= {f"{direction}_bytes": entry.moved_bytes(direction) for direction in ("read", "write")}
    return found


def _member(entry: Operation, member: str) -> object:
    value: Any = entry
    for name in member.split("."):
        value = None if value is None else getattr(value, name)
    return figures.shape(value) if isinstance(value, tuple) else value
