"""`ethosu-sdk build`: a `.pte` → the bare-metal firmware that runs it, and build.json."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from msgspec import convert
from rich.table import Table

from ethosu_sdk.base import filesystem, tools
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.compile import pricing_system
from ethosu_sdk.firmware_build import board_fit, cmake, memory_fit, program_checks, program_firmware
from ethosu_sdk.firmware_build.program_firmware import BuildOptions, FirmwareBuild
from ethosu_sdk.program import pte
from ethosu_sdk.records import bundle, kinds, provenance, result_files, run_facts, validation
from ethosu_sdk.records.build import Build, DataMemory, Elf, Kernel, Memory, Options, Pool, Section
from ethosu_sdk.records.common import FileDigest, Model
from ethosu_sdk.simulate import program_board
from ethosu_sdk.simulate.program_board import board_for_build


@dataclass(frozen=True)
class Built:
    """A `.pte` that was read, and the firmware that embeds it."""

    program: pte.Pte
    firmware: FirmwareBuild
    content: Build

    @property
    def record(self) -> Record:
        return self.content.to_json()


def build(
    path: Path,
    board: str | None,
    out_dir: Path | None,
    reporter: Reporter,
    *,
    allow_spill: bool,
    vela_config: Path | None,
    data: Sequence[Path],
    data_memory: str | None = None,
) -> Built:
    """Build the firmware for the `.pte` at `path` and write its record.

    `vela_config` is the Vela configuration file that it was compiled with, where that cannot be found. `data` are its
    data files, by default those beside it, and `data_memory` is the memory that they are to lie in.
    """
    path = result_files.require_pte(path)
    program = pte.read(path, data)
    program.check_data()
    program_checks.refuse_kernel_calls(program.plans)
    program_checks.refuse_lost_tables(program.plans)
    folder = result_files.folder_for_pte(path, program.target(), out_dir)
    with filesystem.locked_folder(folder):
        choice = board_for_build(program.npu(), board, program_board.compiled_core_of(path, program))
        options = BuildOptions(
            board=choice.board,
            simulator=choice.simulator or None,
            allow_spill=allow_spill,
            areas=pricing_system.memory_areas(path, program, vela_config),
            methods=program.methods,
            data_memory=data_memory,
            named=board_fit.board_of_program(path, program),
        )
        with (
            bundle.writing_folder(folder, "build") as add,
            memory_fit.advice_added(path, compiled_here=False),
        ):
            built = build_in(path, program, folder, options, reporter, choice.reason)
            add(*files(built.record))
    reporter.show(summary(built, folder))
    reporter.emit(built.record)
    return built


def files(record: Record) -> tuple[str, ...]:
    """The files that a build writes to its folder."""
    return (kinds.BUILD.file, record["elf"]["file"], record["map"]["file"], *program_firmware.WORK_FILES)


def build_in(
    path: Path,
    program: pte.Pte,
    folder: Path,
    options: BuildOptions,
    reporter: Reporter,
    board_reason: str = "",
) -> Built:
    """Build in `folder`, which the caller has locked; `board_reason` is why it is the board of `options`."""
    start = time.monotonic()
    # Should this build fail, an earlier one must not be taken for it.
    (folder / kinds.BUILD.file).unlink(missing_ok=True)
    for name in cmake.PROGRAMS:
        tools.require(name)
    with reporter.stage(f"building the firmware for {escape(path.name)}"):
        needs = replace(
            options,
            fast_scratch_bytes=program_checks.fast_scratch_bytes(program.plans),
            data_files=program.data_files,
        )
        program_firmware.check_fit(program, needs)  # before anything is built
        firmware = program_firmware.build_firmware(path, folder, needs)
    if board_reason:
        firmware = replace(firmware, board_reason=board_reason)
    content = _content(path, program, firmware, options, time.monotonic() - start)
    for note in firmware.spilled:
        reporter.warn(escape(note))
    built = Built(program, firmware, content)
    validation.write_record(folder / kinds.BUILD.file, built.record, "the build result")
    return built


def tool_rows() -> list[Record]:
    """The programs that shape a firmware, as rows of `provenance.tools`."""
    return [provenance.tool_entry(name, tools.probe(name).version) for name in cmake.PROGRAMS]


def _content(
    path: Path, program: pte.Pte, firmware: FirmwareBuild, options: BuildOptions, wall_time_s: float
) -> Build:
    target = provenance.recorded_target(program.target())
    return Build(
        status="pass",
        **provenance.origin(result_files.program_entries(path, program), tool_rows()),
        model=Model(file=path.name, sha256=program.sha256, bytes=program.size, entry=firmware.methods[0]),
        target=target,
        board=firmware.board,
        board_reason=firmware.board_reason,
        build_key=firmware.build_key,
        options=Options(
            inferences=options.inferences,
            allow_spill=options.allow_spill,
            simulator=options.simulator or None,
            methods=firmware.methods if len(program.methods) > 1 else None,
            data_memory=convert(options.data_memory, DataMemory | None),
        ),
        elf=Elf(file=firmware.elf.name, sha256=firmware.elf_sha256, bytes=firmware.elf.stat().st_size),
        map=FileDigest(file=firmware.map.name, sha256=filesystem.sha256_file(firmware.map)),
        kernels=tuple(
            Kernel(operator=row.operator, function=row.function, source=row.source)
            for row in firmware.kernels
        ),
        memory=Memory(
            regions=firmware.regions,
            pools=tuple(
                Pool(
                    name=row.name,
                    used_bytes=row.used_bytes,
                    size_bytes=row.size_bytes,
                    region=row.memory,
                    address=row.address,
                )
                for row in firmware.pools
            ),
        ),
        sections=tuple(
            Section(name=row.name, address=row.address, bytes=row.bytes) for row in firmware.sections
        ),
        notes=firmware.notes,
        unavailable=() if target is not None else (provenance.lacking_npu("/target"),),
        wall_time_s=round(wall_time_s, 3),
        host=provenance.this_host(),
    )


def use(name: str, used_bytes: int, size_bytes: int) -> Record:
    """One row of a record's memory tables."""
    return {"name": name, "used_bytes": used_bytes, "size_bytes": size_bytes}


