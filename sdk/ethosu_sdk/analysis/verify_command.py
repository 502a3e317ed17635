"""`ethosu-sdk verify`: rebuild and rerun from scratch what a record describes, and compare."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msgspec import convert
from rich.table import Table

from ethosu_sdk.base import board_profiles, boards, cache, filesystem, tools
from ethosu_sdk.base.errors import InputError, ToolError, VerdictError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.compile import pricing_system
from ethosu_sdk.compile.pricing_system import PricingSystem
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.firmware_build import build_command, resident_firmware
from ethosu_sdk.firmware_build.executable import Executable
from ethosu_sdk.firmware_build.program_firmware import BuildOptions
from ethosu_sdk.program import pte
from ethosu_sdk.records import kinds, provenance, result_files, validation
from ethosu_sdk.records.build import Build
from ethosu_sdk.records.bundle import ReadPolicy, read_raw_record, read_record
from ethosu_sdk.records.common import ProvenanceInput
from ethosu_sdk.records.printed import Check, CheckStatus, Record as AboutRecord, Verification
from ethosu_sdk.records.run import Run
from ethosu_sdk.run import run_command
from ethosu_sdk.run.options import ALL_STEPS, EXECUTORCH, LAST_STEP, VELA_TIMING, RunOptions
from ethosu_sdk.run.repeats import KEPT

# ---- steps.verify.figures
# The figures of two records of the same thing, by their places in the record.

# What a run or a build that is done again must give again. Where a file lies and when it was made is no figure.
_MEMBERS = {
    Run: ("outputs", "repeats", "state", "sequence", "npu", "cpu", "memory", "operators", "pieces"),
    Build: ("sections", "kernels", "memory"),
}
# What was expected is no figure: steps are judged by a file that `verify` does not have.
_JUDGED = ("tolerance", "first_beyond", "status", "max_abs_error")
# How events were parted into groups follows from the order in which they were asked for. What the CPU did before and
# after an inference depends on how long the simulator took: interrupts of the clock, waits for the UART.
_LEFT_OUT = ("group", "groups", "outside", *_JUDGED)
_NOTHING = "nothing"
_LONGEST = 200


def figures_of(record: Run | Build) -> Record:
    """The members of the record of a run or build that hold its figures."""
    content = record.to_json()
    return {name: content[name] for name in _MEMBERS[type(record)] if name in content}


def figures_digest(part: Record) -> str:
    """SHA-256 over the figures in `part`."""
    return filesystem.sha256_bytes(json.dumps(dict(_leaves(part))).encode())


def figure_differences(recorded: Record, found: Record) -> Iterator[tuple[str, str, str]]:
    """The figures that are not the same: place, recorded and found."""
    ours, theirs = dict(_leaves(recorded)), dict(_leaves(found))
    for place in dict.fromkeys((*ours, *theirs)):
        values = [_text(side, place) for side in (ours, theirs)]
        if values[0] != values[1]:
            yield place, values[0], values[1]


def _text(figures: Mapping[str, Any], place: str) -> str:
    return json.dumps(figures[place])[:_LONGEST] if place in figures else _NOTHING


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if rows is None:
        yield place, value
        return
    for name, part in rows:
        if name not in _LEFT_OUT:
            yield from _leaves(part, f"{place}/{name}")


# ---- steps.verify.rebuilding
# Rebuild or rerun from scratch what a record describes.

_RESIDENT_ELF = f"{resident_firmware.RESIDENT_EXECUTABLE}.elf"
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
class GivenProgram:
    """A program and the path of its `.pte`."""

    path: Path
    content: pte.Pte


def recorded_firmware(record: Run) -> ProvenanceInput | None:
    """The firmware's row among the inputs of a run."""
    return next((row for row in record.provenance.inputs if row.role == "firmware"), None)


