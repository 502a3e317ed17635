"""`ethosu-sdk validate`: check a record against its schema and the named extra rules, or a folder by its manifest."""

from __future__ import annotations

from pathlib import Path

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.records import bundle, kinds, validation
from ethosu_sdk.records.bundle import ReadPolicy, read_raw_record

_MOST_SHOWN = 20


def validate(path: Path, reading: ReadPolicy, reporter: Reporter) -> None:
    """Raise InputError, listing the problems, unless `path` holds a valid record that is as its manifest lists it, or
    is a folder that is as the commands left it which wrote there."""
    reading.check_folder(path)
    if path.is_dir():
        _validate_folder(path, reporter)
        return
    record = read_raw_record(path, reading)
    validation.check_by_schema(record, str(path))
    reading.warn(reporter)
    loose = ", loose: it differs from its manifest" if reading.differences else ""
    reporter.show(
        f"{escape(str(path))}: valid [bold]{record['schema']}[/bold], status {record['status']}{loose}"
    )
    reporter.emit(record)


def _validate_folder(folder: Path, reporter: Reporter) -> None:
    manifest = bundle.read_manifest(folder)
    if manifest is None:
        raise InputError(
            f"{folder} holds no {bundle.MANIFEST_NAME}: the files that belong to it are unknown",
            "a folder in which the first command failed has none: give a record in it",
        )
    found = bundle.folder_problems(folder, manifest)
    if found:
        more = [f"and {len(found) - _MOST_SHOWN} more"] if len(found) > _MOST_SHOWN else []
        lines = "".join(f"\n  {line}" for line in (*found[:_MOST_SHOWN], *more))
        raise InputError(f"{folder} differs from its manifest:{lines}", "run the command again that wrote it")
    for row in manifest.files:
        if row.schema is not None:
            validation.check_by_schema(read_raw_record(folder / row.path), str(folder / row.path))
        if row.schema == kinds.SWEEP.schema:
            sweep = kinds.SWEEP.convert(read_raw_record(folder / row.path))
            if sweep.cells.not_run:  # it was interrupted: the record is valid and of a part of the cells
                counts = f"{sweep.cells.not_run:,} of the sweep's {sweep.plan.cells:,} cells were not run"
                raise InputError(
                    f"{(folder / row.path).parent} is incomplete: {counts}",
                    "the same `ethosu-sdk sweep run` goes on where it stopped",
                )
    count = sum(row.schema is not None for row in manifest.files)
    reporter.show(
        f"{escape(str(folder))}: complete, {counted(len(manifest.files), 'file')}, {counted(count, 'valid record')}"
    )
    reporter.emit(manifest.to_json())
