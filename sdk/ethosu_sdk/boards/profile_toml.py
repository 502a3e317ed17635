"""Board profiles as TOML: the SDK's own tables, and a user's file, which is not trusted.

docs/guide/boards.md describes the form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct, defstruct

from ethosu_sdk.boards.profile import (
    CODE,
    BoardCpu,
    BoardMemory,
    BoardProfile,
    Cycles,
    Hz,
    VelaSystem,
    source_of,
)
from ethosu_sdk.files.toml_lines import Place
from ethosu_sdk.files.toml_source import Rows, Text, Texts, TomlSource, short
from ethosu_sdk.targets import suggestion, target_names

Table = dict[str, Any]
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
_MERGED = ("cpu", "memories", "sources")  # tables of which `like` gives the rows that a profile does not have
_DRAM = "Dram"
_Second = Literal["OnChipFlash", "OffChipFlash", "Dram"]
_AREAS = ("Sram", *get_args(_Second))
_SCALE = Annotated[int, Meta(ge=1, le=16)] | Annotated[float, Meta(ge=1e-4, le=16)]
_SCALED = "{}_clock_scale"
_SystemConfig = defstruct(  # the keys of a vela.ini; those of areas are there for the memory on each port
    "_SystemConfig",
    [
        ("core_clock", Annotated[int, Meta(ge=1000, le=10**11)] | Annotated[float, Meta(ge=1e3, le=1e11)]),
        ("axi0_port", Literal["Sram"]),
        ("axi1_port", _Second),
        *((_SCALED.format(area), _SCALE | None, None) for area in _AREAS),
        *((f"{area}_ports_used", Annotated[int, Meta(ge=1, le=8)] | None, None) for area in _AREAS),
        *((f"{area}_burst_length", Annotated[int, Meta(ge=1, le=65536)] | None, None) for area in _AREAS),
        *(
            (f"{area}_{key}", Cycles | None, None)
            for area in _AREAS
            for key in ("read_latency", "write_latency", "max_reads", "max_writes")
        ),
    ],
    forbid_unknown_fields=True,
)


class _Board(Struct, forbid_unknown_fields=True):
    title: Text
    npus: Texts
    systems: Rows[Texts]
    cpu: BoardCpu
    like: Text | None = None
    npu_hz: Hz | None = None
    areas: Rows[Rows[str]] = {}
    memories: Rows[Rows[Any]] = {}
    system_configs: Rows[Rows[Any]] = {}
    sources: Rows[Text] = {}


@dataclass(frozen=True)
class Shared:
    """What profiles refer to by name: the tables of the SDK's file."""

    boards: Mapping[str, Table]
    system_configs: Mapping[str, Table]
    memory_modes: Mapping[str, Table]
    documents: Mapping[str, str]


def own(source: TomlSource, shared: Shared, name: str) -> BoardProfile:
    """The profile `name` of the SDK's own tables."""
    place = ("boards", name)
    return _profile(
        source, place, name, source.convert(_like(shared.boards[name], shared), _Board, place), shared
    )


def users(source: TomlSource, table: Table, shared: Shared, name: str) -> BoardProfile:
    """The profile in the tables of a user's file. InputError, with the line, for what is wrong in it."""
    row = table
    if "like" in table:
        like = source.convert(table["like"], str, ("like",))
        if like not in shared.boards:
            hint = suggestion(short(like), shared.boards)
            raise source.wrong(("like",), f"there is no board profile '{short(like)}'", hint)
        row = _like(table, shared)
    board = source.convert(row, _Board)
    _check_system_configs(source, board.system_configs, shared)
    if "like" in table:
        given, file = table.get("sources", {}), f"this file ({name})"
        board.sources |= {place: file for place in _places(table) if not source_of(place, given)}
    known = {**shared.system_configs, **board.system_configs}
    return _profile(source, (), name, board, replace(shared, system_configs=known))


def _places(table: Table) -> list[str]:
    """The values of a profile, as `sources` has them."""
    found: list[str] = [key for key in ("npus", "npu_hz", "systems", "areas") if key in table]
    found += [f"cpu.{key}" for key in table.get("cpu", {})]
    return found + [
        f"memories.{name}.{key}" for name, row in table.get("memories", {}).items() for key in row
    ]


