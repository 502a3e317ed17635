"""`ethosu-sdk compile`: a PyTorch model → `.pte`, example inputs and outputs, and compile.json."""

from __future__ import annotations

import json
import time
from pathlib import Path

from ethosu_sdk import aot
from ethosu_sdk.aot.model.spec import check_file, parse_model_spec
from ethosu_sdk.boards import profiles
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.errors import SdkError, VerdictError
from ethosu_sdk.files import hashing, locks
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.results import bundle, locations
from ethosu_sdk.results.reading import read
from ethosu_sdk.steps.compile import (
    chain_record,
    check,
    check_record,
    compile_record,
    compile_tables,
    methods_record,
)
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.evaluate import evaluate_command, evaluate_record
from ethosu_sdk.steps.shared import compilers, systems
from ethosu_sdk.tables import compile_rows
from ethosu_sdk.targets import AnyTarget, Core, Target


def compile_model(
    model: str,
    options: CompileOptions,
    out_dir: Path | None,
    reporter: Reporter,
    *,
    reuse: bool = False,
    compiler: aot.Compiler = aot.compile_model,
) -> Path:
    """Compile `model` and write its record; the path of the `.pte`.

    With `reuse`, the program is for a command that goes on with it: a result that is there and up to date is left
    alone, and what stays on the CPU is told in lines instead of a table. A Python file is always compiled anew,
    because what it imports is not part of the key. `compiler` makes the program.

    Raises VerdictError, after everything was written, when full delegation is required and not reached, the program
    does not compute what the model does, or a threshold of the evaluation is missed; InputError when it does not run.
    """
    target = target_of(options)
    if isinstance(target, Target):
        systems.for_options(target, options)  # which refuses a damaged one
    spec = parse_model_spec(model)
    check_file(spec, trust=options.trust)  # before a folder is made for it
    folder = locations.for_model(spec.name, target, out_dir)
    with locks.locked(folder):
        key = compile_key(model, options, target)
        pte = folder / f"{spec.name}.pte"
        if reuse and spec.kind != "python" and _is_current(pte, key, options):
            reporter.note(f"{escape(pte.name)} is up to date")
            record = read(locations.compile_record(pte))
            bundle.keep(folder, "compile", files(pte, record))
        else:
            with bundle.published(folder, "compile", _earlier(pte)) as add:
                record = _compile(model, options, target, folder, key, reporter, compiler)
                add(*files(pte, record))
            if reuse:
                for line in compile_rows.cpu_lines(kinds.COMPILE.convert(record)):
                    reporter.note(escape(line))
                for words, part in methods_record.each(record):
                    reporter.note(f"{words}check: {escape(check_record.line(part))}")
                    if "chain" in part:
                        reporter.note(f"{words}compared: {escape(chain_record.of(part))}")
            else:
                reporter.show(*compile_tables.tables(record, folder))
            reporter.emit(record)
    if options.require_full_delegation:
        _check_delegation(kinds.COMPILE.convert(record), recorded=reporter.as_json)
    for words, part in methods_record.each(record):
        check_record.raise_if_failed(part, words, recorded=reporter.as_json)
        chain_record.raise_if_low(part, words, recorded=reporter.as_json)
    evaluate_record.check(record, recorded=reporter.as_json)
    return pte


def target_of(options: CompileOptions) -> AnyTarget:
    """The target that `options` ask for. UsageError when there is none, InputError for a file that is none."""
    return aot.resolve_target(options.target, options.system_config, options.memory_mode, options)


def files(pte: Path, record: Record) -> list[str]:
    """What a compilation leaves in its folder."""
    others, steps = record.get("other_methods", ()), record.get("sequence", {})
    delegates = (row for part in (record, *others) for row in part["delegates"])
    return [
        locations.compile_record(pte).name,
        *record["files"].values(),
        *(row["io"] for row in others),
        *([steps["file"]] if "file" in steps else []),
        *(name for row in delegates for name in row["files"].values()),
    ]


