"""`ethosu-sdk compile`: a PyTorch model → `.pte`, example inputs and outputs, compile.json, and words on a
terminal."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.base import board_profiles, filesystem
from ethosu_sdk.base.errors import BuildError, SdkError, UsageError, VerdictError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.targets import AnyTarget, Core, Target
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.compile import (
    check_record,
    child_process,
    compile_facts,
    compile_record,
    model_reads,
    pricing_system,
    program_check,
    zoo,
)
from ethosu_sdk.compile.evaluation import prepared_evaluation, raise_if_inaccurate
from ethosu_sdk.compile.front_ends.model_spec import ModelSpec, check_model_file, parse_model_spec
from ethosu_sdk.compile.program_options import CORTEX_M, CompileOptions
from ethosu_sdk.compile.vela_config import resolve_target
from ethosu_sdk.records import bundle, common, compile_words, kinds, result_files, validation
from ethosu_sdk.records.bundle import read_raw_record
from ethosu_sdk.records.compile import Compilation, CpuOperator, Delegate

_AREAS = (
    ("sram", "SRAM"),
    ("dram", "DRAM"),
    ("on_chip_flash", "on-chip flash"),
    ("off_chip_flash", "off-chip flash"),
)


def compile_model(
    model: str,
    options: CompileOptions,
    out_dir: Path | None,
    reporter: Reporter,
    *,
    reuse: bool = False,
    compiler: child_process.Compiler = child_process.compile_model,
    check_fit: Callable[[Path], None] | None = None,
) -> Path:
    """Compile `model` and write its record; the path of the `.pte`. With `reuse`, the program is for a command that
    goes on with it: a result that is there and up to date is left alone, and what stays on the CPU is told in lines
    instead of a table. `compiler` makes the program. `check_fit` refuses one that has no room where it is to run:
    right after it was made, before it is executed, and then its record says that it was not checked. Raises
    VerdictError, after everything was written, when full delegation is required and not reached, the program does not
    compute what the model does, or a threshold of the evaluation is missed; InputError when it does not run."""
    target = target_of(options)
    if isinstance(target, Target):
        pricing_system.system_for_options(target, options)  # which refuses a damaged one
    spec = parse_model_spec(model)
    check_model_file(spec, trust=options.trust)  # before a folder is made for it
    folder = output_folder(spec, target, options, out_dir)
    with filesystem.locked_folder(folder):
        key = compile_key(model, options, target)
        pte = folder / f"{spec.name}.pte"
        made = _current_record(spec, pte, key, options, reporter) if reuse else None
        refusal = None if made is None else _refusal(check_fit, pte)
        if refusal is not None:
            raise refusal
        if made is not None and not (options.check and made["check"]["status"] == check_record.LEFT_OUT):
            reporter.detail(f"{escape(pte.name)} is up to date")
            record = made
            bundle.keep(folder, "compile", compiled_files(pte, record))
        else:
            model_reads.forget_reads(pte)
            with bundle.writing_folder(folder, "compile", _earlier(pte)) as add:
                record, refusal = _compile(model, options, target, folder, key, reporter, compiler, check_fit)
                add(*compiled_files(pte, record))
            if refusal is not None:
                raise refusal
            if reuse:
                _note(record, reporter)
            else:
                reporter.show(*compile_tables(record, folder))
            reporter.emit(record)
    if options.require_full_delegation:
        _check_delegation(kinds.COMPILE.convert(record), recorded=reporter.as_json)
    for words, part in check_record.each_method(record):
        check_record.raise_if_failed(part, words, recorded=reporter.as_json)
        check_record.raise_if_low(part, words, recorded=reporter.as_json)
    raise_if_inaccurate(record, recorded=reporter.as_json)
    return pte


def _note(record: Record, reporter: Reporter) -> None:
    """What stays on the CPU, and what was compared, in lines."""
    for line in compile_words.cpu_lines(kinds.COMPILE.convert(record)):
        reporter.detail(escape(line))
    for words, part in check_record.each_method(record):
        reporter.detail(f"{words}check: {escape(check_record.check_line(part))}")
        if "chain" in part:
            reporter.detail(f"{words}compared: {escape(check_record.chain_words(part))}")


def target_of(options: CompileOptions) -> AnyTarget:
    """The target that `options` ask for. UsageError when there is none, InputError for a file that is none."""
    return resolve_target(options.target, options.system_config, options.memory_mode, options)


def program_path(model: str, options: CompileOptions, out_dir: Path | None) -> Path:
    """Where :func:`compile_model` has the program of `model`."""
    spec = parse_model_spec(model)
    return output_place(spec, target_of(options), options, out_dir) / f"{spec.name}.pte"


def output_folder(spec: ModelSpec, target: AnyTarget, options: CompileOptions, chosen: Path | None) -> Path:
    """The folder for the program, created: the `chosen` one, or one for each program that options make of a model."""
    return filesystem.make_directory(output_place(spec, target, options, chosen))


def output_place(spec: ModelSpec, target: AnyTarget, options: CompileOptions, chosen: Path | None) -> Path:
    """Where :func:`output_folder` has it."""
    name = spec.name if spec.path is None or spec.entry is None else f"{spec.name}-{spec.entry}"
    quantize = "int8" if spec.path is not None else zoo.entry(str(spec.entry)).quantize
    given: list[str | None] = [
        None if options.system is None else board_profiles.find_profile(options.system).name,
        None if options.vela_config is None else options.vela_config.stem,
        *_unusual_names(target, options),
        None if options.quantize == quantize else options.quantize,
        "per-tensor" if options.quantize_per == "tensor" else None,
        *(f"calibrated-{path.stem}".removesuffix("-calibration") for path in options.calibration),
        f"{options.io}-io" if options.io != "float" else None,
        None if options.delegate else "no-delegate",
        options.fallback if options.fallback == CORTEX_M else None,
        "as-written" if options.as_written else None,
        *options.vela_flags,
    ]
    words = (re.sub(r"[^A-Za-z0-9_.-]+", "_", word).strip("-") for word in given if word)
    return result_files.place_for_model(name, target, chosen, tuple(words))


def _unusual_names(target: AnyTarget, options: CompileOptions) -> Iterator[str]:
    """The system configuration and the memory mode that were asked for, if they are not what goes without saying."""
    if isinstance(target, Target):
        for asked, system in ((options.system_config, None), (options.memory_mode, target.system_config)):
            with contextlib.suppress(UsageError):  # a file with several has no default
                usual = resolve_target(target.name, system, None, options)
                if isinstance(usual, Target) and asked in (usual.memory_mode, usual.system_config):
                    continue
            if asked is not None:
                yield asked


def compiled_files(pte: Path, record: Record) -> list[str]:
    others, steps = record.get("other_methods", ()), record.get("sequence", {})
    delegates = (row for part in (record, *others) for row in part["delegates"])
    return [
        result_files.compile_record_path(pte).name,
        *record["files"].values(),
        *(row["io"] for row in others),
        *([steps["file"]] if "file" in steps else []),
        *(name for row in delegates for name in row["files"].values()),
    ]


def _earlier(pte: Path) -> list[str]:
    try:
        return compiled_files(pte, read_raw_record(result_files.compile_record_path(pte)))
    except SdkError:
        return [pte.name, result_files.compile_record_path(pte).name]


def _check_delegation(record: Compilation, *, recorded: bool) -> None:
    others = (row for part in record.other_methods or () for row in part.cpu_operators)
    rows = [*record.cpu_operators, *others]
    if not rows:
        return
    hint = "compile.json lists where each comes from, under cpu_operators"
    if all(row.boundary for row in rows) and record.options.io == "float":
        hint = "only the conversions from and to float are left: --io int8 removes those of an int8 model"
    lines = [f"  {line}" for line in compile_words.cpu_lines(record)]
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
    compiler: child_process.Compiler,
    check_fit: Callable[[Path], None] | None,
) -> tuple[Record, BuildError | None]:
    """The record that was written, and why the program is refused all the same."""
    start = time.monotonic()
    with (
        prepared_evaluation(options.evaluate, folder, reporter) as evaluation,
        program_check.prepared_check(options.check, folder, reporter, options.min_sqnr_db) as checking,
    ):
        request = compile_facts.CompileRequest(
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
        record = compile_record.compile_record(request, output, key, time.monotonic() - start)
        refusal = _refusal(check_fit, output.pte)
        if refusal is not None:
            record = check_record.check_left_out(record, "it does not fit the board")
        elif checking is None:
            record = check_record.check_left_out(record)
        else:
            record = checking.extend(record, request, output)
        record["wall_time_s"] = round(time.monotonic() - start, 3)
        path = result_files.compile_record_path(output.pte)
        validation.write_record(path, record, "the compile result")
        if output.reads is not None:
            model_reads.write_reads(output.pte, output.pte_sha256, output.reads)
        pricing_system.keep_vela_config(output.pte, options)
        if evaluation is not None and refusal is None and not check_record.does_not_run(record):
            record = evaluation.extend(record, output)
            record["wall_time_s"] = round(time.monotonic() - start, 3)
            validation.write_record(path, record, "the compile result")
    for warning in record["warnings"]:
        reporter.warn(escape(warning))
    return record, refusal


def _refusal(check_fit: Callable[[Path], None] | None, pte: Path) -> BuildError | None:
    """Why the program at `pte` is refused; files are written and listed before that is raised."""
    try:
        if check_fit is not None:
            check_fit(pte)
    except BuildError as error:
        return error
    return None


def compile_key(model: str, options: CompileOptions, target: AnyTarget) -> str:
    """SHA-256 over all that shapes a compilation and can be seen beforehand."""
    spec = parse_model_spec(model)
    files = [("model", spec.path), ("inputs", options.inputs), ("vela_config", options.vela_config)]
    files += [("calibration", path) for path in options.calibration]
    basis = {
        **child_process.compiler_identity(),
        "model": model if spec.path is None else spec.entry,
        "files": [(role, filesystem.sha256_file(path)) for role, path in files if path is not None],
        "target": [target.name, target.system_config, target.memory_mode]
        if isinstance(target, Target)
        else [target.name],
        "options": options.shape(),
        **({"lines": options.lines} if options.lines else {}),
        "system": None if options.system is None else board_profiles.find_profile(options.system).sha256,
    }
    return filesystem.sha256_bytes(json.dumps(basis, sort_keys=True).encode())


def _current_record(
    spec: ModelSpec, pte: Path, key: str, options: CompileOptions, reporter: Reporter
) -> Record | None:
    """The record of `pte`, if both are whole and made from what `key` stands for and the model's file reads."""
    try:
        record = read_raw_record(result_files.compile_record_path(pte))
        is_current = (
            record["compile_key"] == key
            and record["model"]["sha256"] == filesystem.sha256_file(pte)
            and result_files.example_io_path(pte).is_file()
            and (not options.etrecord or (pte.parent / record["files"].get("etrecord", ".")).is_file())
        )
    except SdkError:
        return None
    return record if is_current and _reads_the_same(spec, pte, record["model"]["sha256"], reporter) else None


