"""`ethosu-sdk boards new` and `boards check`: a board pack to begin with, and what is still unknown in one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from ethosu_sdk.base import board_profiles, boards, filesystem
from ethosu_sdk.base.board_profiles import NOT_PUBLIC, BoardProfile
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.targets import families, parse_name
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.npu.timing import systems

_HEAD = """# docs/guide/boards.md describes the members. Say under [sources] where each value comes from.
# Leave out what you do not know: `ethosu-sdk boards check {name}/` lists that.
"""
_PLACES = """
[npu] # as the processor sees it
# base = 0x4000_0000
# irq = 0

[console]
# device = "cmsdk-apb-uart"
# base = 0x4000_1000
# baud = 115_200

[memories.SRAM]
kind = "sram"
npu = true
# base = 0x2000_0000
# size_bytes = 0x10_0000

[memories.FLASH]
kind = "flash"
npu = true
# base = 0x0000_0000
# size_bytes = 0x10_0000
# model_offset = 0x0 # where models begin at the earliest, and the multiple of bytes at which they may
# model_alignment = 128
"""
_PORTS = ("FLASH", "SRAM", "FLASH")  # the memories of code, first and second port in it


def new_board(
    name: str, like: str | None, target: str | None, vela_ini: Path | None, reporter: Reporter
) -> None:
    """Write a pack called `name` into the folder of that name: `like` another one, or for an NPU, with the system
    configurations of a `vela_ini`. UsageError where the folder has a pack already."""
    path = Path(name) / boards.PACK_FILE
    if not boards.is_pack_name(path.absolute().parent.name):
        raise UsageError(
            f"'{name}' cannot be the name of a board", "letters, digits, '.', '_' and '-', 64 at most"
        )
    if path.exists():
        raise UsageError(f"{path} is there already", "choose another name, or remove it")
    if like is not None and target is not None:
        raise UsageError("--like gives the NPU already", "leave --target out, and change npus in the pack")
    content = _whole(name, target, vela_ini) if like is None else _like(name, like, vela_ini)
    filesystem.make_directory(path.parent)
    filesystem.write_bytes(path, (_HEAD.format(name=name) + content).encode())
    try:
        profile = board_profiles.find_profile(str(path))
    except InputError:
        path.unlink()
        raise
    reporter.show(
        f"{escape(str(path))}: {escape(profile.title)}", f"next: ethosu-sdk boards check {escape(name)}/"
    )


def _like(name: str, like: str, vela_ini: Path | None) -> str:
    areas = board_profiles.find_profile(like).default_system.areas
    second = next(
        (memory for area, memory in areas.items() if area not in (board_profiles.CODE, "Sram")), "FLASH"
    )
    places = (areas.get(board_profiles.CODE, "FLASH"), areas.get("Sram", "SRAM"), second)
    configs = "" if vela_ini is None else _imported(vela_ini, places)
    return f'like = "{like}"\ntitle = "{Path(name).name}"\n{configs}'


def _whole(name: str, target: str | None, vela_ini: Path | None) -> str:
    family, macs = parse_name(target or "ethos-u55-128")
    if vela_ini is not None:
        configs = _imported(vela_ini, _PORTS)
    else:
        config = family.default_system_config
        modes = json.dumps(_default_first(family.name, config))
        configs = (
            f"\n[systems]\n{config} = {modes}\n{_areas({config: _second_port(family.name, config)}, _PORTS)}"
        )
    lines = f'title = "{Path(name).name}"\nnpus = ["{family.name}-{macs}"]\n# npu_hz = 400_000_000\n'
    return f'{lines}\n[cpu]\ncore = "cortex-m55"\n# clock_hz = 400_000_000\n{_PLACES}{configs}'


def _default_first(family: str, config: str) -> list[str]:
    row = families()[family]
    return sorted(row.system_configs[config], key=lambda mode: mode != row.default_memory_mode)


def _second_port(family: str, config: str) -> str:
    mode = families()[family].system_configs[config][0]
    found = systems.memory_map(family, config, mode)
    return next((row.name for row in (found.constants, found.arena) if row.interface == 1), "OffChipFlash")


def _areas(ports: dict[str, str], places: tuple[str, str, str]) -> str:
    code, first, second = places
    rows = (
        f'{name} = {{ code = "{code}", Sram = "{first}", {area} = "{second}" }}'
        for name, area in ports.items()
    )
    return "\n".join(
        [
            "",
            "[areas] # the memories that Vela's areas are, and that of the code: change them to your board's",
            *rows,
            "",
        ]
    )


def _imported(path: Path, places: tuple[str, str, str]) -> str:
    """The system configurations of a Vela configuration file, with the names of Arm's memory modes that have things
    where the file's modes have them. One with the name of one of the SDK's but other values gets a longer name.
    `places` are the memories of the code and of both ports."""
    ini = systems.parse(filesystem.file_text(path, systems.LARGEST_BYTES), str(path))
    rows, tables, ports = list[str](), list[str](), dict[str, str]()
    modes = list(dict.fromkeys(_mode(ini, name) for name in ini.names(systems.MODE)))
    for name in ini.names(systems.SYSTEM):
        values = ini.section(systems.SYSTEM, name).values
        second = values.get("axi1_port", "")
        fitting = [mode for mode in modes if second == "Dram" or not mode.startswith("Dedicated_Sram")]
        if not fitting:
            raise InputError(f"no memory mode of {path} goes with {name}", "its second port leads to no Dram")
        settings, known = list(_settings(values)), board_profiles.vela_tables()["system_configs"].get(name)
        own = name if known is None else f"{name}_of_board"
        if known is not None and settings == list(
            _settings({key.lower(): str(row) for key, row in known.items()})
        ):
            own, settings = name, []
        rows.append(f"{own} = {json.dumps(fitting)}")
        ports[own] = second
        tables += ["", f"[system_configs.{own}]", *settings] if settings else []
    return "\n".join(["", "[systems]", *rows, _areas(ports, places).rstrip(), *tables, ""])


def _settings(values: Mapping[str, str]) -> Iterator[str]:
    """The lines for the settings of a system configuration, by keys in lower case."""
    for key in board_profiles.SYSTEM_KEYS:
        value = values.get(key.lower())
        if value is not None and (not key[0].isupper() or key.partition("_")[0] in values.values()):
            yield f"{key} = {_number(value)}"


def _number(text: str) -> str:
    try:
        number = float(text)
    except ValueError:
        return json.dumps(text[:400])  # a memory's name, or whoever reads the pack says what is wrong
    return f"{number:.15g}" if math.isfinite(number) else json.dumps(text)


def _mode(ini: systems.VelaIni, name: str) -> str:
    own = ini.section(systems.MODE, name).values
    for known, settings in board_profiles.vela_tables()["memory_modes"].items():
        if all(own.get(key) == str(value) for key, value in settings.items()):
            limit = own.get("arena_cache_size")
            if "arena_cache_size" in settings or limit is None or not known.startswith("Dedicated"):
                return str(known)
    raise InputError(
        f"memory mode {name} of {ini.source} is none of Arm's: constants, arena and cache lie elsewhere, or the "
        "cache has another size",
        f"change it to one of: {', '.join(board_profiles.vela_tables()['memory_modes'])}",
    )


def check_board(word: str) -> None:
    """InputError, with the line, for a pack whose firmware cannot be built as it says."""
    path = board_profiles.profile_file(word)
    if path is not None and boards.has_table(path, "firmware"):
        boards.board_in(path.absolute().parent.name, path)


def state_of(profile: BoardProfile) -> Iterator[str]:
    """What of a valid pack is unknown, and what has no source."""
    yield f"{profile.name}: the pack is valid; {profile.hardware}"
    values = dict(profile.values())
    unknown = [place for place, value in values.items() if value is None]
    devices = {"npu.base": profile.npu, "console.base": profile.console}
    unknown += [place for place, device in devices.items() if not device.bases]
    unsourced = [place for place, value in values.items() if value is not None]
    unsourced = [place for place in unsourced if profile.source(place) == NOT_PUBLIC]
    for text, places in (("unknown", unknown), ("without a source", unsourced)):
        if places:
            yield f"{text}: {', '.join(places)}"
