"""`convert --to sarif`: logs that the schema and GitHub's uploader take, with every result in the user's file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from jsonschema import Draft4Validator

from tests.integration.convert.reading import convert
from tests.places import ROOT
from tests.records import example, read

SARIF_SCHEMA = ROOT / "tests" / "golden" / "formats" / "sarif-2.1.0-rtm.5.json"

Record = dict[str, Any]


def _sarif(content: bytes) -> list[Record]:
    """The results of a log that Microsoft's schema finds right."""
    log = json.loads(content)
    validator = Draft4Validator(read(SARIF_SCHEMA))
    assert [error.message for error in validator.iter_errors(log)] == []
    (run,) = log["runs"]
    rules = [row["id"] for row in run["tool"]["driver"]["rules"]]
    for row in run["results"]:
        assert rules[row["ruleIndex"]] == row["ruleId"]
    results = run["results"]
    assert isinstance(results, list)
    _upload(run)
    return results


def _upload(run: Record) -> None:
    """What GitHub's code scanning requires beyond the schema (docs.github.com, "SARIF support for code scanning"): a
    result without a location ends the upload with "expected at least one location"."""
    assert len(run["results"]) <= 25_000
    for rule in run["tool"]["driver"]["rules"]:
        for member in ("shortDescription", "fullDescription", "help"):
            assert 0 < len(rule[member]["text"]) <= 1024
    for row in run["results"]:
        assert row["message"]["text"]
        assert 1 <= len(row["locations"]) <= 10
        place = row["locations"][0]["physicalLocation"]
        address = urlsplit(place["artifactLocation"]["uri"])
        assert (address.scheme, address.netloc, address.query, address.fragment) == ("", "", "", "")
        assert address.path
        assert not address.path.startswith("/")
        assert ".." not in address.path.split("/")
        assert re.fullmatch(r"(?:[\w.~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})+", address.path, re.ASCII)
        assert place["region"]["startLine"] >= 1


def test_sarif_schema_refuses_what_is_none() -> None:
    validator = Draft4Validator(read(SARIF_SCHEMA))
    assert list(validator.iter_errors({"version": "2.1.0", "runs": [{"results": [{"level": "bad"}]}]}))


def test_operators_on_the_cpu_have_their_line(tmp_path: Path) -> None:
    record = example("compile-digits_cnn-evaluated")
    line = {"file": "my models/net.py", "line": 42, "module": "head.softmax"}
    site = {"calls": 2, "reason": "no such operator on the NPU", "source": line}
    row = {"name": "aten::foo.out", "calls": 2, "boundary": False, "sites": [site]}
    record["cpu_operators"].append(row)
    results = _sarif(convert(record, "sarif", tmp_path))
    assert [row["ruleId"] for row in results].count("cpu-boundary") == 2
    (found,) = [row for row in results if row["ruleId"] == "cpu-operator"]
    assert (found["level"], "aten::foo.out" in found["message"]["text"]) == ("warning", True)
    (place,) = found["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "my%20models/net.py"
    assert "at " not in found["message"]["text"]
    assert place["physicalLocation"]["region"] == {"startLine": 42}
    assert place["logicalLocations"][0]["fullyQualifiedName"] == "head.softmax"


@pytest.mark.parametrize(
    ("compiled", "line", "uri", "number"),
    [
        ("models/net.py:Net", {"file": "parts/block.py", "line": 3}, "models/parts/block.py", 3),
        ("net.py", {"file": "torchvision/resnet.py", "line": 92, "package": "torchvision"}, "net.py", 1),
        ("net.py", {"module": "head"}, "net.py", 1),
        ("saved/net.pt2", {"module": "head"}, "saved/net.pt2", 1),
        ("zoo:digits_cnn", {"file": "z.py", "line": 9, "package": "z"}, "digits_cnn.pte", 1),
    ],
)
def test_every_result_is_in_the_users_file(
    compiled: str, line: Record, uri: str, number: int, tmp_path: Path
) -> None:
    record = example("compile-digits_cnn-evaluated")
    site = {
        "calls": 1,
        "reason": "none",
        "source": {**line, **({"function": "F.f"} if "file" in line else {})},
    }
    record |= {"source": compiled, "warnings": ["guessed"]}
    record["cpu_operators"] = [{"name": "aten::foo.out", "calls": 1, "boundary": False, "sites": [site]}]
    found, warned = _sarif(convert(record, "sarif", tmp_path))
    place = found["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == (uri, number)
    outside = f"{line['file']}:{line['line']} in F.f" if "package" in line else ""
    assert outside in found["message"]["text"]
    assert warned["locations"][0]["physicalLocation"]["region"]["startLine"] == 1


def test_a_model_outside_of_the_folder_has_its_whole_path(tmp_path: Path) -> None:
    record = {**example("compile-digits_cnn-evaluated"), "source": "/elsewhere/net.py"}
    log = json.loads(convert(record, "sarif", tmp_path))
    places = {
        row["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for row in log["runs"][0]["results"]
    }
    assert places == {"file:///elsewhere/net.py"}


def test_notes_hazards_and_failed_checks_are_results(tmp_path: Path) -> None:
    run, built = example("run-ds_cnn"), example("build-ds_cnn")
    run["verdict"]["checks"].append({"name": "outputs", "status": "fail", "detail": "3 of 10 differ"})
    run["status"] = run["verdict"]["status"] = "fail"
    run["notes"] = ["the arena lies in DDR"]
    built["notes"] = ["1,000 bytes spilled"]
    found = [
        (row["ruleId"], row["level"], row["message"]["text"])
        for record in (run, built)
        for row in _sarif(convert(record, "sarif", tmp_path))
    ]
    assert found == [
        ("verdict", "error", "outputs: 3 of 10 differ"),
        ("run-note", "warning", "the arena lies in DDR"),
        ("memory-fit", "warning", "1,000 bytes spilled"),
    ]


def test_findings_of_debug_are_at_the_layers_line(tmp_path: Path) -> None:
    record = example("debug-wrong-scale")
    results = _sarif(convert(record, "sarif", tmp_path))
    breaks = [part["first_break"] for part in record["comparisons"] if "first_break" in part]
    found = [row for row in results if row["ruleId"] == "accuracy-break"]
    assert breaks
    assert len(found) == len(breaks)
    for step, row in zip(breaks, found, strict=True):
        assert row["message"]["text"].startswith(step["tensor"])
        source = record["layers"][step["layer"]].get("source", {})
        (place,) = row["locations"]
        assert place["physicalLocation"]["region"]["startLine"] == source.get("line", 1)
    assert len([row for row in results if row["ruleId"] == "accuracy-advice"]) == len(record["advice"])
