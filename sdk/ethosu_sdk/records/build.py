"""``build-result/1``, from which schemas/build-result.v1.schema.json is made."""

from __future__ import annotations

from typing import Annotated, Literal

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import (
    Amount,
    Count,
    Derived,
    FileDigest,
    Host,
    Model,
    PositiveCount,
    Sha256,
    Some,
    Target,
    Text,
    UnavailableMembers,
    Use,
)
from ethosu_sdk.records.kind import Part, RecordKind, about

Board = Literal["corstone-300", "corstone-320"]
DataMemory = Literal["sram", "ddr"]


class Options(Part):
    inferences: Annotated[PositiveCount, about("sets of inputs that there is room for")]
    allow_spill: bool
    simulator: Annotated[Text | None, about("where it was to run, if that was known")] = None
    methods: Annotated[
        Some[Text] | None, about("the methods that the firmware loads; absent for a program with one method")
    ] = None
    data_memory: Annotated[
        DataMemory | None, about("where the data files of the model were asked to lie")
    ] = None


class Elf(Part):
    file: Text
    sha256: Sha256
    bytes: Count


class Kernel(Part):
    operator: Text
    function: Text
    source: Text


class Pool(Part):
    name: Text
    used_bytes: Count
    size_bytes: Count
    region: Text
    address: Count


class Memory(Part):
    regions: tuple[Use, ...]
    pools: tuple[Pool, ...]


class Section(Part):
    name: Text
    address: Count
    bytes: Count


class Build(Derived[Literal["pass"]], tag_field="schema", tag="build-result/1"):
    """What `ethosu-sdk build` made."""

    model: Model
    target: Target | None = None
    board: Board
    board_reason: Annotated[
        Text, about("why it is this board: what was asked for, or what is installed here")
    ]
    build_key: Sha256
    options: Annotated[Options, about("what shaped the firmware beside the model and the board")]
    elf: Elf
    map: FileDigest
    kernels: tuple[Kernel, ...]
    memory: Memory
    sections: tuple[Section, ...]
    notes: Annotated[
        tuple[Text, ...],
        about("where the firmware does not do what the memory mode says, and other things to know"),
    ]
    unavailable: UnavailableMembers
    wall_time_s: Amount
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
