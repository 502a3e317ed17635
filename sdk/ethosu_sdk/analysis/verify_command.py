"""`ethosu-sdk verify`: rebuild and rerun from scratch what a record describes, and compare."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
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
from ethosu_sdk.firmware_build import board_fit, build_command, resident_firmware
from ethosu_sdk.firmware_build.executable import Executable
from ethosu_sdk.firmware_build.program_firmware import BuildOptions
from ethosu_sdk.program import pte
from ethosu_sdk.records import kinds, provenance, result_files, run_facts, validation
from ethosu_sdk.records.build import Build
from ethosu_sdk.records.bundle import ReadPolicy, read_raw_record, read_record
from ethosu_sdk.records.common import ProvenanceInput
from ethosu_sdk.records.printed import Check, CheckStatus, Record as AboutRecord, Verification
from ethosu_sdk.records.run import Run
from ethosu_sdk.run import run_command
from ethosu_sdk.run.options import ALL_STEPS, EXECUTORCH, LAST_STEP, VELA_TIMING, RunOptions
from ethosu_sdk.run.repeats import KEPT

# What a run or a build that is done again must give again. Where a file lies and when it was made is no figure.
_MEMBERS = {
    Run: ("outputs", "repeats", "state", "sequence", "npu", "cpu", "memory", "operators", "pieces"),
    Build: ("sections", "kernels", "memory"),
}
# How events were parted into groups follows from the order in which they were asked for. What the CPU did before and
# after an inference depends on how long the simulator took: interrupts of the clock, waits for the UART. What was
# expected is no figure: steps are judged by a file that `verify` does not have.
_LEFT_OUT = ("group", "groups", "outside", "tolerance", "first_beyond", "status", "max_abs_error")
_RESIDENT_ELF = f"{resident_firmware.RESIDENT_EXECUTABLE}.elf"
_COUNTERS = "/npu/counters/"
_PROGRAMS = {"qemu": "qemu-system-arm"}  # names of `provenance.tools` that are not those of tools.toml
_NAMED = 8  # in the error
_MOST_FIGURES = 50  # that are named; the digest over all of them counts


def verify(
    path: Path,
    model: Path | None,
    inputs: Path | None,
    data: Sequence[Path],
    vela_config: Path | None,
    reading: ReadPolicy,
    reporter: Reporter,
) -> None:
    """Build and run again what the record at `path` describes. Compare digests, figures and tools' versions.

    The user names the `.pte` (None: the file of the record's model beside the record), the inputs of the run, the
    data files and the Vela configuration file of the program (None: as `run` finds it).

    Raises VerdictError when something differs, InputError for a record or model that is missing, damaged, or of no
    firmware.
    """
    start = time.monotonic()
    path = _record_file(path)
    record = _read(path, reading)
    reading.warn(reporter)
    pte_path = _model(path, record, model)
    checks = [_check("model", record.model.sha256, filesystem.sha256_file(pte_path))]
    causes = []
    if not _differing(checks):
        program = result_files.program_of_run(pte_path, record.provenance.inputs, data)
        ran = " and running it" if isinstance(record, Run) else ""
        with reporter.stage(f"rebuilding it from scratch{ran}"):
            if isinstance(record, Run):
                rebuilt = _rerun(record, pte_path, program, inputs, vela_config)
            else:
                rebuilt = _rebuild(record, pte_path, program, vela_config)
        checks += [*_digests(record, rebuilt), *_figures(record, rebuilt)]
        causes = list(_causes(record, rebuilt, checks))
    else:
        causes = ["the model is not the one that the record is about: nothing was built"]
    sha256 = filesystem.sha256_file(path)
    about = {"file": path.name, "schema": kinds.schema(record), "sha256": sha256, **reading.mark(path)}
    result = Verification(
        status="fail" if _differing(checks) else "pass",
        created=provenance.timestamp(),
        tool=provenance.tool(),
        record=convert(about, AboutRecord),
        checks=tuple(checks),
        causes=tuple(causes),
        wall_time_s=round(time.monotonic() - start, 3),
        host=provenance.this_host(),
    )
    content = result.to_json()
    validation.check_record(content, "the result of verify")
    reporter.show(verify_table(result), *(f"why: {escape(cause)}" for cause in causes))
    if result.status == "pass":
        reporter.show(f"{escape(path.name)}: {_found_again(result)}")
    reporter.emit(content)
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
    if _firmware(record) is None:
        raise InputError(
            f"{path} describes a run without a firmware, on the simulator '{record.simulator.name}'",
            "there is nothing to build; run it again and compare the outputs' digests",
        )
    return record


def _model(path: Path, record: Run | Build, model: Path | None) -> Path:
    beside = path.parent / record.model.file
    if model is None and not beside.is_file():
        message = f"the record's model, {beside.name}, is not beside it"
        raise InputError(message, "name it with --model FILE.pte")
    return result_files.require_pte(model or beside)


def _digests(record: Run | Build, rebuilt: Rebuilt) -> list[Check]:
    checks = []
    if isinstance(record, Build):
        checks += [
            _check("elf", record.elf.sha256, rebuilt.elf),
            _check("map", record.map.sha256, rebuilt.map),
        ]
    elif (firmware := _firmware(record)) is not None:
        checks.append(_check("elf", firmware.sha256, rebuilt.elf))
    for row in record.provenance.tools:
        known = tools.tool_table().get(_PROGRAMS.get(row.name, row.name))
        found = tools.probe(known.name).version if known is not None else ""
        checks.append(_check(f"version of {row.name}", row.version, found))
    return checks


def _figures(record: Run | Build, rebuilt: Rebuilt) -> Iterator[Check]:
    """One check over all figures, and one for each that differs."""
    sides = [dict(_leaves(part or {})) for part in (figures_of(record), rebuilt.figures)]
    digests = [filesystem.sha256_bytes(json.dumps(side).encode()) for side in sides]
    if rebuilt.figures is None:
        yield _check("figures", digests[0], "")
        return
    yield _check("figures", *digests)
    texts = {
        place: [json.dumps(side[place])[:200] if place in side else "nothing" for side in sides]
        for place in {**sides[0], **sides[1]}
    }
    differing = [(place, *pair) for place, pair in texts.items() if pair[0] != pair[1]]
    yield from (_check(*row) for row in differing[:_MOST_FIGURES])


def _check(name: str, recorded: str, found: str) -> Check:
    if not found:
        return Check(name=name, status="unknown", recorded=recorded)
    status: CheckStatus = "agrees" if recorded == found else "differs"
    return Check(name=name, status=status, recorded=recorded, found=found)


def _differing(checks: Sequence[Check]) -> list[Check]:
    return [row for row in checks if row.status == "differs"]


def _causes(record: Run | Build, rebuilt: Rebuilt, checks: Sequence[Check]) -> Iterator[str]:
    if rebuilt.no_figures:
        yield f"outputs and figures were not compared: {rebuilt.no_figures}"
    others = [row for row in _differing(checks) if row.name.startswith("version of")]
    for row in others:
        yield f"{row.name} is {row.found} here, {row.recorded} in the record"
    if all(row.status == "agrees" for row in checks if row.name in ("elf", "map")):
        if _differing(checks) and not others:
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


def _record_file(path: Path) -> Path:
    """The record of a run, or else of a build, in the folder `path`; a file is the record itself."""
    if not path.is_dir():
        return path
    return path / (kinds.RUN.file if (path / kinds.RUN.file).is_file() else kinds.BUILD.file)


def verify_table(result: Verification) -> Table:
    colours = {"agrees": "green", "differs": "red", "unknown": "yellow"}
    found = Table("", "", "recorded", "here", box=None, pad_edge=False)
    for row in result.checks:
        status = f"[{colours[row.status]}]{row.status}[/{colours[row.status]}]"
        values = (escape(_value_text(value)) for value in (row.recorded, row.found or ""))
        found.add_row(escape(row.name), status, *values)
    return found


def _value_text(value: str) -> str:
    """A digest by its first digits, a whole number with its thousands apart, anything else as it is."""
    if re.fullmatch("[0-9a-f]{64}", value):
        return value[:16]
    return f"{int(value):,}" if value.isdecimal() and value.isascii() else value


def _found_again(result: Verification) -> str:
    built = "the firmware was built again, byte for byte"
    known = all(row.status == "agrees" for row in result.checks if row.name == "figures")
    if result.record.schema != kinds.RUN.schema:
        return f"{built}."
    return f"{built}, and gave the same outputs and figures." if known else f"{built}; it was not run."


@dataclass(frozen=True)
class Rebuilt:
    """The digests, and the figures or why there are none. `map` and `build_key` are those of a build."""

    elf: str
    map: str = ""
    build_key: str = ""
    figures: Record | None = None
    no_figures: str = ""


def _firmware(record: Run) -> ProvenanceInput | None:
    return next((row for row in record.provenance.inputs if row.role == "firmware"), None)


def _rebuild(record: Build, path: Path, program: pte.Pte, vela_config: Path | None) -> Rebuilt:
    """Build the firmware that the `record` of a build describes, for the `program` at `path`."""
    options = BuildOptions(
        board=record.board,
        simulator=record.options.simulator,
        inferences=record.options.inferences,
        allow_spill=record.options.allow_spill,
        areas=pricing_system.memory_areas(path, program, vela_config),
        methods=record.options.methods or (),
        data_memory=record.options.data_memory,
        named=board_fit.board_of_program(path, program),
    )
    with _from_nothing() as folder:
        built = build_command.build_in(path, program, folder, options, Reporter(quiet=True))
        made, map_sha256 = built.firmware, filesystem.sha256_file(built.firmware.map)
        return Rebuilt(made.elf_sha256, map_sha256, made.build_key, figures_of(built.content))


def _rerun(
    record: Run, path: Path, program: pte.Pte, inputs: Path | None, vela_config: Path | None
) -> Rebuilt:
    """Build and run the `program` at `path` as the `record` of a run describes. Where that cannot be, build it."""
    # From the cache too, before that is left.
    priced = pricing_system.pricing_of_program(path, program, vela_config)
    unknown = _why_not_run(record, priced)
    if unknown:
        return _built_for_run(record, path, program, priced, unknown)
    state, sequence = record.state, record.sequence
    with _from_nothing() as folder:
        options = replace(
            _run_options(record, inputs, priced),
            data=tuple(row.path for row in program.data_files),
            # A run that is no sequence tells its state where that is saved.
            save_state=folder.parent / "state.npz"
            if state is not None and sequence is None and any(row.crc32 for row in state.tensors)
            else None,
        )
        try:
            content = run_command.run(
                str(path), CompileOptions(system=_board(record)), options, folder, Reporter(quiet=True)
            ).record.to_json()
        except VerdictError:  # the record holds it, and the records are compared
            content = read_raw_record(folder / kinds.RUN.file)
        except ToolError as error:
            why = f"it could not be run again: {error.message}"
            return _built_for_run(record, path, program, priced, why)
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


def _built_for_run(
    record: Run, path: Path, program: pte.Pte, priced: PricingSystem | None, why: str
) -> Rebuilt:
    options = BuildOptions(
        board=record.board,
        simulator=record.simulator.name,
        inferences=record.inferences,
        allow_spill=True,
        areas=None if priced is None else priced.areas,
        methods=(record.model.entry,),
        data_memory=record.data_memory,
        named=board_fit.board_of_program(path, program),
    )
    with _from_nothing() as folder:
        if _is_resident(record):
            made: Executable = resident_firmware.build_resident(folder, record.board)
        else:
            made = build_command.build_in(path, program, folder, options, Reporter(quiet=True)).firmware
        return Rebuilt(made.elf_sha256, no_figures=why)


def _is_resident(record: Run) -> bool:
    row = _firmware(record)
    return row is not None and row.file == _RESIDENT_ELF


def _timing(record: Run) -> str:
    timing = record.npu.memory_timing if record.npu is not None else None
    return VELA_TIMING if timing is None else timing.name


def _board(record: Run) -> str | None:
    name = run_facts.board_of_run(record)
    return name if name in board_profiles.profile_names() else None


def _why_not_run(record: Run, priced: PricingSystem | None) -> str:
    """What of the run cannot be had again; empty where all can."""
    timing, board, core = _timing(record), _board(record), record.cpu.core
    if timing not in (VELA_TIMING, EXECUTORCH):
        return f"the run's memory timing is that of a file, {timing}"
    if record.priced is not None and priced is not None and priced.part() != record.priced.to_json():
        name, source = record.priced.system.name, record.priced.system.source
        return f"the run's cycles are for {name} of {source}: --vela-config FILE.ini gives that"
    cpu = None if board is None else board_profiles.find_profile(board).cpu
    if core is not None and core != (boards.core_of_board(record.board) if cpu is None else cpu.core):
        return f"the run's CPU cycles are those of a {core}, which no board of `ethosu-sdk boards` gives"
    if record.state is not None and record.state.file:
        return f"the run began with the state in {record.state.file}, which `verify` does not take"
    return ""


def _run_options(record: Run, inputs: Path | None, priced: PricingSystem | None) -> RunOptions:
    """The options that the record was made with. Spilling is allowed: it changes nothing for a program that fits."""
    sequence, repeats = record.sequence, record.repeats
    names = [row.event for row in record.npu.counters] if record.npu is not None else []
    lacking = (row.path for row in record.unavailable if row.path.startswith(_COUNTERS))
    names += [path.removeprefix(_COUNTERS) for path in lacking]
    sent = record.outputs[0].shape[0] if record.outputs and record.outputs[0].shape else 0
    options = RunOptions(
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
    if sequence is None:
        return options
    return replace(
        options,
        steps=sequence.asked,
        feed=sequence.feeds,
        outputs=LAST_STEP if sent < len(sequence.steps) else ALL_STEPS,
    )


def figures_of(record: Run | Build) -> Record:
    """The members of the record of a run or build that hold its figures."""
    content = record.to_json()
    return {name: content[name] for name in _MEMBERS[type(record)] if name in content}


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if rows is None:
        yield place, value
        return
    for name, part in rows:
        if name not in _LEFT_OUT:
            yield from _leaves(part, f"{place}/{name}")
