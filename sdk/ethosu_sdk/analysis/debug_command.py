"""`ethosu-sdk debug`: run on the host simulator and record every tensor that the NPU writes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.analysis import debug_findings, debug_record, layer_pairing
from ethosu_sdk.analysis.debug_findings import BITS, CALIBRATION, FAULT, TO_FLOAT, TO_QUANTISED, WEIGHTS
from ethosu_sdk.analysis.debug_layers import (
    DebuggedLayer,
    DelegateNotes,
    Recorder,
    gather_tensors,
    layers_of_delegate,
    read_notes,
)
from ethosu_sdk.analysis.debug_record import DebugFacts, make_debug_record
from ethosu_sdk.analysis.layer_pairing import MOST_STEPS, Pairing, Reference
from ethosu_sdk.analysis.options import DebugOptions
from ethosu_sdk.base import cache, filesystem, json_text, npz
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import Ranked, Reporter, escape
from ethosu_sdk.compile import compile_command
from ethosu_sdk.compile.compile_facts import FLOAT, QUANTISED, LayerFacts, LayerRequest
from ethosu_sdk.compile.front_ends.model_spec import check_model_file, parse_model_spec
from ethosu_sdk.compile.options_beside_program import refuse_options
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.npu import errors
from ethosu_sdk.npu.memory import Written
from ethosu_sdk.program import pte
from ethosu_sdk.records import bundle, common, kinds, result_files, validation
from ethosu_sdk.records.debug import Advice, Comparison, Debug, Distance, Layer, Own, Step
from ethosu_sdk.run.input_values import load_samples
from ethosu_sdk.simulate import host_runtime
from ethosu_sdk.simulate.host_runtime import NpuModel

Array = NDArray[Any]

_CSV_NAME = "debug.csv"
_NO_MODEL = (
    "a .pte holds no model in PyTorch to compare with: `ethosu-sdk debug` takes the model itself too, such as "
    "FILE.py:NAME or zoo:NAME"
)

_MOST_ROWS = 100  # of a program with more layers, the worst are shown
_EQUAL = "equal"
_NAMES = {TO_QUANTISED: "the quantised model", TO_FLOAT: "the float model"}
# Columns of the layers that a narrow terminal has no room for, the first one first.
_GIVE_WAY = ("shape", "type", "at limits", "used", "weights", "clipping", "rounding", "steps", "quantised dB")
_LOSSES = {
    BITS: "rounding to its steps",
    CALIBRATION: "clipping to its range",
    WEIGHTS: "rounding of its weights",
}


def debug(
    model: str,
    compile_options: CompileOptions,
    options: DebugOptions,
    out_dir: Path | None,
    reporter: Reporter,
) -> Record:
    """Compare the layers in the delegates of `model`, a program or a model; the record that was written.

    Raises InputError for files that do not fit, SimulationError when the program does not run.
    """
    if options.inputs is not None and not options.inputs.is_file():
        raise InputError(f"there is no file {options.inputs}")
    model = result_files.program_of(model)
    if model.endswith(".pte"):
        path = result_files.require_pte(Path(model))
        program = pte.read(path)
        refuse_options(path, compile_options, read=())
        folder = result_files.folder_for_pte(path, program.target(), out_dir)
        return _finish(path, folder, None, options, reporter)
    target = compile_command.target_of(compile_options)
    spec = parse_model_spec(model)
    check_model_file(spec, trust=compile_options.trust)  # before a folder is made for it
    folder = compile_command.output_folder(spec, target, compile_options, out_dir)
    # Not in the system's temporary folder, which may be in memory: the values of all layers can be large.
    with filesystem.temporary_directory(".debug-", folder) as spool:
        request = LayerRequest(spool.resolve(), None if options.inputs is None else options.inputs.resolve())
        compile_options = replace(compile_options, layers=request, check=False)
        path = compile_command.compile_model(model, compile_options, out_dir, reporter.for_step())
        reference = Reference(LayerFacts.read(request.folder), request.folder)
        return _finish(path, folder, reference, options, reporter)


@dataclass
class _Observer:
    """What the first call of each delegate writes, and the program's outputs."""

    calls: dict[int, host_runtime.DelegateCall] = field(default_factory=dict)
    recorders: dict[int, Recorder] = field(default_factory=dict)
    outputs: Sequence[Array] = ()

    def __call__(self, call: host_runtime.DelegateCall, written: Written) -> None:
        if self.calls.setdefault(call.index, call) is call:
            self.recorders.setdefault(call.index, Recorder()).take(written)


