"""The SDK from Python: what the commands do, as functions that return what they write.

    import ethosu_sdk

    compiled = ethosu_sdk.compile("model.py", ethosu_sdk.CompileOptions(target="ethos-u85-256"))
    done = ethosu_sdk.run(compiled.pte, options=ethosu_sdk.RunOptions(inputs=Path("inputs.npz")))
    print(done.status, done.npu_cycles, done.outputs["output0"])

Results lie where the commands put them: below ``build/`` in the working folder, or in `out`. Every function raises a
subclass of :class:`ethosu_sdk.base.errors.SdkError`, whose `exit_code` is that of the command: VerdictError (7) when
something was made and is not as it should be. Warnings go to standard error; nothing is printed on standard output.
A model in a Python file is executed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ethosu_sdk.analysis import debug_command, inspect_command, profile_command, program_facts
from ethosu_sdk.analysis.options import DebugOptions, ProfileOptions
from ethosu_sdk.base import npz
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile import compile_command
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.firmware_build import build_command
from ethosu_sdk.records import result_files
from ethosu_sdk.records.bundle import read_raw_record
from ethosu_sdk.reporting.compare import compare_command
from ethosu_sdk.reporting.compare.options import CompareOptions
from ethosu_sdk.run import run_command
from ethosu_sdk.run.options import RunOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class _Made:
    """What a function made, with the command's record of it."""

    record: Record


@dataclass(frozen=True)
class Compiled(_Made):
    """A program: `pte` is the file, `record` its ``compile-result/1``."""

    pte: Path

    @property
    def example_io(self) -> Path:
        """The example inputs, and the outputs of the quantised model in PyTorch for them: an `.npz`."""
        return result_files.example_io_path(self.pte)

    @property
    def cpu_operators(self) -> dict[str, int]:
        """Calls in one inference of each operator that stays on the CPU."""
        return {row["name"]: row["calls"] for row in self.record["cpu_operators"]}


@dataclass(frozen=True)
class Firmware(_Made):
    """A bare-metal firmware: `elf` is the file, `record` its ``build-result/1``."""

    elf: Path

    @property
    def board(self) -> str:
        """The board that it is linked for."""
        return str(self.record["board"])


@dataclass(frozen=True)
class Run(_Made):
    """A run that is over: `record` is its ``run-result/1``, in `folder`."""

    folder: Path

    @property
    def status(self) -> str:
        """``pass``: a run that fails raises."""
        return str(self.record["status"])

    @functools.cached_property
    def outputs(self) -> dict[str, NDArray[Any]]:
        """``output0`` …, with a leading axis where the inputs had one."""
        return npz.read_npz(self.folder / run_command.OUTPUTS_NAME)

    @property
    def npu_cycles(self) -> int | None:
        """Cycles of the NPU in one inference; `record` says whether they are modelled or measured. None: unknown."""
        cycles = self.record.get("npu", {}).get("cycles")
        return None if cycles is None else int(cycles["value"])


@dataclass(frozen=True)
class Inspection(_Made):
    """What a `.pte` holds: `record` is its ``inspect-result/1``."""

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the program's methods."""
        return tuple(method["name"] for method in self.record["methods"])


@dataclass(frozen=True)
class Profile(_Made):
    """Where an inference's cycles and bytes go: `record` is its ``profile/1``."""

    @property
    def operations(self) -> list[Record]:
        """The rows: NPU operations and CPU operators, in the order in which they run."""
        return list(self.record["operations"])

    @property
    def npu_cycles(self) -> dict[str, int]:
        """Cycles of the NPU in one inference by their source: ``modelled``, ``estimated``, ``measured``."""
        return {row["source"]: int(row["value"]) for row in self.record["totals"]["npu"]["cycles"]}


@dataclass(frozen=True)
class Comparison(_Made):
    """What became better or worse from the first run to each of the others: `record` is its ``compare/1``."""

    @property
    def status(self) -> str:
        """``pass``; ``fail`` when a figure is worse than the policy tolerates; ``blocked`` when runs cannot be
        compared."""
        return str(self.record["status"])

    @property
    def changes(self) -> list[Record]:
        """The figures that differ, of all comparisons: name, before, after, change and status."""
        return [row for part in self.record["comparisons"] for row in part["metrics"]]

    @property
    def regressions(self) -> list[Record]:
        """Figures that are worse than the policy tolerates, and those of single operators beyond their rules."""
        parts = (part for row in self.operators for part in row["figures"])
        return [row for row in (*self.changes, *parts) if row.get("status") == "regression"]

    @property
    def operators(self) -> list[Record]:
        """The operators that differ, with the figures that changed, of all comparisons."""
        return [row for part in self.record["comparisons"] for row in part["operators"]]


