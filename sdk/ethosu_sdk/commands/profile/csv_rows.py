"""profile.csv: a row for each operation, one figure in each column."""

from __future__ import annotations

from ethosu_sdk.records import Record

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
)


def row(entry: Record) -> dict[str, object]:
    """An operation of the record by COLUMNS; what it does not have is empty. Shapes are ``HxWxC``."""
    source, dtypes = entry.get("source", {}), entry.get("dtypes", {})
    weights = entry.get("weights", {})
    found: dict[str, object] = {name: entry.get(name) for name in _PLAIN}
    found |= {name: _shape(entry.get("shapes", {}).get(name)) for name in _SHAPES}
    found |= {f"{stage}_cycles": entry.get("stages", {}).get(stage) for stage in _STAGES}
    found |= {
        f"cycles_{row['source']}": row["value"]
        for row in entry.get("cycles", ())
        if row["source"] in _SOURCES
    }
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
        "read_bytes": _moved(entry, "read"),
        "write_bytes": _moved(entry, "write"),
        "cpu_instructions": entry.get("instructions", {}).get("value"),
    }


def _shape(sizes: list[int] | None) -> str | None:
    return None if sizes is None else "x".join(map(str, sizes))


def _moved(entry: Record, direction: str) -> int | None:
    if "traffic" not in entry:
        return None
    return sum(int(row["bytes"]) for row in entry["traffic"] if row["direction"] == direction)
