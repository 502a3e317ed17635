"""`ethosu-sdk debug`: run on the host simulator and record every tensor that the NPU writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk import cache, npz, pte, schema
from ethosu_sdk.aot.facts.evaluation import FLOAT, QUANTISED
from ethosu_sdk.aot.facts.layers import LayerFacts, LayerRequest
from ethosu_sdk.aot.model.spec import check_file, parse_model_spec
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.errors import InputError
from ethosu_sdk.files import csv_text, json_text, locks, writing
from ethosu_sdk.npu import Written, deadline
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.results import bundle, locations
from ethosu_sdk.simulators import host
from ethosu_sdk.simulators.host.npu_model import NpuModel
from ethosu_sdk.steps.compile import compile_command
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.debug import csv_rows, debug_tables, figures, findings
from ethosu_sdk.steps.debug.debug_record import DebugFacts, make
from ethosu_sdk.steps.debug.gathering import Recorder, gather
from ethosu_sdk.steps.debug.layers import Layer, of_delegate
from ethosu_sdk.steps.debug.notes import DelegateNotes, read_notes
from ethosu_sdk.steps.debug.options import DebugOptions
from ethosu_sdk.steps.debug.pairing import MOST_STEPS, Pairing, Reference
from ethosu_sdk.steps.run.inputs import load

Array = NDArray[Any]

CSV_NAME = "debug.csv"
_NO_MODEL = (
    "a .pte holds no model in PyTorch to compare with: `ethosu-sdk debug` takes the model itself too, such as "
    "FILE.py:NAME or zoo:NAME"
)


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
    if model.endswith(".pte"):
        path = locations.require_pte(Path(model))
        program = pte.read(path)
        folder = locations.for_pte(path, program.target(), out_dir)
        return _finish(_Subject(path, folder, None), options, reporter)
    target = compile_command.target_of(compile_options)
    spec = parse_model_spec(model)
    check_file(spec, trust=compile_options.trust)  # before a folder is made for it
    folder = locations.for_model(spec.name, target, out_dir)
    # Not in the system's temporary folder, which may be in memory: the values of all layers can be large.
    with locks.temporary_directory(".debug-", folder) as spool:
        request = LayerRequest(spool.resolve(), None if options.inputs is None else options.inputs.resolve())
        compile_options = replace(compile_options, layers=request, check=False)
        path = compile_command.compile_model(model, compile_options, out_dir, reporter.for_step())
        reference = Reference(LayerFacts.read(request.folder), request.folder)
        return _finish(_Subject(path, folder, reference), options, reporter)


@dataclass(frozen=True)
class _Subject:
    """The program at `path`, the folder for the results, and the model in PyTorch, if there is one."""

    path: Path
    folder: Path
    reference: Reference | None


@dataclass
class _Observer:
    """What the first call of each delegate writes, and the program's outputs."""

    calls: dict[int, host.DelegateCall] = field(default_factory=dict)
    recorders: dict[int, Recorder] = field(default_factory=dict)
    outputs: Sequence[Array] = ()

    def __call__(self, call: host.DelegateCall, written: Written) -> None:
        if self.calls.setdefault(call.index, call) is call:
            self.recorders.setdefault(call.index, Recorder()).take(written)


def _finish(subject: _Subject, options: DebugOptions, reporter: Reporter) -> Record:
    start = time.monotonic()
    program = pte.read(subject.path)
    notes = read_notes(subject.path)
    inputs, source = _inputs(subject, program, options, reporter)
    with reporter.stage("building the host runner (the first time only)"):
        runner = host.build_runner(cache.directory_or_own(host.CACHE_PART))
    with locks.locked(subject.folder):
        with reporter.stage("running the program and recording every tensor"):
            observer = _run(subject.path, program, runner, inputs, options.timeout_s)
        with reporter.stage("comparing"):
            layers = _layers(observer, notes, subject.reference, options)
    if options.dump is not None:
        with bundle.listed(options.dump, "debug --dump"):
            npz.write_npz(
                options.dump, {row.dump_name: row.values for row in layers if row.values is not None}
            )
    facts = DebugFacts(
        path=subject.path,
        program=program,
        inputs=source,
        notes=notes,
        layers=layers,
        missing=_missing(subject.reference),
        ties_up=subject.reference is not None and subject.reference.facts.ties_up,
        outputs=_outputs(subject.reference),
        options=options,
        runner=runner,
        left_out=sum(len(row.left_out) for row in observer.recorders.values()),
        wall_time_s=time.monotonic() - start,
    )
    content = make(facts)
    record = content.to_json()
    schema.check(record, "the debug record")
    table = csv_text.table(csv_rows.COLUMNS, map(csv_rows.row, content.layers))
    with locks.locked(subject.folder), bundle.published(subject.folder, "debug") as add:
        writing.write_bytes(subject.folder / CSV_NAME, table.encode())
        json_text.write_json(subject.folder / kinds.DEBUG.file, record)
        add(CSV_NAME, kinds.DEBUG.file)
    if not layers:
        reporter.warn(
            escape(f"{subject.path.name} has no delegate that ran on the NPU: there are no layers to compare")
        )
    reporter.show(*debug_tables.tables(content, subject.folder, options.rows))
    reporter.emit(record)
    return record


