"""Short records that are only printed: boards, the zoo, conversions, verifications, explanations and errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from ethosu_sdk.records import common as c, rules
from ethosu_sdk.records.common import Derived, Document, Part, RecordKind, require, require_any


# The parts of board-list/1.
class Cpu(Part):
    core: c.Text  #: such as cortex-m55
    clock_hz: c.PositiveCount | None = None
    icache_bytes: c.Count | None = None
    dcache_bytes: c.Count | None = None


class Memory(Part):
    name: c.Text
    kind: Literal["tcm", "sram", "mram", "flash", "dram", "rom"]
    size_bytes: c.Count | None = None
    npu: bool | None = None  #: whether the NPU's ports reach it
    cached: bool | None = None  #: whether the processor's caches may hold what is in it
    width_bits: c.PositiveCount | None = None  #: of its data bus
    read_cycles: c.Count | None = None  #: latency, in cycles of `cycles_of`
    write_cycles: c.Count | None = None  #: latency, in cycles of `cycles_of`
    cycles_of: Literal["npu", "cpu"] | None = None
    #: cycles for which an access that no cache answers stops the processor
    cpu_wait_cycles: c.Amount | None = None
    base: c.Count | None = None  #: the address of its Non-secure alias
    secure_base: c.Count | None = None  #: that of its Secure alias
    model_offset: c.Count | None = None  #: where models in it begin at the earliest
    model_alignment: c.PositiveCount | None = None


class Device(Part):
    """Where the processor finds the NPU or the console."""

    base: c.Count | None = None  #: the address of its registers' Non-secure alias
    secure_base: c.Count | None = None  #: that of their Secure alias
    irq: c.Count | None = None  #: the number of its interrupt at the processor
    device: c.Text | None = None  #: the kind of UART
    baud: c.PositiveCount | None = None

    together: ClassVar[dict[str, Any]] = {"minProperties": 1}

    def __post_init__(self) -> None:
        require_any(self)


class Setting(Part):
    key: c.Text  #: of a vela.ini
    value: str | c.Number


class Areas(Part):
    code: c.Text | None = None
    sram: c.Text | None = msgspec.field(name="Sram", default=None)
    on_chip_flash: c.Text | None = msgspec.field(name="OnChipFlash", default=None)
    off_chip_flash: c.Text | None = msgspec.field(name="OffChipFlash", default=None)
    dram: c.Text | None = msgspec.field(name="Dram", default=None)

    together: ClassVar[dict[str, Any]] = {"minProperties": 1}

    def __post_init__(self) -> None:
        require_any(self)


class System(Part):
    name: c.Text
    memory_modes: c.Some[c.Text]  #: that go with it; the first is the default
    settings: c.Some[Setting]
    #: the memories of the board that these are: Vela's areas, and the one with the CPU's code
    areas: Areas | None = None


class Source(Part):
    value: c.Text  #: its place, such as cpu.clock_hz
    source: c.Text  #: where it comes from, or why it is absent


class Board(Part):
    name: c.Text
    title: c.Text
    sha256: c.Sha256  #: of every value of the profile
    npus: c.Some[c.Text]  #: targets; the first is the default
    npu_hz: c.PositiveCount | None = None  #: the clock that the NPU has on the board
    hardware: Literal["untested on hardware", "proved on hardware", "simulator"]
    npu: Device | None = None
    console: Device | None = None
    cpu: Cpu  #: what no public document gives is absent
    memories: tuple[Memory, ...]
    systems: c.Some[System]  #: Vela system configurations; the first is the default
    sources: c.Some[Source]


class BoardList(Document[Literal["pass"]], tag_field="schema", tag="board-list/1"):
    """What `ethosu-sdk boards` lists."""

    boards: c.Some[Board]


BOARDS = RecordKind(BoardList)


# The parts of zoo-list/1.
class Input(Part):
    dtype: c.Text
    shape: tuple[c.PositiveCount, ...]


class ZooModel(Part):
    name: c.Text
    model: Annotated[str, Meta(pattern="^zoo:")]  #: what `compile` and `run` take
    task: c.Text
    summary: c.Text
    inputs: c.Some[Input]
    quantize: Literal["int8", "int16", "none"]  #: what the model is meant for
    weights: Literal["none", "random", "trained", "pretrained"]
    parameters: c.Count
    needs: tuple[c.Text, ...]  #: packages that carry weights and data, as pip takes them
    missing: tuple[c.Text, ...]  #: those of `needs` that are not installed


class ZooList(Document[Literal["pass"]], tag_field="schema", tag="zoo-list/1"):
    """What `ethosu-sdk zoo` lists."""

    models: c.Some[ZooModel]


ZOO = RecordKind(ZooList)


# The parts of conversion/1.
class File(Part):
    name: c.Text
    sha256: c.Sha256
    bytes: c.PositiveCount


class Conversion(Derived[Literal["pass"]], tag_field="schema", tag="conversion/1"):
    """Records in the format of another tool."""

    format: Literal["junit", "sarif", "perfetto", "parquet", "model-explorer", "etdump", "bpte"]
    file: File
    left_out: tuple[c.Text, ...]  #: what the records have and the format has no place for
    host: c.Host


CONVERSION = RecordKind(Conversion)


# The parts of verify-result/1.
class Record(Part):
    file: c.Text
    schema: Literal["build-result/1", "run-result/1"]
    sha256: c.Sha256
    #: The file is not as the manifest beside it lists it; the user let it be read all the same
    loose: Literal[True] | None = None


CheckStatus = Literal["agrees", "differs", "unknown"]


class Check(Part):
    name: c.Text
    status: CheckStatus
    recorded: c.Text
    found: c.Text | None = None

    together: ClassVar[dict[str, Any]] = {
        "if": {"properties": {"status": {"const": "unknown"}}},
        "then": {"properties": {"found": False}},
        "else": {"required": ["found"]},
    }

    def __post_init__(self) -> None:
        unknown = self.status == "unknown"
        require(unknown == (self.found is None), "what was found is given if it is known, and only then")


class Verification(Document[Literal["pass", "fail"]], tag_field="schema", tag="verify-result/1"):
    """What `ethosu-sdk verify` found."""

    record: Record
    checks: c.Some[Check]
    causes: tuple[c.Text, ...]  #: why something differs, as far as that can be told
    wall_time_s: c.Amount
    host: c.Host


def status_follows_differences(record: Verification) -> Iterator[str]:
    """One difference fails the verification."""
    differs = any(row.status == "differs" for row in record.checks)
    yield from rules.wrong_status(record, "fail" if differs else "pass", "the checks say")


VERIFY = RecordKind(Verification, (status_follows_differences,))


# The parts of explanation/1.
class KnownError(Part):
    id: c.Text
    area: c.Text
    harmless: bool
    cause: c.Text
    fix: c.Text
    code: c.Count | None = None
    name: c.Text | None = None


class Explanation(Document[Literal["pass"]], tag_field="schema", tag="explanation/1"):
    """What an error means and what to do about it."""

    asked: str
    errors: c.Some[KnownError]


EXPLANATION = RecordKind(Explanation)


# The parts of error/1.
class Problem(Part):
    class_name: c.Text = msgspec.field(name="class")
    exit_code: Literal[2, 3, 4, 5, 6, 7, 130]
    message: c.Text
    hint: c.Text | None = None


class Error(Document[Literal["error"]], tag_field="schema", tag="error/1"):
    """Why a command ended without its result."""

    error: Problem


ERROR = RecordKind(Error)
