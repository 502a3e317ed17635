"""Progress for people: a line for each step that took long, plain where nobody watches."""

import pytest

from ethosu_sdk.base import plain_text, terminal
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import Reporter


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, in seconds, which stands still until a test moves it."""
    now = [100.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    return now


def test_steps_that_end_after_long_get_a_line(clock: list[float], capsys: pytest.CaptureFixture[str]) -> None:
    with Reporter().stage("compiling [bold]net.py[/bold]") as step:
        for name, seconds in (
            ("import", 2.9),
            ("export", 3.0),
            ("lower: pass 1 of 9", 2.0),
            ("lower: Vela", 2.5),
        ):
            step(name)
            clock[0] += seconds
    err = capsys.readouterr().err
    assert err.splitlines() == ["·   export (3.0 s)", "·   lower (4.5 s)", "· compiling net.py (10.4 s)"]

    def fail() -> None:
        with Reporter().stage("compiling") as step:
            step("lower")
            clock[0] += 9
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert capsys.readouterr().err == ""


def test_what_took_no_time_is_told_if_all_is_asked_for(
    clock: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    for verbose in (False, True):
        reporter = Reporter(verbose=verbose)
        with reporter.stage("checking"):
            clock[0] += 0.2
        reporter.detail("net.pte is up to date")
    assert capsys.readouterr().err.splitlines() == ["· checking (0.2 s)", "· net.pte is up to date"]


def test_lines_are_broken_at_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    Reporter().warn("the memory of the board is smaller than the program")
    assert capsys.readouterr().err.splitlines() == [
        "warning: the memory of the",
        "         board is smaller than",
        "         the program",
    ]
    text = "the memory of the board is smaller\nthan the program"
    assert plain_text.message("error", text, 20).splitlines() == [
        *("error: the memory of", "  the board is", "  smaller"),
        "  than the program",
    ]


def test_the_spinner_shows_the_step_and_its_seconds(clock: list[float]) -> None:
    steps = terminal._Steps("compiling [bold]net.py[/bold]", lambda line: None)
    clock[0] += 2
    assert steps.__rich__().plain == "compiling net.py … 2 s"
    steps.at("lower")
    clock[0] += 1
    steps.at("lower: delegate 1, pass 34 of 150")
    clock[0] += 7.6
    assert steps.__rich__().plain == "compiling net.py: lower: delegate 1, pass 34 of 150 … 8 s"


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 samples"), (1, "1 sample"), (2, "2 samples"), (12_345, "12,345 samples")]
)
def test_one_has_no_plural(count: int, words: str) -> None:
    assert counted(count, "sample") == words