def summary(built: Built, folder: Path) -> Table:
    """What was built, for people."""
    record = built.content
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_row("firmware", f"{escape(record.elf.file)}, {record.elf.bytes:,} bytes")
    table.add_row("board", f"{record.board}: {escape(record.board_reason)}")
    for line in data_lines(built.program):
        table.add_row("data", escape(line))
    kernels = ", ".join(row.operator for row in record.kernels)
    table.add_row("kernels", escape(kernels) or "none: everything runs on the NPU")
    memories = run_facts.memory_totals(built.firmware.uses)
    title = f"of {built.firmware.uses_of}, without the harness"
    table.add_row("memory", memory_table([asdict(row) for row in memories], title))
    table.add_row("pools", _pool_table(record.memory.pools))
    for note in record.notes:
        table.add_row("note", escape(note))
    table.add_row("files", escape(str(folder)))
    return table


def data_lines(program: pte.Pte) -> list[str]:
    """The data files of the program, and which of them nobody named, for people."""
    return [
        f"{row.path.name}, {row.size:,} bytes{', found beside the program' if row.is_found else ''}"
        for row in program.data_files
    ]


def memory_table(rows: list[Record], title: str) -> Table:
    """Use of memory for people: used, free, size, share."""
    table = Table(title, box=None, pad_edge=False)
    for column in ("used", "free", "of", ""):
        table.add_column(column, justify="right")
    for row in rows:
        used, size = row["used_bytes"], row["size_bytes"]
        if size is None:
            table.add_row(escape(row["name"]), f"{used:,}", "", "not public", "")
            continue
        share = used / size if size else 0.0
        table.add_row(escape(row["name"]), f"{used:,}", f"{size - used:,}", f"{size:,} bytes", f"{share:.0%}")
    return table


def _pool_table(rows: Sequence[Pool]) -> Table:
    """Where each pool lies, for people."""
    table = Table("pool", "region", "address", box=None, pad_edge=False)
    for column in ("used", "of"):
        table.add_column(column, justify="right")
    for row in sorted(rows, key=lambda row: row.address):
        used, size = f"{row.used_bytes:,}", f"{row.size_bytes:,} bytes"
        table.add_row(escape(row.name), row.region, f"{row.address:#010x}", used, size)
    return table
