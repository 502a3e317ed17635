"""The system that names on a command line stand for, for firmware whose program nobody knows."""

from __future__ import annotations

from pathlib import Path

from ethosu_sdk.files import opening
from ethosu_sdk.npu.timing import system_config, vela_ini
from ethosu_sdk.npu.timing.system_config import SystemConfig
from ethosu_sdk.targets import family, parse_target


def named_system(
    npu: str, vela_config: Path | None, system: str | None, memory_mode: str | None
) -> SystemConfig | None:
    """The system of an NPU such as ``ethos-u55`` with the names of the Vela configuration file `vela_config`, by
    default Vela's own; None where nothing is given.

    What is not given is the family's default if the file has that, or the file's only one. InputError for a damaged
    file, UsageError for a name that does not exist.
    """
    row = family(npu)
    if vela_config is not None:
        text, source = opening.text(vela_config, vela_ini.LARGEST_BYTES), vela_config.name
        ini = vela_ini.parse(text, source)
        return system_config.system_from_ini(
            text,
            source,
            npu,
            ini.chosen(vela_ini.SYSTEM, system, row.default_system_config),
            ini.chosen(vela_ini.MODE, memory_mode, row.default_memory_mode),
        )
    if system is None and memory_mode is None:
        return None
    target = parse_target(f"{npu}-{row.macs[0]}", system, memory_mode)
    return system_config.memory_map(npu, target.system_config, target.memory_mode)
