"""Every record type has valid examples, and invalid ones with the problem that must be named.

An invalid example is a valid one with a patch (JSON Patch, RFC 6902): what makes it wrong, and nothing else.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
from jsonschema import Draft202012Validator

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.records import kinds, validation
from tests.contract.sources import offenders
from tests.places import ROOT

SCHEMAS = ROOT / "schemas"
VALID = sorted((SCHEMAS / "examples" / "valid").glob("*.json"))
INVALID = sorted((SCHEMAS / "examples" / "invalid").glob("*.json"))
RECORD_TYPES = list(kinds.BY_SCHEMA)


def load(path: Path) -> dict[str, Any]:
    value = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(value, dict)
    return value


def test_valid_examples_are_valid_and_the_same_after_they_were_read() -> None:
    found = offenders(VALID, lambda path: validation.record_problems(load(path)))
    assert not found, found
    found = offenders(VALID, lambda path: kinds.content(load(path)).to_json() != load(path))
    assert not found, found


def patched(path: Path) -> dict[str, Any]:
    example = load(path)
    record = jsonpatch.apply_patch(load(VALID[0].parent / f"{example['of']}.json"), example["patch"])
    assert isinstance(record, dict)
    return record


def unnamed(path: Path) -> list[str]:
    """What an invalid example must be refused for, and is not."""
    found, wanted = validation.record_problems(patched(path)), load(path)["problems"]
    return (
        [line for line in wanted if not any(line in row for row in found)] if wanted else ["nothing wanted"]
    )


def test_invalid_examples_are_refused_for_the_stated_reason() -> None:
    found = offenders(INVALID, unnamed)
    assert not found, found


def test_invalid_examples_are_refused_by_their_classes_too() -> None:
    found = offenders(
        INVALID, lambda path: not validation.first_refusal(patched(path)) and "its class takes it"
    )
    assert not found, found


def test_what_a_class_refuses_is_named_by_its_place() -> None:
    record = load(VALID[0].parent / "run-ds_cnn.json")
    for change, problem in (
        (
            {"outputs": [{**record["outputs"][0], "shape": [1, -1]}]},
            "/outputs/0/shape/1: Expected `int` >= 0",
        ),
        ({"npu": {**record["npu"], "volts": 1}}, "/npu: Object contains unknown field `volts`"),
        ({"npu": None}, "a member is null; what is not known is absent"),
        ({"schema": "run-result/9"}, "/schema: 'run-result/9' is not a known record type"),
    ):
        assert validation.first_refusal({**record, **change}).startswith(problem)


def with_waits(record: dict[str, Any], waits_s: float) -> dict[str, Any]:
    """The record of a run whose last part waits so long for the CPU's memories."""
    time = record["time"]
    last = time["parts"][-1]
    last |= {"duration_s": last["duration_s"] + waits_s, "waits_s": waits_s}
    time["total"]["duration_s"] += waits_s
    time["total"]["most_s"] += waits_s
    time["sums"]["cpu_after_npu_s"] += waits_s
    memories = {"code": "MRAM", "constants": "MRAM", "arena": "SRAM0"}
    time["waits"] = {"duration_s": waits_s, "memories": memories, "source": "a profile"}
    npu = 100 * time["sums"]["npu_s"] / time["total"]["duration_s"]
    time["shares"] = {"cpu_percent": 100 - npu, "npu_percent": npu}
    return record


def test_waits_are_time_and_no_cycles() -> None:
    assert validation.first_refusal(with_waits(load(VALID[0].parent / "run-add-timed.json"), 1e-5)) == ""


def test_outputs_of_repeats_may_change_where_the_state_goes_on() -> None:
    record = load(VALID[0].parent / "run-ds_cnn.json")
    changed = {"agree": False, "changed": 1}
    record["repeats"] = {"count": 2, "outputs": changed, "counters": {"agree": True, "changed": 0}}
    assert validation.first_refusal(record).startswith("repeats_count_what_changed")
    record["repeats"]["state"] = "kept"
    assert validation.first_refusal(record) == ""


def test_a_whole_number_with_a_point_is_one() -> None:
    record = load(VALID[0].parent / "run-ds_cnn.json")
    record["inferences"] = float(record["inferences"])
    assert validation.first_refusal(record)
    validation.check_record(record, "the record")
    with pytest.raises(InputError, match=r"not a valid record:\n  /inferences: 1\.5 is not of type"):
        validation.check_record({**record, "inferences": 1.5}, "the record")


def test_a_valid_record_is_checked_without_jsonschema() -> None:
    code = (
        "import json, sys; from ethosu_sdk.records import validation; "
        "validation.check_record(json.load(open(sys.argv[1])), 'it'); print('jsonschema' in sys.modules)"
    )
    path = VALID[0].parent / "run-ds_cnn.json"
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


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


def open_objects(document: dict[str, Any]) -> list[str]:
    """The objects of a schema that take unknown members, or want some that they do not have."""
    return [
        where
        for where, node in objects(document)
        if "properties" in node  # a map takes any name
        and (
            node.get("additionalProperties") is not False
            or not set(node["required"]) <= set(node["properties"])
        )
    ]


def test_no_object_takes_unknown_members() -> None:
    for path in SCHEMAS.glob("*.schema.json"):
        Draft202012Validator.check_schema(load(path))
    found = offenders(SCHEMAS.glob("*.schema.json"), lambda path: open_objects(load(path)))
    assert not found, found
    planted = load(SCHEMAS / "run-result.v1.schema.json")
    planted["$defs"]["Npu"]["additionalProperties"] = True
    planted["properties"]["board"] = {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
        "required": ["x"],
    }
    assert open_objects(planted) == ["/properties/board", "/$defs/Npu"]


def test_an_unknown_record_type_is_named() -> None:
    for value in ({}, {"schema": 1}, {"schema": "run-result/9"}, {"schema": "common/1"}):
        assert "is not a known record type" in validation.record_problems(value)[0], value
