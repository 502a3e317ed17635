"""``board-list/1``, from which schemas/board-list.v1.schema.json is made."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec

from ethosu_sdk.records.common import Amount, Count, Document, Number, PositiveCount, Sha256, Some, Text
from ethosu_sdk.records.kind import Part, RecordKind, about, require_any


class Cpu(Part):
    core: Annotated[Text, about("such as cortex-m55")]
    clock_hz: PositiveCount | None = None
    icache_bytes: Count | None = None
    dcache_bytes: Count | None = None


class Memory(Part):
    name: Text
    kind: Literal["tcm", "sram", "mram", "flash", "dram", "rom"]
    size_bytes: Count | None = None
    npu: Annotated[bool | None, about("whether the NPU's ports reach it")] = None
    cached: Annotated[bool | None, about("whether the processor's caches may hold what is in it")] = None
    width_bits: Annotated[PositiveCount | None, about("of its data bus")] = None
    read_cycles: Annotated[Count | None, about("latency, in cycles of `cycles_of`")] = None
    write_cycles: Annotated[Count | None, about("latency, in cycles of `cycles_of`")] = None
    cycles_of: Literal["npu", "cpu"] | None = None
    cpu_wait_cycles: Annotated[
        Amount | None, about("cycles for which an access that no cache answers stops the processor")
    ] = None


class Setting(Part):
    key: Annotated[Text, about("of a vela.ini")]
    value: str | Number


class Areas(Part):
    code: Text | None = None
    sram: Text | None = msgspec.field(name="Sram", default=None)
    on_chip_flash: Text | None = msgspec.field(name="OnChipFlash", default=None)
    off_chip_flash: Text | None = msgspec.field(name="OffChipFlash", default=None)
    dram: Text | None = msgspec.field(name="Dram", default=None)

    together: ClassVar[dict[str, Any]] = {"minProperties": 1}

    def __post_init__(self) -> None:
        require_any(self)


class System(Part):
    name: Text
    memory_modes: Annotated[Some[Text], about("that go with it; the first is the default")]
    settings: Some[Setting]
    areas: Annotated[
        Areas | None,
        about("the memories of the board that these are: Vela's areas, and the one with the CPU's code"),
    ] = None


class Source(Part):
    value: Annotated[Text, about("its place, such as cpu.clock_hz")]
    source: Annotated[Text, about("where it comes from, or why it is absent")]


class Board(Part):
    name: Text
    title: Text
    sha256: Annotated[Sha256, about("of every value of the profile")]
    npus: Annotated[Some[Text], about("targets; the first is the default")]
    npu_hz: Annotated[PositiveCount | None, about("the clock that the NPU has on the board")] = None
    cpu: Annotated[Cpu, about("what no public document gives is absent")]
    memories: tuple[Memory, ...]
    systems: Annotated[Some[System], about("Vela system configurations; the first is the default")]
    sources: Some[Source]


class BoardList(Document[Literal["pass"]], tag_field="schema", tag="board-list/1"):
    """What `ethosu-sdk boards` lists."""

    boards: Some[Board]


KIND = RecordKind(BoardList)
