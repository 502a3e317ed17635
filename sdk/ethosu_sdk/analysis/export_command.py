"""`ethosu-sdk export`: the kernels and pool sizes of a program, as settings for other builds.

What is a bound alone stands in the files as a comment, and defines nothing; but for ExecuTorch's temporary memory, of
which no program says more than the scratch that it needs at least.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from msgspec import Struct
from msgspec.structs import replace
from rich.table import Table

from ethosu_sdk import __version__
from ethosu_sdk.base import filesystem, json_text, plain_text, tools
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.targets import Target
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.firmware_build import memory_fit, program_checks
from ethosu_sdk.firmware_build.program_firmware import requirements
from ethosu_sdk.program import pte
from ethosu_sdk.records import bundle, kinds, provenance, result_files, validation
from ethosu_sdk.records.build import Application, Export, Files, Known, Library, Size, SizeName, System
from ethosu_sdk.records.bundle import ReadPolicy, read_record
from ethosu_sdk.records.common import Model
from ethosu_sdk.records.run import Run

# ExecuTorch's targets and options, as in its CMake files: backends/cortex_m, kernels/quantized, kernels/portable,
# examples/arm/executor_runner and zephyr. Namespaces of operators → the library that makes them known to the
# runtime, what computes them, and the option without which ExecuTorch does not build these.
_LIBRARIES: tuple[tuple[tuple[str, ...], str, tuple[str, ...], str | None], ...] = (
    (("cortex_m",), "cortex_m_ops_lib", ("cortex_m_kernels", "cmsis-nn"), "EXECUTORCH_BUILD_CORTEX_M"),
    (
        ("quantized_decomposed",),
        "quantized_ops_lib",
        ("quantized_kernels",),
        "EXECUTORCH_BUILD_KERNELS_QUANTIZED",
    ),
    (("aten", "dim_order_ops"), "portable_ops_lib", ("portable_kernels",), None),
)
RUNNER_POOLS: Mapping[SizeName, str] = {  # of ExecuTorch's arm_executor_runner
    "executorch_method": "ET_ARM_BAREMETAL_METHOD_ALLOCATOR_POOL_SIZE",
    "executorch_temp": "ET_ARM_BAREMETAL_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE",
    "fast_scratch": "ET_ARM_BAREMETAL_FAST_SCRATCH_TEMP_ALLOCATOR_POOL_SIZE",
}
_ZEPHYR_POOLS: Mapping[SizeName, str] = {
    "executorch_method": "CONFIG_EXECUTORCH_METHOD_ALLOCATOR_POOL_SIZE",
    "executorch_temp": "CONFIG_EXECUTORCH_TEMP_ALLOCATOR_POOL_SIZE",
}

# What is known of each size by the program alone.
_DETAILS: Mapping[SizeName, tuple[Known, str]] = {
    "scratch": ("exact", "the largest delegate's, of all its inputs, outputs and feature maps"),
    "fast_scratch": ("exact", "what the command streams write to region 2; no runtime can check it"),
    "planned": ("exact", "ExecuTorch's planned buffers, each begun at a multiple of 16 bytes"),
    "method_pool": ("most", "of the SDK's firmware, beside the planned buffers"),
    "executorch_temp": ("least", "the scratch; kernels on the CPU may take temporary memory too"),
    "executorch_method": (
        "least",
        "the planned buffers; ExecuTorch's own structures and the inputs come on top",
    ),
}

# They become text of CMake, Kconfig and YAML: nothing else may come through.
_OPERATOR = re.compile(r"[A-Za-z0-9_]+::[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)?")
_SETTING = re.compile(r"[A-Za-z0-9_.-]+")


def export(
    path: Path,
    run: Path | None,
    out_dir: Path | None,
    reading: ReadPolicy,
    reporter: Reporter,
    system: str | None = None,
) -> None:
    """Write what other builds must know of the program at `path`, with what the run at `run` measured; with `system`,
    a complete application for it too.

    Raises InputError for a damaged program, for names that no build file takes, and for the run of another program.
    """
    path = result_files.require_pte(path)
    program = pte.read(path)
    kernels, target = _kernels(program), program.target()
    run_file = run
    if run is not None:
        reading.check_folder(run)
        if run.is_dir():
            bundle.check_listed(run, [kinds.RUN.file])
            run_file = run / kinds.RUN.file
    ran = None if run_file is None else _run(run_file, program, reading)
    facts = ExportFacts(
        model=path.name,
        sha256=program.sha256,
        target=target,
        kernels=kernels,
        libraries=tuple(libraries_of(kernels)),
        sizes=pool_sizes(program, program.plan().name, ran),
    )
    _check_settings(target)
    made = None if system is None else _application(system, path, program, facts, reporter)
    folder = result_files.folder_for_pte(path, facts.target, out_dir)
    record = _record(path, program, facts, run_file, reading)
    if made is not None:
        record = replace(record, application=made.part)
    reading.warn(reporter)
    content = record.to_json()
    validation.check_record(content, "the export's record")
    with filesystem.locked_folder(folder), bundle.writing_folder(folder, "export") as add:
        files, name = record.files, kinds.EXPORT.name(path.stem)
        filesystem.write_bytes(folder / files.cmake, cmake_text(facts).encode())
        filesystem.write_bytes(folder / files.kconfig, kconfig_text(facts).encode())
        filesystem.write_bytes(folder / files.clayer, clayer_text(facts).encode())
        json_text.write_json(folder / name, content)
        add(files.cmake, files.kconfig, files.clayer, name)
        for place, data in () if made is None else made.files.items():
            filesystem.make_directory((folder / place).parent)
            filesystem.write_bytes(folder / place, data)
            add(place)
    _show(facts, folder, reporter)
    if made is not None:
        reporter.show(
            f"application: {escape(str(folder / made.part.folder))} (README.md says how to build it)"
        )
    reporter.emit(content)


def _check_settings(target: Target | None) -> None:
    for value in () if target is None else (target.system_config, target.memory_mode):
        if not _SETTING.fullmatch(value):
            raise InputError(
                f"the program was compiled for {value[:80]!r}, which a build file cannot name",
                "names of Vela's configurations may contain letters, digits, points, dashes and underscores",
            )


class _Made(Struct, frozen=True):
    """An application: its part of the record, and its files by their path in the folder of results."""

    part: Application
    files: Mapping[str, bytes]


def _application(system: str, path: Path, program: pte.Pte, facts: ExportFacts, reporter: Reporter) -> _Made:
    from ethosu_sdk.analysis import application

    plan = program.plan()
    exported = application.ProgramToExport(path, program, plan, facts.target, facts.libraries, facts.kernels)
    application.check(exported)
    image, samples = application.encoded_inputs(exported)
    with reporter.stage("building the application for this machine (the first time only)"):
        host = application.HostRun(exported, image, samples)
    with reporter.stage("running the application on this machine"):
        sizes = host.measured(facts.sizes["planned"].bytes)
    part = Application(
        system=cast(System, system),
        folder=f"{path.stem}-{system}",
        board=exported.board.name,
        executorch=tools.package_version("executorch") or "unknown",
        planned_bytes=sizes.planned,
        method_pool_bytes=sizes.method_pool,
        temp_pool_bytes=sizes.temp_pool,
    )
    found = application.files_of(system, exported, image, sizes)
    return _Made(part, {f"{part.folder}/{name}": content for name, content in found.items()})


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


def libraries_of(kernels: Sequence[str]) -> Iterator[Library]:
    """The libraries that have `kernels`, each with those that it has. Operators of other namespaces are in none."""
    for namespaces, name, links, option in _LIBRARIES:
        own = tuple(kernel for kernel in kernels if kernel.partition("::")[0] in namespaces)
        if own:
            yield Library(name=name, links=links, option=option, kernels=own)


def pool_sizes(program: pte.Pte, method: str, run: Run | None) -> dict[SizeName, Size]:
    """The sizes of `program` by their names, with what `run` measured. InputError when it is no Ethos-U's program."""
    return {row.name: row for row in (*_by_program(program, method), *_measured(run))}


