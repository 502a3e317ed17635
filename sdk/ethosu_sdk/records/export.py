"""``export/1``: schemas/export.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records.common import Derived, Host, Model, Target
from ethosu_sdk.records.kind import Part, RecordKind

SizeName = Literal[
    "scratch", "fast_scratch", "planned", "method_pool", "executorch_temp", "executorch_method"
]
Known = Literal["exact", "least", "most", "measured"]


class Size(Part):
    """Bytes of a pool: `exact`, at `least` or at `most`, or `measured` in a run."""

    name: SizeName
    bytes: int
    known: Known
    detail: str


class Library(Part):
    """A library of ExecuTorch's own build: what is linked with it, and the program's kernels that it registers."""

    name: str
    links: tuple[str, ...]
    option: str | None = None
    kernels: tuple[str, ...]


class Files(Part):
    cmake: str
    kconfig: str
    clayer: str


class Export(Derived[Literal["pass"]], tag_field="schema", tag="export/1"):
    """What other builds must know of a program."""

    model: Model
    target: Target | None = None
    kernels: tuple[str, ...]
    libraries: tuple[Library, ...] | None = None
    sizes: tuple[Size, ...]
    files: Files
    host: Host


KIND = RecordKind(Export, file="*.export.json", role="record of the export")