def _inputs(
    subject: _Subject, program: pte.Pte, options: DebugOptions, reporter: Reporter
) -> tuple[list[Array], str]:
    """The arrays of one inference, and where they come from."""
    if subject.reference is not None:
        folder, found = subject.reference.folder, list[Array]()
        while (file := folder / f"input{len(found)}.npy").is_file():
            found.append(np.load(file))
        return found, "the model's example inputs" if options.inputs is None else options.inputs.name
    samples = load(options.inputs, subject.path, program.plan())
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
    with (
        deadline.until(time.monotonic() + timeout_s),
        host.open_pte(
            runner,
            path,
            NpuModel(observer=observer),
            timeout_s=timeout_s,
            data=[row.path for row in program.data_files],
        ) as runtime,
    ):
        observer.outputs = runtime.run(inputs)
    return observer


def _layers(
    observer: _Observer, notes: dict[int, DelegateNotes], reference: Reference | None, options: DebugOptions
) -> list[Layer]:
    """All layers, delegate by delegate in the order of their first call."""
    found: list[Layer] = []
    wrong = () if reference is None else _wrong_values(observer.outputs, reference)
    for index, call in observer.calls.items():
        known = notes.get(index)
        gathered = gather(observer.recorders[index].written, () if known is None else known.written)
        if reference is None or known is None:
            found += of_delegate(index, len(found), gathered, known, None)
            continue
        origins = reference.facts.tensors.get(call.payload_sha256, {})
        pairing = Pairing(reference, origins, known.moves, _given(call, known), options.threshold_db)
        layers_of = partial(of_delegate, index, len(found), gathered, known, pairing)
        found += _paired(layers_of, known, pairing, wrong)
    return findings.without_refuted(found, notes, options.threshold_db)


def _paired(
    layers_of: Callable[[], list[Layer]], notes: DelegateNotes, pairing: Pairing, wrong: Collection[int]
) -> list[Layer]:
    """A delegate's layers. Its outputs that hold one of the `wrong` values which the program gives are wrong
    themselves, and in which order they should be is known."""
    layers = layers_of()
    outputs = pairing.of_values(notes.results, wrong)
    if outputs:
        pairing.hold([*outputs, *pairing.unusual_before(outputs, notes.inputs)])
        layers = layers_of()
    return [
        replace(row, misplaced=pairing.misplaced(row.name, notes.inputs)) if row.is_off else row
        for row in layers
    ]


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
            theirs = figures.real(theirs, value.scale, value.zero_point)
        if (
            not np.abs(ours.astype(np.float64) - theirs).max(initial=0.0) < MOST_STEPS * step
        ):  # or not a number
            wrong.append(place)
    return wrong


def _given(call: host.DelegateCall, notes: DelegateNotes) -> dict[str, Array]:
    """A delegate's inputs by the names of their tensors, in the form that the TOSA graph gives them."""
    rows = zip(notes.given, call.inputs, strict=False)
    return {
        name: row.reshape(notes.shapes[name]) for name, row in rows if row.size == prod(notes.shapes[name])
    }


def _outputs(reference: Reference | None) -> set[int]:
    """The values of the model that the program gives, by their places."""
    return set() if reference is None else {row for row in reference.facts.outputs if row is not None}


def _missing(reference: Reference | None) -> dict[str, str]:
    if reference is None:
        return {QUANTISED: _NO_MODEL, FLOAT: _NO_MODEL}
    return reference.facts.missing
