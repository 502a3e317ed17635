"""Board profiles as TOML: the SDK's own tables, and a user's file, which is not trusted.

docs/guide/boards.md describes the form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ethosu_sdk.boards.profile import CODE, BoardCpu, BoardMemory, BoardProfile, VelaSystem, source_of
from ethosu_sdk.files.toml_lines import Place
from ethosu_sdk.files.toml_source import TomlSource, short
from ethosu_sdk.targets import suggestion, target_names

Table = dict[str, Any]
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
_CORE = re.compile(r"[a-z][a-z0-9-]{0,31}", re.ASCII)
_MOST_ROWS = 64
_MOST_TEXT = 400
_DRAM = "Dram"


@dataclass(frozen=True)
class _Rule:
    """What a value must be, in words, and whether it is."""

    words: str
    fits: Callable[[Any], bool]


def _whole(least: int, most: int) -> _Rule:
    words = f"a whole number from {least:,} to {most:,}"
    return _Rule(words, lambda value: type(value) is int and least <= value <= most)


def _number(least: float, most: float) -> _Rule:
    return _Rule(
        f"a number from {least:g} to {most:g}",
        lambda value: type(value) in (int, float) and least <= value <= most,
    )


def _word(*known: str) -> _Rule:
    return _Rule("one of: " + ", ".join(known), lambda value: value in known)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MOST_TEXT and value.isprintable()


_TEXT = _Rule(f"a text of at most {_MOST_TEXT} printable characters", _is_text)
_FLAG = _Rule("true or false", lambda value: isinstance(value, bool))
_TABLE = _Rule(
    f"a table of at most {_MOST_ROWS} rows",
    lambda value: isinstance(value, dict) and len(value) <= _MOST_ROWS,
)
_HZ = _whole(1, 10**11)
_BYTES = _whole(0, 1 << 50)
_CYCLES = _whole(0, 1_000_000)
_LIST = _Rule(
    "a list of texts, not empty",
    lambda value: isinstance(value, list) and 0 < len(value) <= _MOST_ROWS and all(map(_is_text, value)),
)

_BOARD = {
    **{"like": _TEXT, "title": _TEXT, "npus": _LIST, "npu_hz": _HZ},
    **dict.fromkeys(("systems", "areas", "cpu", "memories", "system_configs"), _TABLE),
    "sources": _Rule(
        "a table of texts", lambda value: isinstance(value, dict) and all(map(_is_text, value.values()))
    ),
}
_CPU = {
    "core": _Rule(
        "a name such as cortex-m55", lambda value: isinstance(value, str) and bool(_CORE.fullmatch(value))
    ),
    **{"clock_hz": _HZ, "icache_bytes": _BYTES, "dcache_bytes": _BYTES},
}
_MEMORY = {
    "kind": _word("tcm", "sram", "mram", "flash", "dram", "rom"),
    **{"size_bytes": _BYTES, "npu": _FLAG, "cached": _FLAG, "width_bits": _whole(1, 4096)},
    **{"read_cycles": _CYCLES, "write_cycles": _CYCLES, "cycles_of": _word("npu", "cpu")},
    "cpu_wait_cycles": _Rule(
        "a number from 0 to 1,000,000", lambda value: type(value) in (int, float) and 0 <= value <= 1e6
    ),
}
# The keys of a system configuration in vela.ini; those of the second table are there for the memory on each port.
_SRAM, _SECOND = "Sram", ("OnChipFlash", "OffChipFlash", _DRAM)
_SYSTEM = {
    "core_clock": _number(1e3, 1e11),
    "axi0_port": _word(_SRAM),
    "axi1_port": _word(*_SECOND),
}
_PORT = {
    "clock_scale": _number(1e-4, 16),
    "ports_used": _whole(1, 8),
    "burst_length": _whole(1, 65536),
    **dict.fromkeys(("read_latency", "write_latency", "max_reads", "max_writes"), _CYCLES),
}
_MERGED = ("cpu", "memories", "sources")  # tables of which `like` gives the rows that a profile does not have


@dataclass(frozen=True)
class Shared:
    """What profiles refer to by name: the tables of the SDK's file."""

    boards: Mapping[str, Table]
    system_configs: Mapping[str, Table]
    memory_modes: Mapping[str, Table]
    documents: Mapping[str, str]


