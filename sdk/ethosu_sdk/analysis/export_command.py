"""`ethosu-sdk export`: the kernels and pool sizes of a program, as settings for other builds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.table import Table

from ethosu_sdk import __version__
from ethosu_sdk.base import filesystem, json_text, plain_text
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.targets import Target
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.firmware_build import memory_fit, program_checks
from ethosu_sdk.firmware_build.program_firmware import requirements
from ethosu_sdk.program import pte
from ethosu_sdk.records import bundle, kinds, provenance, result_files, validation
from ethosu_sdk.records.build import Export, Files, Known, Library, Size, SizeName
from ethosu_sdk.records.bundle import ReadPolicy, read_record
from ethosu_sdk.records.common import Model
from ethosu_sdk.records.run import Run

# ---- steps.export.libraries
# The libraries of ExecuTorch's own build that have the kernels of a program.
#
# Targets and options as in ExecuTorch's CMake files: backends/cortex_m, kernels/quantized, kernels/portable,
# examples/arm/executor_runner and zephyr.


@dataclass(frozen=True)
class _Family:
    """The operators of `namespaces`: the library `registers` makes them known to the runtime, `kernels` computes them
    with what is in `needs`; ExecuTorch builds them if `option` is on."""

    namespaces: tuple[str, ...]
    registers: str
    kernels: str
    needs: tuple[str, ...]
    option: str | None


_FAMILIES = (
    _Family(
        ("cortex_m",), "cortex_m_ops_lib", "cortex_m_kernels", ("cmsis-nn",), "EXECUTORCH_BUILD_CORTEX_M"
    ),
    _Family(
        ("quantized_decomposed",),
        "quantized_ops_lib",
        "quantized_kernels",
        (),
        "EXECUTORCH_BUILD_KERNELS_QUANTIZED",
    ),
    _Family(("aten", "dim_order_ops"), "portable_ops_lib", "portable_kernels", (), None),
)


def libraries_of(kernels: Sequence[str]) -> Iterator[Library]:
    """The libraries that have `kernels`, each with those that it has. Operators of other namespaces are in none."""
    for family in _FAMILIES:
        own = tuple(name for name in kernels if name.partition("::")[0] in family.namespaces)
        if own:
            yield Library(
                name=family.registers,
                links=(family.kernels, *family.needs),
                option=family.option,
                kernels=own,
            )


def library_comments(rows: Sequence[Library], kernels: Sequence[str]) -> Iterator[str]:
    """A line of a comment for each library, and one for operators that no library of ExecuTorch has."""
    for row in rows:
        yield f"# {row.name}, with {', '.join(row.links)}: {', '.join(row.kernels)}"
    known = {name for row in rows for name in row.kernels}
    others = [name for name in kernels if name not in known]
    if others:
        yield f"# in no library of ExecuTorch, so register them yourself: {', '.join(others)}"


# ---- steps.export.sizes
# How large the pools of other builds must be for a program, and how well that is known.

EXACT: Final = "exact"
LEAST: Final = "least"
MOST: Final = "most"
MEASURED: Final = "measured"
SCRATCH: Final = "scratch"
FAST_SCRATCH: Final = "fast_scratch"
PLANNED: Final = "planned"
METHOD: Final = "method_pool"
ET_TEMP: Final = "executorch_temp"
ET_METHOD: Final = "executorch_method"


def pool_sizes(program: pte.Pte, method: str, run: Run | None) -> dict[str, Size]:
    """The sizes of `program` by their names, with what `run` measured. InputError when it is no Ethos-U's program."""
    return {row.name: row for row in (*_by_program(program, method), *_measured(run))}


def _by_program(program: pte.Pte, method: str) -> Iterator[Size]:
    plan = program.plan(method)
    needs = requirements(program.size, [plan], program.target(), None)
    scratch, planned = needs.scratch_bytes, _planned(needs.planned_bytes)
    yield _size(
        SCRATCH, scratch, EXACT, "the largest delegate's, of all its inputs, outputs and feature maps"
    )
    fast = program_checks.fast_scratch_bytes([plan])
    if fast is not None:
        yield _size(
            FAST_SCRATCH, fast, EXACT, "what the command streams write to region 2; no runtime can check it"
        )
    yield _size(PLANNED, planned, EXACT, "ExecuTorch's planned buffers, each begun at a multiple of 16 bytes")
    yield _size(METHOD, needs.method_pool_bytes, MOST, "of the SDK's firmware, beside the planned buffers")
    yield _size(ET_TEMP, scratch, LEAST, "the scratch; kernels on the CPU may take temporary memory too")
    detail = "the planned buffers; ExecuTorch's own structures and the inputs come on top"
    yield _size(ET_METHOD, planned, LEAST, detail)


