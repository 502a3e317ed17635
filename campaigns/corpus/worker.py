"""Child process: fills cells. Usage: python -m campaigns.corpus.worker FOLDER LIMIT_S CELL...

Several may share a folder: each cell goes to the first that locks it, and cells that have an outcome are left alone.
"""

import json
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from campaigns import grid
from campaigns.command import forked, sdk
from campaigns.corpus import catalogue, packages, recipe
from campaigns.corpus.cells import FAILED, SIMULATORS, Cell, Outcome
from campaigns.corpus.judgement import compared, compiled, ended, last_line
from ethosu_sdk.base import filesystem, npz, tools
from ethosu_sdk.compile import worker


def fill(cell: Cell, folder: Path, limit_s: float) -> Outcome:
    """Compile and run one cell. What goes wrong is an outcome too."""
    start = time.monotonic()
    place = folder / "programs" / str(cell)
    shutil.rmtree(place, ignore_errors=True)
    filesystem.make_directory(place)
    found = _filled(cell, folder, place, limit_s)
    seconds = round(time.monotonic() - start, 1)
    return replace(found, seconds=seconds, commit=tools.git_revision() or "")


def _filled(cell: Cell, folder: Path, place: Path, limit_s: float) -> Outcome:
    samples = folder / "inputs" / f"{cell.name}.npz"
    if not samples.is_file():
        filesystem.make_directory(samples.parent)
        made = forked(lambda: write_samples(cell.name, samples), place, limit_s)
        if made.code != 0:
            return Outcome(FAILED, "model", message=last_line(made.err))
    model = f"{catalogue.ARCHITECTURES[cell.name].file}:{cell.name}"
    compile_options = ("--target", cell.target, "--evaluate", samples, "-o", place, "--json", "-q")
    done = sdk(("compile", model, *compile_options), place, limit_s)
    if done.code != 0:
        return ended(Outcome(FAILED), "compile", done)
    record = json.loads(done.out)
    facts = compiled(record)
    program = place / record["model"]["file"]
    for simulator, options in SIMULATORS.items():
        where = ("--simulator", simulator, *options, "-o", place / simulator)
        done = sdk(("run", program, "--inputs", samples, *where, "--json", "-q"), place, limit_s)
        if done.code != 0:
            return ended(facts, simulator, done)
    qemu, host = (_outputs(place / simulator) for simulator in SIMULATORS)
    return compared(facts, qemu, host)


def write_samples(name: str, path: Path) -> None:
    """The evaluation samples of an architecture, one set for all targets."""
    _, make = recipe.made(catalogue.ARCHITECTURES[name].build)
    rows = [[tensor.numpy() for tensor in make(seed, 1)] for seed in recipe.EVALUATION_SEEDS]
    columns = enumerate(zip(*rows, strict=True))
    npz.write_npz(path, {f"input{index}": np.stack(column) for index, column in columns})


def _outputs(folder: Path) -> list[Any]:
    with np.load(folder / "outputs.npz") as file:
        return [file[f"output{index}"] for index in range(len(file.files))]


def work(folder: Path, limit_s: float, wanted: Sequence[Cell]) -> None:
    """Do those of the cells that nobody has done or is doing, and say so on stdout."""
    worker.import_tools()
    packages.prepare()
    torch.set_num_threads(1)
    told = ("step", "exit_code", "message", "seconds", "quantisation_db", "execution_db", "distance")
    grid.fill(folder, wanted, lambda cell: fill(cell, folder, limit_s), *told)


if __name__ == "__main__":
    work(Path(sys.argv[1]).resolve(), float(sys.argv[2]), [Cell(*name.split("@")) for name in sys.argv[3:]])