def _finish(
    path: Path, folder: Path, reference: Reference | None, options: DebugOptions, reporter: Reporter
) -> Record:
    """Debug the program at `path` beside the model in PyTorch, if there is one, and write the results to `folder`."""
    start = time.monotonic()
    program = pte.read(path)
    notes = read_notes(path)
    inputs, source = _inputs(path, reference, program, options, reporter)
    with reporter.stage("building the host runner (the first time only)"):
        runner = host_runtime.build_runner(cache.directory_or_own(host_runtime.CACHE_PART))
    with filesystem.locked_folder(folder):
        with reporter.stage("running the program and recording every tensor"):
            observer = _run(path, program, runner, inputs, options.timeout_s)
        with reporter.stage("comparing"):
            layers = _layers(observer, notes, reference, options)
    if options.dump is not None:
        with bundle.listed(options.dump, "debug --dump"):
            arrays = {row.dump_name: row.values for row in layers if row.values is not None}
            npz.write_npz(options.dump, arrays)
    facts = DebugFacts(
        path=path,
        program=program,
        inputs=source,
        notes=notes,
        layers=layers,
        missing={QUANTISED: _NO_MODEL, FLOAT: _NO_MODEL} if reference is None else reference.facts.missing,
        ties_up=reference is not None and reference.facts.ties_up,
        outputs=() if reference is None else [row for row in reference.facts.outputs if row is not None],
        options=options,
        runner=runner,
        left_out=sum(len(row.left_out) for row in observer.recorders.values()),
        wall_time_s=time.monotonic() - start,
    )
    content = make_debug_record(facts)
    record = content.to_json()
    validation.check_record(record, "the debug record")
    table = result_files.csv_table(debug_record.CSV_COLUMNS, map(debug_record.csv_row, content.layers))
    with filesystem.locked_folder(folder), bundle.writing_folder(folder, "debug") as add:
        filesystem.write_bytes(folder / _CSV_NAME, table.encode())
        json_text.write_json(folder / kinds.DEBUG.file, record)
        add(_CSV_NAME, kinds.DEBUG.file)
    if not layers:
        lacking = "has no delegate that ran on the NPU: there are no layers to compare"
        reporter.warn(escape(f"{path.name} {lacking}"))
    reporter.show(*debug_tables(content, folder, options.rows))
    reporter.emit(record)
    return record


def _inputs(
    path: Path, reference: Reference | None, program: pte.Pte, options: DebugOptions, reporter: Reporter
) -> tuple[list[Array], str]:
    if reference is not None:
        folder, found = reference.folder, list[Array]()
        while (file := folder / f"input{len(found)}.npy").is_file():
            found.append(np.load(file))
        return found, "the model's example inputs" if options.inputs is None else options.inputs.name
    samples = load_samples(options.inputs, path, program.plan())
    if samples.count != 1:
        raise InputError(
            f"debug takes the inputs of one inference, not {samples.count} ({samples.source})",
            "give input0 … of a single inference with --inputs",
        )
    if samples.source.startswith("random"):
        reporter.warn(f"no inputs were given: using {escape(samples.source)}")
    return list(samples.inferences[0]), samples.source


def _run(path: Path, program: pte.Pte, runner: Path, inputs: Sequence[Array], timeout_s: float) -> _Observer:
    observer = _Observer()
    data, model = [row.path for row in program.data_files], NpuModel(observer=observer)
    with (
        errors.until(time.monotonic() + timeout_s),
        host_runtime.open_pte(runner, path, model, timeout_s=timeout_s, data=data) as runtime,
    ):
        observer.outputs = runtime.run(inputs)
    return observer


def _layers(
    observer: _Observer, notes: dict[int, DelegateNotes], reference: Reference | None, options: DebugOptions
) -> list[DebuggedLayer]:
    """All layers, delegate by delegate in the order of their first call."""
    found: list[DebuggedLayer] = []
    wrong = () if reference is None else _wrong_values(observer.outputs, reference)
    for index, call in observer.calls.items():
        known, first = notes.get(index), len(found)
        gathered = gather_tensors(observer.recorders[index].written, () if known is None else known.written)
        if reference is None or known is None:
            found += layers_of_delegate(index, first, gathered, known, None)
            continue
        origins = reference.facts.tensors.get(call.payload_sha256, {})
        # The delegate's inputs in the form that the TOSA graph gives them.
        rows = zip(known.given, call.inputs, (known.shapes[name] for name in known.given), strict=False)
        given = {name: row.reshape(shape) for name, row, shape in rows if row.size == prod(shape)}
        pairing = Pairing(reference, origins, known.moves, given, options.threshold_db)
        layers = layers_of_delegate(index, first, gathered, known, pairing)
        outputs = pairing.of_values(known.results, wrong)
        if outputs:  # which are wrong themselves; in which order they should be is known
            pairing.hold([*outputs, *pairing.unusual_before(outputs, known.inputs)])
            layers = layers_of_delegate(index, first, gathered, known, pairing)
        found += [
            replace(row, misplaced=pairing.misplaced(row.name, known.inputs)) if row.is_off else row
            for row in layers
        ]
    return debug_findings.without_refuted(found, notes, options.threshold_db)


