"""A saved state takes the place of nothing else, goes on only with its record, and has its names from the `.pte`."""

import json
import os
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base import filesystem
from ethosu_sdk.program import pte
from ethosu_sdk.run import kept_state
from tests import processes
from tests.integration.cli import Outcome, assert_clear, sdk, sdk_ok
from tests.places import GOLDEN_PTE, ROOT
from tests.records import valid
from tests.tables import each

HOST = ("--simulator", "host", "--inputs", "inputs.npz")
STEPS = 5


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A program that counts, with inputs and what they give, the state after them and a folder of a run."""
    shutil.copyfile(GOLDEN_PTE / "counter.pte", tmp_path / "counter.pte")
    np.savez(tmp_path / "inputs.npz", input0=np.ones((STEPS, 2), np.float32))
    assert save(tmp_path, "state.npz").code == 0
    shutil.copyfile(tmp_path / "out" / "outputs.npz", tmp_path / "expected.npz")
    return tmp_path


def save(folder: Path, to: str, *options: str) -> Outcome:
    return sdk("run", "counter.pte", *HOST, "-o", "out", "--save-state", to, *options, cwd=folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_no_other_file_is_replaced(work: Path) -> None:
    """The program, inputs, expected outputs, results of the run or of others; also by another name of theirs."""
    (work / "link.npz").symlink_to("inputs.npz")
    (work / "hard.npz").hardlink_to(work / "counter.pte")
    (work / "folder").symlink_to(".")
    (work / "notes.txt").write_text("the user's own\n")
    names = (
        "counter.pte",
        "inputs.npz",
        "expected.npz",
        "link.npz",
        "hard.npz",
        "folder/inputs.npz",
        "notes.txt",
    )
    results = tuple(f"out/{name}" for name in ("run.json", "outputs.npz", "manifest.json"))
    before = contents(work)
    for name in (*names, *results):
        assert_clear(save(work, name, "--expect", "expected.npz"), 2, name, "is no saved state")
    shutil.rmtree(work / "out")
    (work / "out").mkdir()
    assert_clear(save(work, "folder/out/outputs.npz"), 2, "the run itself writes")
    assert not list((work / "out").iterdir())
    assert {name: data for name, data in before.items() if "/out/" not in name} == contents(work)
    assert save(work, "state.npz", "--state", "state.npz").code == 0
    assert np.load(work / "state.npz")["steps"] == 2 * STEPS


def test_state_and_record_are_written_both_or_neither(work: Path) -> None:
    """The disk takes the state and the outputs, and not the record, which is larger."""
    before = (work / "state.npz").read_bytes()
    np.savez(work / "many.npz", input0=np.ones((3_000, 2), np.float32))
    words = ["run", "counter.pte", "--simulator", "host", "--inputs", "many.npz", "-o", "full"]
    words += ["--state", "state.npz", "--save-state", "state.npz"]
    command = shlex.join(
        [sys.executable, "-m", "ethosu_sdk", *words, "--state", "state.npz", "--save-state", "state.npz"]
    )
    done = processes.run(["bash", "-c", f"ulimit -f 200; exec {command}"], cwd=work, timeout_s=120)
    assert_clear(Outcome(done.returncode, done.stdout, done.stderr), 5, "cannot write full/run.json")
    assert (work / "state.npz").read_bytes() == before
    assert not (work / "full" / "run.json").exists()
    assert not list(work.rglob("*.part"))


def test_a_state_in_the_folder_of_results_is_listed(work: Path) -> None:
    assert save(work, "out/state.npz").code == 0
    sdk_ok("validate", "out", cwd=work)
    assert save(work, "elsewhere.npz").code == 0  # and stays listed after another run
    sdk_ok("validate", "out", cwd=work)
    assert save(work, "out/state.npz").code == 0
    sdk_ok("validate", "out", cwd=work)


@each("name", ["total", "a/../../b", "sha256", "state0\n"])
def test_names_are_those_of_the_program(name: str, tmp_path: Path) -> None:
    """And none of a compile record beside it, which anybody may have written."""
    shutil.copyfile(GOLDEN_PTE / "counter.pte", tmp_path / "counter.pte")
    np.savez(tmp_path / "inputs.npz", input0=np.ones((STEPS, 2), np.float32))
    example = ROOT / "schemas" / "examples" / "valid" / "compile-ds_cnn.json"
    forged = json.loads(example.read_text(encoding="utf-8"))
    digest = filesystem.sha256_file(tmp_path / "counter.pte")
    forged["model"] |= {"file": "counter.pte", "sha256": digest}
    for row in forged["provenance"]["inputs"]:
        if row["role"] == "model":
            row |= {"file": "counter.pte", "sha256": digest}
    forged["state"] = [
        {"name": name, "shape": [2], "dtype": "float32", "bytes": 8, "arena": 0, "offset": 32},
        {"name": name, "shape": [2], "dtype": "float32", "bytes": 8, "arena": 0, "offset": 0},
    ]
    (tmp_path / "counter.compile.json").write_text(json.dumps(forged), encoding="utf-8")
    assert save(tmp_path, "state.npz").code == 0
    (row,) = valid(tmp_path / "out" / "run.json")["state"]["tensors"]
    assert (row["name"], row["arena"], row["offset"]) == ("state0", 0, 32)
    assert set(np.load(tmp_path / "state.npz")) == {"program_sha256", "steps", "state.state0"}


@each(
    ("names", "expected"),
    [
        (("h", "cells.1.h"), ["h", "cells.1.h"]),
        (("h", "h"), ["state0", "state1"]),
        (("h", ""), ["state0", "state1"]),
        (("h", "../h"), ["state0", "state1"]),
        (("state1", "x\n"), ["state0", "state1"]),
    ],
)
def test_names_in_a_program_tell_its_tensors_apart(names: tuple[str, str], expected: list[str]) -> None:
    program = pte.read(GOLDEN_PTE / "counter.pte")
    plan = program.plan("forward")
    (tensor,) = plan.state_tensors()
    assert tensor.allocation is not None
    second = replace(tensor, allocation=replace(tensor.allocation, offset=0), name=names[1])
    changed = replace(plan, values=(replace(tensor, name=names[0]), second))
    kept = kept_state.load_state(program, changed, None, saves=True, is_sequence=False, steps=1)
    assert [row.name for row in kept.tensors] == expected


def test_steps_are_counted_to_their_limit(work: Path) -> None:
    last = (1 << 32) - 1

    def after(steps: int) -> Outcome:
        saved = dict(np.load(work / "state.npz")) | {"steps": np.array(steps, np.int64)}
        np.savez(work / "long.npz", **saved)
        return save(work, "next.npz", "--state", "long.npz")

    assert after(last - STEPS).code == 0
    assert np.load(work / "next.npz")["steps"] == last
    os.unlink(work / "next.npz")
    assert_clear(after(last - STEPS + 1), 3, "steps led to the state in long.npz", "limit")
    assert_clear(after(last + 1), 3, "does not say how many steps")
    assert not (work / "next.npz").exists()