def own(source: TomlSource, shared: Shared, name: str) -> BoardProfile:
    """The profile `name` of the SDK's own tables."""
    return _profile(source, ("boards", name), name, _like(shared.boards[name], shared), shared)


def users(source: TomlSource, table: Table, shared: Shared, name: str) -> BoardProfile:
    """The profile in the tables of a user's file. InputError, with the line, for what is wrong in it."""
    _check(source, (), table, _BOARD)
    _check_system_configs(source, table.get("system_configs", {}), shared)
    row = table
    if "like" in table:
        if table["like"] not in shared.boards:
            hint = suggestion(short(table["like"]), shared.boards)
            raise source.wrong(("like",), f"there is no board profile '{short(table['like'])}'", hint)
        row = _like(table, shared)
        given, file = table.get("sources", {}), f"this file ({name})"
        labels = {place: file for place in _places(table) if not source_of(place, given)}
        row["sources"] = {**row["sources"], **labels}
    known = {**shared.system_configs, **table.get("system_configs", {})}
    return _profile(
        source, (), name, row, Shared(shared.boards, known, shared.memory_modes, shared.documents)
    )


def _places(table: Table) -> list[str]:
    """The values of a profile, as `sources` has them."""
    found: list[str] = [key for key in ("npus", "npu_hz", "systems", "areas") if key in table]
    found += [f"cpu.{key}" for key in table.get("cpu", {})]
    rows = ((name, row) for name, row in table.get("memories", {}).items() if isinstance(row, dict))
    return found + [f"memories.{name}.{key}" for name, row in rows for key in row]


def _like(row: Table, shared: Shared) -> Table:
    """`row` with what it takes over from the profile that it is `like`."""
    if "like" not in row:
        return row
    base = _like(shared.boards[row["like"]], shared)
    merged = {key: {**base.get(key, {}), **row.get(key, {})} for key in _MERGED}
    if "systems" in row:
        base = {key: part for key, part in base.items() if key != "areas"}  # which are by system
    return {**base, **row, **merged}


def _profile(source: TomlSource, place: Place, name: str, row: Table, shared: Shared) -> BoardProfile:
    _check(source, place, row, _BOARD, ("title", "npus", "systems", "cpu"))
    _check(source, (*place, "cpu"), row["cpu"], _CPU, ("core",))
    areas = row.get("areas", {})
    systems = tuple(
        replace(_system(source, (*place, "systems", key), key, modes, shared), areas=areas.get(key, {}))
        for key, modes in row["systems"].items()
    )
    if not systems:
        raise source.wrong((*place, "systems"), "systems is empty: Vela needs a system configuration")
    _check_areas(source, (*place, "areas"), row)
    modes = dict.fromkeys(mode for system in systems for mode in system.memory_modes)
    return BoardProfile(
        name=name,
        title=row["title"],
        npus=_npus(source, (*place, "npus"), row["npus"]),
        npu_hz=row.get("npu_hz"),
        cpu=BoardCpu(**row["cpu"]),
        memories=tuple(
            _memory(source, (*place, "memories", key), key, memory)
            for key, memory in row.get("memories", {}).items()
        ),
        systems=systems,
        memory_modes={mode: shared.memory_modes[mode] for mode in modes},
        sources={key: shared.documents.get(text, text) for key, text in row.get("sources", {}).items()},
    )


def _npus(source: TomlSource, place: Place, names: list[str]) -> tuple[str, ...]:
    for name in names:
        if name not in target_names():
            raise source.wrong(
                place, f"there is no NPU '{short(name)}'", suggestion(short(name), target_names())
            )
        if name.rpartition("-")[0] != names[0].rpartition("-")[0]:
            raise source.wrong(
                place,
                f"{names[0]} and {name} are of two families",
                "write a profile for each: their Vela settings differ",
            )
    return tuple(dict.fromkeys(names))


