"""Validation of records: JSON Schema 2020-12 first, then the rules of their kind that a schema cannot state."""

from __future__ import annotations

import functools
import itertools
import json
from typing import Any

from ethosu_sdk import resources
from ethosu_sdk.errors import InputError
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.records.kind import Part, RecordKind

_MOST_PROBLEMS = 1000  # a list of a million wrong items is one mistake
_PROBLEMS_SHOWN = 8


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
    """What is wrong with `record`, one sentence each, the first thousand; empty when it is valid."""
    name = record.get("schema")
    kind = kinds.BY_SCHEMA.get(name) if isinstance(name, str) else None
    if kind is None:
        return [f"/schema: {name!r} is not a known record type (known: {', '.join(sorted(kinds.BY_SCHEMA))})"]
    return _schema_problems(record, kind) or _rule_problems(record, kind)


def _schema_problems(record: Record, kind: RecordKind[Any]) -> list[str]:
    found = itertools.islice(_validator(kind.schema).iter_errors(record), _MOST_PROBLEMS)
    errors = sorted(found, key=lambda error: list(map(str, error.absolute_path)))
    return [f"/{'/'.join(map(str, error.absolute_path))}: {error.message}"[:400] for error in errors]


def _rule_problems(record: Record, kind: RecordKind[Any]) -> list[str]:
    try:
        content: Part = kind.convert(record)
    except ValueError as error:  # 1e300, a whole number to JSON Schema
        return [str(error)]
    found = []
    for rule in kind.rules:
        try:
            texts = rule(content)
        except OverflowError:  # JSON has numbers without end, floats do not
            texts = ["a number is too large to be judged"]
        found += [f"{rule.__name__}: {text}" for text in texts]
    return found


def check(record: Record, what: str) -> None:
    """Raise InputError, with the first problems, when `record` is not valid."""
    found = problems(record)
    if found:
        more = f"\n  and {len(found) - _PROBLEMS_SHOWN} more" if len(found) > _PROBLEMS_SHOWN else ""
        raise InputError(f"{what} is not a valid record:\n  " + "\n  ".join(found[:_PROBLEMS_SHOWN]) + more)
