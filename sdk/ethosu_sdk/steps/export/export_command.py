"""`ethosu-sdk export`: read the program, know its sizes, write them for other builds."""

from __future__ import annotations

import re
from pathlib import Path

from rich.table import Table

from ethosu_sdk import provenance, pte, schema
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.errors import InputError
from ethosu_sdk.files import json_text, locks, writing
from ethosu_sdk.records import kinds
from ethosu_sdk.records.common import Model
from ethosu_sdk.records.export import Export, Files
from ethosu_sdk.records.run import Run
from ethosu_sdk.results import bundle, host_facts, locations, program_files, target_record
from ethosu_sdk.results.reading import Reading, read_record
from ethosu_sdk.steps.export import libraries, sizes, texts

# They become text of CMake, Kconfig and YAML: nothing else may come through.
_OPERATOR = re.compile(r"[A-Za-z0-9_]+::[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)?")
_SETTING = re.compile(r"[A-Za-z0-9_.-]+")


def export(path: Path, run: Path | None, out_dir: Path | None, reading: Reading, reporter: Reporter) -> None:
    """Write what other builds must know of the program at `path`, with what the run at `run` measured.

    Raises InputError for a damaged program, for names that no build file takes, and for the run of another program.
    """
    program = pte.read(locations.require_pte(path))
    kernels = _kernels(program)
    run_file = None if run is None else _run_file(run, reading)
    ran = None if run_file is None else _run(run_file, program, reading)
    facts = texts.Facts(
        model=path.name,
        sha256=program.sha256,
        target=program.target(),
        kernels=kernels,
        libraries=tuple(libraries.of(kernels)),
        sizes=sizes.of(program, program.plan().name, ran),
    )
    _check_settings(facts)
    folder = locations.for_pte(path, facts.target, out_dir)
    record = _record(path, program, facts, run_file, reading)
    reading.warn(reporter)
    content = record.to_json()
    schema.check(content, "the export's record")
    with locks.locked(folder), bundle.published(folder, "export") as add:
        files = record.files
        for name, text in (
            (files.cmake, texts.cmake),
            (files.kconfig, texts.kconfig),
            (files.clayer, texts.clayer),
        ):
            writing.write_bytes(folder / name, text(facts).encode())
        name = kinds.EXPORT.name(path.stem)
        json_text.write_json(folder / name, content)
        add(files.cmake, files.kconfig, files.clayer, name)
    _show(facts, folder, reporter)
    reporter.emit(content)


def _run_file(path: Path, reading: Reading) -> Path:
    """The record of the run at `path`, a folder or the record itself."""
    reading.check_folder(path)
    if not path.is_dir():
        return path
    bundle.check(path, [kinds.RUN.file])
    return path / kinds.RUN.file


def _run(path: Path, program: pte.Pte, reading: Reading) -> Run:
    run = read_record(path, reading)
    if not isinstance(run, Run):
        raise InputError(f"{path} is a {kinds.schema(run)}, not a run", "give the folder of a run")
    if run.model.sha256 != program.sha256:
        raise InputError(
            f"{path} is a run of another program, so its sizes do not apply",
            "run this program, then repeat the export with its folder",
        )
    return run


def _kernels(program: pte.Pte) -> list[str]:
    names = sorted({row.full_name for row in program.plan(program.plan().name).operators})
    for name in names:
        if not _OPERATOR.fullmatch(name):
            raise InputError(f"the program calls {name[:80]!r}, which is not an operator's name")
    return names


def _check_settings(facts: texts.Facts) -> None:
    if facts.target is None:
        return
    for value in (facts.target.system_config, facts.target.memory_mode):
        if not _SETTING.fullmatch(value):
            raise InputError(
                f"the program was compiled for {value[:80]!r}, which a build file cannot name",
                "names of Vela's configurations may contain letters, digits, points, dashes and underscores",
            )


def _record(path: Path, program: pte.Pte, facts: texts.Facts, run: Path | None, reading: Reading) -> Export:
    inputs = program_files.entries(path, program)
    inputs += [] if run is None else [{**provenance.file_entry("run", run), **reading.mark(run)}]
    name = path.stem
    return Export(
        status="pass",
        **provenance.origin(inputs, []),
        model=Model(file=path.name, sha256=program.sha256, bytes=program.size, entry=program.plan().name),
        target=target_record.content(facts.target),
        kernels=tuple(facts.kernels),
        libraries=tuple(facts.libraries),
        sizes=tuple(facts.sizes.values()),
        files=Files(cmake=f"{name}.cmake", kconfig=f"{name}.conf", clayer=f"{name}.clayer.yml"),
        host=host_facts.this_host(),
    )


def _show(facts: texts.Facts, folder: Path, reporter: Reporter) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("size", "bytes", "known", "of"):
        table.add_column(heading, justify="right" if heading == "bytes" else "left")
    for row in facts.sizes.values():
        table.add_row(row.name, f"{row.bytes:,}", row.known, escape(row.detail))
    linked = ", ".join(f"{row.name} ({', '.join(row.links)})" for row in facts.libraries)
    reporter.show(
        table,
        f"kernels: {escape(', '.join(facts.kernels) or 'none')}",
        f"libraries of ExecuTorch: {escape(linked or 'none')}",
        f"files: {escape(str(folder))}",
    )
