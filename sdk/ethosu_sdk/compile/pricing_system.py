"""The system that a program's modelled cycles are for: the one it was compiled for, or one that is given."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.base import board_profiles, cache, filesystem
from ethosu_sdk.base.board_profiles import BoardProfile
from ethosu_sdk.base.errors import BuildError, InputError, SdkError, UsageError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.targets import MemoryAreas, Target, stored_name
from ethosu_sdk.compile import vela_config as configurations
from ethosu_sdk.compile.program_options import ProgramOptions
from ethosu_sdk.npu.timing import systems
from ethosu_sdk.npu.timing.systems import Memory, SystemConfig
from ethosu_sdk.program import pte
from ethosu_sdk.records import bundle, common, kinds, result_files

CACHE_PART = "systems"
_BOARDS = "boards"  # the part of the cache with users' board profiles
_RAM = ("Sram", "Dram")
_BY_DIGEST = stored_name("").partition(".")[0]  # how the name of a file that is known by its digest begins


@dataclass(frozen=True)
class PricingSystem:
    """A system that cycles are for; `areas`: where the program's memory mode has things, if that is known."""

    system: SystemConfig
    is_compiled_for: bool
    areas: MemoryAreas | None

    def part(self) -> Record:
        return {"compiled_for": self.is_compiled_for, "system": system_part(self.system)}


def system_of_file(path: Path, target: Target) -> SystemConfig:
    """The system of `target` as the Vela configuration file at `path` has it. InputError for a damaged file,
    UsageError for one that does not have the target's names."""
    text = filesystem.file_text(path, systems.LARGEST_BYTES)
    return systems.system_from_ini(text, path.name, target.npu, target.system_config, target.memory_mode)


def system_for_options(target: Target, options: ProgramOptions) -> SystemConfig:
    """The system that a program for `target` is compiled for. InputError for a damaged or changed file."""
    config = configurations.chosen_config(options)
    if config is None:
        return systems.memory_map(target.npu, target.system_config, target.memory_mode)
    if target.vela_config not in ("", config.stored_name):
        raise InputError(f"{config.ini.source} changed while it was read")
    return systems.system_from_ini(
        config.content.decode(),
        Path(config.ini.source).name,
        target.npu,
        target.system_config,
        target.memory_mode,
    )


def systems_in_every_mode(path: Path, target: Target) -> Iterator[SystemConfig]:
    """The target's system configuration with each memory mode of the Vela configuration file at `path` that Vela
    takes: the arena is in RAM, and the cache in SRAM. InputError for a damaged file, UsageError for one without the
    system configuration."""
    text = filesystem.file_text(path, systems.LARGEST_BYTES)
    for mode in systems.parse(text, path.name).names(systems.MODE):
        found = systems.system_from_ini(text, path.name, target.npu, target.system_config, mode)
        if found.arena.name in _RAM and found.cache.name == _RAM[0]:
            yield found


def pricing_of_program(path: Path, program: pte.Pte, vela_config: Path | None = None) -> PricingSystem | None:
    """The system that cycles of the `program` at `path` are for; None for one without an NPU. `vela_config` is the
    file to price with in place of the one that it was compiled with. Where neither is known, the default of the
    family stands in. InputError for a file that is damaged, or does not have the program's system."""
    target = program.target()
    if target is None:
        return None
    own = _compiled_for(path, program, target)
    if vela_config is None:
        if own is None:
            return PricingSystem(systems.default_for(target.npu), False, None)
        return PricingSystem(own, True, own.areas)
    try:
        system = system_of_file(vela_config, target)
    except UsageError as error:
        raise InputError(f"{error.message}, which {path.name} is compiled for", error.hint) from error
    return PricingSystem(system, _is_compiled_for(system, own, target), (own or system).areas)


def pricing_on_board(path: Path, program: pte.Pte, profile: BoardProfile) -> PricingSystem | None:
    """The system that `profile` has for the `program` at `path`: the one of its names, else the profile's default.
    None for a program without an NPU. UsageError when the board does not have its NPU."""
    target = program.target()
    if target is None:
        return None
    if target.name not in profile.npus:
        raise UsageError(
            f"{profile.name} has no {target.name}, which {path.name} is compiled for",
            f"it has: {', '.join(profile.npus)}",
        )
    row = profile.system(target.system_config) or profile.default_system
    mode = target.memory_mode if target.memory_mode in row.memory_modes else row.memory_modes[0]
    system = system_of_board(profile, row.name, mode)
    own = _compiled_for(path, program, target)
    return PricingSystem(system, _is_compiled_for(system, own, target), (own or system).areas)


def system_of_board(profile: BoardProfile, name: str = "", mode: str = "") -> SystemConfig:
    """The system configuration `name` of `profile` in a memory mode; by default the profile's first of each."""
    row = (profile.system(name) if name else None) or profile.default_system
    npu = profile.npus[0].rpartition("-")[0]
    return systems.system_from_ini(
        profile.vela_ini(), profile.ini_source, npu, row.name, mode or row.memory_modes[0]
    )


def board_of_program(path: Path, program: pte.Pte) -> BoardProfile | None:
    """The board that the `program` at `path` was compiled for; None without one, or if its profile has changed."""
    target = program.target()
    own = None if target is None else _compiled_for(path, program, target)
    for name in board_profiles.profile_names():
        if own is not None and own.source == board_profiles.INI_SOURCE.format(name):
            profile = board_profiles.find_profile(name)
            return profile if own.sha256 == profile.ini_sha256 else None
    record = result_files.compile_record_path(path)
    found = bundle.compilation_of(record, program.sha256) if record.is_file() else None
    if found is None or found.board_profile is None:
        return None
    board = board_of_name(program, found.board_profile.name)
    return board if board is not None and board.sha256 == found.board_profile.sha256 else None


