"""What a run's program says and no record has: lifetimes, other memory modes, room on a board, profiles."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ethosu_sdk.analysis import profile_command, profile_rows
from ethosu_sdk.base import filesystem
from ethosu_sdk.base.board_profiles import BoardProfile
from ethosu_sdk.base.boards import board_named
from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.base.targets import Target
from ethosu_sdk.compile import pricing_system
from ethosu_sdk.firmware_build import board_fit, program_checks, program_firmware
from ethosu_sdk.firmware_build.memory_fit import MemoryFitError
from ethosu_sdk.firmware_build.program_firmware import BuildOptions
from ethosu_sdk.npu import errors
from ethosu_sdk.npu.accesses import Access, Runs, accesses, overlap
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import Operation
from ethosu_sdk.npu.program import described
from ethosu_sdk.npu.timing import systems
from ethosu_sdk.npu.timing.systems import SystemConfig
from ethosu_sdk.npu.vela_blocks import VelaBlocks
from ethosu_sdk.program import pte
from ethosu_sdk.records import kinds, result_files
from ethosu_sdk.records.bundle import generated_in, is_of_run, read_raw_record, read_record
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.run_facts import Flow, Lifetime, Lifetimes, MadeProfile, Mode, ProgramFacts, RunFacts
from ethosu_sdk.records.sequences import Generate
from ethosu_sdk.run.options import HOST

_TIMEOUT_S = 60.0
_BEFORE = -1  # the "operation" that brings a delegate's inputs
_MOST_READS = 200_000  # of one operation what another wrote: more make no graph that anybody reads
_FIXED_STEP = ("ethos-u55", "ethos-u65")  # Ethos-U85 chooses its step for each operation
_SIMULATOR = "qemu"  # on whose board a program has to fit


def facts_of_run(folder: Path, vela_config: Path | None = None) -> RunFacts:
    """All facts of the run in `folder`, priced with the file `vela_config` if there is one; only the known ones
    if it is unfinished or damaged.

    Whoever reads its records refuses a folder that holds no run.
    """
    if not (folder / kinds.RUN.file).is_file():
        return RunFacts()
    made = missing_profiles([folder], vela_config).get(folder)
    try:
        run = read_record(folder / kinds.RUN.file)
        path = folder / Path(run.model.file).name if isinstance(run, Run) else folder
        if not isinstance(run, Run) or not path.is_file() or filesystem.sha256_file(path) != run.model.sha256:
            return RunFacts(made)
        program, no_room = result_files.program_of_run(path, run.provenance.inputs), ""
        if run.simulator.name == HOST:  # which does without a board
            board = profile_command.board_of_profile(path, program, run, None, vela_config)
            no_room = lacking_room(path, program, board, vela_config)
        found = lifetimes_of(program)
    except SdkError as error:
        return RunFacts(made, program_reason=error.message, lifetimes_reason=error.message)
    facts, why = None, made.reason if made is not None else ""
    try:
        profile = made.record if made is not None else None
        if made is None:
            profile = kinds.PROFILE.convert(read_raw_record(folder / kinds.PROFILE.file))
        facts = None if profile is None else facts_of_program(program, profile, vela_config)
    except SdkError as error:
        why = error.message
    return RunFacts(made, facts, why, found.lifetimes, found.reason, found.flows, no_room)


def missing_profiles(folders: Iterable[Path], vela_config: Path | None = None) -> dict[Path, MadeProfile]:
    """The profiles of those of `folders` that hold a run and no profile of it; of every run, priced with the file
    `vela_config`, if there is one. Nothing is written. SdkError when that file cannot be used."""
    return {
        folder: _made(folder, vela_config)
        for folder in folders
        if (vela_config is not None and (folder / kinds.RUN.file).is_file()) or not _is_whole(folder)
    }


def _is_whole(folder: Path) -> bool:
    """Whether no profile has to be made: there is one, or no run. Whoever reads the records refuses damaged ones."""
    run, profile = folder / kinds.RUN.file, folder / kinds.PROFILE.file
    if not run.is_file():
        return True
    if not profile.is_file():
        return False
    try:
        found, ran = read_record(profile), read_record(run)
    except SdkError:
        return True
    if not isinstance(found, Profile) or not isinstance(ran, Run):
        return False
    return found.model.sha256 == ran.model.sha256 and is_of_run(found, run)


def _made(folder: Path, vela_config: Path | None) -> MadeProfile:
    profiled = profile_command.profile_of_run
    try:
        prefill = _steps_of_prompt(folder)
        return MadeProfile(profiled(folder, vela_config, prefill=prefill, timeout_s=_TIMEOUT_S))
    except SdkError as error:
        if vela_config is not None:
            raise
        return MadeProfile(None, error.message)


def _steps_of_prompt(folder: Path) -> int | None:
    """How many steps of the run took the prompt of `generate`; None where it did not make the run, or there are no
    others."""
    path = folder / kinds.GENERATE.file
    if not path.is_file():
        return None
    found, run = read_record(path), read_record(folder / kinds.RUN.file)
    if not isinstance(found, Generate) or not isinstance(run, Run) or not generated_in(found, run):
        return None
    return len(found.prompt) if len(found.prompt) < found.steps else None


def facts_of_program(program: pte.Pte, profile: Profile, vela_config: Path | None = None) -> ProgramFacts:
    """The facts of `program`, of which `profile` says how often each delegate is called and what was priced.

    `vela_config` is the Vela configuration file that has the other memory modes, where the system is the user's own.
    """
    target = program.target()
    if target is None:
        return ProgramFacts(modes_reason="the program delegates nothing to an NPU")
    step = None
    if target.npu in _FIXED_STEP:
        config = NpuConfig.for_target(target.npu, target.macs)
        step = config.micro_block[2] * config.cores
    try:
        with errors.until(time.monotonic() + _TIMEOUT_S):
            systems_of_modes = list(_systems(target, profile, vela_config))
            modes, reason = _modes(program, target, profile, systems_of_modes)
    except SdkError as error:
        modes, reason = {}, f"other memory modes could not be priced: {error.message}"
    return ProgramFacts(modes, reason, step)


def _systems(target: Target, profile: Profile, vela_config: Path | None) -> Iterator[SystemConfig]:
    """The system in each memory mode: of the file `vela_config`, of vela.ini, or else in the one that was priced."""
    if vela_config is not None:
        yield from pricing_system.systems_in_every_mode(vela_config, target)
        return
    if target.vela_config:
        if profile.priced is not None and profile.priced.compiled_for:
            yield pricing_system.system_of_record(profile.priced.system)
        return
    for name in target.family.system_configs.get(target.system_config, ()):
        system = systems.known_system(target.npu, target.system_config, name)
        if system is not None:
            yield system


def _modes(
    program: pte.Pte, target: Target, profile: Profile, found: Sequence[SystemConfig]
) -> tuple[dict[str, Mode], str]:
    """The program in the memory mode of each system, and why there is none.

    The command streams are priced as they are with the memories of the other mode: Vela would schedule anew.
    """
    calls = {row.index: row.calls for row in profile.delegates}
    sram = _sram_of_board(program, target, profile)
    modes = {}
    for system in found:
        cycles = 0
        for index, delegate in enumerate(program.plan().delegates):
            row = profile_rows.read_delegate(index, delegate, system)
            if row is None or row.stream is None:
                break
            cycles += calls.get(index, 0) * row.stream.cycles
        else:
            used = sram_bytes(program, system)
            fits = sram is None or used <= sram
            modes[system.memory_mode] = Mode(system.memory_mode, cycles, used, fits)
    if target.memory_mode not in modes:
        return {}, f"the memories of {target.system_config} with {target.memory_mode} are not known here"
    return modes, ""


def _sram_of_board(program: pte.Pte, target: Target, profile: Profile) -> int | None:
    """The size of the memory at port 0: on the profile's board, or on the simulated one where it names none. None:
    the size is not public."""
    place = "" if profile.time is None else profile.time.place
    board = pricing_system.board_of_name(program, place)
    system = None if board is None else board.system(target.system_config)
    if board is None or system is None or "Sram" not in system.areas:
        return board_named(target.family.board).fast.size_bytes
    memory = board.memory(system.areas["Sram"])
    return None if memory is None else memory.size_bytes


def sram_bytes(program: pte.Pte, system: SystemConfig) -> int:
    """What lies in the memory of port 0 by the present sizes: arena, cache and constants, as the mode has them."""
    velas = [row.vela for row in program.plan().delegates if row.vela is not None]
    scratch = max((row.scratch_bytes for row in velas), default=0)
    used = scratch if system.arena.interface == 0 else min(scratch, system.cache_bytes or scratch)
    return used + (program.size if system.constants.interface == 0 else 0)


def lacking_room(
    path: Path, program: pte.Pte, profile: BoardProfile | None, vela_config: Path | None = None
) -> str:
    """Which memory is too small for the `program` at `path`, with the arithmetic; empty where all are large enough.
    They are those of the board of `profile`, else of the one that simulates the program."""
    if profile is not None:
        priced = pricing_system.pricing_on_board(path, program, profile)
    else:
        priced = pricing_system.pricing_of_program(path, program, vela_config)
    options = BuildOptions(
        simulator=_SIMULATOR,
        fast_scratch_bytes=program_checks.fast_scratch_bytes(program.plans),
        areas=None if priced is None else priced.areas,
        named=board_fit.named_board(profile, None if priced is None else priced.system),
    )
    try:
        program_firmware.check_fit(program, options)
    except MemoryFitError as error:
        return error.message
    return ""


@dataclass
class _Tenant:
    region: int
    runs: Runs
    first: int
    last: int
    offset: int | None
    role: str = ""


@dataclass(frozen=True)
class Delegates:
    """The lifetimes in the delegate with the largest arena, or why they are not known; the flow of each delegate of
    which it is known, by number."""

    lifetimes: Lifetimes | None
    reason: str = ""
    flows: Mapping[int, Flow] = field(default_factory=dict)


def lifetimes_of(program: pte.Pte) -> Delegates:
    """What the command streams of the delegates of `program` say.

    Bytes that an operation writes live in the region from then on, until the last operation that reads them. The
    stream names no tensors; that writes belong to one is not in it. Who reads what another wrote is the flow of data.
    """
    delegates = program.plan().delegates
    known = {index: row.vela for index, row in enumerate(delegates) if row.vela is not None}
    if not known:
        return Delegates(None, "the program has no delegate of an Ethos-U")
    largest, vela = max(known.items(), key=lambda row: row[1].scratch_bytes)
    found: dict[int, _Read | None] = {}
    try:
        with errors.until(time.monotonic() + _TIMEOUT_S):
            for index in sorted(known, key=lambda index: index != largest):
                found[index] = _read_stream(known[index])
    except SdkError as error:
        if largest not in found:
            return Delegates(None, error.message)
    flows = {index: row[2] for index, row in found.items() if row is not None and row[2] is not None}
    first = found[largest]
    if first is None:
        return Delegates(None, "which operations run depends on data", flows)
    return Delegates(Lifetimes(largest, len(delegates), vela.scratch_bytes, *first[:2]), "", flows)


# Lifetimes, the number of operations, and the flow; of streams that read too often that is not known.
_Read = tuple[Sequence[Lifetime], int, Flow | None]


def _read_stream(vela: VelaBlocks) -> _Read | None:
    """What an Ethos-U's delegate does; None for a stream whose order of operations depends on data. SdkError when it
    cannot be read."""
    config = NpuConfig.from_word(vela.config_word)
    segment = described(bytes(vela.command_stream), config)
    if segment.branch is not None:
        return None
    count = len(segment.operations)
    inputs = [
        _Tenant(slot.region, Runs(slot.offset, (), slot.nbytes), _BEFORE, _BEFORE, None, "input")
        for slot in vela.inputs
    ]
    live, gone = list(inputs), list[_Tenant]()
    reads: list[tuple[_Tenant, int]] = []
    for number, op in enumerate(segment.operations):
        errors.check()
        touched = accesses(op, config)
        if len(reads) < _MOST_READS:
            reads += ((tenant, number) for row in touched if not row.writes for tenant in _met(live, row))
        live = _step(live, gone, number, op, touched)
    outputs = []
    for slot in vela.outputs:
        kept = Access(slot.region, False, Runs(slot.offset, (), slot.nbytes))
        writers = _met(live, kept)
        outputs.append(tuple(sorted(tenant.first for tenant in writers if tenant.first != _BEFORE)))
        for tenant in writers:
            tenant.last, tenant.role = count - 1, tenant.role or "output"
    ended = [
        Lifetime(row.region, row.runs.base, row.runs.end, row.first, row.last, row.offset, row.role)
        for row in (*gone, *live)
    ]
    return ended, count, _flow(inputs, reads, outputs) if len(reads) < _MOST_READS else None


def _flow(
    inputs: Sequence[_Tenant], reads: Sequence[tuple[_Tenant, int]], outputs: Sequence[Sequence[int]]
) -> Flow:
    edges = {(tenant.first, reader) for tenant, reader in reads if tenant.first != _BEFORE}
    readers: dict[int, set[int]] = {id(tenant): set() for tenant in inputs}
    for tenant, reader in reads:
        readers.get(id(tenant), set()).add(reader)
    return Flow(tuple(sorted(edges)), tuple(tuple(sorted(row)) for row in readers.values()), tuple(outputs))


def _step(
    live: list[_Tenant], gone: list[_Tenant], number: int, op: Operation, touched: Sequence[Access]
) -> list[_Tenant]:
    """The tenants after operation `number`; what it overwrites goes to `gone`."""
    for access in touched:
        if not access.writes:
            for tenant in _met(live, access):
                tenant.last = number
    for access in touched:
        if access.writes and access.region is not None:
            over = {id(tenant) for tenant in _met(live, access)}
            gone += [tenant for tenant in live if id(tenant) in over]
            live = [tenant for tenant in live if id(tenant) not in over]
            live.append(_Tenant(access.region, access.runs, number, number, op.offset))
    return live


def _met(live: Iterable[_Tenant], access: Access) -> list[_Tenant]:
    return [
        tenant
        for tenant in live
        if tenant.region == access.region
        and tenant.runs.base < access.runs.end
        and access.runs.base < tenant.runs.end
        and overlap(tenant.runs, access.runs) is not None
    ]
