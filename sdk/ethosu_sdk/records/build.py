"""Firmware and settings for other builds: ``build-result/1`` and ``export/1``."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from ethosu_sdk.records import common as c, rules
from ethosu_sdk.records.common import Derived, Part, RecordKind

# The parts of build-result/1.
DataMemory = Literal["sram", "ddr"]


class Options(Part):
    inferences: c.PositiveCount  #: sets of inputs that there is room for
    allow_spill: bool
    simulator: c.Text | None = None  #: where it was to run, if that was known
    #: the methods that the firmware loads; absent for a program with one method
    methods: c.Some[c.Text] | None = None
    data_memory: DataMemory | None = None  #: where the data files of the model were asked to lie


class Elf(c.FileDigest):
    bytes: c.Count


class Kernel(Part):
    operator: c.Text
    function: c.Text
    source: c.Text


class Pool(c.Use):
    region: c.Text
    address: c.Count


class Memory(Part):
    regions: tuple[c.Use, ...]
    pools: tuple[Pool, ...]


class Section(Part):
    name: c.Text
    address: c.Count
    bytes: c.Count


class Build(Derived[Literal["pass"]], tag_field="schema", tag="build-result/1"):
    """What `ethosu-sdk build` made."""

    model: c.Model
    target: c.Target | None = None
    board: c.BoardName
    board_reason: c.Text  #: why it is this board: what was asked for, or what is installed here
    build_key: c.Sha256
    options: Options  #: what shaped the firmware beside the model and the board
    elf: Elf
    map: c.FileDigest
    kernels: tuple[Kernel, ...]
    memory: Memory
    sections: tuple[Section, ...]
    #: where the firmware does not do what the memory mode says, and other things to know
    notes: tuple[c.Text, ...]
    unavailable: c.UnavailableMembers
    wall_time_s: c.Amount
    host: c.Host


BUILD = RecordKind(
    Build,
    (
        rules.use_fits_size,
        rules.unavailable_is_absent,
        rules.model_is_that_of_the_provenance,
        rules.files_stay_in_the_folder,
    ),
    file="build.json",
    role="record of the build",
)


# The parts of export/1.
SizeName = Literal[
    "scratch", "fast_scratch", "planned", "method_pool", "executorch_temp", "executorch_method"
]
Known = Literal["exact", "least", "most", "measured"]


class Size(Part):
    """Bytes of a pool: `exact`, at `least` or at `most`, or `measured` in a run."""

    name: SizeName
    bytes: c.Count
    known: Known  #: least, most: a bound, by the program alone; measured: used in a run
    detail: c.Text


class Library(Part):
    """A library of ExecuTorch's own build: what is linked with it, and the program's kernels that it registers."""

    name: c.Text  #: the target that registers the operators
    links: c.Some[c.Text]  #: the target that computes them, then what that needs
    #: the option of ExecuTorch's build without which these targets are not there; absent: always
    option: c.Text | None = None
    kernels: c.DistinctSome[str]


class Files(Part):
    cmake: c.Text
    kconfig: c.Text
    clayer: c.Text


class Export(Derived[Literal["pass"]], tag_field="schema", tag="export/1"):
    """What other builds must know of a program."""

    model: c.Model
    target: c.Target | None = None
    #: operators that the program calls on the CPU
    kernels: c.Distinct[Annotated[str, Meta(pattern="^[A-Za-z0-9_]+::[A-Za-z0-9_]+(\\.[A-Za-z0-9_]+)?$")]]
    libraries: tuple[Library, ...] | None = None  #: libraries of ExecuTorch's own build that have the kernels
    #: executorch_…: of ExecuTorch's own allocators; the others are those of the SDK's firmware
    sizes: tuple[Size, ...]
    files: Files
    host: c.Host


EXPORT = RecordKind(Export, file="*.export.json", role="record of the export")