def _wrong_values(outputs: Sequence[Array], reference: Reference) -> list[int]:
    """The values of the model that the program gives as outputs, by their places, and that are others there."""
    wrong = []
    for place, ours in zip(reference.facts.outputs, outputs, strict=False):
        if place is None:
            continue
        value, theirs = reference.facts.values[place], reference.load("quantised", place)
        if ours.shape != theirs.shape:
            continue
        stored = ours.dtype == theirs.dtype and ours.dtype.kind != "f"
        step = 1.0 if stored or not value.scale else value.scale
        if ours.dtype != theirs.dtype:
            theirs = layer_pairing.real_values(theirs, value.scale, value.zero_point)
        largest = np.abs(ours.astype(np.float64) - theirs).max(initial=0.0)
        if not largest < MOST_STEPS * step:  # or not a number
            wrong.append(place)
    return wrong


def debug_tables(record: Debug, folder: Path, rows: int | None) -> list[RenderableType]:
    """Layers, findings and files. `rows` limits the layers to those with the least SQNR."""

    def least_sqnr(row: Layer) -> float:
        ratios = (distance.sqnr_db for distance in (row.quantised, row.float) if distance is not None)
        return min((ratio for ratio in ratios if ratio is not None), default=float("inf"))

    shown, most = record.layers, rows or _MOST_ROWS
    if len(shown) > most:
        shown = tuple(sorted(shown, key=least_sqnr)[:most])
    findings = Table(box=None, show_header=False, pad_edge=False)
    for name, text in (*finding_rows(record), ("files", str(folder))):
        findings.add_row(name, escape(text))
    return [_layers_table(shown, len(record.layers)), "", findings]


def _layers_table(rows: Sequence[Layer], count: int) -> Table:
    title = counted(count, "layer") if len(rows) == count else f"the worst {len(rows)} of {count} layers"
    table = Ranked(title=title, title_justify="left", box=None, pad_edge=False, drop=_GIVE_WAY)
    table.add_column("#", justify="right")
    for name in ("operator", "where", "shape", "type"):
        table.add_column(name)
    for name in ("used", "at limits", "quantised dB", "steps", "float dB", "rounding", "clipping", "weights"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*(escape(cell) for cell in layer_cells(row)))
    return table


def layer_cells(row: Layer) -> Iterator[str]:
    yield str(row.index)
    yield row.tosa.operator if row.tosa is not None else " ".join(row.operations.names)
    sources = (row.source,) if row.writers is None else (part.source for part in row.writers)
    places = map(common.source_name, sources)
    yield ", ".join(dict.fromkeys(place for place in places if place)) or row.tensor
    yield "x".join(map(str, row.shape))
    yield row.dtype
    known = row.range
    yield f"{known.used_share:.0%}" if known else ""
    yield f"{known.low_share + known.high_share:.1%}" if known else ""
    near = row.quantised
    yield _ratio(near)
    yield f"{near.largest_error_steps:.0f}" if near and near.largest_error_steps is not None else ""
    yield _ratio(row.float)
    own = row.own or Own()
    for value in (own.rounding_db, own.clipping_db, row.weights.sqnr_db if row.weights else None):
        yield f"{value:.1f}" if value is not None else ""


def _ratio(distance: Distance | None) -> str:
    if distance is None:
        return ""
    if distance.sqnr_db is not None:
        return f"{distance.sqnr_db:.1f}"
    return _EQUAL if distance.differing == 0 else "?"


