"""Validation of records: by their classes and rules, and by the JSON Schemas that are made from these classes."""

from __future__ import annotations

import functools
import itertools
import json
import re
from pathlib import Path
from typing import Any

import msgspec

from ethosu_sdk.base import json_text, resources
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.records import kinds
from ethosu_sdk.records.common import Part, RecordKind

_MOST_PROBLEMS = 1000  # a list of a million wrong items is one mistake
_PROBLEMS_SHOWN = 8
_PLACE = re.compile(r"(.*) - at `\$(.*)`", re.DOTALL)  # of msgspec, such as $.operations[1].calls


def check_record(record: Record, what: str) -> None:
    """Raise InputError, with the first problems, when `record` is not valid."""
    _refuse(quick_problems(record), what)


def write_record(path: Path, record: Part | Record, what: str) -> Record:
    """Write `record` to `path`, and return its JSON. InputError, before that, when it is not valid."""
    content = record.to_json() if isinstance(record, Part) else record
    check_record(content, what)
    json_text.write_json(path, content)
    return content


def check_by_schema(record: Record, what: str) -> None:
    """The same, by the schema even where the class takes `record`."""
    _refuse(record_problems(record), what)


def _refuse(found: list[str], what: str) -> None:
    if found:
        more = f"\n  and {len(found) - _PROBLEMS_SHOWN} more" if len(found) > _PROBLEMS_SHOWN else ""
        raise InputError(f"{what} is not a valid record:\n  " + "\n  ".join(found[:_PROBLEMS_SHOWN]) + more)


def quick_problems(record: Record) -> list[str]:
    """What is wrong with `record`. The class decides, in little time; what it refuses is judged by the schema, which
    names all problems and takes 2.0 for a whole number."""
    return record_problems(record) if first_refusal(record) else []


def first_refusal(record: Record) -> str:
    """The first problem for which the class of `record` or one of its rules refuses it; empty when they take it."""
    kind = _kind(record)
    if kind is None:
        return _unknown(record)
    if _has_null(record):
        return "a member is null; what is not known is absent"
    try:
        content = msgspec.convert(record, kind.content)
    except ValueError as error:
        return _words(error)
    return next(iter(_broken_rules(content, kind)), "")


def record_problems(record: Record) -> list[str]:
    """What is wrong with `record` by its schema and rules, a sentence each, the first thousand."""
    kind = _kind(record)
    if kind is None:
        return [_unknown(record)]
    errors = itertools.islice(_validator(kind.schema).iter_errors(record), _MOST_PROBLEMS)
    if found := sorted(errors, key=lambda error: list(map(str, error.absolute_path))):
        return [f"/{'/'.join(map(str, error.absolute_path))}: {error.message}"[:400] for error in found]
    try:
        return _broken_rules(kind.convert(record), kind)
    except ValueError as error:  # 1e300, a whole number to JSON Schema
        return [_words(error)]


def _kind(record: Record) -> RecordKind[Any] | None:
    name = record.get("schema")
    return kinds.BY_SCHEMA.get(name) if isinstance(name, str) else None


def _unknown(record: Record) -> str:
    known = ", ".join(sorted(kinds.BY_SCHEMA))
    return f"/schema: {record.get('schema')!r} is not a known record type (known: {known})"


def _has_null(record: Record) -> bool:
    left: list[Any] = [record]
    while left:
        part = left.pop()
        for row in part.values() if isinstance(part, dict) else part:
            if row is None:
                return True
            if isinstance(row, dict | list | tuple):
                left.append(row)
    return False


@functools.cache
def _validator(schema: str) -> Any:
    # jsonschema takes a tenth of a second to import: only where a record is refused, or validated for its own sake.
    from jsonschema import Draft202012Validator

    path = resources.directory("schemas") / f"{schema.replace('/', '.v')}.schema.json"
    return Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))


def _broken_rules(content: Part, kind: RecordKind[Any]) -> list[str]:
    found = []
    for rule in kind.rules:
        try:
            texts = [*rule(content)]
        except OverflowError:  # JSON has numbers without end, floats do not
            texts = ["a number is too large to be judged"]
        found += [f"{rule.__name__}: {text}" for text in texts]
    return found


def _words(error: ValueError) -> str:
    """What msgspec says, as jsonschema would: the JSON pointer first."""
    found = _PLACE.fullmatch(str(error))
    if found is None:
        return f"/: {error}"
    pointer = found[2].replace("[...]", "/*").replace("[", "/").replace("]", "").replace(".", "/")
    return f"{pointer}: {found[1]}"
