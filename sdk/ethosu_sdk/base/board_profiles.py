"""Board profiles: what a board pack says of a board with an Ethos-U, and its Vela configuration."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import Meta, Struct, defstruct

from ethosu_sdk.base import boards, toml_source
from ethosu_sdk.base.boards import NO_DEVICE, OWN_PACKS, PACK_FILE, Address, Device, PackTable
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import suggestion, target_names
from ethosu_sdk.base.toml_source import Place, Rows, Text, Texts, TomlKind, TomlSource, short_word

NOT_PUBLIC = "not public"
UNTESTED: Final = "untested on hardware"
# What is known of a board from a run on it: nothing, that it was shown to be as its pack says, or that there is none.
Hardware = Literal["untested on hardware", "proved on hardware", "simulator"]
CODE = "code"
INI_SOURCE = "board profile {}"
MemoryKind = Literal["tcm", "sram", "mram", "flash", "dram", "rom"]
Setting = str | int | float
Hz = Annotated[int, Meta(ge=1, le=10**11)]
Bytes = Annotated[int, Meta(ge=0, le=1 << 50)]
Cycles = Annotated[int, Meta(ge=0, le=1_000_000)]
Core = Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9-]{0,31}\Z", extra={"words": "a name such as cortex-m55"})]


class BoardCpu(Struct, frozen=True, forbid_unknown_fields=True):
    """The processor that the NPU's driver runs on. `core` is a name such as ``cortex-m55``; None: not public."""

    core: Core
    clock_hz: Hz | None = None
    icache_bytes: Bytes | None = None
    dcache_bytes: Bytes | None = None


class BoardMemory(Struct, frozen=True, forbid_unknown_fields=True):
    """A memory of a board; what is not public is None.

    `npu`: whether the NPU's ports reach it. `cached`: whether the processor's caches may hold what is in it.
    `width_bits`: of its data bus. `read_cycles` and `write_cycles` are latencies in cycles of the clock `cycles_of`,
    `cpu_wait_cycles` the cycles for which an access that no cache answers stops the processor.
    `base` and `secure_base` are the addresses of its Non-secure and Secure alias. A model in it begins at
    `model_offset` or above, at a multiple of `model_alignment`.
    """

    name: str
    kind: MemoryKind
    size_bytes: Bytes | None = None
    npu: bool | None = None
    cached: bool | None = None
    width_bits: Annotated[int, Meta(ge=1, le=4096)] | None = None
    read_cycles: Cycles | None = None
    write_cycles: Cycles | None = None
    cycles_of: Literal["npu", "cpu"] | None = None
    cpu_wait_cycles: Cycles | Annotated[float, Meta(ge=0, le=1e6)] | None = None
    base: Address | None = None
    secure_base: Address | None = None
    model_offset: Bytes | None = None
    model_alignment: Annotated[int, Meta(ge=1, le=1 << 24)] | None = None


_PLACES = ("base", "secure_base", "model_offset", "model_alignment")


class Pools(Struct, frozen=True, forbid_unknown_fields=True):
    """The bytes of ExecuTorch's pools in the vendor's application, by their names in `export`."""

    executorch_method: Bytes | None = None
    executorch_temp: Bytes | None = None


NO_POOLS = Pools()


@dataclass(frozen=True)
class VelaSystem:
    """A system configuration for Vela: its settings by the keys of a vela.ini, and the memory modes that go with it,
    the default first.

    `areas` says which of the board's memories Vela's areas are, such as ``Sram``, and where the processor's code lies
    (:data:`CODE`).
    """

    name: str
    memory_modes: tuple[str, ...]
    settings: Mapping[str, Setting]
    areas: Mapping[str, str] = field(default_factory=dict)


class AdapterSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What the board's firmware sets the timing adapters of AXI port 0 and 1 to, for these `npus`: registers by the
    names that a file of `--memory-timing` has."""

    npus: Texts
    axi0: Rows[int]
    axi1: Rows[int]


@dataclass(frozen=True)
class BoardProfile:
    """A board. `npus` are targets of one family; the first one is the default, and so is the first of `systems`.

    `npu_hz` is the clock that the NPU has on the board, which a system configuration may differ from. `memory_modes`
    has the settings of every mode that a system names. `sources` says where values come from, by places such as
    ``memories.SRAM.size_bytes``, in which ``*`` stands for any name.
    """

    name: str
    title: str
    npus: tuple[str, ...]
    cpu: BoardCpu
    memories: tuple[BoardMemory, ...]
    systems: tuple[VelaSystem, ...]
    memory_modes: Mapping[str, Mapping[str, Setting]]
    npu_hz: int | None = None
    npu: Device = NO_DEVICE
    console: Device = NO_DEVICE
    hardware: Hardware = UNTESTED
    pools: Pools = NO_POOLS
    sources: Mapping[str, str] = field(default_factory=dict)
    adapters: Mapping[str, AdapterSettings] = field(default_factory=dict)

    @property
    def untested(self) -> Literal["untested on hardware"] | None:
        """What records say of a board on which nothing was tried."""
        return UNTESTED if self.hardware == UNTESTED else None

    @property
    def default_system(self) -> VelaSystem:
        """The system configuration that is meant when none is named."""
        return self.systems[0]

    def system(self, name: str) -> VelaSystem | None:
        """The system configuration called `name`."""
        return next((row for row in self.systems if row.name == name), None)

    def memory(self, name: str) -> BoardMemory | None:
        """The memory called `name`."""
        return next((row for row in self.memories if row.name == name), None)

    @property
    def ini_source(self) -> str:
        """What messages and records call the configuration file of :meth:`vela_ini`."""
        return INI_SOURCE.format(self.name)

    def vela_ini(self) -> str:
        """The text of a Vela configuration file with all of its system configurations and memory modes."""
        sections = [(f"System_Config.{row.name}", row.settings) for row in self.systems]
        sections += [(f"Memory_Mode.{name}", row) for name, row in self.memory_modes.items()]
        return f"; {self.name}\n" + "".join(_section(name, rows) for name, rows in sections)

    @property
    def ini_sha256(self) -> str:
        """The digest of that text."""
        return hashlib.sha256(self.vela_ini().encode()).hexdigest()

    @property
    def sha256(self) -> str:
        """The digest of what compiling and pricing take from it; not of the title, the sources and the addresses."""
        others = ("title", "sources", "npu", "console", "hardware", "pools")
        values = {key: part for key, part in msgspec.to_builtins(self).items() if key not in others}
        if not self.adapters:
            del values["adapters"]
        for memory in values["memories"]:
            for key in _PLACES:
                del memory[key]
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def adapters_for(self, npu: str) -> AdapterSettings | None:
        """The settings of the timing adapters for `npu`, such as ``ethos-u85-256``."""
        return next((row for row in self.adapters.values() if npu in row.npus), None)

    def source(self, place: str) -> str:
        """Where the value at `place` comes from, such as ``cpu.clock_hz``; why it is absent for one that is."""
        absent = dict(self.values())[place] is None
        return source_of(place, self.sources, exact=absent) or NOT_PUBLIC

    def values(self) -> Iterator[tuple[str, Any]]:
        """Every value that has a source, by place; None for one that is not public."""
        yield "npus", self.npus
        yield "npu_hz", self.npu_hz
        yield "systems", tuple(row.name for row in self.systems)
        if self.adapters:
            yield "adapters", tuple(self.adapters)
        if any(row.areas for row in self.systems):
            yield "areas", {row.name: row.areas for row in self.systems}
        for name in self.cpu.__struct_fields__:
            yield f"cpu.{name}", getattr(self.cpu, name)
        for part, facts in (("npu", self.npu), ("console", self.console), ("pools", self.pools)):
            rows = ((name, getattr(facts, name)) for name in facts.__struct_fields__)
            yield from ((f"{part}.{name}", value) for name, value in rows if value is not None)
        for memory in self.memories:
            for name in memory.__struct_fields__[1:]:
                # Without latencies there is no such fact as their clock; addresses are there if a source has them.
                if name not in ("cycles_of", *_PLACES) or getattr(memory, name) is not None:
                    yield f"memories.{memory.name}.{name}", getattr(memory, name)


def source_of(place: str, sources: Mapping[str, str], *, exact: bool = False) -> str:
    """The text of the longest place in `sources` that contains `place`, one without ``*`` first; or none, ``""``.

    With `exact`, only one for this very place counts.
    """
    parts = place.split(".")
    found = [row for row in sources if _contains(row.split("."), parts)]
    if exact:
        found = [row for row in found if row == place]
    return sources[max(found, key=lambda row: (row.count("."), "*" not in row))] if found else ""


def _contains(pattern: list[str], parts: list[str]) -> bool:
    return len(pattern) <= len(parts) and all(
        word in ("*", part) for word, part in zip(pattern, parts, strict=False)
    )


def _section(name: str, settings: Mapping[str, Setting]) -> str:
    lines = [
        f"{key}={value if isinstance(value, str) else f'{value:.15g}'}" for key, value in settings.items()
    ]
    return "\n".join(["", f"[{name}]", *lines, ""])


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}", re.ASCII)
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

SYSTEM_KEYS = _SystemConfig.__struct_fields__


class _Board(Struct, forbid_unknown_fields=True):
    title: Text
    npus: Texts
    systems: Rows[Texts]
    cpu: BoardCpu
    hardware: Hardware = UNTESTED
    npu_hz: Hz | None = None
    npu: Device = NO_DEVICE
    console: Device = NO_DEVICE
    pools: Pools = NO_POOLS
    adapters: Rows[AdapterSettings] = {}
    areas: Rows[Rows[str]] = {}
    memories: Rows[Rows[Any]] = {}
    system_configs: Rows[Rows[Any]] = {}
    documents: Rows[Text] = {}
    sources: Rows[Text] = {}


@functools.cache
def vela_tables() -> dict[str, Rows[Any]]:
    """The system configurations and memory modes that all packs know by name."""
    return toml_source.read_toml(OWN_PACKS / "vela.toml", _KIND)[1]


def _profile(path: Path) -> BoardProfile:
    """The profile in the pack at `path`. InputError, with the line, for what is wrong in it."""
    source, table, merged = boards.read_pack(path)
    name = _name_of(path)
    merged.pop("firmware", None)
    merged.pop("qemu", None)
    board = source.convert(merged, _Board)
    known = vela_tables()["system_configs"]
    _check_system_configs(source, board.system_configs, known)
    known = {**known, **board.system_configs}
    systems = tuple(
        replace(_vela_system(source, ("systems", key), key, modes, known), areas=board.areas.get(key, {}))
        for key, modes in board.systems.items()
    )
    if not systems:
        raise source.wrong(("systems",), "systems is empty: Vela needs a system configuration")
    _check_areas(source, ("areas",), board)
    sources = dict(board.sources)
    if "like" in table and not path.is_relative_to(OWN_PACKS):
        given, file = table.get("sources", {}), f"this file ({name})"
        sources |= {place: file for place in _places(table) if not source_of(place, given)}
    modes = dict.fromkeys(mode for system in systems for mode in system.memory_modes)
    return BoardProfile(
        name=name,
        title=board.title,
        npus=_npus(source, ("npus",), board.npus),
        npu_hz=board.npu_hz,
        cpu=board.cpu,
        memories=tuple(
            _board_memory(source, ("memories", key), key, row) for key, row in board.memories.items()
        ),
        systems=systems,
        memory_modes={mode: vela_tables()["memory_modes"][mode] for mode in modes},
        sources={key: board.documents.get(text, text) for key, text in sources.items()},
        npu=board.npu,
        console=board.console,
        hardware=board.hardware,
        pools=board.pools,
        adapters=board.adapters,
    )


def _places(table: PackTable) -> list[str]:
    """The values of a pack, as `sources` has them."""
    found: list[str] = [key for key in ("npus", "npu_hz", "systems", "areas", "hardware") if key in table]
    found += [f"{part}.{key}" for part in ("cpu", "npu", "console", "pools") for key in table.get(part, {})]
    return found + [
        f"memories.{name}.{key}" for name, row in table.get("memories", {}).items() for key in row
    ]


def _npus(source: TomlSource, place: Place, names: list[str]) -> tuple[str, ...]:
    for name in names:
        if name not in target_names():
            raise source.unknown(place, "there is no NPU", name, target_names())
        if name.rpartition("-")[0] != names[0].rpartition("-")[0]:
            raise source.wrong(
                place,
                f"{names[0]} and {name} are of two families",
                "write a profile for each: their Vela settings differ",
            )
    return tuple(dict.fromkeys(names))


def _board_memory(source: TomlSource, place: Place, name: str, row: PackTable) -> BoardMemory:
    _check_name(source, place, name)
    if "name" in row:
        raise source.wrong((*place, "name"), f"{name} has no 'name'", "the name of the table is the memory's")
    found = source.convert({"name": name, **row}, BoardMemory, place)
    if found.cycles_of is None and (found.read_cycles is not None or found.write_cycles is not None):
        message = f"{name} has latencies, but no clock for them"
        raise source.wrong(place, message, 'cycles_of = "npu" or "cpu"')
    return found


def _vela_system(
    source: TomlSource, place: Place, name: str, modes: list[str], known: Mapping[str, PackTable]
) -> VelaSystem:
    if name not in known:
        raise source.unknown(place, "there is no system configuration", name, known)
    settings, known_modes = known[name], vela_tables()["memory_modes"]
    for mode in modes:
        if mode not in known_modes:
            raise source.unknown(place, "there is no memory mode", mode, known_modes)
        if known_modes[mode]["arena_mem_area"] == "Axi1" and settings["axi1_port"] != _DRAM:
            raise source.wrong(
                place, f"{mode} needs {_DRAM} on the second port, and {name} has {settings['axi1_port']}"
            )
    return VelaSystem(name, tuple(dict.fromkeys(modes)), settings)


def _check_areas(source: TomlSource, place: Place, board: _Board) -> None:
    """Areas are those of the board's systems, in the board's memories."""
    for system, row in board.areas.items():
        if system not in board.systems:
            raise source.unknown((*place, system), "areas has no", system, board.systems)
        for area, memory in row.items():
            if area not in (CODE, *_AREAS):
                raise source.unknown((*place, system, area), f"{system} has no", area, (CODE, *_AREAS))
            if memory not in board.memories:
                raise source.unknown((*place, system, area), f"{area} cannot be", memory, board.memories)


def _check_system_configs(
    source: TomlSource, rows: Mapping[str, PackTable], known: Mapping[str, PackTable]
) -> None:
    for name, row in rows.items():
        place = ("system_configs", name)
        _check_name(source, place, name)
        if name in known:
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
            f"'{short_word(name)}' is not a name",
            "a letter, then letters, digits and '_', 64 characters at most",
        )


SUFFIX = ".toml"
_KIND = TomlKind("a file of the SDK", most_bytes=256 << 10, most_lines=5000)


def _name_of(path: Path) -> str:
    """A pack is called as its folder, a file with another name as itself."""
    name = path.absolute().parent.name if path.name == PACK_FILE else path.stem
    return name if boards.is_pack_name(name) else "board"


def profile_names() -> tuple[str, ...]:
    """The packs of the SDK's boards, and those in the user's folder of packs."""
    return boards.system_names()


def profile_file(word: str) -> Path | None:
    """The user's file that `word`, given for a profile, stands for: a file, a folder with a pack, or the name of one
    in the user's folder of packs. None for a profile of the SDK."""
    if word.endswith(SUFFIX):
        return Path(word)
    if "/" in word or word in (".", ".."):
        return Path(word) / PACK_FILE
    found = boards.pack_files().get(word)
    return None if found is None or found.is_relative_to(OWN_PACKS) else found


def find_profile(word: str) -> BoardProfile:
    """The profile that a user means: one of :func:`profile_names`, a file ``NAME.toml``, or the folder of a pack.

    UsageError for an unknown name, InputError for a file that is not a profile.
    """
    path = profile_file(word)
    if path is not None:
        return _profile(path)
    if word not in profile_names():
        hint = f"{suggestion(word, profile_names())}; a file of your own ends in {SUFFIX}, a folder has a /"
        raise UsageError(f"there is no board profile '{word}'", hint)
    return _own(word)


@functools.cache
def _own(name: str) -> BoardProfile:
    return _profile(OWN_PACKS / name / PACK_FILE)
