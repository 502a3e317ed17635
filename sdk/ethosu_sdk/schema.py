"""Validation of records: JSON Schema 2020-12 first, then named rules that a schema cannot state."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from ethosu_sdk import resources
from ethosu_sdk.errors import InputError
from ethosu_sdk.records import Record

Rule = Callable[[Record], list[str]]
_PROBLEMS_SHOWN = 8


def schema_names() -> tuple[str, ...]:
    """The `schema` values that exist, such as ``run-result/1``."""
    return tuple(sorted(_documents()))


@functools.cache
def _documents() -> dict[str, dict[str, Any]]:
    """All schema documents by the `schema` value of their records; ``common`` is among them."""
    found = {}
    for path in sorted(resources.directory("schemas").glob("*.schema.json")):
        name, version = path.name.removesuffix(".schema.json").rsplit(".v", 1)
        found[f"{name}/{version}"] = json.loads(path.read_text(encoding="utf-8"))
    return found


@functools.cache
def _validator(name: str) -> Any:
    # jsonschema takes a tenth of a second to import: only where a record is written or checked.
    from jsonschema import Draft202012Validator
    from referencing import Registry, Resource

    registry: Any = Registry().with_resources(
        (document["$id"], Resource.from_contents(document)) for document in _documents().values()
    )
    return Draft202012Validator(_documents()[name], registry=registry)


def problems(record: Record) -> list[str]:
    """Everything that is wrong with `record`, one sentence each; empty when it is valid."""
    name = record.get("schema")
    if not isinstance(name, str) or name not in _documents() or name.startswith("common/"):
        known = ", ".join(key for key in schema_names() if not key.startswith("common/"))
        return [f"/schema: {name!r} is not a known record type (known: {known})"]
    errors = sorted(
        _validator(name).iter_errors(record), key=lambda error: list(map(str, error.absolute_path))
    )
    if errors:
        return [f"/{'/'.join(map(str, error.absolute_path))}: {error.message}"[:400] for error in errors]
    return [f"{rule.__name__}: {text}" for rule in RULES.get(name, ()) for text in rule(record)]


def check(record: Record, what: str) -> None:
    """Raise InputError, with the first problems, when `record` is not valid."""
    found = problems(record)
    if found:
        more = f"\n  and {len(found) - _PROBLEMS_SHOWN} more" if len(found) > _PROBLEMS_SHOWN else ""
        raise InputError(f"{what} is not a valid record:\n  " + "\n  ".join(found[:_PROBLEMS_SHOWN]) + more)


def _status_follows_checks(record: Record) -> list[str]:
    checks = record["verdict"]["checks"]
    expected = "pass" if all(row["status"] != "fail" for row in checks) else "fail"
    if record["verdict"]["status"] != expected or record["status"] != expected:
        return [f"the checks say '{expected}', the record says '{record['status']}'"]
    return []


def _indices_count_up(record: Record) -> list[str]:
    return [
        f"{key} are not numbered 0, 1, 2 …"
        for key in ("inputs", "outputs")
        if [row["index"] for row in record[key]] != list(range(len(record[key])))
    ]


def _use_fits_size(record: Record) -> list[str]:
    rows = record["memory"]["regions"] + record["memory"]["pools"]
    return [
        f"{row['name']} uses {row['used_bytes']} of {row['size_bytes']} bytes"
        for row in rows
        if row["used_bytes"] > row["size_bytes"]
    ]


def _unavailable_is_absent(record: Record) -> list[str]:
    """What is listed as unavailable must not be in the record as well."""
    return [
        f"{row['path']} is listed and present" for row in record["unavailable"] if _has(record, row["path"])
    ]


def _has(value: Any, pointer: str) -> bool:
    for part in pointer.strip("/").split("/"):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return False
    return True


def _npu_calls_have_cycles(record: Record) -> list[str]:
    npu = record.get("npu")
    if (
        npu is not None
        and npu["delegate_calls"] > 0
        and "cycles" not in npu
        and not any(row["path"] == "/npu/cycles" for row in record["unavailable"])
    ):
        return ["the NPU ran, but its cycles are neither given nor listed as unavailable"]
    return []


RULES: dict[str, tuple[Rule, ...]] = {
    "run-result/1": (
        _status_follows_checks,
        _indices_count_up,
        _use_fits_size,
        _unavailable_is_absent,
        _npu_calls_have_cycles,
    ),
    "build-result/1": (_use_fits_size, _unavailable_is_absent),
    "compile-result/1": (_unavailable_is_absent,),
}
