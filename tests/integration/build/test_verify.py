"""`verify`: a firmware is built again from its record, and what differs is named with the reason."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk import records, schema
from tests.integration.cli import sdk
from tests.integration.terminal.test_cli import assert_clear
from tests.places import GOLDEN_PTE, ROOT

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The records of a run, beside its model, in a folder with a space."""
    folder = tmp_path_factory.mktemp("a run of ours")
    shutil.copyfile(GOLDEN_PTE / "add_u55.pte", folder / "add_u55.pte")
    outcome = sdk("run", "add_u55.pte", "-o", ".", "-q", cwd=folder)
    assert outcome.code == 0, outcome.err
    return folder


def checks(record: dict[str, Any]) -> dict[str, str]:
    assert schema.problems(record) == []
    return {row["name"]: row["status"] for row in record["checks"]}


def test_a_run_is_reproduced_in_another_folder(made: Path, tmp_path: Path) -> None:
    outcome = sdk("verify", made / "run.json", "--json", cwd=tmp_path)
    assert outcome.code == 0, outcome.err
    record = json.loads(outcome.out)
    assert set(checks(record).values()) == {"agrees"}
    assert checks(record).keys() >= {"model", "elf", "version of arm-none-eabi-g++", "version of qemu"}
    assert record["causes"] == []
    assert list(tmp_path.iterdir()) == []


def test_what_differs_is_named_with_the_cause(made: Path, tmp_path: Path) -> None:
    """A record that claims another firmware, by another compiler; all that is true of it still agrees."""
    record = records.read_json(made / "build.json")
    record["elf"]["sha256"] = "0" * 64
    record["provenance"]["tools"][0]["version"] = "13.2.1"
    records.write_json(tmp_path / "build.json", record)
    outcome = sdk("verify", "build.json", "--model", made / "add_u55.pte", "--json", cwd=tmp_path)
    assert_clear(outcome, 7, "elf", "version of arm-none-eabi-g++")
    found = json.loads(outcome.out)
    states = checks(found)
    assert {name for name, state in states.items() if state == "differs"} == {
        "elf",
        "version of arm-none-eabi-g++",
    }
    assert (states["model"], states["map"]) == ("agrees", "agrees")
    assert "12.2.1 here, 13.2.1 in the record" in found["causes"][0]
    assert "sources, settings and tools are the same" in found["causes"][-1]


def test_a_changed_model_is_a_mismatch(made: Path, tmp_path: Path) -> None:
    data = bytearray((made / "add_u55.pte").read_bytes())
    data[-1] ^= 1
    (tmp_path / "add_u55.pte").write_bytes(data)
    shutil.copyfile(made / "run.json", tmp_path / "run.json")
    outcome = sdk("verify", "run.json", "--json", cwd=tmp_path)
    assert_clear(outcome, 7, "model", "not the one that the record is about")
    assert checks(json.loads(outcome.out)) == {"model": "differs"}


def test_records_that_cannot_be_verified_are_bad_input(made: Path, tmp_path: Path) -> None:
    run = records.read_json(made / "run.json")
    on_host = {**run, "simulator": {**run["simulator"], "name": "host"}}
    on_host["runtime"] = {"name": "executorch", "version": "1.5.1"}
    on_host["provenance"] = {**run["provenance"], "inputs": [run["provenance"]["inputs"][0]]}
    damaged = {key: value for key, value in run.items() if key != "model"}
    examples = ROOT / "schemas" / "examples" / "valid"
    shutil.copyfile(examples / "error.json", tmp_path / "error.json")
    for name, record in (("run", run), ("host", on_host), ("damaged", damaged)):
        records.write_json(tmp_path / f"{name}.json", record)
    (tmp_path / "text.json").write_text("{")
    for name, words in (
        ("missing", "missing.json"),
        ("text", "not JSON"),
        ("damaged", "not a valid record"),
        ("error", "give a build-result/1 or run-result/1"),
        ("host", "without a firmware"),
        ("run", "--model"),
    ):
        assert_clear(sdk("verify", f"{name}.json", cwd=tmp_path), 3, words)