def rebuild(record: Build, given: GivenProgram, vela_config: Path | None = None) -> Rebuilt:
    """Build the firmware that the `record` of a build describes, for the `given` program; `vela_config` as in
    :func:`systems.of_program`."""
    options, path, program = record.options, given.path, given.content
    build_options = BuildOptions(
        board=record.board,
        simulator=options.simulator,
        inferences=options.inferences,
        allow_spill=options.allow_spill,
        areas=pricing_system.memory_areas(path, program, vela_config),
        methods=options.methods or (),
        data_memory=options.data_memory,
    )
    with _from_nothing() as folder:
        made = build_command.build_in(path, program, folder, build_options, Reporter(quiet=True))
        return _built(made.firmware, figures_of(made.content))


def rerun(record: Run, given: GivenProgram, inputs: Path | None, vela_config: Path | None = None) -> Rebuilt:
    """Build and run the `given` program as the `record` of a run describes. Without the simulator, build it."""
    # From the cache too, before that is left.
    priced = pricing_system.pricing_of_program(given.path, given.content, vela_config)
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
            content = run_command.run(
                str(given.path), _board(record), options, folder, quiet
            ).record.to_json()
        except VerdictError:  # the record holds it, and the records are compared
            content = read_raw_record(folder / kinds.RUN.file)
        except ToolError as error:
            return _built_for_run(record, given, priced, f"it could not be run again: {error.message}")
    made = kinds.RUN.convert(content)
    elf = made.runtime.elf_sha256 or ""
    if [row.sha256 for row in made.inputs] != [row.sha256 for row in record.inputs]:
        source = record.inputs[0].source if record.inputs else "none"
        why = f"the inputs of the run are not here ({source}): --inputs FILE.npz gives them"
        return Rebuilt(elf, no_figures=why)
    return Rebuilt(elf, figures=figures_of(made))


@contextmanager
def _from_nothing() -> Iterator[Path]:
    """A new folder, and an empty cache."""
    with (
        filesystem.temporary_directory("ethosu-sdk-verify-", Path(tempfile.gettempdir())) as temporary,
        cache.elsewhere(temporary / "cache"),
    ):
        yield filesystem.make_directory(temporary / "out")


def _built_for_run(record: Run, given: GivenProgram, priced: PricingSystem | None, why: str) -> Rebuilt:
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
            made: Executable = resident_firmware.build_resident(folder, record.board)
        else:
            made = build_command.build_in(
                given.path, given.content, folder, options, Reporter(quiet=True)
            ).firmware
        return Rebuilt(made.elf_sha256, no_figures=why)


def _built(made: Executable, part: Record) -> Rebuilt:
    return Rebuilt(made.elf_sha256, filesystem.sha256_file(made.map), made.build_key, part)


def _is_resident(record: Run) -> bool:
    row = recorded_firmware(record)
    return row is not None and row.file == _RESIDENT_ELF


def _timing(record: Run) -> str:
    timing = record.npu.memory_timing if record.npu is not None else None
    return VELA_TIMING if timing is None else timing.name


def _unknown_timing(record: Run) -> str:
    known = _timing(record) in (VELA_TIMING, EXECUTORCH)
    return "" if known else f"the run's memory timing is that of a file, {_timing(record)}"


def _unknown_system(record: Run, priced: PricingSystem | None) -> str:
    if record.priced is None or priced is None or priced.part() == record.priced.to_json():
        return ""
    name, source = record.priced.system.name, record.priced.system.source
    return f"the run's cycles are for {name} of {source}: --vela-config FILE.ini gives that"


def _board(record: Run) -> CompileOptions:
    """The option `system` of the run, where its time is for a board of the list."""
    place = "" if record.time is None else record.time.place
    return CompileOptions(system=place if place in board_profiles.profile_names() else None)


def _unknown_core(record: Run) -> str:
    board = _board(record).system
    core = (
        boards.core_of_board(record.board) if board is None else board_profiles.find_profile(board).cpu.core
    )
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


def _run_options(record: Run, inputs: Path | None, priced: PricingSystem | None) -> RunOptions:
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


# ---- steps.verify.verify_command
# `ethosu-sdk verify`: rebuild and rerun from scratch what a record describes, and compare.

# Names of `provenance.tools` that are not those of tools.toml.
_PROGRAMS = {"qemu": "qemu-system-arm"}
_DIGEST_DIGITS = 64
_SHOWN = 16  # digits of a digest
_NAMED = 8  # in the error
_MOST_FIGURES = 50  # that are named; the digest over all of them counts


