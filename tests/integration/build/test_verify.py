"""`verify`: a firmware is built again from its record, and what differs is named with the reason."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from ethosu_sdk.base import filesystem, json_text, tools
from ethosu_sdk.base.errors import SimulationError
from ethosu_sdk.records import validation
from ethosu_sdk.simulate.qemu import firmware_image, machine
from ethosu_sdk.simulate.qemu.machine import MachineOptions
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.integration.conftest import FinishedRun
from tests.places import GOLDEN_PTE, ROOT
from tests.records import printed

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]


@pytest.fixture(scope="module")
def made(finished_run: FinishedRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The records of a run, beside its model, in a folder with a space."""
    folder = tmp_path_factory.mktemp("verified") / "a run of ours"
    shutil.copytree(finished_run(GOLDEN_PTE / "add_u55.pte"), folder)
    shutil.copyfile(GOLDEN_PTE / "add_u55.pte", folder / "add_u55.pte")
    return folder


def checks(record: dict[str, Any]) -> dict[str, str]:
    assert validation.record_problems(record) == []
    return {row["name"]: row["status"] for row in record["checks"]}


def test_a_run_is_reproduced_in_another_folder(made: Path, tmp_path: Path) -> None:
    record = printed(sdk("verify", made / "run.json", "--json", cwd=tmp_path, fresh=True))
    assert set(checks(record).values()) == {"agrees"}
    assert checks(record).keys() >= {"model", "elf", "version of arm-none-eabi-g++", "version of qemu"}
    assert record["causes"] == []
    assert checks(record)["figures"] == "agrees"
    assert list(tmp_path.iterdir()) == []


def test_a_figure_that_was_changed_is_not_reproduced(made: Path, tmp_path: Path) -> None:
    record = json_text.read_json(made / "run.json")
    record["npu"]["cycles"]["value"] += 1
    json_text.write_json(tmp_path / "run.json", record)
    outcome = sdk("verify", "run.json", "--model", made / "add_u55.pte", "--json", cwd=tmp_path)
    assert_clear(outcome, 7, "/npu/cycles/value")
    found = json.loads(outcome.out)
    states = checks(found)
    assert {name for name, state in states.items() if state == "differs"} == {"figures", "/npu/cycles/value"}
    assert (states["elf"], states["model"]) == ("agrees", "agrees")
    assert "the record was changed" in found["causes"][-1]


def test_the_segments_that_the_guest_held_are_those_of_the_elf(made: Path) -> None:
    runtime = json_text.read_json(made / "run.json")["runtime"]
    with (made / "executor_runner.elf").open("rb") as stream:
        segments = [row for row in ELFFile(stream).iter_segments("PT_LOAD") if row["p_filesz"]]
        wanted = [(row["p_paddr"], hashlib.sha256(row.data()).hexdigest()) for row in segments]
    assert [(row["address"], row["sha256"]) for row in runtime["loaded"]["segments"]] == wanted
    assert runtime["elf_sha256"] == filesystem.sha256_file(made / "executor_runner.elf")


def test_another_elf_than_the_guest_holds_is_refused(made: Path, tmp_path: Path) -> None:
    """A copy with one other byte in a segment, compared with what QEMU loaded of the ELF itself."""
    elf = made / "executor_runner.elf"
    data = bytearray(elf.read_bytes())
    with elf.open("rb") as stream:
        segment = next(row for row in ELFFile(stream).iter_segments("PT_LOAD") if row["p_filesz"])
    data[segment["p_offset"] + 7] ^= 1
    (tmp_path / "other.elf").write_bytes(data)
    program = str(tools.require("qemu-system-arm").path)
    with (
        (tmp_path / "uart.log").open("wb") as uart,
        machine.start_machine(program, elf, (uart,), MachineOptions()) as started,
    ):
        started.gdb.handshake()
        assert firmware_image.compare_loaded(elf, started).sha256 == filesystem.sha256_file(elf)
        with pytest.raises(SimulationError, match="did not load"):
            firmware_image.compare_loaded(tmp_path / "other.elf", started)