def _memory(source: TomlSource, place: Place, name: str, row: Any) -> BoardMemory:
    _check_name(source, place, name)
    _check(source, place, row, _MEMORY, ("kind",))
    if "cycles_of" not in row and {"read_cycles", "write_cycles"} & row.keys():
        raise source.wrong(
            place, f"{name} has latencies, but no clock for them", 'cycles_of = "npu" or "cpu"'
        )
    return BoardMemory(name, **row)


def _system(source: TomlSource, place: Place, name: str, modes: Any, shared: Shared) -> VelaSystem:
    if name not in shared.system_configs:
        hint = suggestion(short(name), shared.system_configs)
        raise source.wrong(place, f"there is no system configuration '{short(name)}'", hint)
    if not _LIST.fits(modes):
        raise source.wrong(
            place, f"the memory modes of {name} must be {_LIST.words}", f'{name} = ["Shared_Sram"]'
        )
    settings = shared.system_configs[name]
    for mode in modes:
        if mode not in shared.memory_modes:
            hint = suggestion(short(mode), shared.memory_modes)
            raise source.wrong(place, f"there is no memory mode '{short(mode)}'", hint)
        if shared.memory_modes[mode]["arena_mem_area"] == "Axi1" and settings["axi1_port"] != _DRAM:
            raise source.wrong(
                place, f"{mode} needs {_DRAM} on the second port, and {name} has {settings['axi1_port']}"
            )
    return VelaSystem(name, tuple(dict.fromkeys(modes)), settings)


def _check_areas(source: TomlSource, place: Place, row: Table) -> None:
    """Areas are those of the board's systems, in the board's memories."""
    _check(source, place, row.get("areas", {}), dict.fromkeys(row["systems"], _TABLE))
    names = row.get("memories", {})
    memory = _word(*names) if names else _Rule("a memory of the board, which has none", lambda _: False)
    for name, areas in row.get("areas", {}).items():
        _check(source, (*place, name), areas, dict.fromkeys((CODE, _SRAM, *_SECOND), memory))


def _check_system_configs(source: TomlSource, rows: Table, shared: Shared) -> None:
    for name, row in rows.items():
        place = ("system_configs", name)
        _check_name(source, place, name)
        if name in shared.system_configs:
            raise source.wrong(
                place, f"the SDK has a system configuration {name} already", "choose another name"
            )
        _check(source, place, row, {**_SYSTEM, **_port_rules(row)}, (*_SYSTEM, *_scales(row)))


def _port_rules(row: Any) -> dict[str, _Rule]:
    return {f"{area}_{key}": rule for area in _areas(row) for key, rule in _PORT.items()}


def _scales(row: Any) -> list[str]:
    return [f"{area}_clock_scale" for area in _areas(row)]


def _areas(row: Any) -> list[str]:
    """The memories on the ports, as far as they are texts."""
    ports = (row.get(port) for port in ("axi0_port", "axi1_port")) if isinstance(row, dict) else ()
    return [area for area in ports if isinstance(area, str)]


def _check_name(source: TomlSource, place: Place, name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise source.wrong(
            place,
            f"'{short(name)}' is not a name",
            "a letter, then letters, digits and '_', 64 characters at most",
        )


def _check(
    source: TomlSource, place: Place, row: Any, rules: Mapping[str, _Rule], required: Iterable[str] = ()
) -> None:
    """Raise InputError for a member of `row` that has no rule, breaks its rule, or is required and absent."""
    if not isinstance(row, dict):
        raise source.wrong(place, f"{place[-1]} must be a table")
    for key, value in row.items():
        if key not in rules:
            raise source.wrong(
                (*place, key), f"'{short(key)}' is not a member here", suggestion(short(key), rules)
            )
        if not rules[key].fits(value):
            raise source.wrong((*place, key), f"{key} must be {rules[key].words}")
    for key in required:
        if key not in row:
            where = f" in {'.'.join(map(str, place))}" if place else ""
            raise source.wrong(place, f"there is no {key}{where}", f"{key} must be {rules[key].words}")
