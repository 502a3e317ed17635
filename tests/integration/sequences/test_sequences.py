"""docs/guide/sequences.md, command by command; then what a sequence must prove: the same steps one by one, on host
and board, from a saved state, after a kill; and what is not as expected is named."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import KeptFolder
from tests.integration import guide
from tests.integration.cli import COMMAND, Outcome, assert_clear, sdk, sdk_ok
from tests.places import ROOT
from tests.records import read, valid

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]
GREEDY = ("--feed", "argmax(output0):input0", "--feed", "step:input1")


@pytest.fixture(scope="module")
def page(kept_folder: KeptFolder, qemu_plugin: Path) -> Path:
    """A folder in which the page's files are, and its commands have run."""

    def make(folder: Path) -> None:
        guide.run("sequences.md", folder, count=10)

    return kept_folder("sequences", make, ROOT / "docs" / "guide" / "sequences.md", own=True)


def outputs(folder: Path) -> np.ndarray:
    with np.load(folder / "outputs.npz") as file:
        return file["output0"]


def record(folder: Path) -> dict[str, Any]:
    return valid(folder / "run.json")


def chosen(folder: Path) -> list[int]:
    return [row["choices"][0]["values"][0] for row in record(folder)["sequence"]["steps"]]


def run(page: Path, program: str, out: str, *options: str) -> Outcome:
    return sdk("run", f"build/{program}.pte", "-o", out, "--json", *options, cwd=page)


def test_every_folder_of_the_page_is_as_its_manifest_says(page: Path) -> None:
    """Also that of two programs, with the steps of one in PyTorch; they go when the feeds go."""
    for name in ("build", "whole", "first", "rest", "judged", "greedy", "drawn", "phases"):
        sdk_ok("validate", name, cwd=page)


def test_steps_of_an_earlier_compilation_are_gone(page: Path, tmp_path: Path) -> None:
    shutil.copytree(page / "build", tmp_path / "build")
    source = (page / "tokens.py").read_text(encoding="utf-8")
    (tmp_path / "tokens.py").write_text(re.sub(r"(?m)^feeds = .*$", "", source), encoding="utf-8")
    (tmp_path / "build" / "notes.txt").write_text("the user's own")
    sdk_ok("compile", "tokens.py", "--target", "ethos-u55-128", "-o", "build", "-q", cwd=tmp_path)
    assert not (tmp_path / "build" / "tokens.steps.npz").exists()
    assert (tmp_path / "build" / "keywords.pte").is_file()
    assert_clear(sdk("validate", "build", cwd=tmp_path), 3, "notes.txt is extra")
    (tmp_path / "build" / "notes.txt").unlink()
    sdk_ok("validate", "build", cwd=tmp_path)


def test_a_saved_state_goes_on_as_if_nothing_had_happened(page: Path) -> None:
    """100 frames in one go, and in two with a file between them: outputs and state."""
    whole, first, rest = (record(page / name) for name in ("whole", "first", "rest"))
    parts = np.concatenate([outputs(page / "first"), outputs(page / "rest")])
    assert outputs(page / "whole").tobytes() == parts.tobytes()
    states = [[row["state_crc32"] for row in run["sequence"]["steps"]] for run in (whole, first, rest)]
    assert len({*map(tuple, states[0])}) == 100  # it changes with every frame
    assert states[0] == states[1] + states[2]
    assert (whole["state"]["begins_with"], rest["state"]["begins_with"]) == ("program", "file")
    assert rest["state"]["steps_before"] == 57
    compiled = read(page / "build" / "keywords.compile.json")["state"][0]
    for found in (whole, record(page / "judged")):
        tensor = found["state"]["tensors"][0]
        assert {name: tensor[name] for name in compiled} == compiled
    assert record(page / "judged")["state"]["tensors"][0]["memory"] == "DDR"


def test_a_killed_run_leaves_nothing_and_can_be_made_again(page: Path) -> None:
    """The saved state stays the old one until a run is complete."""
    before = (page / "pause.npz").read_bytes()
    options = ("--inputs", "first.npz", "--save-state", "pause.npz")
    words = (COMMAND, "run", "build/keywords.pte", *options, "-o", "killed")
    process = subprocess.Popen(words, cwd=page, stdout=subprocess.DEVNULL)
    log = page / "killed" / "uart.log"
    for _ in range(1200):
        if log.is_file() and b" inference " in log.read_bytes():
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL  # in the middle of the frames
    assert (page / "pause.npz").read_bytes() == before
    assert not (page / "killed" / "run.json").exists()
    assert run(page, "keywords", "killed", *options).code == 0
    assert outputs(page / "killed").tobytes() == outputs(page / "judged").tobytes()


