"""Child process: fills cells. Usage: python -m campaigns.meaning.worker FOLDER LIMIT_S TASKS.json

Several may share a folder: each cell goes to the first that locks it, and cells that have an outcome are left alone.
"""

import contextlib
import gc
import importlib
import json
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from campaigns import command, grid
from campaigns.command import sdk
from campaigns.meaning import judge
from campaigns.meaning.cells import FINDINGS, Array, Outcome, Task, finding_folder
from ethosu_sdk.base import filesystem, forks, json_text, npz, tools
from ethosu_sdk.compile import worker

_EAGER_LIMIT_S = 120.0
_PACKAGES = ("typer", "rich", "jsonschema", "tomllib")


Ask = Callable[[Path, Path], None]


class NotRunnableError(Exception):
    """PyTorch itself does not run the model."""


def _answer(path: Path) -> tuple[list[Array], list[list[Array]]]:
    """The inputs, stacked, and the outputs of each sample, from a file that the process wrote."""
    with np.load(path) as file:
        count = len([name for name in file.files if name.startswith("input")])
        inputs = [file[f"input{index}"] for index in range(count)]
        steps: list[list[Array]] = []
        while f"step{len(steps)}_output0" in file.files:
            names = [name for name in file.files if name.startswith(f"step{len(steps)}_")]
            steps.append([file[f"step{len(steps)}_output{index}"] for index in range(len(names))])
    return inputs, steps


@contextlib.contextmanager
def asked(log: Path) -> Iterator[Ask]:
    """A function that has a process which knows nothing of the SDK write samples and outputs of a model's file:
    ``ask(file, to)``. It raises NotRunnableError."""
    with forks.server("campaigns.meaning.eager", log) as server:

        def ask(file: Path, to: Path) -> None:
            answer = server.call({"file": str(file), "to": str(to)}, _EAGER_LIMIT_S, None)
            if answer.end != forks.DONE or answer.result:
                raise NotRunnableError(f"{file.name}: {answer.result or f'{answer.end} {answer.detail}'}")

        yield ask


@dataclass(frozen=True)
class Bench:
    """Where models are judged: a folder, the time limit of a command, and what asks PyTorch."""

    folder: Path
    limit_s: float
    ask: Ask

    def judged(self, task: Task) -> Outcome:
        """Compile and run a model's file, and compare with PyTorch."""
        place = filesystem.make_directory(self.folder / "programs" / task.cell)
        inputs, wanted = self._wanted(task, place)
        text = task.file.read_text(encoding="utf-8")
        options = ("--target", task.target, "--quantize", task.quantize, "-o", place, "--json", "-q")
        done = sdk(("compile", task.file, *options), place, self.limit_s)
        if done.code != 0:
            return judge.refused("compile", done, task.file.name, text)
        program = json.loads(done.out)
        types = [row["dtype"] for row in program["inputs"]]
        if len(types) != len(inputs):
            reason = f"{len(types)} inputs instead of {len(inputs)}"
            return judge.judged(judge.Distance(reason=reason), task.quantize)
        samples = place / "samples.npz"
        typed = zip(types, inputs, strict=True)
        npz.write_npz(samples, {f"input{i}": array.astype(dtype) for i, (dtype, array) in enumerate(typed)})
        where = ("--simulator", "host", "--inputs", samples, "--keep-state", "-o", place / "run")
        done = sdk(("run", place / program["model"]["file"], *where, "--json", "-q"), place, self.limit_s)
        if done.code != 0:
            return judge.refused("run", done, task.file.name, text)
        return judge.judged(judge.compared(wanted, _steps(place / "run" / "outputs.npz")), task.quantize)

    def _wanted(self, task: Task, place: Path) -> tuple[list[Array], list[list[Array]]]:
        """Inputs and outputs of eager PyTorch; of a planted fault, those of the file that has none."""
        expected = place / "expected.npz"
        self.ask(task.against or task.file, expected)
        return _answer(expected)


def _steps(path: Path) -> list[list[Array]]:
    """The outputs of each sample."""
    with np.load(path) as file:
        columns = [file[f"output{index}"] for index in range(len(file.files))]
    return [list(step) for step in zip(*columns, strict=True)]


def fill(bench: Bench, task: Task) -> Outcome:
    """Judge one model on one target. A finding's folder is kept, with the command line that shows it."""
    start = time.monotonic()
    found = bench.judged(task)
    shutil.rmtree(bench.folder / "programs" / task.cell)
    if found.verdict in FINDINGS:
        kept = filesystem.make_directory(finding_folder(bench.folder, task.cell))
        shutil.copy(task.file, kept)
        line = ("ethosu-sdk", "compile", task.file.name, "--target", task.target, "--quantize", task.quantize)
        text = f"{shlex.join(line)}\n{found.verdict}: {found.problem} {found.message}\n"
        (kept / "finding.txt").write_text(text, encoding="utf-8")
    return replace(
        found,
        family=task.family,
        idiom=task.idiom,
        quantize=task.quantize,
        digest=task.digest,
        seconds=round(time.monotonic() - start, 1),
        commit=tools.git_revision() or "",
    )


def warm(folder: Path) -> None:
    """Import what a compilation and a run import, so that forks find it. A fork finds out what that is."""
    worker.import_tools()
    torch.set_num_threads(1)
    with filesystem.temporary_directory(".warm-", folder) as place:
        names = place / "modules.json"

        def imported() -> None:
            options = ["-o", str(place), "--json", "-q"]
            for argv in (["compile", "zoo:add"], ["run", str(place / "add.pte"), "--simulator", "host"]):
                with contextlib.suppress(SystemExit):
                    command.in_this_process([*argv, *options])
            names.write_text(json.dumps([name for name in sys.modules if "." in name or name in _PACKAGES]))

        command.forked(imported, place, 300)
        for name in json.loads(names.read_text()):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    gc.collect()
    gc.freeze()


def work(folder: Path, limit_s: float, tasks: Sequence[Task]) -> None:
    """Do those of the tasks that nobody has done or is doing, and say so on stdout."""
    warm(folder)
    with asked(folder / "eager.log") as ask:
        bench = Bench(folder, limit_s, ask)
        grid.fill(folder, tasks, lambda task: fill(bench, task), "problem", "message", "decibels", "seconds")


if __name__ == "__main__":
    rows = json_text.read_json(Path(sys.argv[3]))["tasks"]
    work(Path(sys.argv[1]).resolve(), float(sys.argv[2]), [Task.from_json(row) for row in rows])