@dataclass(frozen=True)
class Debugged(_Made):
    """The numerics inside of delegates: `record` is its ``debug/1``."""

    @property
    def layers(self) -> list[Record]:
        """The tensors that the NPU wrote, in the order in which they were begun."""
        return list(self.record["layers"])

    def first_break(self, against: str = "quantised") -> Record | None:
        """The layer that breaks first against the ``quantised`` or ``float`` model; None when none does."""
        for row in self.record["comparisons"]:
            if row["against"] == against and "first_break" in row:
                layer: Record = self.layers[row["first_break"]["layer"]]
                return layer
        return None


def compile(model: str | Path, options: CompileOptions | None = None, *, out: Path | None = None) -> Compiled:
    """Compile `model` (``zoo:NAME``, ``FILE.py[:NAME]`` or ``FILE.pt2``) ahead of time, as ``ethosu-sdk compile``.
    Raises InputError for a model that cannot be compiled, UsageError for options that cannot be combined, ToolError
    without the compiler's packages, and VerdictError when the program does not compute what the model does."""
    options = options or CompileOptions()
    path = compile_command.compile_model(str(model), options, out, Reporter(quiet=True))
    return Compiled(path, record=read_raw_record(result_files.compile_record_path(path)))


def build(
    pte: str | Path,
    *,
    board: str | None = None,
    out: Path | None = None,
    allow_spill: bool = False,
    vela_config: Path | None = None,
    data: Sequence[Path] = (),
) -> Firmware:
    """Build the firmware that embeds `pte` and its `data` files, as ``ethosu-sdk build``. Raises InputError for a
    damaged file, BuildError for one that does not fit or calls an operator without a kernel, and ToolError without
    the toolchain."""
    quiet = Reporter(quiet=True)
    built = build_command.build(
        Path(pte), board, out, quiet, allow_spill=allow_spill, vela_config=vela_config, data=data
    )
    return Firmware(built.firmware.elf, record=built.record)


def run(
    model: str | Path,
    options: RunOptions | None = None,
    compile_options: CompileOptions | None = None,
    *,
    out: Path | None = None,
) -> Run:
    """Run `model`, compiling and building first what is missing or stale, as ``ethosu-sdk run``. Raises
    SimulationError for a firmware that does not come to its end, VerdictError for outputs that are not as expected,
    and what :func:`compile` and :func:`build` raise."""
    compile_options = compile_options or CompileOptions()
    done = run_command.run(str(model), compile_options, options or RunOptions(), out, Reporter(quiet=True))
    return Run(done.folder, record=done.record.to_json())


def profile(
    model: str | Path,
    options: ProfileOptions | None = None,
    run_options: RunOptions | None = None,
    compile_options: CompileOptions | None = None,
    *,
    out: Path | None = None,
) -> Profile:
    """Where the cycles and bytes of `model` go, or of a run whose folder that is, as ``ethosu-sdk profile``. Raises
    InputError for a folder without a run, and what :func:`run` raises."""
    done = profile_command.profile(
        str(model),
        compile_options or CompileOptions(),
        run_options or RunOptions(),
        options or ProfileOptions(),
        out,
        Reporter(quiet=True),
    )
    return Profile(record=done.content.to_json())


def compare(*runs: str | Path, options: CompareOptions | None = None) -> Comparison:
    """Each of `runs` but the first with the first, as ``ethosu-sdk compare``: folders of runs, or records. A
    regression is for the caller to judge: nothing is raised for it, or for runs that cannot be compared, and nothing
    is written. Raises InputError for what is no run or record, and for a damaged policy."""
    paths = [Path(run) for run in runs]
    options = options or CompareOptions()
    return Comparison(
        record=compare_command.compare_paths(paths, program_facts.missing_profiles(paths), options).to_json()
    )


def debug(
    model: str | Path,
    options: DebugOptions | None = None,
    compile_options: CompileOptions | None = None,
    *,
    out: Path | None = None,
) -> Debugged:
    """The tensors inside of the delegates of `model`, compared with the model in PyTorch, as ``ethosu-sdk debug``.
    Raises SimulationError for a program that does not run, and what :func:`compile` raises."""
    compile_options = compile_options or CompileOptions()
    reporter = Reporter(quiet=True)
    return Debugged(
        record=debug_command.debug(str(model), compile_options, options or DebugOptions(), out, reporter)
    )


def inspect(
    pte: str | Path, *, commands: bool = False, hazards: bool = False, data: Sequence[Path] = ()
) -> Inspection:
    """What `pte` and its `data` files hold, as ``ethosu-sdk inspect``; with `commands`, its NPU command streams too,
    with `hazards`, what those do too early for hardware. Raises InputError for a damaged file."""
    options = inspect_command.InspectOptions(commands=commands, hazards=hazards, data=tuple(data))
    return Inspection(record=inspect_command.inspect_file(Path(pte), options).to_json())
