"""A user's own Vela configuration file: what it holds, and the target that it describes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.errors import UsageError
from ethosu_sdk.files import hashing, opening
from ethosu_sdk.npu.timing import vela_ini
from ethosu_sdk.targets import Target, parse_name, parse_target, stored_name, suggestion


@dataclass(frozen=True)
class VelaConfig:
    """A configuration file that was read: the names in it, and its content."""

    path: Path
    content: bytes
    system_configs: tuple[str, ...]
    memory_modes: tuple[str, ...]

    @property
    def stored_name(self) -> str:
        """The name under which a `.pte` refers to this file."""
        return stored_name(hashing.sha256_bytes(self.content))


def read(path: Path) -> VelaConfig:
    """Read a configuration file. InputError when it cannot be read, or is none (:func:`vela_ini.parse`)."""
    content = opening.text(path, vela_ini.LARGEST_BYTES)
    ini = vela_ini.parse(content, str(path))
    return VelaConfig(path, content.encode(), ini.names(vela_ini.SYSTEM), ini.names(vela_ini.MODE))


def resolve_target(
    name: str, system_config: str | None, memory_mode: str | None, config_file: Path | None
) -> Target:
    """The target that a user asked for; with a configuration file of the user's, its names count.

    What is not given is the family's default if the file has that, or the file's only one. UsageError for a
    name that does not exist, InputError for a file that is none.
    """
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
        vela_config=config.stored_name,
    )


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
