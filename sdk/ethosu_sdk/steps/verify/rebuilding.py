"""Rebuild or rerun from scratch what a record describes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ethosu_sdk import boards, cache, pte
from ethosu_sdk.boards import profiles
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.errors import ToolError, VerdictError
from ethosu_sdk.files import hashing, locks, writing
from ethosu_sdk.firmware_build import BuildOptions, resident
from ethosu_sdk.firmware_build.executable import Executable
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.records.build import Build
from ethosu_sdk.records.common import ProvenanceInput
from ethosu_sdk.records.run import Run
from ethosu_sdk.results.reading import read
from ethosu_sdk.steps import build_command
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.run import run_command
from ethosu_sdk.steps.run.options import ALL_STEPS, EXECUTORCH, LAST_STEP, VELA_TIMING, RunOptions
from ethosu_sdk.steps.run.repeats import KEPT
from ethosu_sdk.steps.shared import systems
from ethosu_sdk.steps.shared.systems import Priced
from ethosu_sdk.steps.verify import figures

_RESIDENT_ELF = f"{resident.EXECUTABLE}.elf"
_COUNTERS = "/npu/counters/"


@dataclass(frozen=True)
class Rebuilt:
    """The digests, and the figures or why there are none. `map` and `build_key` are those of a build."""

    elf: str
    map: str = ""
    build_key: str = ""
    figures: Record | None = None
    no_figures: str = ""


@dataclass(frozen=True)
class Program:
    """A program and the path of its `.pte`."""

    path: Path
    content: pte.Pte


def firmware(record: Run) -> ProvenanceInput | None:
    """The firmware's row among the inputs of a run."""
    return next((row for row in record.provenance.inputs if row.role == "firmware"), None)


def build(record: Build, given: Program, vela_config: Path | None = None) -> Rebuilt:
    """Build the firmware that the `record` of a build describes, for the `given` program; `vela_config` as in
    :func:`systems.of_program`."""
    options, path, program = record.options, given.path, given.content
    build_options = BuildOptions(
        board=record.board,
        simulator=options.simulator,
        inferences=options.inferences,
        allow_spill=options.allow_spill,
        areas=systems.areas(path, program, vela_config),
        methods=options.methods or (),
        data_memory=options.data_memory,
    )
    with _from_nothing() as folder:
        made = build_command.build_in(path, program, folder, build_options, Reporter(quiet=True))
        return _built(made.firmware, figures.of(made.content))


def run(record: Run, given: Program, inputs: Path | None, vela_config: Path | None = None) -> Rebuilt:
    """Build and run the `given` program as the `record` of a run describes. Without the simulator, build it."""
    # From the cache too, before that is left.
    priced = systems.of_program(given.path, given.content, vela_config)
    unknown = (
        _unknown_timing(record)
        or _unknown_system(record, priced)
        or _unknown_core(record)
        or _unknown_state(record)
    )
    if unknown:
        return _built_for_run(record, given, priced, unknown)
    with _from_nothing() as folder:
        try:
            options, quiet = _run_options(record, inputs, priced), Reporter(quiet=True)
            options = replace(
                options,
                data=tuple(row.path for row in given.content.data_files),
                save_state=folder.parent / "state.npz" if _state_was_saved(record) else None,
                **_steps(record),
            )
            content = run_command.run(str(given.path), _board(record), options, folder, quiet).record
        except VerdictError:  # the record holds it, and the records are compared
            content = read(folder / kinds.RUN.file)
        except ToolError as error:
            return _built_for_run(record, given, priced, f"it could not be run again: {error.message}")
    made = kinds.RUN.convert(content)
    elf = made.runtime.elf_sha256 or ""
    if [row.sha256 for row in made.inputs] != [row.sha256 for row in record.inputs]:
        source = record.inputs[0].source if record.inputs else "none"
        why = f"the inputs of the run are not here ({source}): --inputs FILE.npz gives them"
        return Rebuilt(elf, no_figures=why)
    return Rebuilt(elf, figures=figures.of(made))