@dataclass(frozen=True)
class Given:
    """Files that the user names: the `.pte` (None: the file of the record's model beside the record), the inputs of
    the run, the Vela configuration file that the `.pte` was compiled with (None: as `run` finds it), its data."""

    model: Path | None = None
    inputs: Path | None = None
    vela_config: Path | None = None
    data: tuple[Path, ...] = ()


def verify(path: Path, given: Given, reading: ReadPolicy, reporter: Reporter) -> None:
    """Build and run again what the record at `path` describes. Compare digests, figures and tools' versions.

    Raises VerdictError when something differs, InputError for a record or model that is missing, damaged, or of no
    firmware.
    """
    start = time.monotonic()
    record = _read(path, reading)
    reading.warn(reporter)
    pte_path = _model(path, record, given.model)
    checks = [_check("model", record.model.sha256, filesystem.sha256_file(pte_path))]
    causes = []
    if _same(checks):
        program = GivenProgram(pte_path, pte.read(pte_path, given.data))
        result_files.check_program_data(program.content, record.provenance.inputs)
        ran = " and running it" if isinstance(record, Run) else ""
        with reporter.stage(f"rebuilding it from scratch{ran}"):
            if isinstance(record, Run):
                rebuilt = rerun(record, program, given.inputs, given.vela_config)
            else:
                rebuilt = rebuild(record, program, given.vela_config)
        checks += [*_digests(record, rebuilt), *_figures(record, rebuilt)]
        causes = list(_causes(record, rebuilt, checks))
    else:
        causes = ["the model is not the one that the record is about: nothing was built"]
    about = {
        "file": path.name,
        "schema": (kinds.RUN if isinstance(record, Run) else kinds.BUILD).schema,
        "sha256": filesystem.sha256_file(path),
        **reading.mark(path),
    }
    result = Verification(
        status="pass" if _same(checks) else "fail",
        created=provenance.timestamp(),
        tool=provenance.tool(),
        record=convert(about, AboutRecord),
        checks=tuple(checks),
        causes=tuple(causes),
        wall_time_s=round(time.monotonic() - start, 3),
        host=provenance.this_host(),
    )
    validation.check_record(result.to_json(), "the result of verify")
    _show(result, reporter)
    reporter.emit(result.to_json())
    if result.status != "pass":
        names = [row.name for row in _differing(checks)]
        differing = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
        raise VerdictError(
            f"{path} is not reproduced: differences in {differing}", "; ".join(causes), recorded=True
        )


def _read(path: Path, reading: ReadPolicy) -> Run | Build:
    record = read_record(path, reading)
    if not isinstance(record, Run | Build):
        raise InputError(
            f"{path} is a {kinds.schema(record)}",
            f"give a {kinds.BUILD.schema} or {kinds.RUN.schema}: build.json or run.json",
        )
    if isinstance(record, Build):
        return record
    if any(row.role == "runner" for row in record.provenance.inputs):
        raise InputError(
            f"{path} describes a run on Arm's prebuilt runner",
            "its firmware is Arm's: there is nothing to build again",
        )
    script = next((row.file for row in record.provenance.inputs if row.role == "script"), None)
    if script is not None:
        raise InputError(
            f"{path} describes a call of the script {script}: it begins with what the calls before it left",
            f"run the script again (`run --script {script}`) and compare the outputs' digests",
        )
    if recorded_firmware(record) is None:
        raise InputError(
            f"{path} describes a run without a firmware, on the simulator '{record.simulator.name}'",
            "there is nothing to build; run it again and compare the outputs' digests",
        )
    return record


def _model(path: Path, record: Run | Build, model: Path | None) -> Path:
    beside = path.parent / record.model.file
    if model is None and not beside.is_file():
        raise InputError(
            f"the record's model, {beside.name}, is not beside it", "name it with --model FILE.pte"
        )
    return result_files.require_pte(model or beside)


