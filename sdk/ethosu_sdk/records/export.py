"""``export/1``, from which schemas/export.v1.schema.json is made."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from ethosu_sdk.records.common import Count, Derived, Distinct, DistinctSome, Host, Model, Some, Target, Text
from ethosu_sdk.records.kind import Part, RecordKind, about, require_distinct

SizeName = Literal[
    "scratch", "fast_scratch", "planned", "method_pool", "executorch_temp", "executorch_method"
]
Known = Literal["exact", "least", "most", "measured"]


class Size(Part):
    """Bytes of a pool: `exact`, at `least` or at `most`, or `measured` in a run."""

    name: SizeName
    bytes: Count
    known: Annotated[Known, about("least, most: a bound, by the program alone; measured: used in a run")]
    detail: Text


class Library(Part):
    """A library of ExecuTorch's own build: what is linked with it, and the program's kernels that it registers."""

    name: Annotated[Text, about("the target that registers the operators")]
    links: Annotated[Some[Text], about("the target that computes them, then what that needs")]
    option: Annotated[
        Text | None,
        about("the option of ExecuTorch's build without which these targets are not there; absent: always"),
    ] = None
    kernels: DistinctSome[str]

    def __post_init__(self) -> None:
        require_distinct(self.kernels)


class Files(Part):
    cmake: Text
    kconfig: Text
    clayer: Text


class Export(Derived[Literal["pass"]], tag_field="schema", tag="export/1"):
    """What other builds must know of a program."""

    model: Model
    target: Target | None = None
    kernels: Annotated[
        Distinct[Annotated[str, Meta(pattern=r"^[A-Za-z0-9_]+::[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)?$")]],
        about("operators that the program calls on the CPU"),
    ]
    libraries: Annotated[
        tuple[Library, ...] | None, about("libraries of ExecuTorch's own build that have the kernels")
    ] = None
    sizes: Annotated[
        tuple[Size, ...],
        about("executorch_…: of ExecuTorch's own allocators; the others are those of the SDK's firmware"),
    ]
    files: Files
    host: Host

    def __post_init__(self) -> None:
        require_distinct(self.kernels)


KIND = RecordKind(Export, file="*.export.json", role="record of the export")
