"""The classes of records: the schemas are made from them, and both refuse the same."""

import functools
import json
import runpy
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from jsonschema import Draft202012Validator

from ethosu_sdk.records import kinds
from ethosu_sdk.records.common import Part
from tests.places import ROOT
from tests.records import EXAMPLES, read

Json = dict[str, Any]


@functools.cache
def script() -> types.SimpleNamespace:
    return types.SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "schemas")))


def test_the_schemas_are_those_of_the_classes(capsys: pytest.CaptureFixture[str]) -> None:
    assert script().main(["--check"], ROOT / "schemas") == 0, capsys.readouterr().err


def test_a_schema_that_is_behind_is_named_and_made_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert script().main([], tmp_path) == 0
    changed, strange = tmp_path / "run-result.v1.schema.json", tmp_path / "other.v1.schema.json"
    text = changed.read_text(encoding="utf-8")
    changed.write_text(text.replace('"minimum": 1', '"minimum": 0', 1), encoding="utf-8")
    strange.write_text("{}", encoding="utf-8")
    assert script().main(["--check"], tmp_path) == 1
    assert [line.split()[0] for line in capsys.readouterr().err.splitlines()] == [
        "other.v1.schema.json",
        "run-result.v1.schema.json",
    ]
    assert script().main([], tmp_path) == 0
    assert changed.read_text(encoding="utf-8") == text
    assert not strange.exists()


def contents(kind: Any, value: Any) -> Iterator[tuple[type[Part], Json]]:
    """The parts of a record's `value`, each with its class."""
    if isinstance(kind, type) and issubclass(kind, Part):
        yield kind, value
        for field in msgspec.structs.fields(kind):
            if field.encode_name in value:
                yield from contents(field.type, value[field.encode_name])
    elif isinstance(value, list):
        for row in value:
            yield from contents(kind, row)
    elif isinstance(value, dict) or kind is not None:
        for row in get_args(kind):
            yield from contents(row, value) if script().classes(row) else ()


@functools.cache
def smallest() -> dict[type[Part], Json]:
    """The shortest content of every part that the examples have."""
    found: dict[type[Part], Json] = {}
    for path in EXAMPLES.glob("*.json"):
        record = read(path)
        for kind, content in contents(kinds.BY_SCHEMA[record["schema"]].content, record):
            if "schema" not in content and len(str(content)) < len(str(found.get(kind, record))):
                found[kind] = content
    return found


def changed(content: Json) -> Iterator[Json]:
    """`content` without each of its members, and with other values of them."""
    for name, value in content.items():
        yield {key: row for key, row in content.items() if key != name}
        twice = [value[0], *value] if isinstance(value, list) and value else [value]
        for other in ("", "unknown", -1, 0.5, 101, True, [], {}, twice):
            yield {**content, name: other}
    yield {}
    yield {**content, "unknown": 1}


def disagreements(kind: type[Part], content: Json) -> Iterator[str]:
    validator = Draft202012Validator(script().schema_of(kind))
    for row in (content, *changed(content)):
        try:
            msgspec.convert(row, kind)
            taken = True
        except msgspec.ValidationError:
            taken = False
        if taken != validator.is_valid(row):
            yield f"{kind.__module__}.{kind.__name__}: {json.dumps(row)[:200]}"


def test_class_and_schema_refuse_the_same() -> None:
    assert len(smallest()) > 150
    found = [line for kind, content in smallest().items() for line in disagreements(kind, content)]
    assert not found, "\n".join(found)


def test_each_record_of_a_folder_has_a_name_and_a_role() -> None:
    names = [kind.file for kind in kinds.IN_FOLDERS]
    assert all(names)
    assert len({*names}) == len(names)
    assert all(kind.role for kind in kinds.IN_FOLDERS)
    assert not any(kind.file or kind.role for kind in kinds.PRINTED)