def _digests(record: Run | Build, rebuilt: Rebuilt) -> list[Check]:
    checks = []
    if isinstance(record, Build):
        checks += [
            _check("elf", record.elf.sha256, rebuilt.elf),
            _check("map", record.map.sha256, rebuilt.map),
        ]
    elif (firmware := recorded_firmware(record)) is not None:
        checks.append(_check("elf", firmware.sha256, rebuilt.elf))
    for row in record.provenance.tools:
        known = tools.tool_table().get(_PROGRAMS.get(row.name, row.name))
        found = tools.probe(known.name).version if known is not None else ""
        checks.append(_check(f"version of {row.name}", row.version, found))
    return checks


def _figures(record: Run | Build, rebuilt: Rebuilt) -> list[Check]:
    """One check over all figures, and one for each that differs."""
    recorded = figures_of(record)
    if rebuilt.figures is None:
        return [_check("figures", figures_digest(recorded), "")]
    rows = list(figure_differences(recorded, rebuilt.figures))[:_MOST_FIGURES]
    return [
        _check("figures", figures_digest(recorded), figures_digest(rebuilt.figures)),
        *(_check(name, before, found) for name, before, found in rows),
    ]


def _check(name: str, recorded: str, found: str) -> Check:
    if not found:
        return Check(name=name, status="unknown", recorded=recorded)
    status: CheckStatus = "agrees" if recorded == found else "differs"
    return Check(name=name, status=status, recorded=recorded, found=found)


def _differing(checks: Sequence[Check]) -> list[Check]:
    return [row for row in checks if row.status == "differs"]


def _same(checks: Sequence[Check]) -> bool:
    return not _differing(checks)


def _causes(record: Run | Build, rebuilt: Rebuilt, checks: Sequence[Check]) -> Iterator[str]:
    """Why something differs or is not known, as far as that can be told."""
    if rebuilt.no_figures:
        yield f"outputs and figures were not compared: {rebuilt.no_figures}"
    others = [row for row in _differing(checks) if row.name.startswith("version of")]
    for row in others:
        yield f"{row.name} is {row.found} here, {row.recorded} in the record"
    if all(row.status == "agrees" for row in checks if row.name in ("elf", "map")):
        if not _same(checks) and not others:
            yield "the same firmware gives other figures here: the record was changed, or the SDK is another"
        return
    here, there = provenance.tool(), record.tool
    if here != there:
        words = [" ".join(filter(None, (row.version, row.git))) for row in (here, there)]
        yield f"ethosu-sdk is {words[0]} here, {words[1]} in the record"
    if isinstance(record, Build) and record.build_key == rebuilt.build_key:
        yield "sources, settings and tools are the same: the build is not reproducible, or the record is wrong"
    elif isinstance(record, Build):
        yield "the firmware's sources, its settings or the tools are not those of the record (build_key)"


def verify_table(result: Verification) -> Table:
    """What was compared: digests by their first digits, all else whole."""
    colours = {"agrees": "green", "differs": "red", "unknown": "yellow"}
    found = Table("", "", "recorded", "here", box=None, pad_edge=False)
    for row in result.checks:
        colour = colours[row.status]
        found.add_row(
            escape(row.name),
            f"[{colour}]{row.status}[/{colour}]",
            escape(_value_text(row.recorded)),
            escape(_value_text(row.found or "")),
        )
    return found


def _show(result: Verification, reporter: Reporter) -> None:
    reporter.show(verify_table(result))
    for cause in result.causes:
        reporter.show(f"why: {escape(cause)}")
    if result.status == "pass":
        reporter.show(f"{escape(result.record.file)}: {_found_again(result)}")


def _value_text(value: str) -> str:
    """A digest by its first digits, a whole number with its thousands apart, anything else as it is."""
    if len(value) == _DIGEST_DIGITS and set(value) <= set("0123456789abcdef"):
        return value[:_SHOWN]
    return f"{int(value):,}" if value.isdecimal() and value.isascii() else value


def _found_again(result: Verification) -> str:
    built = "the firmware was built again, byte for byte"
    known = all(row.status == "agrees" for row in result.checks if row.name == "figures")
    if result.record.schema != kinds.RUN.schema:
        return f"{built}."
    return f"{built}, and gave the same outputs and figures." if known else f"{built}; it was not run."