def _size(name: SizeName, size_bytes: int, known: Known, detail: str) -> Size:
    return Size(name=name, bytes=size_bytes, known=known, detail=detail)


def _planned(sizes: Sequence[int]) -> int:
    """Where the last of buffers of `sizes` ends, of which each begins at a multiple of 16."""
    return sum(map(memory_fit.aligned, sizes[:-1])) + sum(sizes[-1:])


def _measured(run: Run | None) -> Iterator[Size]:
    if run is None:
        return
    used = {row.name: row.used_bytes for row in run.memory.pools}
    names: dict[str, SizeName] = {"method_pool": METHOD}
    detail = "used in a run of the SDK's firmware"
    if run.runtime.name == "executorch":
        names = {"method_pool": ET_METHOD, "temp_pool": ET_TEMP}
        detail = f"used in a run by {run.runtime.version}; another build of ExecuTorch may take more"
    for pool, name in names.items():
        if pool in used:
            yield _size(name, used[pool], MEASURED, detail)


# ---- steps.export.texts
# The files of `export`: text from facts. What is a bound alone stands in them as a comment, and defines nothing;
# but
# for ExecuTorch's temporary memory, of which no program says more than the scratch that it needs at least.


@dataclass(frozen=True)
class ExportFacts:
    """What the files say of a program."""

    model: str
    sha256: str
    target: Target | None
    kernels: Sequence[str]
    libraries: Sequence[Library]
    sizes: Mapping[str, Size]


def _header(facts: ExportFacts) -> Iterator[str]:
    yield f"# {plain_text.line(facts.model)}, SHA-256 {facts.sha256}; by ethosu-sdk {__version__}"


def _defines(facts: ExportFacts, name: str) -> tuple[str, bool]:
    """What is known of the size `name`, on one line, and whether that is a size to define."""
    size = facts.sizes[name]
    # The detail quotes the run's record: a line end in it would end the comment.
    comment = plain_text.line(f"{size.known}: {size.detail}")
    return comment, size.known != LEAST or (name == ET_TEMP and size.bytes > 0)


