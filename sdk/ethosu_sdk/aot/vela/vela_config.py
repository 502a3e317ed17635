"""A user's own Vela configuration file: what it holds, and the target that it describes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.files import hashing, opening
from ethosu_sdk.npu.timing import vela_ini
from ethosu_sdk.npu.timing.vela_ini import VelaIni
from ethosu_sdk.targets import Target, parse_name, parse_target, stored_name


@dataclass(frozen=True)
class VelaConfig:
    """A configuration file that was read: what is in it, and its content."""

    path: Path
    content: bytes
    ini: VelaIni

    @property
    def stored_name(self) -> str:
        """The name under which a `.pte` refers to this file."""
        return stored_name(hashing.sha256_bytes(self.content))


def read(path: Path) -> VelaConfig:
    """Read a configuration file. InputError when it cannot be read, or is none (:func:`vela_ini.parse`)."""
    content = opening.text(path, vela_ini.LARGEST_BYTES)
    return VelaConfig(path, content.encode(), vela_ini.parse(content, str(path)))


def resolve_target(
    name: str, system_config: str | None, memory_mode: str | None, config_file: Path | None
) -> Target:
    """The target that a user asked for; with a configuration file of the user's, its names count.

    What is not given is the family's default if the file has that, or the file's only one. UsageError for a
    name that does not exist, InputError for a file that is none.
    """
    if config_file is None:
        return parse_target(name, system_config, memory_mode)
    return target_in(read(config_file), name, system_config, memory_mode)


def target_in(config: VelaConfig, name: str, system_config: str | None, memory_mode: str | None) -> Target:
    """The target with the names of `config`; see :func:`resolve_target`."""
    family, macs = parse_name(name)
    return Target(
        npu=family.name,
        macs=macs,
        system_config=config.ini.chosen(vela_ini.SYSTEM, system_config, family.default_system_config),
        memory_mode=config.ini.chosen(vela_ini.MODE, memory_mode, family.default_memory_mode),
        vela_config=config.stored_name,
    )
