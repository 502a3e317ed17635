"""The files of a program, as records name them: the `.pte`, and the data files (`.ptd`) that it uses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ethosu_sdk import provenance, pte
from ethosu_sdk.errors import InputError
from ethosu_sdk.records import Record
from ethosu_sdk.records.common import ProvenanceInput

DATA_ROLE = "data"


def entries(path: Path, program: pte.Pte) -> list[Record]:
    """Their rows of `provenance.inputs`; `path` is that of the `.pte`."""
    return [
        provenance.file_entry("model", path, program.sha256),
        *(
            {"role": DATA_ROLE, "file": row.path.name, "bytes": row.size, "sha256": row.sha256}
            for row in program.data_files
        ),
    ]


def read_of_run(path: Path, rows: Sequence[ProvenanceInput], data: Sequence[Path] = ()) -> pte.Pte:
    """The program at `path` with the data files of a record, whose inputs are `rows`; see :func:`pte.read`."""
    program = pte.read(path, data)
    check_data(program, rows)
    return program


def check_data(program: pte.Pte, rows: Sequence[ProvenanceInput]) -> None:
    """InputError when the data files of `program` are not those of a record, whose inputs are `rows`."""
    recorded = {row.sha256: row.file for row in rows if row.role == DATA_ROLE}
    here = {row.sha256: row.path for row in program.data_files}
    other = next((path for sha256, path in here.items() if sha256 not in recorded), None)
    missing = next((name for sha256, name in recorded.items() if sha256 not in here), None)
    if other is not None or missing is not None:
        raise InputError(
            f"the program's data file {other or missing} is not the one of the record: its SHA-256 differs",
            "give the data files of that run, or run the program again",
        )
