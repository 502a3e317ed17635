"""Facts of a run's folder: what cannot be known has a reason, and whoever reads the records refuses damaged ones."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from ethosu_sdk import pte
from ethosu_sdk.records import kinds
from ethosu_sdk.records.profile import Delegate, Traffic
from ethosu_sdk.results.run_facts import Lifetime, Lifetimes, RunFacts
from ethosu_sdk.steps.run_facts import gathering, lifetimes, profiles, programs
from tests.places import GOLDEN_PTE, ROOT

EXAMPLES = ROOT / "schemas" / "examples" / "valid"
COMMANDS = Traffic(memory="Sram", port=0, direction="read", kind="commands", beats=0, bytes=0)


def lay(folder: Path, **records: str) -> Path:
    """A folder with examples of records: file name without .json → example."""
    for name, example in records.items():
        (folder / f"{name}.json").write_bytes((EXAMPLES / f"{example}.json").read_bytes())
    return folder


def test_what_holds_no_run_needs_no_profile(tmp_path: Path) -> None:
    record = lay(tmp_path, profile="profile-digits_cnn") / "profile.json"
    assert profiles.missing([tmp_path, record, tmp_path / "none"]) == {}
    assert gathering.of(tmp_path) == RunFacts()


def test_a_run_without_its_program_has_a_reason(tmp_path: Path) -> None:
    lay(tmp_path, run="run-ds_cnn")
    (found,) = profiles.missing([tmp_path]).values()
    assert found.record is None
    assert "is not in" in found.reason
    assert gathering.of(tmp_path) == RunFacts(found)


def test_a_profile_of_another_run_does_not_count(tmp_path: Path) -> None:
    lay(tmp_path, run="run-ds_cnn", profile="profile-digits_cnn")
    assert list(profiles.missing([tmp_path])) == [tmp_path]


@pytest.mark.parametrize("damaged", ["run", "profile"])
def test_damaged_records_are_left_to_their_readers(damaged: str, tmp_path: Path) -> None:
    lay(tmp_path, run="run-ds_cnn", profile="profile-digits_cnn")
    (tmp_path / f"{damaged}.json").write_text("{}", encoding="utf-8")
    assert profiles.missing([tmp_path]) == {}
    assert gathering.of(tmp_path).program is None


def test_bytes_that_two_lifetimes_share_count_once() -> None:
    rows = [
        Lifetime(1, 0, 16, -1, 1, None, "input"),
        Lifetime(1, 8, 32, 1, 2, 0),
        Lifetime(2, 0, 64, 0, 2, 4),
    ]
    found = Lifetimes(0, 1, 64, rows, 3)
    assert found.live_bytes(1) == [16, 32, 24]
    assert found.live_bytes(2) == [64, 64, 64]


def test_the_flow_of_a_sum() -> None:
    """x + x is one operation, which reads the input and writes the output."""
    flow = lifetimes.of(pte.read(GOLDEN_PTE / "add_u55.pte")).flows[0]
    assert (flow.edges, flow.inputs, flow.outputs) == ((), ((0,),), ((0,),))


@pytest.mark.parametrize(("name", "step"), [("add_u55", 8), ("add_u85_segment", None)])
def test_the_program_tells_its_modes_and_steps(name: str, step: int | None) -> None:
    program = pte.read(GOLDEN_PTE / f"{name}.pte")
    delegates = tuple(
        Delegate(index=index, calls=1, cycles=(), commands=COMMANDS)
        for index in range(len(program.plan().delegates))
    )
    profile = kinds.PROFILE.convert(json.loads((EXAMPLES / "profile-digits_cnn.json").read_bytes()))
    found = programs.of(program, replace(profile, delegates=delegates))
    target = program.target()
    assert target is not None
    assert found.channel_step == step
    assert found.modes[target.memory_mode].cycles > 0
    assert found.modes_reason == ""
    known = lifetimes.of(program).lifetimes
    assert known is not None
    assert max(known.live_bytes(1)) <= known.arena_bytes
