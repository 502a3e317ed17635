"""Every record type has valid examples, and invalid ones with the problem that must be named.

An invalid example is a valid one with a patch (JSON Patch, RFC 6902): what makes it wrong, and nothing else.
"""

import json
from pathlib import Path
from typing import Any

import jsonpatch
import pytest

from ethosu_sdk import schema
from ethosu_sdk.records import kinds
from tests.places import ROOT

SCHEMAS = ROOT / "schemas"
VALID = sorted((SCHEMAS / "examples" / "valid").glob("*.json"))
INVALID = sorted((SCHEMAS / "examples" / "invalid").glob("*.json"))
RECORD_TYPES = list(kinds.BY_SCHEMA)


def load(path: Path) -> dict[str, Any]:
    value = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_valid_examples_are_valid(path: Path) -> None:
    assert schema.problems(load(path)) == []


def patched(path: Path) -> dict[str, Any]:
    example = load(path)
    record = jsonpatch.apply_patch(load(VALID[0].parent / f"{example['of']}.json"), example["patch"])
    assert isinstance(record, dict)
    return record


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_invalid_examples_are_refused_for_the_stated_reason(path: Path) -> None:
    found = schema.problems(patched(path))
    wanted = load(path)["problems"]
    assert wanted
    for line in wanted:
        assert any(line in problem for problem in found), f"{line!r} is not among {found}"


def test_every_record_type_has_an_example_of_each_kind() -> None:
    assert {load(path)["schema"] for path in VALID} >= set(RECORD_TYPES)
    assert {patched(path)["schema"] for path in INVALID} >= set(RECORD_TYPES)


def objects(node: Any, where: str = "") -> list[tuple[str, dict[str, Any]]]:
    found = []
    if isinstance(node, dict):
        if node.get("type") == "object":
            found.append((where, node))
        for key, value in node.items():
            found += objects(value, f"{where}/{key}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            found += objects(value, f"{where}/{index}")
    return found


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.schema.json")), ids=lambda path: path.name)
def test_no_object_takes_unknown_members(path: Path) -> None:
    from jsonschema import Draft202012Validator

    document = load(path)
    Draft202012Validator.check_schema(document)
    for where, node in objects(document):
        if "properties" not in node and isinstance(node.get("additionalProperties"), dict):
            continue  # a map: any name, but every value is checked
        assert node.get("additionalProperties") is False, f"{where} takes unknown members"
        assert set(node["required"]) <= set(node["properties"]), where


def test_ids_are_unique() -> None:
    ids = [load(path)["$id"] for path in SCHEMAS.glob("*.schema.json")]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("value", [{}, {"schema": 1}, {"schema": "run-result/9"}, {"schema": "common/1"}])
def test_an_unknown_record_type_is_named(value: dict[str, Any]) -> None:
    assert "is not a known record type" in schema.problems(value)[0]
