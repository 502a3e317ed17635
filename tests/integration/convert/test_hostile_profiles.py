"""Profiles that their schema takes and no command writes: refused with a sentence, or converted, and no traceback."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli import Outcome, assert_clear, sdk
from tests.integration.convert.reading import convert, refused
from tests.records import example

HUGE = 10**399

Record = dict[str, Any]


def _on_npu(record: Record) -> list[Record]:
    return [row for row in record["operations"] if row["runs_on"] == "NPU"]


def _without(name: str) -> Callable[[Record], None]:
    def damage(record: Record) -> None:
        for row in _on_npu(record):
            del row[name]

    return damage


def _twice(record: Record) -> None:
    for row in _on_npu(record):
        row["cycles"] = [part for part in row["cycles"] if part["source"] == "modelled"] * 2


DAMAGE = {
    "no delegate": (_without("delegate"), "has no delegate"),
    "no cycles": (_without("cycles"), "has no cycles"),
    "no MACs": (_without("macs"), "has no macs"),
    "no bound": (_without("bound_by"), "has no bound_by"),
    "cycles twice": (_twice, "has cycles 'modelled' 2 times"),
}


def _written(damage: Callable[[Record], None], folder: Path) -> Path:
    record = example("profile-digits_cnn")
    damage(record)
    path = folder / "profile.json"
    path.write_text(json.dumps(record), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", DAMAGE)
@pytest.mark.parametrize("command", ["validate", "summary", "etdump", "model-explorer"])
def test_operations_that_are_not_whole(name: str, command: str, tmp_path: Path) -> None:
    damage, said = DAMAGE[name]
    path = _written(damage, tmp_path)
    if command in ("validate", "summary"):
        assert_clear(sdk(command, path, cwd=tmp_path), 3, said)
    else:
        assert said in refused(tmp_path, path, "--to", command)


def _on_the_cpu_of_a_delegate(record: Record) -> None:
    row = next(row for row in record["operations"] if row["runs_on"] == "CPU")
    row.update(delegate=0, tosa={"index": 0, "operator": "ADD", "tensor": "a"})


@pytest.mark.parametrize("to", ["etdump", "model-explorer", "perfetto"])
def test_an_operation_on_the_cpu_has_no_cycles_wherever_it_belongs(to: str, tmp_path: Path) -> None:
    record = example("profile-digits_cnn")
    _on_the_cpu_of_a_delegate(record)
    assert sdk("validate", _written(_on_the_cpu_of_a_delegate, tmp_path), cwd=tmp_path).code == 0
    assert convert(record, to, tmp_path) != b""


def _large(record: Record) -> None:
    for number, row in enumerate(_on_npu(record)):
        for part in row["cycles"]:
            if part["source"] == "estimated":
                part["value"] = HUGE if number % 2 else 1.5
        row["macs"] = HUGE
        row["tosa"] = {"index": number, "operator": "ADD", "tensor": "all"}


def _calls_of_no_float(record: Record) -> None:
    """JSON Schema takes 1e300 for a whole number."""
    for row in _on_npu(record):
        row["calls"], row["macs"] = 1e300, HUGE
    del record["delegates"][0]["start_cycles"]


def _harmless(done: Outcome) -> None:
    assert done.code in (0, 3), done.err
    assert "Traceback" not in done.err
    assert "internal error" not in done.err


@pytest.mark.parametrize("damage", [_large, _calls_of_no_float])
@pytest.mark.parametrize("to", ["model-explorer", "perfetto", "etdump", "parquet"])
def test_sums_that_no_float_holds(damage: Callable[[Record], None], to: str, tmp_path: Path) -> None:
    path = _written(damage, tmp_path)
    _harmless(sdk("convert", path, "--to", to, "-o", tmp_path / "converted", cwd=tmp_path))


@pytest.mark.parametrize("damage", [_large, _calls_of_no_float])
@pytest.mark.parametrize("command", ["validate", "summary"])
def test_such_records_are_read(damage: Callable[[Record], None], command: str, tmp_path: Path) -> None:
    _harmless(sdk(command, _written(damage, tmp_path), cwd=tmp_path))


def test_lines_of_a_model_whose_name_no_encoding_holds(tmp_path: Path) -> None:
    record = example("profile-digits_cnn")
    for row in record["operations"]:
        row["source"] = {"file": "\ud800.py", "line": 1}
    (run,) = json.loads(convert(record, "sarif", tmp_path))["runs"]
    uris = {
        place["physicalLocation"]["artifactLocation"]["uri"]
        for row in run["results"]
        for place in row["locations"]
    }
    assert uris == {"%5Cud800.py"}