def test_what_differs_is_named_with_the_cause(made: Path, tmp_path: Path) -> None:
    """A record that claims another firmware, by another compiler; all that is true of it still agrees."""
    record = json_text.read_json(made / "build.json")
    record["elf"]["sha256"] = "0" * 64
    record["provenance"]["tools"][0]["version"] = "13.2.1"
    json_text.write_json(tmp_path / "build.json", record)
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
    run = json_text.read_json(made / "run.json")
    on_host = {**run, "simulator": {**run["simulator"], "name": "host"}}
    on_host["runtime"] = {"name": "executorch", "version": "1.5.1"}
    on_host["provenance"] = {**run["provenance"], "inputs": [run["provenance"]["inputs"][0]]}
    damaged = {key: value for key, value in run.items() if key != "model"}
    examples = ROOT / "schemas" / "examples" / "valid"
    shutil.copyfile(examples / "error.json", tmp_path / "error.json")
    for name, record in (("run", run), ("host", on_host), ("damaged", damaged)):
        json_text.write_json(tmp_path / f"{name}.json", record)
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


def test_a_run_that_kept_its_state_is_reproduced_with_it(tmp_path: Path) -> None:
    program = GOLDEN_PTE / "counter.pte"
    words = ("run", program, "-o", "out", "-q", "--resident", "--repeat", "3", "--keep-state")
    assert sdk(*words, "--save-state", "s.npz", cwd=tmp_path).code == 0
    outcome = sdk_ok("verify", tmp_path / "out" / "run.json", "--model", program, "--json", cwd=tmp_path)
    assert checks(json.loads(outcome.out))["figures"] == "agrees"


FED = ("--steps", "6", "--feed", "output0:input0", "--outputs", "last")


def test_a_sequence_is_reproduced_step_by_step(tmp_path: Path) -> None:
    """Of which the board sent the last outputs alone. All but the one figure that was changed is found again."""
    program = GOLDEN_PTE / "counter.pte"
    sdk_ok("run", program, *FED, "-o", "out", "-q", cwd=tmp_path)
    record = json_text.read_json(tmp_path / "out" / "run.json")
    record["sequence"]["steps"][3]["state_crc32"] = ["00000000"]
    json_text.write_json(tmp_path / "run.json", record)
    outcome = sdk("verify", "run.json", "--model", program, "--json", cwd=tmp_path)
    assert_clear(outcome, 7, "/sequence/steps/3/state_crc32/0")
    differing = {name for name, state in checks(json.loads(outcome.out)).items() if state != "agrees"}
    assert differing == {"figures", "/sequence/steps/3/state_crc32/0"}


def test_a_run_that_went_on_from_a_file_is_not_compared(tmp_path: Path) -> None:
    """The state is not here: the firmware is built again, and no figure is called another."""
    program = GOLDEN_PTE / "counter.pte"
    sdk_ok("run", program, "--simulator", "host", "--save-state", "s.npz", "-o", "first", "-q", cwd=tmp_path)
    sdk_ok("run", program, "--state", "s.npz", "-o", "out", "-q", cwd=tmp_path)
    outcome = sdk_ok("verify", "out/run.json", "--model", program, "--json", cwd=tmp_path)
    record = json.loads(outcome.out)
    assert checks(record)["figures"] == "unknown"
    assert "began with the state in s.npz" in record["causes"][0]


def test_a_call_of_a_script_is_not_run_alone(tmp_path: Path) -> None:
    program = GOLDEN_PTE / "counter.pte"
    (tmp_path / "calls.toml").write_text('[[call]]\nmethod = "forward"\n[[call]]\nmethod = "forward"\n')
    sdk_ok("run", program, "--script", "calls.toml", "-o", "out", "-q", cwd=tmp_path)
    outcome = sdk("verify", "out/calls/1-forward/run.json", "--model", program, cwd=tmp_path)
    assert_clear(outcome, 3, "describes a call of the script calls.toml")