def finding_rows(record: Debug) -> Iterator[tuple[str, str]]:
    layers, counts = record.layers, record.counts
    yield (
        "compared",
        f"{counts.quantised} of {counted(counts.layers, 'layer')} with {_NAMES[TO_QUANTISED]}, {counts.float} with "
        f"{_NAMES[TO_FLOAT]}",
    )
    for row in record.comparisons:
        yield f"against {_NAMES[row.against]}", _break(record, row)
        if row.largest_drop is not None:
            yield "", f"largest drop in {_described(layers, row.largest_drop)}"
    for advice in record.advice:
        yield f"{advice.remedy} for", _advice(layers[advice.layer], advice)
    if any(row.against == TO_FLOAT for row in record.comparisons) or record.change is not None:
        yield "change", _change(record)
    if record.dump is not None:
        yield "dump", f"{record.dump.file}, {counted(record.dump.arrays, 'array')}"
    for missing in record.unavailable:
        yield "unknown", f"{missing.path}: {missing.reason}"


def _break(record: Debug, row: Comparison) -> str:
    limit = f"{record.thresholds.break_db:g} dB"
    if row.first_break is not None:
        further = [step.layer for step in row.further_breaks or ()]
        others = f"; also in {_numbers(further)}" if further else ""
        return f"first breaks in {_described(record.layers, row.first_break)}{others}"
    found = (layer.quantised if row.against == TO_QUANTISED else layer.float for layer in record.layers)
    ratios = (distance.sqnr_db for distance in found if distance is not None)
    below = sum(ratio is not None and round(ratio, 1) < record.thresholds.break_db for ratio in ratios)
    if below:
        return f"no layer breaks: {counted(below, 'layer')} below {limit} by rounding"
    return f"no layer falls below {limit}"


def _described(layers: Sequence[Layer], step: Step) -> str:
    before = f"{_EQUAL} → " if step.inputs_equal else ""
    if step.input_db is not None:
        before = f"{step.input_db:.1f} dB → "
    after = f"{step.output_db:.1f} dB" if step.output_db is not None else "no signal left"
    others = f", or in {_numbers(step.perhaps)} before it, not comparable" if step.perhaps else ""
    text = f"{_named(layers[step.layer])}: {before}{after}{others}"
    moved = step.misplaced
    if moved is None:
        return text
    where = f"{moved.operator} {moved.tensor}" if moved.layer is None else _named(layers[moved.layer])
    return f"{where}, which brings values to other places than the model; seen in {text}"


def _named(layer: Layer) -> str:
    operator = layer.tosa.operator if layer.tosa is not None else ""
    place = common.source_place(layer.source)
    where = f", {place}" if place else ""
    return f"layer {layer.index}, {operator} {layer.tensor}{where}"


def _numbers(layers: Sequence[int]) -> str:
    text = ", ".join(map(str, layers))
    return f"layer {text}" if len(layers) == 1 else f"layers {text}"


def _advice(layer: Layer, row: Advice) -> str:
    where = row.module or row.node or ""
    cause = f"; {_cause(layer)}" if row.remedy == BITS and layer.shared is not None else ""
    return f"layer {row.layer}, {where}: {_LOSSES[row.remedy]} alone leaves {row.sqnr_db:.1f} dB{cause}"


def _cause(layer: Layer) -> str:
    """Why a layer has steps that are too large for its values."""
    shared = layer.shared
    assert shared is not None
    used = f"range {layer.range.used_share:.0%} used: " if layer.range is not None else ""
    return f"{used}shares its scale with {shared.module or shared.node} through {shared.through}"


def _change(record: Debug) -> str:
    change = record.change
    if change is None:
        limit = record.thresholds.advice_db
        ratios = (row.float.sqnr_db for row in record.layers if row.float is not None)
        if all(ratio is None or round(ratio, 1) >= limit for ratio in ratios):
            return f"nothing: no layer falls below {limit:g} dB against the float model"
        return "no single layer: the outputs lose little, or by many small losses; --quantize int16 gives all 16 bits"
    layer = record.layers[change.layer]
    name = _named(layer)
    if change.remedy == FAULT:
        return f"{name}: the NPU does not compute what the quantised model does; bits and samples do not help"
    if change.remedy == CALIBRATION:
        return (
            f"{name}: its values leave the calibrated range; give samples that have them: --calibration F.npz"
        )
    if change.remedy == WEIGHTS:
        return f"{name}: its weights lose too much in eight bits; train with quantisation, or split off its outliers"
    cause = f" ({_cause(layer)})" if layer.shared is not None else ""
    how = "--quantize int16, which gives them to all"
    if change.module:
        how = (
            f"def quantizer(q): q.set_module_name({change.module!r}, get_symmetric_a16w8_quantization_config()) in "
            "the model file, with the import from executorch.backends.arm.quantizer"
        )
    return f"{name}{cause}: give it 16 bits: {how}"
