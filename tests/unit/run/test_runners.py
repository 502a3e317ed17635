"""The table of what can run a program: every choice has a row, and what a row lacks is refused."""

import itertools
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.run import firmware, host, prebuilt, runners
from ethosu_sdk.run.options import RUNTIMES, SIMULATORS, RunOptions
from ethosu_sdk.simulate import simulators
from tests.tables import each

NPU = "ethos-u55"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Only the simulator of the parameter is."""
    monkeypatch.setattr(simulators, "is_installed", lambda name, *_: name == request.param)


@each(("simulator", "runtime"), list(itertools.product(SIMULATORS, RUNTIMES)))
def test_every_choice_has_a_runner(simulator: str, runtime: str) -> None:
    options = RunOptions(simulator=simulator, runtime=runtime)
    assert any(simulator in row.simulators and runtime in row.runtimes for row in runners.RUNNERS)
    if simulator != "host" or runtime == "own":
        runners.check_runner_options(options)


def test_the_digest_of_a_large_program_is_no_hang(tmp_path: Path) -> None:
    program = tmp_path / "large.pte"
    with program.open("wb") as file:
        file.truncate(73_000_000)
    assert RunOptions().idle_timeout_s(program) > 120
    assert RunOptions(timeout_s=20).idle_timeout_s(program) == 20
    program.write_bytes(bytes(1000))
    assert RunOptions().idle_timeout_s(program) == pytest.approx(30, abs=1)


def test_every_refusal_is_about_an_option() -> None:
    known = {row.name for row in fields(RunOptions)}
    assert all(refusal.option in known for row in runners.RUNNERS for refusal in row.refusals)


@each(
    ("options", "message"),
    [
        ({"simulator": "qemuu"}, "unknown simulator 'qemuu'"),
        ({"runtime": "oown"}, "unknown runtime 'oown'"),
        ({"simulator": "host", "board": "corstone-300"}, "the host simulator has no board"),
        ({"simulator": "host", "resident": True}, "the host simulator has no firmware"),
        ({"simulator": "host", "runtime": "both"}, "--runtime chooses what runs on a board"),
        ({"simulator": "host", "split": True}, "--split runs on the SDK's own firmware"),
        ({"simulator": "host", "fast": True}, "--fast is for the FVP"),
        ({"simulator": "qemu", "simulated_limit_s": 3.0}, "--simulated-limit is for the FVP"),
        ({"simulator": "fvp", "memory_timing": "executorch"}, "the FVP has timing adapters of its own"),
        ({"runtime": "both", "memory_timing": "executorch"}, "--memory-timing is for the SDK's own firmware"),
        ({"runtime": "executorch", "resident": True}, "--resident is for the SDK's own firmware"),
        ({"runtime": "executorch", "split": True}, "--split runs on the SDK's own firmware"),
        ({"runtime": "executorch", "fast": True}, "--fast is for the FVP: Arm's runner runs on QEMU"),
    ],
)
def test_what_no_runner_has_is_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        runners.check_runner_options(RunOptions(**options))
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("installed", "refused", "taken"),
    [
        ("qemu", {"fast": True}, {"memory_timing": "executorch"}),
        ("fvp", {"memory_timing": "x"}, {"fast": True}),
    ],
    indirect=["installed"],
)
def test_auto_takes_the_installed_simulator_and_its_refusals(
    installed: None, refused: dict[str, Any], taken: dict[str, Any]
) -> None:
    runners.check_runner_options(RunOptions(**refused))  # another simulator would have it
    with pytest.raises(UsageError):
        runners.choose_runner(RunOptions(**refused), NPU)
    runner, choice = runners.choose_runner(RunOptions(**taken), NPU)
    assert (runner.execute, choice.board) == (firmware.execute, "corstone-300")
    assert choice.simulator in runner.simulators


@pytest.mark.parametrize("installed", ["qemu"], indirect=True)
def test_runtimes_and_host_have_runners_of_their_own(installed: None) -> None:
    found = {
        name: runners.choose_runner(RunOptions(**{name: value}), NPU)[0].execute
        for name, value in (("simulator", "host"), ("runtime", "executorch"))
    }
    assert found == {"simulator": host.execute, "runtime": prebuilt.execute}
    runner, choice = runners.choose_runner(RunOptions(runtime="both"), "ethos-u85")
    assert runner.execute is runners.execute_both
    assert choice.board == "corstone-300"  # the firmware's; Arm's runner has its own
