"""debug.json: ``debug/1``, from the layers of a run; and debug.csv, a row for each layer."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import convert

from ethosu_sdk.analysis import debug_findings
from ethosu_sdk.analysis.debug_findings import TO_FLOAT, TO_QUANTISED, Step
from ethosu_sdk.analysis.debug_layers import DebuggedLayer, DelegateNotes
from ethosu_sdk.analysis.layer_pairing import Distance
from ethosu_sdk.analysis.options import DebugOptions
from ethosu_sdk.base import filesystem, tools
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import ENTRY
from ethosu_sdk.records import debug, provenance, result_files
from ethosu_sdk.records.common import Model, Part, Unavailable
from ethosu_sdk.records.debug import Layer

_PACKAGE = "executorch"
_FIDELITY = "functional: ExecuTorch's own runtime on this machine, NPU arithmetic is exact"

_PLAIN = ("index", "name", "delegate", "tensor", "dtype", "zero_point", "reason")
_RANGE = ("least", "largest", "low_share", "high_share", "used_share", "distinct")
_DISTANCE = (
    *("elements", "differing", "sqnr_db", "cosine"),
    *("largest_error", "largest_error_steps", "mean_error"),
)
CSV_COLUMNS = (
    *_PLAIN,
    *("operations", "vela_operator", "tosa_operator", "node", "module", "file", "line", "shape"),
    *("scale", "quantised_zero_point"),
    *_RANGE,
    *("rounding_db", "clipping_db", "weights_db", "shares_scale_with"),
    *(f"{against}_{name}" for against in (TO_QUANTISED, TO_FLOAT) for name in _DISTANCE),
)


@dataclass(frozen=True)
class DebugFacts:
    """The program, its inputs' source, what is known of its delegates, the layers, why a comparison is not made, and
    whether the quantised model rounds as the NPU does; `outputs` number the values that the program gives.

    `dump` is the file with the tensors; `left_out` counts NPU operations whose results were too many to keep.
    """

    path: Path
    program: pte.Pte
    inputs: str
    notes: Mapping[int, DelegateNotes]
    layers: Sequence[DebuggedLayer]
    missing: Mapping[str, str]
    ties_up: bool
    outputs: Collection[int]
    options: DebugOptions
    runner: Path
    left_out: int
    wall_time_s: float


def make_debug_record(facts: DebugFacts) -> debug.Debug:
    layers, options = facts.layers, facts.options
    version = tools.package_version(_PACKAGE) or "unknown"
    compile_record = result_files.compile_record_path(facts.path)
    inputs = result_files.program_entries(facts.path, facts.program)
    inputs += [provenance.file_entry("compile", compile_record)] if facts.notes else []
    inputs += [provenance.file_entry("inputs", options.inputs)] if options.inputs is not None else []
    inputs.append(provenance.file_entry("host-runner", facts.runner))
    every: tuple[debug.Against, ...] = (TO_QUANTISED, TO_FLOAT)
    steps = {row: debug_findings.compared_steps(layers, facts.notes, row) for row in every}
    comparisons = [row for row in every if row not in facts.missing]
    fault = None
    if TO_QUANTISED in comparisons:
        fault = debug_findings.first_break(steps[TO_QUANTISED], options.threshold_db, TO_QUANTISED)
    dump = None
    if options.dump is not None:
        dump = debug.Dump(
            file=options.dump.name,
            bytes=options.dump.stat().st_size,
            sha256=filesystem.sha256_file(options.dump),
            arrays=sum(row.values is not None for row in layers),
        )
    return debug.Debug(
        status="done",
        **provenance.origin(inputs, [provenance.tool_entry(_PACKAGE, version)]),
        model=Model(file=facts.path.name, sha256=facts.program.sha256, bytes=facts.program.size, entry=ENTRY),
        target=provenance.recorded_target(facts.program.target()),
        simulator=debug.Simulator(name="host", version=version, fidelity=_FIDELITY),
        inputs=facts.inputs,
        thresholds=debug.Thresholds(break_db=options.threshold_db, advice_db=options.advice_db),
        layers=tuple(_layer(row) for row in layers),
        counts=debug.Counts(
            layers=len(layers),
            of_the_graph=sum(
                row.origin is not None
                and row.origin.tosa is not None
                and row.delegate in facts.notes
                and row.name in facts.notes[row.delegate].shapes
                for row in layers
            ),
            gathered=sum(row.values is not None for row in layers),
            quantised=sum(row.quantised is not None for row in layers),
            float=sum(row.float_ is not None for row in layers),
            left_out_operations=facts.left_out,
        ),
        comparisons=tuple(_comparison(facts, steps[row], row) for row in comparisons),
        advice=tuple(debug_findings.layer_advice(layers, options.advice_db)),
        change=debug_findings.first_change(fault, steps[TO_FLOAT], facts.outputs, options.advice_db),
        dump=dump,
        unavailable=tuple(_unavailable(facts)),
        wall_time_s=round(facts.wall_time_s, 3),
        host=provenance.this_host(),
    )


def _layer(row: DebuggedLayer) -> debug.Layer:
    first = row.gathered.parts[0]
    value, origin, place, own, weights = row.value, row.origin, first.address, row.own, row.weights
    writers = (debug.Writer(vela=part.vela, tosa=part.tosa, source=part.source) for part in row.writers)
    return debug.Layer(
        index=row.index,
        name=row.dump_name,
        delegate=row.delegate,
        tensor=row.name,
        operations=debug.Operations(
            names=tuple(dict.fromkeys(part.operation.name for part in row.gathered.parts)),
            offsets=tuple(row.gathered.offsets),
            inner=row.gathered.inner or None,
        ),
        vela=None if origin is None else origin.vela,
        tosa=None if origin is None else origin.tosa,
        source=row.source,
        writers=tuple(writers) if len(row.writers) > 1 else None,
        shape=tuple(first.shape if row.values is None else row.values.shape),
        dtype=convert(first.dtype.name, debug.StoredDtype),
        zero_point=first.zero_point,
        address=place and debug.Address(region=place[0], byte=place[1]),
        range=row.range,
        quantisation=None if value is None else convert(value, debug.Quantisation, from_attributes=True),
        pytorch=_pytorch(row),
        quantised=_distance(row.quantised, row),
        float=_distance(row.float_, row),
        own=own if own is None else debug.Own(**{name: _finite(db) for name, db in vars(own).items()}),
        weights=None if weights is None else convert(weights, debug.Weights, from_attributes=True),
        shared=_shared(row),
        reason=row.reason or None,
    )


def _shared(row: DebuggedLayer) -> debug.SharedScale | None:
    wider = row.shared
    if wider is None or row.value is None or row.value.shared is None:
        return None
    module = None if wider.source is None else wider.source.module
    return debug.SharedScale(node=wider.node, module=module or None, through=row.value.shared.through)


def _pytorch(row: DebuggedLayer) -> debug.Pytorch | None:
    if row.value is None:
        return None if row.node is None else debug.Pytorch(node=row.node)
    assert row.pair is not None
    return debug.Pytorch(
        node=row.value.node,
        operator=row.value.operator,
        axes=row.pair.axes,
        moved_from=row.pair.sources or None,
    )


def _finite(number: float | None) -> float | None:
    return number if number is not None and math.isfinite(number) else None


def _distance(found: Distance | None, row: DebuggedLayer) -> debug.Distance | None:
    if found is None:
        return None
    assert row.value is not None
    return debug.Distance(
        elements=found.elements,
        differing=found.differing,
        largest_error_steps=_finite(found.largest_error / row.value.scale),
        **{
            name: _finite(getattr(found, name))
            for name in ("sqnr_db", "cosine", "largest_error", "mean_error")
        },
    )


def _comparison(facts: DebugFacts, found: Sequence[Step], against: debug.Against) -> debug.Comparison:
    breaks = [_step(row) for row in debug_findings.breaks(found, facts.options.threshold_db, against)]
    drop = debug_findings.largest_drop(found, against)
    rounding: debug.Rounding = "npu" if facts.ties_up else "pytorch"
    return debug.Comparison(
        against=against,
        rounding=rounding if against == TO_QUANTISED else None,
        layers=len(found),
        first_break=breaks[0] if breaks else None,
        further_breaks=tuple(breaks[1:]) or None,
        largest_drop=None if drop is None else _step(drop),
    )


def _step(row: Step) -> debug.Step:
    return debug.Step(
        layer=row.layer.index,
        tensor=row.layer.name,
        input_db=_finite(row.input_db),
        reliable_input_db=_finite(row.reliable_db),
        inputs_equal=True if row.input_db == math.inf else None,
        output_db=_finite(row.output_db),
        drop_db=None if row.input_db is None else _finite(round(row.drop_db, 1)),
        perhaps=tuple(layer.index for layer in row.perhaps) or None,
        misplaced=row.misplaced,
    )


def _unavailable(facts: DebugFacts) -> Iterator[Unavailable]:
    if facts.program.target() is None:
        yield provenance.lacking_npu("/target")
    for against, reason in facts.missing.items():
        yield Unavailable(path=f"/comparisons/{against}", reason=reason)
    if not facts.notes and facts.layers:
        name = result_files.compile_record_path(facts.path).name
        yield Unavailable(
            path="/layers/-/tosa",
            reason=f"there is no {name} of this program beside it: each NPU operation is an entry of its own, "
            "parts of a tensor are not put together",
        )


def csv_row(entry: Layer) -> dict[str, object]:
    """A layer of the record by :data:`CSV_COLUMNS`; what it does not have is empty."""
    found = _members(entry, _PLAIN) | _members(entry.range, _RANGE)
    found |= _members(entry.own, ("rounding_db", "clipping_db"))
    for against, distance in ((TO_QUANTISED, entry.quantised), (TO_FLOAT, entry.float)):
        found |= {f"{against}_{name}": value for name, value in _members(distance, _DISTANCE).items()}
    known = entry.quantisation
    return found | {
        "operations": " ".join(entry.operations.names),
        "vela_operator": entry.vela.operator if entry.vela is not None else None,
        "tosa_operator": entry.tosa.operator if entry.tosa is not None else None,
        "node": entry.pytorch.node if entry.pytorch is not None else None,
        **_members(entry.source, ("module", "file", "line")),
        "shape": "x".join(map(str, entry.shape)),
        "scale": known.scale if known is not None else None,
        "weights_db": entry.weights.sqnr_db if entry.weights is not None else None,
        "shares_scale_with": entry.shared.module or entry.shared.node if entry.shared is not None else None,
        "quantised_zero_point": known.zero_point if known is not None else None,
    }


def _members(part: Part | None, names: Sequence[str]) -> dict[str, object]:
    return {name: getattr(part, name, None) for name in names}