def _by_program(program: pte.Pte, method: str) -> Iterator[Size]:
    plan = program.plan(method)
    needs = requirements(program.size, [plan], None, None)
    scratch, buffers = needs.scratch_bytes, needs.planned_bytes
    planned = sum(map(memory_fit.aligned, buffers[:-1])) + sum(buffers[-1:])
    fast, pool = program_checks.fast_scratch_bytes([plan]), needs.method_pool_bytes
    sizes: dict[SizeName, int | None] = {"scratch": scratch, "fast_scratch": fast, "planned": planned}
    sizes |= {"method_pool": pool, "executorch_temp": scratch, "executorch_method": planned}
    for name, size in sizes.items():
        if size is not None:
            known, detail = _DETAILS[name]
            yield Size(name=name, bytes=size, known=known, detail=detail)


def _measured(run: Run | None) -> Iterator[Size]:
    if run is None:
        return
    used = {row.name: row.used_bytes for row in run.memory.pools}
    names: dict[str, SizeName] = {"method_pool": "method_pool"}
    detail = "used in a run of the SDK's firmware"
    if run.runtime.name == "executorch":
        names = {"method_pool": "executorch_method", "temp_pool": "executorch_temp"}
        detail = f"used in a run by {run.runtime.version}; another build of ExecuTorch may take more"
    for pool, name in names.items():
        if pool in used:
            yield Size(name=name, bytes=used[pool], known="measured", detail=detail)