def _earlier(pte: Path) -> list[str]:
    """What an earlier compilation of the model left."""
    try:
        return files(pte, read(locations.compile_record(pte)))
    except SdkError:
        return [pte.name, locations.compile_record(pte).name]


def _check_delegation(record: Compilation, *, recorded: bool) -> None:
    """VerdictError when an operator stays on the CPU; `recorded` says that the record is on stdout."""
    others = (row for part in record.other_methods or () for row in part.cpu_operators)
    rows = [*record.cpu_operators, *others]
    if not rows:
        return
    hint = "compile.json lists where each comes from, under cpu_operators"
    if all(row.boundary for row in rows) and record.options.io == "float":
        hint = "only the conversions from and to float are left: --io int8 removes those of an int8 model"
    lines = [f"  {line}" for line in compile_rows.cpu_lines(record)]
    raise VerdictError(
        "some operators stay on the CPU, which --require-full-delegation forbids:\n" + "\n".join(lines),
        hint,
        recorded=recorded,
    )


def _compile(
    model: str,
    options: CompileOptions,
    target: AnyTarget,
    folder: Path,
    key: str,
    reporter: Reporter,
    compiler: aot.Compiler,
) -> Record:
    start = time.monotonic()
    with (
        evaluate_command.prepared(options.evaluate, folder, reporter) as evaluation,
        check.prepared(options.check, folder, reporter, options.min_sqnr_db) as checking,
    ):
        request = aot.CompileRequest(
            model,
            target if isinstance(target, Target) else None,
            folder,
            core=target.name if isinstance(target, Core) else None,
            options=options,
            evaluation=None if evaluation is None else evaluation.request,
            check_folder=None if checking is None else checking.folder,
            layers=options.layers,
            lines=options.lines,
        )
        with reporter.stage(f"compiling {escape(model)} for {target.name}") as step:
            output = compiler(request, step)
        record = compile_record.make(request, output, key, time.monotonic() - start)
        record = (
            check_record.left_out(record) if checking is None else checking.extend(record, request, output)
        )
        record["wall_time_s"] = round(time.monotonic() - start, 3)
        path = locations.compile_record(output.pte)
        compile_record.write(path, record)
        systems.keep(output.pte, options)
        if evaluation is not None and not check_record.does_not_run(record):
            record = evaluation.extend(record, output)
            record["wall_time_s"] = round(time.monotonic() - start, 3)
            compile_record.write(path, record)
    for warning in record["warnings"]:
        reporter.warn(escape(warning))
    return record


def compile_key(model: str, options: CompileOptions, target: AnyTarget) -> str:
    """SHA-256 over all that shapes a compilation and can be seen beforehand."""
    spec = parse_model_spec(model)
    files = [("model", spec.path), ("inputs", options.inputs), ("vela_config", options.vela_config)]
    files += [("calibration", path) for path in options.calibration]
    basis = {
        **compilers.identity(),
        "model": model if spec.path is None else spec.entry,
        "files": [(role, hashing.sha256_file(path)) for role, path in files if path is not None],
        "target": [target.name, target.system_config, target.memory_mode]
        if isinstance(target, Target)
        else [target.name],
        "options": options.shape(),
        **({"lines": options.lines} if options.lines else {}),
        "system": None if options.system is None else profiles.find(options.system).sha256,
    }
    return hashing.sha256_bytes(json.dumps(basis, sort_keys=True).encode())


def _is_current(pte: Path, key: str, options: CompileOptions) -> bool:
    """Whether `pte` and its record are there, whole, made from what `key` stands for, and checked if it must be."""
    try:
        record = read(locations.compile_record(pte))
        return (
            record["compile_key"] == key
            and not (options.check and record["check"]["status"] == check_record.LEFT_OUT)
            and record["model"]["sha256"] == hashing.sha256_file(pte)
            and locations.example_io(pte).is_file()
            and (not options.etrecord or (pte.parent / record["files"].get("etrecord", ".")).is_file())
        )
    except SdkError:
        return False