def test_the_first_step_beyond_the_tolerance_is_named(page: Path) -> None:
    wrong = outputs(page / "first").copy()
    wrong[5] += 0.25
    wrong[9] += 8
    np.savez(page / "wrong.npz", output0=wrong)
    options = ("--simulator", "host", "--inputs", "first.npz", "--expect", "wrong.npz", "--atol", "0.05")
    outcome = run(page, "keywords", "beyond", *options)
    assert outcome.code == 7
    assert "step 5 of 57 is the first beyond the tolerance" in outcome.err
    sequence = record(page / "beyond")["sequence"]
    assert sequence["first_beyond"] == 5
    assert [row["step"] for row in sequence["steps"] if row["status"] == "fail"] == [5, 9]
    assert run(page, "keywords", "grown", *options, "--growth", "1").code == 7
    grown = record(page / "grown")["sequence"]  # step 5 may differ by 0.05 · 6, step 9 by 0.05 · 10
    assert (grown["first_beyond"], grown["tolerance"]["growth"]) == (9, 1.0)


def test_fed_steps_are_those_that_are_given_one_by_one(page: Path) -> None:
    """The board's own choices, given back as inputs without any feed, give the same outputs; and they are NumPy's."""
    found, tokens = outputs(page / "greedy"), chosen(page / "greedy")
    assert [int(row.argmax()) for row in found] == tokens
    with np.load(page / "build" / "tokens.steps.npz") as torch_steps:
        assert [int(row.argmax()) for row in torch_steps["output0"]] == tokens
    given = {
        "input0": np.array([[1], *([token] for token in tokens[:-1])], np.int64),
        "input1": np.arange(20, dtype=np.int64).reshape(20, 1),
    }
    np.savez(page / "given.npz", **given)
    assert run(page, "tokens", "given", "--inputs", "given.npz").code == 0
    assert outputs(page / "given").tobytes() == found.tobytes()
    given["input0"][7] += 1
    np.savez(page / "other.npz", **given)
    assert run(page, "tokens", "other", "--simulator", "host", "--inputs", "other.npz").code == 0
    assert outputs(page / "other").tobytes() != found.tobytes()


def test_a_prompt_is_taken_before_the_feeds(page: Path) -> None:
    prompt = {"input0": np.array([[1], [40], [3]], np.int64), "input1": np.array([0], np.int64)}
    np.savez(page / "prompt.npz", **prompt)
    for simulator in ("qemu", "host"):
        options = ("--simulator", simulator, "--inputs", "prompt.npz", "--steps", "6", *GREEDY)
        assert run(page, "tokens", f"prompt-{simulator}", *options).code == 0
    found = outputs(page / "prompt-qemu")
    assert outputs(page / "prompt-host").tobytes() == found.tobytes()
    steps = record(page / "prompt-qemu")["sequence"]["steps"]
    assert ["choices" in row for row in steps] == [False, False, True, True, True, True]
    # PyTorch's steps begin with the first token alone: they are another sequence.
    assert "reference" not in record(page / "prompt-host")


def test_pytorchs_steps_are_a_reference_for_runs_that_are_no_longer(page: Path) -> None:
    host = ("--simulator", "host", "--steps")
    assert run(page, "tokens", "last", *host, "20", "--outputs", "last").code == 0
    found = record(page / "last")["reference"]
    assert (found["steps"], found["outputs"][0]["equal"]) == (1, 50)
    assert "output0 1 of 20 steps: equal to the outputs" in shown(page, *host, "20", "--outputs", "last")
    assert "output0 10 of 10 steps: equal to the outputs" in shown(page, *host, "10")
    assert record(page / "shown")["reference"]["steps"] == 10
    for options in ((), ("--outputs", "last")):
        said = shown(page, *host, "60", *options)
        assert "outputs not compared with PyTorch: tokens.steps.npz has 20 steps, the run 60" in said
        assert "reference" not in record(page / "shown")


def shown(page: Path, *options: str) -> str:
    """What `run` prints for people of the tokens' program, in one line."""
    outcome = sdk("run", "build/tokens.pte", "-v", "-o", "shown", *options, cwd=page, env={"COLUMNS": "400"})
    assert outcome.code == 0, outcome.err
    return " ".join((outcome.out + outcome.err).split())


