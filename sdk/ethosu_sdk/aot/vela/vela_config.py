"""A Vela configuration in place of Vela's own, from a file or a board profile, and the target that it describes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.boards import profiles
from ethosu_sdk.boards.profile import BoardProfile
from ethosu_sdk.errors import UsageError
from ethosu_sdk.files import hashing, opening
from ethosu_sdk.npu.timing import vela_ini
from ethosu_sdk.npu.timing.vela_ini import VelaIni
from ethosu_sdk.program_options import ProgramOptions
from ethosu_sdk.targets import (
    DEFAULT_TARGET,
    AnyTarget,
    Core,
    Target,
    cores,
    parse_name,
    parse_target,
    stored_name,
    suggestion,
)


@dataclass(frozen=True)
class VelaConfig:
    """A configuration that was read: what is in it, its content, and the board profile that it is of, if any."""

    content: bytes
    ini: VelaIni
    board: BoardProfile | None = None

    @property
    def stored_name(self) -> str:
        """The name that the program keeps of the configuration: with its digest."""
        return stored_name(hashing.sha256_bytes(self.content))


def read(path: Path) -> VelaConfig:
    """Read a configuration file. InputError when it cannot be read, or is none (:func:`vela_ini.parse`)."""
    content = opening.text(path, vela_ini.LARGEST_BYTES)
    return VelaConfig(content.encode(), vela_ini.parse(content, str(path)))


def of_profile(profile: BoardProfile) -> VelaConfig:
    """The configuration of a board profile."""
    text = profile.vela_ini()
    return VelaConfig(text.encode(), vela_ini.parse(text, profile.ini_source), profile)


def of(options: ProgramOptions) -> VelaConfig | None:
    """The configuration that `options` ask for in place of Vela's own.

    InputError for a file that is none, UsageError for two of them.
    """
    if options.system is not None and options.vela_config is not None:
        raise UsageError(
            "--system and --vela-config both give Vela's configuration", "leave one of the two out"
        )
    if options.system is not None:
        return of_profile(profiles.find(options.system))
    return None if options.vela_config is None else read(options.vela_config)


def resolve_target(
    name: str | None, system_config: str | None, memory_mode: str | None, options: ProgramOptions
) -> AnyTarget:
    """The target that a user asked for; with a configuration file or a board profile in `options`, its names count.

    What is not given is the profile's default. Without a profile it is DEFAULT_TARGET, and the family's default if
    the file has that, or the file's only one. UsageError for a name that does not exist or an NPU that the board does
    not have, for options of an NPU beside a processor, and InputError for a file that is none.
    """
    config = of(options)
    if name in cores():
        return _core(cores()[name], config, system_config, memory_mode, options)
    if config is not None and config.board is not None:
        return _on_board(config.board, name, system_config, memory_mode)
    name = name or DEFAULT_TARGET
    if config is None:
        return parse_target(name, system_config, memory_mode)
    return target_in(config, name, system_config, memory_mode)


def _core(
    core: Core,
    config: VelaConfig | None,
    system_config: str | None,
    memory_mode: str | None,
    options: ProgramOptions,
) -> Core:
    """The target `core`. UsageError for options that only an NPU has, and for a board with another processor."""
    given = {
        "--system-config": system_config,
        "--memory-mode": memory_mode,
        "--vela-config": options.vela_config,
        "--extra-vela-flag": options.vela_flags,
        "--require-full-delegation": options.require_full_delegation,
        "--fallback": options.fallback,
    }
    for option in (name for name, value in given.items() if value):
        raise UsageError(
            f"{option} is for a target with an NPU, and {core.name} has none", f"leave {option} out"
        )
    if config is not None and config.board is not None and config.board.cpu.core != core.name:
        board = config.board
        raise UsageError(
            f"{board.name} has a {board.cpu.core}, not a {core.name}", f"--target {board.cpu.core}"
        )
    return core


def target_in(config: VelaConfig, name: str, system_config: str | None, memory_mode: str | None) -> Target:
    """The target with the names of `config`; see :func:`resolve_target`."""
    if config.board is not None:
        return _on_board(config.board, name, system_config, memory_mode)
    family, macs = parse_name(name)
    return Target(
        npu=family.name,
        macs=macs,
        system_config=config.ini.chosen(vela_ini.SYSTEM, system_config, family.default_system_config),
        memory_mode=config.ini.chosen(vela_ini.MODE, memory_mode, family.default_memory_mode),
        vela_config=config.stored_name,
    )


def _on_board(
    profile: BoardProfile, name: str | None, system_config: str | None, memory_mode: str | None
) -> Target:
    family, macs = parse_name(name or profile.npus[0])
    if name is not None and name not in profile.npus:
        raise UsageError(
            f"{profile.name} has no {name}", f"leave --target out, or {suggestion(name, profile.npus)}"
        )
    system = profile.default_system if system_config is None else profile.system(system_config)
    if system is None:
        known = [row.name for row in profile.systems]
        raise UsageError(
            f"{profile.name} has no system configuration '{system_config}'",
            suggestion(str(system_config), known),
        )
    mode = memory_mode or system.memory_modes[0]
    if mode not in system.memory_modes:
        raise UsageError(
            f"memory mode '{mode}' cannot be used with {system.name} of {profile.name}",
            suggestion(mode, system.memory_modes),
        )
    return Target(
        npu=family.name,
        macs=macs,
        system_config=system.name,
        memory_mode=mode,
        vela_config=of_profile(profile).stored_name,
    )