def _reads_the_same(spec: ModelSpec, pte: Path, sha256: str, reporter: Reporter) -> bool:
    """Whether the file of a model would find what it found when the current `pte` was made."""
    if spec.kind not in ("python", "onnx") or spec.path is None:
        return True
    reads = model_reads.read_reads(pte, sha256)
    reason = "" if reads is None else model_reads.difference(reads, spec.path)
    if reason:
        reporter.note(f"{escape(spec.path.name)} is compiled again: {escape(reason)}")
    return reads is not None and not reason


def compile_tables(record: Record, folder: Path) -> list[RenderableType]:
    """The summary, what stays on the CPU, Vela's estimates and the accuracy: each a table, empty ones left out."""
    content = kinds.COMPILE.convert(record)
    parts: list[RenderableType] = [_summary(record, content, folder)]
    if content.cpu_operators:
        parts += ["", _cpu_table(content.cpu_operators)]
    if content.delegates:
        parts += ["", _estimates_table(content.delegates)]
    return parts + compile_words.accuracy_tables(content)


def _summary(record: Record, content: Compilation, folder: Path) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    model = content.model
    for name, text in (
        ("program", f"{model.file}, {model.bytes:,} bytes"),
        ("target", content.target_words),
        *([("board", content.board_profile.name)] if content.board_profile else []),
        ("quantised", compile_words.quantised_words(content)),
        ("delegates", str(len(content.delegates))),
        ("on the CPU", compile_words.cpu_words(content)),
        *([("rewritten", compile_words.rewrite_words(content.rewrites))] if content.rewrites else []),
        *([("refined", compile_words.refinement_words(content.refinements))] if content.refinements else []),
        *([("layout", layout)] if (layout := compile_words.layout_words(content)) else []),
        *([("state", compile_words.state_words(content.state))] if content.state else []),
        ("compared", check_record.chain_words(record) or "nothing"),
        ("check", check_record.check_line(record)),
        ("files", str(folder)),
    ):
        table.add_row(name, escape(text))
    return table