def _pools(facts: ExportFacts, names: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Definition, value (empty where none is known) and comment of each pool by its name in `names`."""
    for size, definition in names.items():
        if size not in facts.sizes or (size == FAST_SCRATCH and facts.sizes[size].bytes == 0):
            continue
        comment, known = _defines(facts, size)
        value = str(facts.sizes[size].bytes)
        yield definition, value if known else "", comment if known else f"at {comment}: {value} bytes"


def cmake_text(facts: ExportFacts) -> str:
    """Definitions for ExecuTorch's arm_executor_runner, to be read by ``cmake -C``."""
    lines = [*_header(facts), "# cmake -C THIS_FILE -DET_PTE_FILE_PATH=MODEL.pte …", ""]
    if facts.target is not None:
        lines += [
            _cache("ETHOSU_TARGET_NPU_CONFIG", facts.target.name),
            _cache("SYSTEM_CONFIG", facts.target.system_config),
            _cache("MEMORY_MODE", facts.target.memory_mode),
        ]
    lines += library_comments(facts.libraries, facts.kernels)
    lines += [_cache(row.option, "ON") for row in facts.libraries if row.option is not None]
    if facts.kernels:
        lines.append(_cache("EXECUTORCH_SELECT_OPS_LIST", ",".join(facts.kernels)))
    names = {
        ET_METHOD: "ET_ARM_BAREMETAL_METHOD_ALLOCATOR_POOL_SIZE",
        ET_TEMP: "ET_ARM_BAREMETAL_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE",
        FAST_SCRATCH: "ET_ARM_BAREMETAL_FAST_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE",
    }
    for definition, value, comment in _pools(facts, names):
        lines += [f"# {comment}", _cache(definition, value) if value else f"# set({definition} … )"]
    return "\n".join([*lines, ""])


def _cache(name: str, value: str) -> str:
    return f'set({name} "{value}" CACHE STRING "")'


def kconfig_text(facts: ExportFacts) -> str:
    """A fragment for Zephyr's configuration, with the symbols of ExecuTorch's module."""
    lines = [*_header(facts), "CONFIG_EXECUTORCH=y"]
    if facts.target is not None:
        npu = facts.target.name.removeprefix("ethos-").replace("-", "_").upper()
        lines += ["CONFIG_ETHOS_U=y", f"CONFIG_ETHOS_{npu}=y"]
    lines += library_comments(facts.libraries, facts.kernels)
    names = {
        ET_METHOD: "CONFIG_EXECUTORCH_METHOD_ALLOCATOR_POOL_SIZE",
        ET_TEMP: "CONFIG_EXECUTORCH_TEMP_ALLOCATOR_POOL_SIZE",
    }
    for definition, value, comment in _pools(facts, names):
        lines += [f"# {comment}", f"{definition}={value}" if value else f"# {definition}=…"]
    return "\n".join([*lines, ""])


def clayer_text(facts: ExportFacts) -> str:
    """A layer of CMSIS-Toolbox with the definitions that ExecuTorch's runner is compiled with."""
    names = {
        ET_METHOD: "ET_ARM_BAREMETAL_METHOD_ALLOCATOR_POOL_SIZE",
        ET_TEMP: "ET_ARM_BAREMETAL_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE",
        FAST_SCRATCH: "ET_ARM_BAREMETAL_FAST_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE",
    }
    lines = [*_header(facts), "layer:", "  description: pool sizes of ExecuTorch for one program"]
    rows = list(_pools(facts, names))
    if any(value for _, value, _ in rows):
        lines.append("  define:")
    for definition, value, comment in rows:
        lines += [f"    # {comment}", f"    - {definition}: {value}" if value else f"    # - {definition}: …"]
    lines.append("# kernels to select: " + (", ".join(facts.kernels) or "none"))
    lines += library_comments(facts.libraries, facts.kernels)
    return "\n".join([*lines, ""])


# ---- steps.export.export_command
# `ethosu-sdk export`: read the program, know its sizes, write them for other builds.

# They become text of CMake, Kconfig and YAML: nothing else may come through.
_OPERATOR = re.compile(r"[A-Za-z0-9_]+::[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)?")
_SETTING = re.compile(r"[A-Za-z0-9_.-]+")


def export(
    path: Path, run: Path | None, out_dir: Path | None, reading: ReadPolicy, reporter: Reporter
) -> None:
    """Write what other builds must know of the program at `path`, with what the run at `run` measured.

    Raises InputError for a damaged program, for names that no build file takes, and for the run of another program.
    """
    program = pte.read(result_files.require_pte(path))
    kernels = _kernels(program)
    run_file = None if run is None else _run_file(run, reading)
    ran = None if run_file is None else _run(run_file, program, reading)
    facts = ExportFacts(
        model=path.name,
        sha256=program.sha256,
        target=program.target(),
        kernels=kernels,
        libraries=tuple(libraries_of(kernels)),
        sizes=pool_sizes(program, program.plan().name, ran),
    )
    _check_settings(facts)
    folder = result_files.folder_for_pte(path, facts.target, out_dir)
    record = _record(path, program, facts, run_file, reading)
    reading.warn(reporter)
    content = record.to_json()
    validation.check_record(content, "the export's record")
    with filesystem.locked_folder(folder), bundle.writing_folder(folder, "export") as add:
        files = record.files
        for name, text in (
            (files.cmake, cmake_text),
            (files.kconfig, kconfig_text),
            (files.clayer, clayer_text),
        ):
            filesystem.write_bytes(folder / name, text(facts).encode())
        name = kinds.EXPORT.name(path.stem)
        json_text.write_json(folder / name, content)
        add(files.cmake, files.kconfig, files.clayer, name)
    _show(facts, folder, reporter)
    reporter.emit(content)


def _run_file(path: Path, reading: ReadPolicy) -> Path:
    """The record of the run at `path`, a folder or the record itself."""
    reading.check_folder(path)
    if not path.is_dir():
        return path
    bundle.check_listed(path, [kinds.RUN.file])
    return path / kinds.RUN.file


def _run(path: Path, program: pte.Pte, reading: ReadPolicy) -> Run:
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


def _check_settings(facts: ExportFacts) -> None:
    if facts.target is None:
        return
    for value in (facts.target.system_config, facts.target.memory_mode):
        if not _SETTING.fullmatch(value):
            raise InputError(
                f"the program was compiled for {value[:80]!r}, which a build file cannot name",
                "names of Vela's configurations may contain letters, digits, points, dashes and underscores",
            )


def _record(
    path: Path, program: pte.Pte, facts: ExportFacts, run: Path | None, reading: ReadPolicy
) -> Export:
    inputs = result_files.program_entries(path, program)
    inputs += [] if run is None else [{**provenance.file_entry("run", run), **reading.mark(run)}]
    name = path.stem
    return Export(
        status="pass",
        **provenance.origin(inputs, []),
        model=Model(file=path.name, sha256=program.sha256, bytes=program.size, entry=program.plan().name),
        target=provenance.recorded_target(facts.target),
        kernels=tuple(facts.kernels),
        libraries=tuple(facts.libraries),
        sizes=tuple(facts.sizes.values()),
        files=Files(cmake=f"{name}.cmake", kconfig=f"{name}.conf", clayer=f"{name}.clayer.yml"),
        host=provenance.this_host(),
    )


def _show(facts: ExportFacts, folder: Path, reporter: Reporter) -> None:
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
