"""What is converted: the records of a folder of results by their schema, or one record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.errors import InputError
from ethosu_sdk.records import Record
from ethosu_sdk.results import reading as results
from ethosu_sdk.results.reading import PROFILE, Reading


@dataclass(frozen=True)
class Inputs:
    """Records by their schemas, and the files that they were read from."""

    path: Path
    records: Mapping[str, Record]
    files: Mapping[str, Path]

    def the(self, kind: str) -> Record:
        """The record of `kind`. InputError when there is none."""
        if kind not in self.records:
            raise InputError(
                f"{self.path} holds no record {kind}, which this format is made from",
                "`ethosu-sdk profile RUN_DIR` makes one" if kind == PROFILE else f"give a record {kind}",
            )
        return self.records[kind]


def read(path: Path, kinds: tuple[str, ...], reading: Reading) -> Inputs:
    """The records of `kinds` at `path`. InputError when there is none, or one is damaged or of another program."""
    reading.check_folder(path)
    if path.is_dir():
        return _folder(path, kinds)
    if not path.exists():
        raise InputError(f"there is no file or folder {path}", "give a folder of results, or a record")
    record = results.read(path, reading)
    if record["schema"] not in kinds:
        raise InputError(
            f"{path} is a {record['schema']}, which this format cannot hold", f"it takes {', '.join(kinds)}"
        )
    return Inputs(path, {record["schema"]: record}, {record["schema"]: path})


def _folder(folder: Path, kinds: tuple[str, ...]) -> Inputs:
    found: dict[str, Record] = {}
    files: dict[str, Path] = {}
    for path in results.present(folder, kinds):
        record = results.read(path)
        kind = record["schema"]
        if kind in kinds and kind not in found and _is_of(record, found):
            found[kind], files[kind] = record, path
    if not found:
        raise InputError(
            f"{folder} holds no record that this format can hold", f"it takes {', '.join(kinds)}"
        )
    return Inputs(folder, found, files)


def _is_of(record: Record, found: Mapping[str, Record]) -> bool:
    """Whether `record` is about the program that `found` are about: a folder may hold what was compiled later."""
    digests = {row["model"]["sha256"] for row in (record, *found.values()) if "model" in row}
    return len(digests) <= 1
