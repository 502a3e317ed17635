"""Child process: compiles programs of the matrix and checks its cells.

Usage: python -m campaigns.zoo_matrix.worker FOLDER CELL... Several may share a folder: each cell goes to the
first that locks it, and cells that have an outcome are left alone. Importing the compilers takes longer than most
compilations, so they are imported once, and each compilation runs in a fork of this process.
"""

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

from campaigns import grid
from campaigns.zoo_matrix import cells, checks
from campaigns.zoo_matrix.cells import Cell
from campaigns.zoo_matrix.checks import Oracles, Outcome
from ethosu_sdk.base import cache, filesystem, json_text
from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.compile import compile_facts, worker
from ethosu_sdk.compile.compile_facts import CompileOutput, CompileRequest
from ethosu_sdk.compile.program_options import ProgramOptions
from ethosu_sdk.simulate import host_runtime
from tests.oracles.tosa import tosa_model

_FACTS, _REFUSAL = "facts.json", "refusal.json"


def program_folder(folder: Path, cell: Cell) -> Path:
    """Where a cell's program is kept."""
    return folder / "programs" / cell.program


def compile_program(cell: Cell, folder: Path) -> CompileOutput:
    """The cell's program in `folder`, compiled in a fork unless it is there. Raises SdkError as `compile` does, and
    RuntimeError when the process dies."""
    with filesystem.locked_folder(folder):
        if not (folder / _FACTS).is_file() and not (folder / _REFUSAL).is_file():
            child = os.fork()
            if child == 0:
                _compile_and_exit(cell, folder)
            _, status = os.waitpid(child, 0)
            if status:
                raise RuntimeError(f"the compiler ended with status {status}: see {folder / 'compile.log'}")
    if (folder / _REFUSAL).is_file():
        raise SdkError(json_text.read_json(folder / _REFUSAL)["message"])
    return compile_facts.from_json(CompileOutput, json_text.read_json(folder / _FACTS))


def _compile_and_exit(cell: Cell, folder: Path) -> None:
    """Compile, leave facts or the refusal in `folder`, and end this process."""
    status = 1
    log = os.open(folder / "compile.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    options = ProgramOptions(quantize=cell.quantize)
    request = CompileRequest(f"zoo:{cell.model}", cell.full_target, folder, options=options)
    try:
        output = worker.run_stages(request, lambda stage: None)
        filesystem.write_bytes(folder / _FACTS, compile_facts.to_json(output).encode())
        status = 0
    except SdkError as error:
        json_text.write_json(folder / _REFUSAL, {"message": error.message})
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def outcome(cell: Cell, folder: Path, oracles: Oracles) -> Outcome:
    """Compile and check one cell."""
    place = filesystem.make_directory(program_folder(folder, cell))
    try:
        output = compile_program(cell, place)
    except SdkError as error:
        return Outcome(checks.REFUSED, f"compile: {error.message}")
    if cell.kind == cells.DELEGATES:
        return checks.check_delegates(output, oracles)
    return checks.check_firmware(output, filesystem.make_directory(place / "run"), oracles)


@contextlib.contextmanager
def open_oracles() -> Iterator[Oracles]:
    """The oracles for the time of a `with` block."""
    with tosa_model() as tosa:
        yield Oracles(host_runtime.build_runner(cache.directory("host-runner")), tosa)


def work(folder: Path, wanted: Sequence[Cell]) -> None:
    """Do those of the cells that nobody has done or is doing, and say so on stdout."""
    worker.import_tools()
    with open_oracles() as oracles:

        def attempt(cell: Cell) -> Outcome:
            """What goes wrong is an outcome too."""
            try:
                return outcome(cell, folder, oracles)
            except Exception as error:
                traceback.print_exc()
                return Outcome(checks.FAILED, " ".join(f"{type(error).__name__}: {error}".split())[:400])

        grid.fill(folder, wanted, attempt, "detail")


if __name__ == "__main__":
    work(Path(sys.argv[1]).resolve(), [cells.named(name) for name in sys.argv[2:]])
