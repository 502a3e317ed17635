"""A Vela configuration in place of Vela's own, from a file or a board profile, and the target that it describes.

The form is that of the vela.ini in ethos-u-vela 5.1.0: sections ``System_Config.NAME`` and ``Memory_Mode.NAME``,
each of which may name another one with ``inherit``.
"""

from __future__ import annotations

import configparser
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.boards import profiles
from ethosu_sdk.boards.profile import BoardProfile
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.files import opening
from ethosu_sdk.program_options import ProgramOptions
from ethosu_sdk.targets import DEFAULT_TARGET, Target, parse_name, parse_target, suggestion

_SYSTEM, _MEMORY = "System_Config", "Memory_Mode"
_MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class VelaConfig:
    """The content of a configuration file, and the names in it."""

    content: bytes
    system_configs: tuple[str, ...]
    memory_modes: tuple[str, ...]

    @property
    def stored_name(self) -> str:
        """The name under which a `.pte` refers to this file: its content decides, its place does not."""
        return f"sha256-{hashlib.sha256(self.content).hexdigest()}.ini"


def read(path: Path) -> VelaConfig:
    """Read a configuration file. InputError when it cannot be read, or holds no system configuration or no
    memory mode, or inherits from a section that it does not have."""
    content = opening.content(path, _MAX_BYTES)
    if len(content) > _MAX_BYTES:
        raise InputError(f"{path} is too large for a Vela configuration file")
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(content.decode("utf-8"), str(path))
    except (configparser.Error, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path} is not a Vela configuration file: {reason}") from error
    for name in parser.sections():
        parent = parser.get(name, "inherit", fallback=None)
        if parent is not None and (parent == name or not parser.has_section(parent)):
            raise InputError(
                f"section {name} of {path} inherits from '{parent}', which is itself or does not exist"
            )
    names = {kind: _names(parser, kind) for kind in (_SYSTEM, _MEMORY)}
    for kind, found in names.items():
        if not found:
            raise InputError(f"{path} has no section [{kind}.NAME]", "see the vela.ini of ethos-u-vela")
    return VelaConfig(content, names[_SYSTEM], names[_MEMORY])


def _names(parser: configparser.ConfigParser, kind: str) -> tuple[str, ...]:
    prefix = f"{kind}."
    return tuple(name.removeprefix(prefix) for name in parser.sections() if name.startswith(prefix))


def of(options: ProgramOptions) -> VelaConfig | None:
    """The configuration that `options` ask for in place of Vela's own. InputError for a file that is none."""
    if options.system is not None:
        profile = profiles.find(options.system)
        systems = tuple(row.name for row in profile.systems)
        return VelaConfig(profile.vela_ini().encode(), systems, tuple(profile.memory_modes))
    return None if options.vela_config is None else read(options.vela_config)


def resolve_target(
    name: str | None, system_config: str | None, memory_mode: str | None, options: ProgramOptions
) -> Target:
    """The target that a user asked for; with a configuration file or a board profile in `options`, its names count.

    What is not given is the profile's default. Without a profile it is DEFAULT_TARGET, and the family's default if
    the file has that, or the file's only one. UsageError for a name that does not exist or an NPU that the board does
    not have, InputError for a file that is none.
    """
    if options.system is not None:
        if options.vela_config is not None:
            raise UsageError(
                "--system and --vela-config both give Vela's configuration", "leave one of the two out"
            )
        return _on_board(profiles.find(options.system), name, system_config, memory_mode)
    name = name or DEFAULT_TARGET
    config_file = options.vela_config
    if config_file is None:
        return parse_target(name, system_config, memory_mode)
    family, macs = parse_name(name)
    config = read(config_file)
    return Target(
        npu=family.name,
        macs=macs,
        system_config=_choose(
            "system configuration",
            system_config,
            family.default_system_config,
            config.system_configs,
            config_file,
        ),
        memory_mode=_choose(
            "memory mode", memory_mode, family.default_memory_mode, config.memory_modes, config_file
        ),
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
    return Target(npu=family.name, macs=macs, system_config=system.name, memory_mode=mode)


def _choose(what: str, wanted: str | None, default: str, known: Sequence[str], where: Path) -> str:
    if wanted is None:
        if default in known:
            return default
        if len(known) == 1:
            return known[0]
        option = "--" + ("memory-mode" if what == "memory mode" else "system-config")
        raise UsageError(f"{where} has several {what}s", f"choose with {option}, one of: {', '.join(known)}")
    if wanted not in known:
        raise UsageError(f"{where} has no {what} '{wanted}'", suggestion(wanted, known))
    return wanted
