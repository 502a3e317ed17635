"""The profile's rows as a table: Parquet for pandas, DuckDB and their kin."""

from __future__ import annotations

from typing import Any

from ethosu_sdk import extras, plain_text
from ethosu_sdk.errors import InputError
from ethosu_sdk.readers.convert.inputs import Inputs
from ethosu_sdk.records import kinds
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.tables import profile_columns

KINDS = (kinds.PROFILE.schema,)
LEFT_OUT = ("totals, delegates and provenance: a table has rows of operations alone",)
_TEXTS = {
    *("runs_on", "name", "kind", "tosa_operator", "vela_operator", "module", "file", "function"),
    *("ifm", "ofm", "kernel", "stride", "block", "ifm_dtype", "ofm_dtype", "bound_by", "job_source"),
}
_NUMBERS = {"utilisation"}  # what is neither is a whole number
_LARGEST = (1 << 63) - 1


def to_parquet(inputs: Inputs) -> bytes:
    """The rows of the profile of `inputs` with types. InputError for a number that no column holds."""
    arrow = extras.load("pyarrow", extras.FORMATS)
    parquet = extras.load("pyarrow.parquet", extras.FORMATS)
    profile = inputs.the(kinds.PROFILE)
    rows = _rows(profile)
    for row in rows:
        for name, value in row.items():
            if isinstance(value, int) and value > _LARGEST:
                raise InputError(f"{inputs.path}: {name} of an operation is more than 64 bits hold")
    schema = arrow.schema(
        [(name, _type(arrow, name)) for name in profile_columns.COLUMNS], _metadata(profile)
    )
    sink = arrow.BufferOutputStream()
    parquet.write_table(arrow.Table.from_pylist(rows, schema=schema), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _rows(profile: Profile) -> list[dict[str, Any]]:
    rows = (profile_columns.row(entry) for entry in profile.operations)
    return [{key: _value(key, value) for key, value in row.items()} for row in rows]


def _value(name: str, value: object) -> object:
    if isinstance(value, str):
        return plain_text.line(value)
    return int(value) if isinstance(value, float) and name not in _NUMBERS else value


def _type(arrow: Any, name: str) -> Any:
    if name in _TEXTS:
        return arrow.string()
    return arrow.float64() if name in _NUMBERS else arrow.int64()


def _metadata(profile: Profile) -> dict[str, str]:
    """What the rows are of, in the file's own metadata."""
    target = profile.target.to_json() if profile.target is not None else {}
    facts = {"model": profile.model.file, "model_sha256": profile.model.sha256, **target}
    clock = {"clock_hz": profile.clock.hz} if profile.clock is not None else {}
    return {f"ethosu-sdk.{key}": plain_text.line(value) for key, value in {**facts, **clock}.items()}