def _like(row: Table, shared: Shared) -> Table:
    """`row` with what it takes over from the profile that it is `like`."""
    if "like" not in row:
        return row
    base = _like(shared.boards[row["like"]], shared)
    tables = [key for key in _MERGED if isinstance(row.get(key, {}), dict)]
    merged = {key: {**base.get(key, {}), **row.get(key, {})} for key in tables}
    if "systems" in row:
        base = {key: part for key, part in base.items() if key != "areas"}  # which are by system
    return {**base, **row, **merged}


def _profile(source: TomlSource, place: Place, name: str, board: _Board, shared: Shared) -> BoardProfile:
    systems = tuple(
        replace(_system(source, (*place, "systems", key), key, modes, shared), areas=board.areas.get(key, {}))
        for key, modes in board.systems.items()
    )
    if not systems:
        raise source.wrong((*place, "systems"), "systems is empty: Vela needs a system configuration")
    _check_areas(source, (*place, "areas"), board)
    modes = dict.fromkeys(mode for system in systems for mode in system.memory_modes)
    return BoardProfile(
        name=name,
        title=board.title,
        npus=_npus(source, (*place, "npus"), board.npus),
        npu_hz=board.npu_hz,
        cpu=board.cpu,
        memories=tuple(
            _memory(source, (*place, "memories", key), key, row) for key, row in board.memories.items()
        ),
        systems=systems,
        memory_modes={mode: shared.memory_modes[mode] for mode in modes},
        sources={key: shared.documents.get(text, text) for key, text in board.sources.items()},
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


def _memory(source: TomlSource, place: Place, name: str, row: Table) -> BoardMemory:
    _check_name(source, place, name)
    if "name" in row:
        raise source.wrong((*place, "name"), f"{name} has no 'name'", "the name of the table is the memory's")
    found = source.convert({"name": name, **row}, BoardMemory, place)
    if found.cycles_of is None and (found.read_cycles is not None or found.write_cycles is not None):
        message = f"{name} has latencies, but no clock for them"
        raise source.wrong(place, message, 'cycles_of = "npu" or "cpu"')
    return found


def _system(source: TomlSource, place: Place, name: str, modes: list[str], shared: Shared) -> VelaSystem:
    if name not in shared.system_configs:
        hint = suggestion(short(name), shared.system_configs)
        raise source.wrong(place, f"there is no system configuration '{short(name)}'", hint)
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


def _check_areas(source: TomlSource, place: Place, board: _Board) -> None:
    """Areas are those of the board's systems, in the board's memories."""
    for system, row in board.areas.items():
        if system not in board.systems:
            message = f"areas has no '{short(system)}'"
            raise source.wrong((*place, system), message, suggestion(short(system), board.systems))
        for area, memory in row.items():
            if area not in (CODE, *_AREAS):
                message = f"{system} has no '{short(area)}'"
                raise source.wrong((*place, system, area), message, suggestion(short(area), (CODE, *_AREAS)))
            if memory not in board.memories:
                message = f"{area} cannot be '{short(memory)}'"
                raise source.wrong((*place, system, area), message, suggestion(short(memory), board.memories))


def _check_system_configs(source: TomlSource, rows: Mapping[str, Table], shared: Shared) -> None:
    for name, row in rows.items():
        place = ("system_configs", name)
        _check_name(source, place, name)
        if name in shared.system_configs:
            raise source.wrong(
                place, f"the SDK has a system configuration {name} already", "choose another name"
            )
        source.convert(row, _SystemConfig, place)
        areas = (row["axi0_port"], row["axi1_port"])
        for key in row:
            if key.partition("_")[0] in set(_AREAS) - {*areas}:
                raise source.wrong(
                    (*place, key), f"{name} has no '{key}'", f"its ports lead to {areas[0]} and {areas[1]}"
                )
        for key in map(_SCALED.format, areas):
            if key not in row:
                raise source.wrong(place, f"{name} has no {key}", f"{key} must be a number from 0.0001 to 16")


def _check_name(source: TomlSource, place: Place, name: str) -> None:
    if _NAME.fullmatch(name) is None:
        raise source.wrong(
            place,
            f"'{short(name)}' is not a name",
            "a letter, then letters, digits and '_', 64 characters at most",
        )
