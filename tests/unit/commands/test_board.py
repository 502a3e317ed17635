"""The one rule by which `build` and `run` choose a board, with simulators that are installed or not."""

import pytest

from ethosu_sdk import simulators
from ethosu_sdk.errors import UsageError
from ethosu_sdk.steps.shared import board


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Only the simulators of the parameter are; the FVP of SSE-320 is meant, for Ethos-U85."""
    there: tuple[object, ...] = request.param
    monkeypatch.setattr(
        simulators, "is_installed", lambda name, npu="", board=None: (name, board) in there or name in there
    )


@pytest.mark.parametrize(
    ("installed", "simulator", "chosen", "words"),
    [
        (("qemu",), "qemu", "corstone-300", "(qemu is installed here)"),
        (
            ("qemu", "fvp"),
            "qemu",
            "corstone-300",
            "qemu has ethos-u85 on this board, and corstone-320 only when asked for",
        ),
        (("fvp",), "fvp", "corstone-320", "(fvp is installed here, qemu is not)"),
    ],
    indirect=["installed"],
)
def test_build_and_run_take_the_same(installed: None, simulator: str, chosen: str, words: str) -> None:
    built, ran = board.for_build("ethos-u85", None), board.for_run("ethos-u85", None, "auto")
    assert built == ran
    assert (ran.board, ran.simulator) == (chosen, simulator)
    assert words in ran.reason


@pytest.mark.parametrize("installed", [()], indirect=True)
def test_without_a_simulator_it_is_the_npus_own_board(installed: None) -> None:
    choice = board.for_build("ethos-u85", None)
    assert (choice.board, choice.simulator) == ("corstone-320", "")
    assert "no simulator is installed here" in choice.reason
    ran = board.for_run("ethos-u55", None, "auto")  # which says what to install
    assert ran.simulator == "qemu"


STOCK_QEMU = (("qemu", None), ("qemu", "corstone-300"))
OWN_QEMU = (*STOCK_QEMU, ("qemu", "corstone-320"))


@pytest.mark.parametrize("installed", [(*STOCK_QEMU, "fvp")], indirect=True)
def test_a_wish_counts(installed: None) -> None:
    assert board.for_build("ethos-u85", "corstone-320") == board.Choice(
        "corstone-320", "", "asked for with --board"
    )
    ran = board.for_run("ethos-u85", "corstone-320", "auto")  # Debian's QEMU has no such board
    assert (ran.board, ran.simulator) == ("corstone-320", "fvp")
    ran = board.for_run("ethos-u85", None, "fvp")
    assert (ran.board, ran.reason) == ("corstone-320", "the board of ethos-u85 (fvp was asked for)")
    assert board.for_run(None, "corstone-320", "auto").simulator == "fvp"


@pytest.mark.parametrize("installed", [OWN_QEMU, (*OWN_QEMU, "fvp")], indirect=True)
def test_our_own_qemu_changes_no_default(installed: None) -> None:
    assert board.for_run("ethos-u85", None, "auto").board == "corstone-300"
    assert board.for_run("ethos-u85", None, "qemu").board == "corstone-300"
    assert board.for_build("ethos-u85", None).board == "corstone-300"
    ran = board.for_run("ethos-u85", "corstone-320", "auto")
    assert (ran.board, ran.simulator) == ("corstone-320", "qemu")


@pytest.mark.parametrize("installed", [STOCK_QEMU], indirect=True)
def test_a_board_that_no_installed_simulator_has_is_left_to_qemu_to_ask_for(installed: None) -> None:
    assert board.for_run("ethos-u85", "corstone-320", "auto").simulator == "qemu"


@pytest.mark.parametrize("installed", [("qemu",)], indirect=True)
def test_an_unknown_board_is_a_usage_error(installed: None) -> None:
    with pytest.raises(UsageError, match="no firmware can be built for board 'corstone-3'"):
        board.for_run("ethos-u85", "corstone-3", "auto")
