"""What is converted: the records of a folder of results by their schema, or one record; and its numbers as text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.records import kinds
from ethosu_sdk.records.bundle import ReadPolicy, read_record, records_in
from ethosu_sdk.records.common import Content, Part, RecordKind

MACS = "macs"
FIGURES = ("modelled", "estimated", "measured", MACS)


@dataclass(frozen=True)
class Nodes:
    """Which figure of which delegate node data has."""

    figure: str = "modelled"
    delegate: int = 0


@dataclass(frozen=True)
class ConversionInputs:
    """Records by their schemas, and the files that they were read from."""

    path: Path
    records: Mapping[str, Part]
    files: Mapping[str, Path]
    nodes: Nodes = Nodes()

    def the(self, kind: RecordKind[Content]) -> Content:
        """The record of `kind`. InputError when there is none."""
        record = self.records.get(kind.schema)
        if not isinstance(record, kind.content):
            hint = "`ethosu-sdk profile RUN_DIR` makes one" if kind == kinds.PROFILE else ""
            message = f"{self.path} holds no record {kind.schema}, which this format is made from"
            raise InputError(message, hint or f"give a record {kind.schema}")
        return record


def read_inputs(path: Path, schemas: tuple[str, ...], reading: ReadPolicy) -> ConversionInputs:
    """The records with one of `schemas` at `path`. InputError when there is none, or one is damaged or of another
    program."""
    reading.check_folder(path)
    if path.is_dir():
        return _folder(path, schemas)
    if not path.exists():
        raise InputError(f"there is no file or folder {path}", "give a folder of results, or a record")
    record = read_record(path, reading)
    schema = kinds.schema(record)
    if schema not in schemas:
        message = f"{path} is a {schema}, which this format cannot hold"
        raise InputError(message, f"it takes {', '.join(schemas)}")
    return ConversionInputs(path, {schema: record}, {schema: path})


def _folder(folder: Path, schemas: tuple[str, ...]) -> ConversionInputs:
    found: dict[str, Part] = {}
    files: dict[str, Path] = {}
    digests: set[str] = set()  # of the programs: a folder may hold what was compiled later
    for path in records_in(folder, schemas):
        record = read_record(path)
        schema, digest = kinds.schema(record), getattr(getattr(record, "model", None), "sha256", None)
        if schema in schemas and schema not in found and (digest is None or digests <= {digest}):
            found[schema], files[schema] = record, path
            digests |= set() if digest is None else {digest}
    if not found:
        message = f"{folder} holds no record that this format can hold"
        raise InputError(message, f"it takes {', '.join(schemas)}")
    return ConversionInputs(folder, found, files)