def _cpu_table(rows: Sequence[CpuOperator]) -> Table:
    """What the model computes there comes first, with its places; mere conversions are counted below."""
    table = Table(title="On the CPU", title_justify="left", box=None)
    table.add_column("operator", overflow="fold")
    table.add_column("calls", justify="right")
    table.add_column("why")
    table.add_column("where", overflow="fold")
    for row in sorted(rows, key=lambda row: row.boundary):
        if row.boundary:
            table.add_row(escape(row.name), str(row.calls), row.sites[0].reason, "")
            continue
        for site in row.sites:
            place = common.source_place(site.source)
            cells = (row.name, str(site.calls), compile_words.cpu_reason(site), place)
            table.add_row(*map(escape, cells))
    return table


def _estimates_table(delegates: Sequence[Delegate]) -> Table:
    """Vela's network summary: a column for each delegate. Rows that are zero in all of them are left out."""
    table = Table("", title="On the NPU, as Vela estimates", title_justify="left", box=None)
    values = []
    for part in delegates:
        table.add_column(f"delegate {part.index}", justify="right")
        values.append({row.name: row.value for row in part.estimates})
    rows: list[tuple[str, str, Callable[[float], str]]] = [
        ("total_cycles", "cycles", "{:,.0f}".format),
        ("npu_cycles", "NPU cycles", "{:,.0f}".format),
        *((f"{area}_access_cycles", f"{words} access cycles", "{:,.0f}".format) for area, words in _AREAS),
        ("macs", "MACs", "{:,.0f}".format),
        ("inference_time", "inference time", lambda value: f"{value * 1e3:,.4g} ms"),
        *((f"{area}_used", f"{words} used", _kibibytes) for area, words in _AREAS),
        *((f"{area}_traffic", f"{words} traffic per inference", _kibibytes) for area, words in _AREAS),
        *((f"{area}_peak_bandwidth", f"{words} peak bandwidth", _bandwidth) for area, words in _AREAS),
    ]
    for name, words, form in rows:
        found = [row.get(name) for row in values]
        used = f"{name.removesuffix('_peak_bandwidth')}_traffic"
        if any(row.get(used if name.endswith("_peak_bandwidth") else name) for row in values):
            table.add_row(words, *("" if value is None else form(value) for value in found))
    return table


def _kibibytes(value: float) -> str:
    return f"{value / 1024:,.2f} KiB"


def _bandwidth(value: float) -> str:
    return f"{value / 1e9:,.2f} GB/s"