@dataclass(frozen=True)
class ExportFacts:
    model: str
    sha256: str
    target: Target | None
    kernels: Sequence[str]
    libraries: Sequence[Library]
    sizes: Mapping[SizeName, Size]


def cmake_text(facts: ExportFacts) -> str:
    """Definitions for ExecuTorch's arm_executor_runner, to be read by ``cmake -C``."""
    lines = [_header(facts), "# cmake -C THIS_FILE -DET_PTE_FILE_PATH=MODEL.pte …", ""]
    if facts.target is not None:
        lines += [
            _cache("ETHOSU_TARGET_NPU_CONFIG", facts.target.name),
            _cache("SYSTEM_CONFIG", facts.target.system_config),
            _cache("MEMORY_MODE", facts.target.memory_mode),
        ]
    lines += _library_comments(facts)
    lines += [_cache(row.option, "ON") for row in facts.libraries if row.option is not None]
    if facts.kernels:
        lines.append(_cache("EXECUTORCH_SELECT_OPS_LIST", ",".join(facts.kernels)))
    for definition, value, comment in _pools(facts, RUNNER_POOLS):
        lines += [f"# {comment}", _cache(definition, value) if value else f"# set({definition} … )"]
    return "\n".join([*lines, ""])


def _cache(name: str, value: str) -> str:
    return f'set({name} "{value}" CACHE STRING "")'


def kconfig_text(facts: ExportFacts) -> str:
    """A fragment for Zephyr's configuration: symbols of ExecuTorch's module and, for pools, of its samples."""
    lines = [_header(facts), "CONFIG_EXECUTORCH=y"]
    if facts.target is not None:
        npu = facts.target.name.removeprefix("ethos-").replace("-", "_").upper()
        lines += ["CONFIG_ETHOS_U=y", f"CONFIG_ETHOS_{npu}=y"]
    lines += _library_comments(facts)
    for definition, value, comment in _pools(facts, _ZEPHYR_POOLS):
        lines += [f"# {comment}", f"{definition}={value}" if value else f"# {definition}=…"]
    return "\n".join([*lines, ""])


def clayer_text(facts: ExportFacts) -> str:
    """A layer of CMSIS-Toolbox with the definitions that ExecuTorch's runner is compiled with."""
    lines = [_header(facts), "layer:", "  description: pool sizes of ExecuTorch for one program"]
    rows = list(_pools(facts, RUNNER_POOLS))
    if any(value for _, value, _ in rows):
        lines.append("  define:")
    for definition, value, comment in rows:
        lines += [f"    # {comment}", f"    - {definition}: {value}" if value else f"    # - {definition}: …"]
    lines.append("# kernels to select: " + (", ".join(facts.kernels) or "none"))
    lines += _library_comments(facts)
    return "\n".join([*lines, ""])


def _header(facts: ExportFacts) -> str:
    return f"# {plain_text.line(facts.model)}, SHA-256 {facts.sha256}; by ethosu-sdk {__version__}"


def _library_comments(facts: ExportFacts) -> Iterator[str]:
    for row in facts.libraries:
        yield f"# {row.name}, with {', '.join(row.links)}: {', '.join(row.kernels)}"
    known = {name for row in facts.libraries for name in row.kernels}
    others = [name for name in facts.kernels if name not in known]
    if others:
        yield f"# in no library of ExecuTorch, so register them yourself: {', '.join(others)}"


def _pools(facts: ExportFacts, names: Mapping[SizeName, str]) -> Iterator[tuple[str, str, str]]:
    """Definition, value (empty where none is known) and comment of each pool by its name in `names`."""
    for name, definition in names.items():
        size = facts.sizes.get(name)
        if size is None or (name == "fast_scratch" and size.bytes == 0):
            continue
        # The detail quotes the run's record: a line end in it would end the comment.
        comment = plain_text.line(f"{size.known}: {size.detail}")
        if size.known != "least" or (name == "executorch_temp" and size.bytes > 0):
            yield definition, str(size.bytes), comment
        else:
            yield definition, "", f"at {comment}: {size.bytes} bytes"
