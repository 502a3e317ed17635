"""profile.csv: a row for each operation, one figure in each column."""

from __future__ import annotations

from ethosu_sdk.records import Record
from ethosu_sdk.tables import figures

_PLAIN = ("index", "instruction", "calls", "runs_on", "name", "kind", "delegate", "offset", "macs", "bytes")
_SHAPES = ("ifm", "ofm", "kernel", "stride", "block")
_STAGES = ("mac", "output", "weight_decoder", "memory")
_SOURCES = ("modelled", "estimated", "measured")
COLUMNS = (
    *_PLAIN,
    *("tosa_operator", "vela_operator", "module", "file", "line"),
    *_SHAPES,
    *("ifm_dtype", "ofm_dtype"),
    *(f"cycles_{source}" for source in _SOURCES),
    *(f"{stage}_cycles" for stage in _STAGES),
    *("utilisation", "bound_by", "weight_bytes", "encoded_weight_bytes", "scratch_bytes"),
    *("read_bytes", "write_bytes", "cpu_instructions"),
    *("job_operations", "job_cycles", "job_source"),
)


def row(entry: Record) -> dict[str, object]:
    """An operation of the record by COLUMNS; what it does not have is empty. Shapes are ``HxWxC``."""
    source, dtypes = entry.get("source", {}), entry.get("dtypes", {})
    weights, on_npu = entry.get("weights", {}), "traffic" in entry
    job = entry.get("job", {})
    found: dict[str, object] = {name: entry.get(name) for name in _PLAIN}
    found |= {name: figures.shape(sizes) for name, sizes in entry.get("shapes", {}).items()}
    found |= {f"{stage}_cycles": entry.get("stages", {}).get(stage) for stage in _STAGES}
    found |= {f"cycles_{source}": figures.cycles(entry, source) for source in _SOURCES}
    return found | {
        "tosa_operator": entry.get("tosa", {}).get("operator"),
        "vela_operator": entry.get("vela", {}).get("operator"),
        **{name: source.get(name) for name in ("module", "file", "line")},
        "ifm_dtype": dtypes.get("ifm"),
        "ofm_dtype": dtypes.get("ofm"),
        "utilisation": entry.get("utilisation"),
        "bound_by": entry.get("bound_by"),
        "weight_bytes": weights.get("bytes"),
        "encoded_weight_bytes": weights.get("encoded_bytes"),
        "scratch_bytes": entry.get("scratch_bytes"),
        "read_bytes": figures.moved_bytes(entry, "read") if on_npu else None,
        "write_bytes": figures.moved_bytes(entry, "write") if on_npu else None,
        "cpu_instructions": entry.get("instructions", {}).get("value"),
        "job_operations": job.get("operations"),
        "job_cycles": job.get("cycles", {}).get("value"),
        "job_source": job.get("cycles", {}).get("source"),
    }
