"""A board profile: what is known of a board with an Ethos-U, and the Vela configuration that describes it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

NOT_PUBLIC = "not public"
CODE = "code"
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
    sources: Mapping[str, str] = field(default_factory=dict)

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
        return f"board profile {self.name}"

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
        """The digest of every value; not of the title and the sources."""
        values = {
            key: part for key, part in msgspec.to_builtins(self).items() if key not in ("title", "sources")
        }
        return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()

    def source(self, place: str) -> str:
        """Where the value at `place` comes from, such as ``cpu.clock_hz``; why it is absent for one that is."""
        absent = dict(self.values())[place] is None
        return source_of(place, self.sources, exact=absent) or NOT_PUBLIC

    def values(self) -> Iterator[tuple[str, Any]]:
        """Every value that has a source, by place; None for one that is not public."""
        yield "npus", self.npus
        yield "npu_hz", self.npu_hz
        yield "systems", tuple(row.name for row in self.systems)
        if any(row.areas for row in self.systems):
            yield "areas", {row.name: row.areas for row in self.systems}
        for name in self.cpu.__struct_fields__:
            yield f"cpu.{name}", getattr(self.cpu, name)
        for memory in self.memories:
            for name in memory.__struct_fields__[1:]:
                # Without latencies there is no such fact as their clock.
                if name != "cycles_of" or memory.cycles_of is not None:
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
