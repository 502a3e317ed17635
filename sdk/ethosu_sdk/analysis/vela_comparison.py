"""One model by several versions of Vela, for `compare --vela`: one lowering, the same TOSA graphs, a run of each."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import BuildError, InputError, SdkError, SimulationError, UsageError, VerdictError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.targets import Target
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.compile import compile_command, compile_facts, compile_record, vela_versions
from ethosu_sdk.compile.child_process import compile_model
from ethosu_sdk.compile.model_spec import parse_model_spec
from ethosu_sdk.compile.options_beside_program import refuse_options
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.compile.vela_versions import RecompiledProgram
from ethosu_sdk.program import pte
from ethosu_sdk.records import bundle, kinds, provenance, result_files, validation
from ethosu_sdk.records.bundle import read_raw_record
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.run import run_command
from ethosu_sdk.run.options import HOST, RunOptions

# What versions of Vela make of one model is another program.
ALLOWED_DIFFERENCES = ("model", "versions")
_REASON = "compiled from the same TOSA graphs by another version of Vela: compared by the outputs of the runs"


class _Source(NamedTuple):
    """A compiled program, its record, and the TOSA graphs of its delegates."""

    pte: Path
    record: Record
    graphs: Sequence[Path]


class VersionRuns(NamedTuple):
    folders: Sequence[Path]
    failed: Mapping[str, str]  # why some versions have none


def runs_by_version(
    models: Sequence[str], names: str, options: CompileOptions, out_dir: Path, reporter: Reporter
) -> VersionRuns:
    """Compile the only one of `models` with each version of Vela in the list `names`, and run what comes of it on the
    host simulator.

    Raises ToolError for a version that is not in the cache and cannot be installed, BuildError when no version makes
    a program that runs, and what `compile` raises.
    """
    if len(models) != 1:
        example = "ethosu-sdk compare --vela 5.0.0,5.1.0 MODEL"
        raise UsageError(f"--vela takes one model, not {len(models)}", example)
    wanted = vela_versions.parse_versions(names)
    for version in wanted:  # before a model is compiled for nothing
        if not vela_versions.is_cached(version):
            with reporter.stage(f"installing Vela {version} from the package index (the first time only)"):
                vela_versions.python_path(version)
    with _source(models[0], options, reporter) as source:
        folders = {version: filesystem.make_directory(out_dir / f"vela-{version}") for version in wanted}
        found = _recompiled(source, folders, reporter)
    reasons = {row.version: row.reason or _run(source, row, folders[row.version], reporter) for row in found}
    failed = {folders[version].name: reason for version, reason in reasons.items() if reason}
    if len(failed) == len(folders):
        lines = "".join(f"\n  {name}: {reason}" for name, reason in failed.items())
        raise BuildError(f"no version of Vela made a program that runs:{lines}", f"the logs are in {out_dir}")
    return VersionRuns([path for path in folders.values() if path.name not in failed], failed)


@contextlib.contextmanager
def _source(model: str, options: CompileOptions, reporter: Reporter) -> Iterator[_Source]:
    if model.endswith(".pte"):
        path = result_files.require_pte(Path(model))
        refuse_options(path, pte.read(path), options, read=())
        yield _read(path)
        return
    try:
        path = compile_command.compile_model(model, options, None, reporter.for_step(), reuse=True)
    except (SimulationError, VerdictError) as error:  # of the check, when every file was written
        reporter.warn(escape(f"with Vela {vela_versions.own_version()}: {error.message}"))
        name = parse_model_spec(model).name
        folder = result_files.folder_for_model(name, compile_command.target_of(options), None)
        path = folder / f"{name}.pte"
    except (InputError, BuildError) as error:
        # Should it not be Vela's doing, the model cannot be lowered without it either, and that says why.
        with tempfile.TemporaryDirectory(prefix="ethosu-lowered-") as lowered:
            source = _lowered(model, options, Path(lowered), reporter)
            reporter.warn(escape(f"with Vela {vela_versions.own_version()}: {error.message}"))
            yield source
        return
    yield _read(path)


def _lowered(model: str, options: CompileOptions, folder: Path, reporter: Reporter) -> _Source:
    """The program without its delegates' commands, in `folder`."""
    target = compile_command.target_of(options)
    if not isinstance(target, Target):
        message = f"{target.name} has no NPU: Vela compiles nothing for it"
        raise UsageError(message, "give a target with an NPU")
    request = compile_facts.CompileRequest(model, target, folder, options=options, without_vela=True)
    with reporter.stage(f"lowering {escape(model)} without Vela") as step:
        output = compile_model(request, step)
    key = compile_command.compile_key(model, options, target)
    record = compile_record.compile_record(request, output, key, sum(output.timings_s.values()))
    return _Source(output.pte, record, [folder / row.files.tosa for row in output.delegates])


