"""``build-result/1``: schemas/build-result.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import Derived, FileDigest, Host, Model, Number, Target, Unavailable, Use
from ethosu_sdk.records.kind import Part, RecordKind

Board = Literal["corstone-300", "corstone-320"]
DataMemory = Literal["sram", "ddr"]


class Options(Part):
    inferences: int
    allow_spill: bool
    simulator: str | None = None
    methods: tuple[str, ...] | None = None
    data_memory: DataMemory | None = None


class Elf(Part):
    file: str
    sha256: str
    bytes: int


class Kernel(Part):
    operator: str
    function: str
    source: str


class Pool(Part):
    name: str
    used_bytes: int
    size_bytes: int
    region: str
    address: int


class Memory(Part):
    regions: tuple[Use, ...]
    pools: tuple[Pool, ...]


class Section(Part):
    name: str
    address: int
    bytes: int


class Build(Derived[Literal["pass"]], tag_field="schema", tag="build-result/1"):
    """What `ethosu-sdk build` made."""

    model: Model
    target: Target | None = None
    board: Board
    board_reason: str
    build_key: str
    options: Options
    elf: Elf
    map: FileDigest
    kernels: tuple[Kernel, ...]
    memory: Memory
    sections: tuple[Section, ...]
    notes: tuple[str, ...]
    unavailable: tuple[Unavailable, ...]
    wall_time_s: Number
    host: Host


def use_fits_size(record: Build) -> list[str]:
    """No region or pool holds more than its size."""
    return rules.overflows((*record.memory.regions, *record.memory.pools))


KIND = RecordKind(
    Build,
    (
        use_fits_size,
        rules.unavailable_is_absent,
        rules.model_is_that_of_the_provenance,
        rules.files_stay_in_the_folder,
    ),
    file="build.json",
    role="record of the build",
)