@contextmanager
def _from_nothing() -> Iterator[Path]:
    """A new folder, and an empty cache."""
    with (
        locks.temporary_directory("ethosu-sdk-verify-", Path(tempfile.gettempdir())) as temporary,
        cache.elsewhere(temporary / "cache"),
    ):
        yield writing.make_directory(temporary / "out")


def _built_for_run(record: Run, given: Program, priced: Priced | None, why: str) -> Rebuilt:
    options = BuildOptions(
        board=record.board,
        simulator=record.simulator.name,
        inferences=record.inferences,
        allow_spill=True,
        areas=None if priced is None else priced.areas,
        methods=(record.model.entry,),
        data_memory=record.data_memory,
    )
    with _from_nothing() as folder:
        if _is_resident(record):
            made: Executable = resident.build(folder, record.board)
        else:
            made = build_command.build_in(
                given.path, given.content, folder, options, Reporter(quiet=True)
            ).firmware
        return Rebuilt(made.elf_sha256, no_figures=why)


def _built(made: Executable, part: Record) -> Rebuilt:
    return Rebuilt(made.elf_sha256, hashing.sha256_file(made.map), made.build_key, part)


def _is_resident(record: Run) -> bool:
    row = firmware(record)
    return row is not None and row.file == _RESIDENT_ELF


def _timing(record: Run) -> str:
    timing = record.npu.memory_timing if record.npu is not None else None
    return VELA_TIMING if timing is None else timing.name


def _unknown_timing(record: Run) -> str:
    known = _timing(record) in (VELA_TIMING, EXECUTORCH)
    return "" if known else f"the run's memory timing is that of a file, {_timing(record)}"


def _unknown_system(record: Run, priced: Priced | None) -> str:
    if record.priced is None or priced is None or priced.part() == record.priced.to_json():
        return ""
    name, source = record.priced.system.name, record.priced.system.source
    return f"the run's cycles are for {name} of {source}: --vela-config FILE.ini gives that"


def _board(record: Run) -> CompileOptions:
    """The option `system` of the run, where its time is for a board of the list."""
    place = "" if record.time is None else record.time.place
    return CompileOptions(system=place if place in profiles.names() else None)


def _unknown_core(record: Run) -> str:
    board = _board(record).system
    core = boards.core(record.board) if board is None else profiles.find(board).cpu.core
    if record.cpu.core is None or record.cpu.core == core:
        return ""
    return (
        f"the run's CPU cycles are those of a {record.cpu.core}, which no board of `ethosu-sdk boards` gives"
    )


def _unknown_state(record: Run) -> str:
    file = "" if record.state is None else record.state.file
    return f"the run began with the state in {file}, which `verify` does not take" if file else ""


def _state_was_saved(record: Run) -> bool:
    """Whether the run told its state although it was no sequence."""
    state = record.state
    return state is not None and record.sequence is None and any(row.crc32 for row in state.tensors)


def _steps(record: Run) -> dict[str, Any]:
    """The options of a run of several steps."""
    sequence = record.sequence
    if sequence is None:
        return {}
    sent = record.outputs[0].shape[0] if record.outputs and record.outputs[0].shape else 0
    return {
        "steps": sequence.asked,
        "feed": sequence.feeds,
        "outputs": LAST_STEP if sent < len(sequence.steps) else ALL_STEPS,
    }


def _run_options(record: Run, inputs: Path | None, priced: Priced | None) -> RunOptions:
    """The options that the record was made with. Spilling is allowed: it changes nothing for a program that fits."""
    names = [row.event for row in record.npu.counters] if record.npu is not None else []
    names += [
        row.path.removeprefix(_COUNTERS) for row in record.unavailable if row.path.startswith(_COUNTERS)
    ]
    repeats = record.repeats
    return RunOptions(
        inputs=inputs,
        simulator=record.simulator.name,
        events=",".join(names) or None,
        board=record.board,
        resident=_is_resident(record),
        repeat=1 if repeats is None else repeats.count,
        keep_state=repeats is not None and repeats.state == KEPT,
        allow_spill=True,
        count_instructions=any(row.instructions is not None for row in record.operators),
        cpu_cycles=record.cpu.core is not None,
        split=record.pieces is not None,
        memory_timing=_timing(record),
        priced=priced,
        method=record.model.entry,
        data_memory=record.data_memory,
    )
