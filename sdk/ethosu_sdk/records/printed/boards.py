"""``board-list/1``: schemas/board-list.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

import msgspec

from ethosu_sdk.records.common import Document, Number
from ethosu_sdk.records.kind import Part, RecordKind


class Cpu(Part):
    core: str
    clock_hz: int | None = None
    icache_bytes: int | None = None
    dcache_bytes: int | None = None


class Memory(Part):
    name: str
    kind: Literal["tcm", "sram", "mram", "flash", "dram", "rom"]
    size_bytes: int | None = None
    npu: bool | None = None
    cached: bool | None = None
    width_bits: int | None = None
    read_cycles: int | None = None
    write_cycles: int | None = None
    cycles_of: Literal["npu", "cpu"] | None = None
    cpu_wait_cycles: Number | None = None


class Setting(Part):
    key: str
    value: str | Number


class Areas(Part):
    code: str | None = None
    sram: str | None = msgspec.field(name="Sram", default=None)
    on_chip_flash: str | None = msgspec.field(name="OnChipFlash", default=None)
    off_chip_flash: str | None = msgspec.field(name="OffChipFlash", default=None)
    dram: str | None = msgspec.field(name="Dram", default=None)


class System(Part):
    name: str
    memory_modes: tuple[str, ...]
    settings: tuple[Setting, ...]
    areas: Areas | None = None


class Source(Part):
    value: str
    source: str


class Board(Part):
    name: str
    title: str
    sha256: str
    npus: tuple[str, ...]
    npu_hz: int | None = None
    cpu: Cpu
    memories: tuple[Memory, ...]
    systems: tuple[System, ...]
    sources: tuple[Source, ...]


class BoardList(Document[Literal["pass"]], tag_field="schema", tag="board-list/1"):
    """What `ethosu-sdk boards` lists."""

    boards: tuple[Board, ...]


KIND = RecordKind(BoardList)
