"""Facts of a run's folder, temporary files in it, and places in the model."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from ethosu_sdk.analysis import debug_command, program_facts
from ethosu_sdk.analysis.options import DebugOptions
from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile import compile_command, program_check
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.program import pte
from ethosu_sdk.records import common, kinds
from ethosu_sdk.records.common import SourceLine
from ethosu_sdk.records.profile import Delegate, Traffic
from ethosu_sdk.records.run_facts import Lifetime, Lifetimes, RunFacts
from tests.places import GOLDEN_PTE
from tests.records import EXAMPLES, example
from tests.tables import each

COMMANDS = Traffic(memory="Sram", port=0, direction="read", kind="commands", beats=0, bytes=0)


def lay(folder: Path, **records: str) -> Path:
    """A folder with examples of records: file name without .json → example."""
    for name, source in records.items():
        (folder / f"{name}.json").write_bytes((EXAMPLES / f"{source}.json").read_bytes())
    return folder


def test_a_run_without_its_own_profile_has_a_reason(tmp_path: Path) -> None:
    record = lay(tmp_path, profile="profile-digits_cnn") / "profile.json"
    assert program_facts.missing_profiles([tmp_path, record, tmp_path / "none"]) == {}
    assert program_facts.facts_of_run(tmp_path) == RunFacts()
    alone = lay(filesystem.make_directory(tmp_path / "alone"), run="run-ds_cnn")
    (found,) = program_facts.missing_profiles([alone]).values()
    assert found.record is None
    assert "is not in" in found.reason
    assert program_facts.facts_of_run(alone) == RunFacts(found)
    lay(tmp_path, run="run-ds_cnn", profile="profile-digits_cnn")
    assert list(program_facts.missing_profiles([tmp_path])) == [tmp_path]


@pytest.mark.parametrize("damaged", ["run", "profile"])
def test_damaged_records_are_left_to_their_readers(damaged: str, tmp_path: Path) -> None:
    lay(tmp_path, run="run-ds_cnn", profile="profile-digits_cnn")
    (tmp_path / f"{damaged}.json").write_text("{}", encoding="utf-8")
    assert program_facts.missing_profiles([tmp_path]) == {}
    assert program_facts.facts_of_run(tmp_path).program is None


def test_lifetimes_and_flows() -> None:
    rows = [
        Lifetime(1, 0, 16, -1, 1, None, "input"),
        Lifetime(1, 8, 32, 1, 2, 0),
        Lifetime(2, 0, 64, 0, 2, 4),
    ]
    found = Lifetimes(0, 1, 64, rows, 3)
    assert found.live_bytes(1) == [16, 32, 24]
    assert found.live_bytes(2) == [64, 64, 64]
    # x + x is one operation, which reads the input and writes the output.
    flow = program_facts.lifetimes_of(pte.read(GOLDEN_PTE / "add_u55.pte")).flows[0]
    assert (flow.edges, flow.inputs, flow.outputs) == ((), ((0,),), ((0,),))


@pytest.mark.parametrize(("name", "step"), [("add_u55", 8), ("add_u85_segment", None)])
def test_the_program_tells_its_modes_and_steps(name: str, step: int | None) -> None:
    program = pte.read(GOLDEN_PTE / f"{name}.pte")
    delegates = tuple(
        Delegate(index=index, calls=1, cycles=(), commands=COMMANDS)
        for index in range(len(program.plan().delegates))
    )
    profile = kinds.PROFILE.convert(example("profile-digits_cnn"))
    found = program_facts.facts_of_program(program, replace(profile, delegates=delegates))
    target = program.target()
    assert target is not None
    assert found.channel_step == step
    assert found.modes[target.memory_mode].cycles > 0
    assert found.modes_reason == ""
    known = program_facts.lifetimes_of(program).lifetimes
    assert known is not None
    assert max(known.live_bytes(1)) <= known.arena_bytes


# --- Large temporary files lie in the folder of results: what a killed command left there goes with the next one.


def _abandoned(folder: Path, name: str) -> Path:
    left = filesystem.make_directory(folder / name)
    (left / "values.npy").write_bytes(b"large")
    return left


def test_of_the_check_of_compile(tmp_path: Path) -> None:
    left = _abandoned(tmp_path, ".check-dead")
    with program_check.prepared_check(True, tmp_path, Reporter(quiet=True)) as wanted:
        assert wanted is not None
        assert [wanted.folder] == list(tmp_path.resolve().iterdir())
    assert not left.exists()
    assert list(tmp_path.iterdir()) == []


def test_of_debug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_options: object) -> Path:
        (own,) = tmp_path.iterdir()
        assert own != left
        raise InputError("nothing is compiled here")

    left = _abandoned(tmp_path, ".debug-dead")
    monkeypatch.setattr(compile_command, "compile_model", refuse)
    with pytest.raises(InputError, match="nothing is compiled here"):
        debug_command.debug("zoo:add", CompileOptions(), DebugOptions(), tmp_path, Reporter(quiet=True))
    assert not left.exists()
    assert list(tmp_path.iterdir()) == []


# --- Where in the model something is, as the tables name it.

FILE, NUMBER = "net.py", 12


@each(
    ("source", "short", "whole"),
    [
        pytest.param(
            SourceLine(file=FILE, line=NUMBER, function="Net.forward", module="head"),
            "head",
            "net.py:12 in Net.forward (head)",
            id="all",
        ),
        pytest.param(
            SourceLine(file=FILE, line=NUMBER, module="head"), "head", "net.py:12 (head)", id="both"
        ),
        pytest.param(SourceLine(file=FILE, line=NUMBER), "net.py:12", "net.py:12", id="line"),
        pytest.param(SourceLine(module="head"), "head", "head", id="module"),
        pytest.param(
            SourceLine(file=FILE, line=NUMBER, module=""), "net.py:12", "net.py:12", id="the model itself"
        ),
        pytest.param(SourceLine(module=""), "", "", id="the model itself, no line"),
        pytest.param(None, "", "", id="no source"),
    ],
)
def test_what_is_known(source: SourceLine | None, short: str, whole: str) -> None:
    assert common.source_name(source) == short
    assert common.source_place(source) == whole
