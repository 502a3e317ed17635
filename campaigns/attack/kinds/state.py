"""States of programs: damaged files to begin with, files that must not be replaced, forged names, and full disks."""

import io
import json
import random
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from campaigns.attack import damage
from campaigns.attack.case import Case, Context, Kind, Probe
from campaigns.attack.process import Ended, Limits
from ethosu_sdk.base import filesystem
from ethosu_sdk.program import pte
from ethosu_sdk.run import kept_state
from tests.places import GOLDEN_PTE, ROOT
from tests.pte_files import golden

_PROGRAM = golden("counter")
_STEPS = 5
_MANY = 3_000  # the record of so many steps is larger than what they give
_LAST = (1 << 32) - 1
_LIMITS = Limits(seconds=120.0)
_NAMES = ("state", "state0", "", "../x", "a\n", "sha256", "program_sha256", "steps", "x" * 300)
_COUNTS = (0, 7, _LAST - _STEPS, _LAST - _STEPS + 1, _LAST, _LAST + 1, -1, 1 << 62)
_RECORD = ROOT / "schemas" / "examples" / "valid" / "compile-ds_cnn.json"

Arrays = dict[str, npt.NDArray[Any]]


def _npz(arrays: Arrays) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def _saved(steps: int = 7) -> Arrays:
    return {
        "program_sha256": np.frombuffer(bytes.fromhex(filesystem.sha256_bytes(_PROGRAM)), np.uint8),
        "steps": np.array(steps, np.int64),
        "state.state0": np.array([20.0, 30.0], np.float32),
    }


def _forged(choice: random.Random) -> bytes:
    """A saved state with members that it should not have."""
    arrays = _saved(choice.choice(_COUNTS))
    for _ in range(choice.randint(0, 2)):
        name = choice.choice(sorted(arrays) or ["steps"])
        row = arrays.pop(name, np.zeros(2, np.float32))
        changes = (
            lambda row: row.astype(choice.choice(("float64", "int64", "uint8", "bool"))),
            lambda row: row.reshape(-1)[:1],
            lambda row: np.stack([row, row]),
            np.zeros_like,
        )
        with np.errstate(all="ignore"):
            changed = choice.choice(changes)(row)
        arrays[choice.choice((name, f"state.{choice.choice(_NAMES)}"[:200]))] = changed
    data = _npz(arrays)
    return damage.damaged(choice, data) if choice.random() < 0.4 else data


def _probe(context: Context, choice: random.Random) -> Probe:
    def call(folder: Path) -> None:
        program = pte.read(GOLDEN_PTE / "counter.pte")
        plan = program.plan("forward")
        kept = kept_state.load_state(
            program, plan, folder / "given.npz", saves=True, is_sequence=True, steps=_STEPS
        )
        assert 0 <= kept.steps <= _LAST - _STEPS, kept.steps
        assert [len(row.initial) for row in kept.tensors] == [row.nbytes for row in plan.state_tensors()]

    return Probe("begin with a state", {"given.npz": _forged(choice)}, call)


def _compile_record(choice: random.Random) -> bytes:
    """A record beside the program that is of it, with a state of other names and places."""
    record = json.loads(_RECORD.read_text(encoding="utf-8"))
    digest = filesystem.sha256_bytes(_PROGRAM)
    record["model"] |= {"file": "given.pte", "sha256": digest}
    for row in record["provenance"]["inputs"]:
        if row["role"] == "model":
            row |= {"file": "given.pte", "sha256": digest}
    record["state"] = [
        {
            "name": choice.choice(_NAMES) or "x",
            "shape": [2],
            "dtype": "float32",
            "bytes": 8,
            "arena": choice.choice((0, 0, 1)),
            "offset": choice.choice((0, 16, 32)),
        }
        for _ in range(choice.randint(1, 3))
    ]
    return json.dumps(record).encode()


def _case(context: Context, choice: random.Random) -> Case:
    saved = _npz(_saved())
    files = {"given.pte": _PROGRAM, "given.state": saved, "given.inputs": _npz({"input0": _ones(_STEPS)})}
    script = ["cp given.state state.npz", "cp given.inputs inputs.npz", "mkdir out"]
    limits, to = _LIMITS, "state.npz"
    way = choice.choice(("place", "names", "disk"))
    if way == "place":
        to = choice.choice(
            ("given.pte", "inputs.npz", "link.npz", "given.hard", "out/run.json", "out/outputs.npz")
        )
        script += ["ln -s inputs.npz link.npz", "ln given.pte given.hard"]
    elif way == "names":
        files["given.record"] = _compile_record(choice)
        script.append("cp given.record given.compile.json")
    else:
        files["given.inputs"] = _npz({"input0": _ones(_MANY)})
        limits = Limits(seconds=120.0, file_bytes=choice.choice((20, 40, 100, 200, 400, 3_000)) << 10)
    run = ["run", "given.pte", "--simulator", "host", "--inputs", "inputs.npz", "-o", "out"]
    command = shlex.join([*context.command, *run, "--state", "state.npz", "--save-state", to])
    warm = shlex.join([*context.command, *run[:4], "-o", "warm", "-q"])  # builds the runner, without limits
    argv = (
        "bash",
        "-c",
        " && ".join([*script, f"{warm} && ulimit -f {limits.file_bytes >> 10} && exec {command}"]),
    )

    def judge(ended: Ended, folder: Path) -> list[str]:
        return _judged(ended, folder, files, to)

    return Case(f"--save-state {to}, {way}", files, argv=argv, limits=_LIMITS, judge=judge)


def _ones(steps: int) -> npt.NDArray[np.float32]:
    return np.ones((steps, 2), np.float32)


def _judged(ended: Ended, folder: Path, files: dict[str, bytes], to: str) -> list[str]:
    """The state goes on with its record and right outputs, or stays; no other file is another."""
    found = [
        f"{name} was replaced"
        for name, given in (("given.pte", "given.pte"), ("inputs.npz", "given.inputs"))
        if (folder / name).read_bytes() != files[given]
    ]
    is_old = (folder / "state.npz").read_bytes() == files["given.state"]
    if ended.code != 0:
        return found if is_old else [*found, f"exit code {ended.code}, but the state went on"]
    if to != "state.npz":
        return [*found, f"exit code 0, with --save-state {to}"]
    with np.load(folder / "state.npz") as state, np.load(folder / "out" / "outputs.npz") as outputs:
        got, after, names = outputs["output0"], int(state["steps"]), set(state.files)
    with np.load(io.BytesIO(files["given.inputs"])) as inputs:
        count = len(inputs["input0"])
    wanted = _wanted(count)
    if after != 7 + count or names != set(_saved()) or not np.array_equal(got, wanted):
        found.append(f"exit code 0, with {names}, step {after} and outputs that are not the expected ones")
    return (
        found if (folder / "out" / "run.json").is_file() else [*found, "the state went on without a record"]
    )


def _wanted(count: int) -> npt.NDArray[np.float32]:
    """What the program counts to: the state that it begins with, and one more in each step."""
    first = _saved()["state.state0"]
    return (first + np.arange(1, count + 1, dtype=np.float32)[:, None]).astype(np.float32)


KIND = Kind("state", _case, _probe)