def test_a_sequence_that_ends_early_has_not_passed(page: Path) -> None:
    stop = chosen(page / "greedy")[3]
    at = chosen(page / "greedy").index(stop)
    feeds = ("--feed", f"argmax(output0, stop={stop}):input0", "--feed", "step:input1")
    expected = ("--simulator", "host", "--steps", "20", "--expect", "greedy/outputs.npz")
    for which in ("all", "last"):
        outcome = run(page, "tokens", f"early-{which}", *expected, *feeds, "--outputs", which)
        assert outcome.code == 7
        assert f"the sequence ended after {at + 1} steps, 20 are expected" in outcome.err
    assert run(page, "tokens", "late", *expected, *GREEDY, "--outputs", "last").code == 0


def test_samples_are_the_same_on_board_and_host(page: Path) -> None:
    drawn = record(page / "drawn")
    feed = drawn["sequence"]["feeds"][0]
    assert outputs(page / "drawn").shape == (1, 1, 50)
    assert drawn["inferences"] == len(drawn["sequence"]["steps"]) <= 40
    for name, text in (("host", feed), ("seed", feed.replace("seed=5", "seed=6"))):
        options = ("--simulator", "host", "--steps", "40", "--feed", text, "--feed", "step:input1")
        assert run(page, "tokens", f"drawn-{name}", *options).code == 0
    tokens = chosen(page / "drawn")
    assert chosen(page / "drawn-host") == tokens
    assert chosen(page / "drawn-seed") != tokens
    assert tokens.index(30) == len(tokens) - 1 or (30 not in tokens and len(tokens) == 40)
    assert outputs(page / "drawn-host")[-1].tobytes() == outputs(page / "drawn")[0].tobytes()


def test_the_call_that_writes_a_state_has_its_reason(page: Path) -> None:
    """Conversions of outputs stand beside these calls, and are not made for them."""
    outcome = sdk_ok("advise", "build/keywords.pte", "--json", "-o", "advised", cwd=page)
    rows = {row["name"]: row for row in json.loads(outcome.out)["cpu"]}
    state = rows["aten::copy_"]
    assert state["why"].startswith("it writes a new value into a buffer that the program keeps")
    assert "border_cycles" not in state
    converts = rows["quantized_decomposed::dequantize_per_tensor.out"]
    assert converts["why"] == "conversion between floating point and quantised values"


def test_phases_are_in_the_profile(page: Path) -> None:
    profile = read(page / "phases" / "profile.json")
    steps = record(page / "phases")["sequence"]["steps"]
    assert [(row["name"], row["steps"]) for row in profile["phases"]] == [("prefill", 4), ("decode", 16)]
    total = sum(row["npu_cycles"]["total"] for row in profile["phases"])
    assert total == sum(row["npu_cycles"] for row in steps) > 0
    assert run(page, "tokens", "build", "--simulator", "host", "--steps", "5").code == 0
    outcome = sdk_ok("profile", "build", "--json", "-o", "again", cwd=page)
    names = [row["name"] for row in json.loads(outcome.out)["phases"]]
    assert names == ["first step", "steady state"]
    assert sdk("profile", "build", "--prefill", "5", cwd=page).code == 2


@pytest.mark.parametrize(
    ("program", "options", "code", "reason"),
    [
        ("tokens", ("--feed", "argmax(output0):input0"), 2, "how many steps"),
        ("tokens", ("--steps", "3", "--feed", "output0:input0"), 2, "an output is fed as it is"),
        ("tokens", ("--steps", "3", "--feed", "nothing"), 2, "is not a feed"),
        ("tokens", ("--steps", "3", "--save-state", "s.npz"), 2, "keeps no state"),
        ("tokens", ("--inputs", "given.npz", "--growth", "1"), 2, "--growth is for steps"),
        ("keywords", ("--inputs", "frames.npz", "--steps", "3"), 3, "the sequence has 3"),
        ("keywords", ("--state", "frames.npz"), 3, "not a saved state"),
        ("keywords", ("--state", "foreign.npz"), 3, "of another program"),
    ],
)
def test_what_does_not_fit_is_refused(
    page: Path, program: str, options: tuple[str, ...], code: int, reason: str
) -> None:
    with np.load(page / "pause.npz") as saved:
        np.savez(page / "foreign.npz", **{**saved, "program_sha256": np.zeros(32, np.uint8)})
    np.savez(page / "given.npz", input0=np.zeros((2, 1), np.int64), input1=np.zeros((2, 1), np.int64))
    outcome = run(page, program, "refused", "--simulator", "host", *options)
    assert outcome.code == code, outcome.err
    assert reason in outcome.err
    assert "Traceback" not in outcome.err