def board_of_name(program: pte.Pte, name: str) -> BoardProfile | None:
    """The profile that a record of `program` calls `name`: one of the SDK's, or the copy of a user's file."""
    if name in board_profiles.profile_names():
        return board_profiles.find_profile(name)
    path = cache.place(_BOARDS) / program.sha256 / f"{name}{board_profiles.SUFFIX}"
    try:
        return board_profiles.find_profile(str(path)) if path.is_file() else None
    except SdkError as error:
        cache.note(f"{path} was changed since it was stored: {error.message}")
        return None


def keep_board(program: pte.Pte, system: str | None) -> None:
    """Leave a copy of the board profile `system` in the cache for later runs of `program`, if it is a user's file."""
    source = None if system is None else board_profiles.profile_file(system)
    if source is None:
        return
    name = board_profiles.find_profile(str(source)).name
    try:
        folder = filesystem.make_directory(cache.directory_or_own(_BOARDS) / program.sha256)
        filesystem.write_bytes(folder / f"{name}{board_profiles.SUFFIX}", source.read_bytes())
    except (BuildError, OSError) as error:
        cache.note(f"the board profile {name} was not kept: {error}")


def memory_areas(path: Path, program: pte.Pte, vela_config: Path | None = None) -> MemoryAreas | None:
    """Where the memory mode of the `program` at `path` has things; None when that is not known, or without NPU."""
    priced = pricing_of_program(path, program, vela_config)
    return None if priced is None else priced.areas


def _compiled_for(path: Path, program: pte.Pte, target: Target) -> SystemConfig | None:
    if not target.vela_config:
        return systems.known_system(target.npu, target.system_config, target.memory_mode)
    found = itertools.chain(_recorded(path, program), _cached(program, target))
    return next((row for row in found if _agrees(row, target)), None)


def _is_compiled_for(system: SystemConfig, own: SystemConfig | None, target: Target) -> bool:
    if own is None:
        return _agrees(system, target)
    return dataclasses.replace(system, source=own.source, sha256=own.sha256) == own


def _agrees(system: SystemConfig, target: Target) -> bool:
    """Whether `system` has the names that the program has, and its file the digest where the program has one."""
    names = (system.name, system.memory_mode) == (target.system_config, target.memory_mode)
    has_digest = target.vela_config.startswith(_BY_DIGEST)
    return names and (not has_digest or target.vela_config == stored_name(system.sha256))


def _recorded(path: Path, program: pte.Pte) -> Iterator[SystemConfig]:
    """What compile records in the program's folder say; the one that bears its name comes first."""
    beside = result_files.compile_record_path(path)
    for record in dict.fromkeys((beside, *sorted(path.parent.glob(kinds.COMPILE.file)))):
        # Another program's may be damaged.
        with contextlib.nullcontext() if record == beside else contextlib.suppress(SdkError):
            found = bundle.compilation_of(record, program.sha256) if record.is_file() else None
            if found is not None and found.system is not None:
                yield system_of_record(found.system)


def keep_vela_config(path: Path, options: ProgramOptions) -> None:
    """Leave a copy of the Vela configuration and of the user's board profile of `options` in the cache, for the
    `.pte` at `path` that was compiled with it; nothing for Vela's own."""
    config = configurations.chosen_config(options)
    if config is None:
        return
    program = pte.read(path)
    keep_board(program, options.system)
    folder = cache.directory_or_own(CACHE_PART) / program.sha256
    try:
        filesystem.write_bytes(
            filesystem.make_directory(folder) / Path(config.ini.source).name, config.content
        )
    except BuildError as error:
        cache.note(f"{error.message}: the system of {path.name} is in its compile record alone")


def _cached(program: pte.Pte, target: Target) -> Iterator[SystemConfig]:
    folder = cache.place(CACHE_PART) / program.sha256
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            yield system_of_file(path, target)
        except SdkError as error:
            cache.note(f"{path} was changed since it was stored: {error.message}")


def system_part(system: SystemConfig) -> Record:
    interfaces = {row.interface: row for row in (system.constants, system.arena, system.cache)}
    memories = [dataclasses.asdict(row) for _, row in sorted(interfaces.items())]
    place = dataclasses.asdict(system.areas)
    return {
        "name": system.name,
        "memory_mode": system.memory_mode,
        "source": system.source,
        "sha256": system.sha256,
        "clock_hz": system.clock_hz,
        "areas": {name: value for name, value in place.items() if value is not None},
        "memories": [{"axi": facts.pop("interface"), **facts} for facts in memories],
    }


def system_of_record(record: common.System) -> SystemConfig:
    rows = [row.to_json() for row in record.memories]
    memories = {facts["axi"]: Memory(interface=facts.pop("axi"), **facts) for facts in rows}
    return SystemConfig(
        name=record.name,
        memory_mode=record.memory_mode,
        clock_hz=record.clock_hz,
        constants=memories[record.areas.constants],
        arena=memories[record.areas.arena],
        cache=memories[record.areas.cache],
        cache_bytes=record.areas.cache_bytes,
        source=record.source,
        sha256=record.sha256,
    )
