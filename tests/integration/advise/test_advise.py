"""`advise`: each rule's advice is followed; the second record has the gain; without its pattern a rule is silent."""

from pathlib import Path

import pytest

from tests.integration.advise.programs import AS_WRITTEN, Advised, advised, compiled, model

pytestmark = [pytest.mark.torch]

# Of the cycles that a rule expects to save, what the second record has to have, at least and at most.
LEAST, MOST = 0.8, 1.25


def check_saved(rule: str, before: Advised, after: Advised) -> None:
    """The cycles that `rule` promised are saved, by the profile of the program that was compiled again."""
    stated, expected = before.expected(rule, "NPU cycles")
    assert stated == before.npu_cycles
    saved = before.npu_cycles - after.npu_cycles
    assert LEAST < saved / (stated - expected) < MOST


@pytest.fixture(scope="module")
def channels_last(plain: Advised, place: Path) -> Advised:
    """The network with the lines that channels-last-input advises."""
    lines = plain.one("channels-last-input")["code"]
    (place / "nhwc.py").write_text(model(*lines), encoding="utf-8")
    return advised("nhwc.py", place, "nhwc", AS_WRITTEN)


@pytest.fixture(scope="module")
def convolved(plain: Advised, place: Path) -> Advised:
    """The network with the lines that flatten-as-convolution advises."""
    lines = plain.one("flatten-as-convolution")["code"]
    (place / "convolved.py").write_text(model(*lines, flatten=False), encoding="utf-8")
    return advised("convolved.py", place, "convolved", AS_WRITTEN)


def test_channels_last_input(plain: Advised, channels_last: Advised) -> None:
    check_saved("channels-last-input", plain, channels_last)
    assert channels_last.find("channels-last-input") == []
    first = next(row for row in channels_last.profile["operations"] if row["runs_on"] == "NPU")
    assert first["tosa"]["operator"] == "CONV2D"


def test_flatten_as_convolution(plain: Advised, convolved: Advised) -> None:
    check_saved("flatten-as-convolution", plain, convolved)
    assert convolved.find("flatten-as-convolution") == []
    assert convolved.find("channels-last-input"), "which was not followed"


def test_memory_mode(plain: Advised, place: Path) -> None:
    program = compiled(place, plain.one("memory-mode")["command"], "near")
    near = advised(program, place, "near")
    assert near.profile["target"]["memory_mode"] == "Sram_Only"
    check_saved("memory-mode", plain, near)
    assert near.find("memory-mode") == []


def test_quantised_io(plain: Advised, place: Path) -> None:
    program = compiled(place, plain.one("quantised-io")["command"], "int8")
    done = advised(program, place, "int8")
    before, after = plain.expected("quantised-io", "CPU operators")
    calls = [sum(row["runs_on"] == "CPU" for row in run.profile["operations"]) for run in (plain, done)]
    assert calls == [before, after] == [2, 0]
    assert done.find("quantised-io") == []