def _read(path: Path) -> _Source:
    """The program at `path` with what its compilation left beside it."""
    file = result_files.compile_record_path(path)
    if not file.is_file():
        raise InputError(
            f"there is no {file.name} beside {path}: the TOSA graphs of the program are not known",
            "give the model itself, or the program in the folder in which `compile` made it",
        )
    record = read_raw_record(file)
    content = kinds.content(record)
    if not isinstance(content, Compilation) or content.model.sha256 != filesystem.sha256_file(path):
        raise InputError(f"{file} describes another program than {path}", "compile the model again")
    if content.board_profile or any(row.role == "vela configuration" for row in content.provenance.inputs):
        raise UsageError(
            "--vela compiles for the configurations that Vela itself has",
            "compile without --system and --vela-config",
        )
    graphs = [path.parent / row.files.tosa for row in content.delegates]
    if not graphs:
        raise InputError(f"{path} delegates nothing, so Vela's version makes no difference")
    return _Source(path, record, graphs)


def _recompiled(source: _Source, folders: Mapping[str, Path], reporter: Reporter) -> list[RecompiledProgram]:
    count = f"{counted(len(source.graphs), 'TOSA graph')} with {counted(len(folders), 'version')} of Vela"
    with contextlib.ExitStack() as stack:
        add = {}
        for version, folder in folders.items():
            stack.enter_context(filesystem.locked_folder(folder))
            add[version] = stack.enter_context(bundle.writing_folder(folder, "compare"))
            for name in (kinds.RUN.file, run_command.OUTPUTS_NAME):
                (folder / name).unlink(missing_ok=True)  # of another program
        with reporter.stage(f"compiling {count}"):
            found = vela_versions.recompile_program(source.pte, source.graphs, folders)
        for row in found:
            names = [vela_versions.RECOMPILE_LOG] if row.reason else _lay(source, row, folders[row.version])
            add[row.version](*names)
    return found


def _run(source: _Source, found: RecompiledProgram, folder: Path, reporter: Reporter) -> str:
    """Run a recompiled program; why it does not run, or nothing."""
    try:
        with reporter.stage(f"running the program of Vela {found.version} on the host simulator"):
            path, options = str(folder / source.pte.name), RunOptions(simulator=HOST)
            run_command.run(path, CompileOptions(), options, folder, Reporter(quiet=True).for_step())
    except SdkError as error:
        reporter.warn(escape(f"the program of Vela {found.version} does not run: {error.message}"))
        return error.message
    return ""


def _lay(source: _Source, found: RecompiledProgram, folder: Path) -> list[str]:
    pte = folder / source.pte.name
    record = _record(source, found, pte)
    path = result_files.compile_record_path(pte)
    validation.write_record(path, record, "the compile result")
    names = [pte.name, path.name, *(name for row in record["delegates"] for name in row["files"].values())]
    examples = result_files.example_io_path(source.pte)
    if examples.is_file():
        filesystem.copy_file(examples, result_files.example_io_path(pte))
        names.append(examples.name)
    return [*names, vela_versions.RECOMPILE_LOG]


def _record(source: _Source, found: RecompiledProgram, pte: Path) -> Record:
    """The compile record of `source`, as it is for another Vela."""
    lines = {
        (row["index"], part["tosa"]["index"]): part["source"]
        for row in source.record["delegates"]
        for part in row["operations"]
        if "tosa" in part and "source" in part
    }
    delegates = [row.to_json() for row in found.delegates]
    for row in delegates:
        for part in row["operations"]:
            place = (row["index"], part.get("tosa", {}).get("index", -1))
            part.update({"source": lines[place]} if place in lines else {})
    old, vela = source.record, vela_versions.VELA_PACKAGE
    rows = old["provenance"]["tools"]
    tools = [{**row, "version": found.version} if row["name"] == vela else row for row in rows]
    key = f"{old['compile_key']} {vela} {found.version}"
    record = {
        **old,
        "status": "pass",
        "created": provenance.timestamp(),
        "provenance": {**old["provenance"], "tools": tools},
        "compile_key": filesystem.sha256_bytes(key.encode()),
        "model": {**old["model"], "sha256": filesystem.sha256_file(pte), "bytes": pte.stat().st_size},
        "delegates": delegates,
        "check": {"status": "left-out", "reason": _REASON},
        "files": {**old["files"], "log": vela_versions.RECOMPILE_LOG},
        "unavailable": [],
    }
    return {key: value for key, value in record.items() if key not in ("accuracy", "check_time_s")}
