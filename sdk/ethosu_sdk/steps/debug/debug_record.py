"""debug.json: ``debug/1``, from the layers of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk import provenance, pte
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.records.compile import Operation
from ethosu_sdk.records.debug import Writer
from ethosu_sdk.results import host_facts, locations, target_record
from ethosu_sdk.steps.compile.compile_record import source_part
from ethosu_sdk.steps.debug import findings
from ethosu_sdk.steps.debug.figures import Distance, Range
from ethosu_sdk.steps.debug.findings import FLOAT, QUANTISED, Advice, Step
from ethosu_sdk.steps.debug.layers import Layer
from ethosu_sdk.steps.debug.notes import DelegateNotes
from ethosu_sdk.steps.debug.options import DebugOptions

NPU_ROUNDING, PYTORCH_ROUNDING = "npu", "pytorch"
_PACKAGE = "executorch"
_FIDELITY = "functional: ExecuTorch's own runtime on this machine, NPU arithmetic is exact"


@dataclass(frozen=True)
class DebugFacts:
    """The program, its inputs' source, what is known of its delegates, the layers, why a comparison is not made, and
    whether the quantised model rounds as the NPU does.

    `dump` is the file with the tensors; `left_out` counts NPU operations whose results were too many to keep.
    """

    path: Path
    program: pte.Pte
    inputs: str
    notes: Mapping[int, DelegateNotes]
    layers: Sequence[Layer]
    missing: Mapping[str, str]
    ties_up: bool
    options: DebugOptions
    runner: Path
    left_out: int
    wall_time_s: float


def make(facts: DebugFacts) -> Record:
    """The record."""
    layers, options = facts.layers, facts.options
    version = provenance.package_version(_PACKAGE) or "unknown"
    compile_record = locations.compile_record(facts.path)
    inputs = [provenance.file_entry("model", facts.path, facts.program.sha256)]
    inputs += [provenance.file_entry("compile", compile_record)] if facts.notes else []
    inputs += [provenance.file_entry("inputs", options.inputs)] if options.inputs is not None else []
    inputs.append(provenance.file_entry("host-runner", facts.runner))
    tools = [provenance.tool_entry(_PACKAGE, version)]
    compared = [(against, findings.steps(layers, facts.notes, against)) for against in (QUANTISED, FLOAT)]
    return {
        **provenance.header(kinds.DEBUG.schema, "done", inputs, tools),
        "model": {**_file(facts.path, facts.program.sha256), "entry": pte.ENTRY},
        **target_record.members(facts.program.target()),
        "simulator": {"name": "host", "version": version, "fidelity": _FIDELITY},
        "inputs": facts.inputs,
        "thresholds": {"break_db": options.threshold_db, "advice_db": options.advice_db},
        "layers": [_layer(row) for row in layers],
        "counts": _counts(facts),
        "comparisons": [
            _comparison(against, found, options, ties_up=facts.ties_up)
            for against, found in compared
            if against not in facts.missing
        ],
        "advice": [_advice(row) for row in findings.advice(layers, options.advice_db)],
        **({} if options.dump is None else {"dump": _dump(options.dump, layers)}),
        "unavailable": list(_unavailable(facts)),
        "wall_time_s": round(facts.wall_time_s, 3),
        "host": host_facts.host(),
    }


def _counts(facts: DebugFacts) -> Record:
    layers = facts.layers
    return {
        "layers": len(layers),
        "of_the_graph": sum(_is_of_the_graph(row, facts) for row in layers),
        "gathered": sum(row.values is not None for row in layers),
        QUANTISED: sum(row.quantised is not None for row in layers),
        FLOAT: sum(row.float_ is not None for row in layers),
        "left_out_operations": facts.left_out,
    }


def _is_of_the_graph(layer: Layer, facts: DebugFacts) -> bool:
    origin, notes = layer.origin, facts.notes.get(layer.delegate)
    return origin is not None and origin.tosa is not None and notes is not None and layer.name in notes.shapes


def _layer(row: Layer) -> Record:
    first = row.gathered.parts[0]
    address = first.address
    value, origin = row.value, row.origin
    written = {} if origin is None else _writer(origin)
    if "source" not in written and value is not None:
        written |= source_part(value.source)
    return {
        "index": row.index,
        "name": row.dump_name,
        "delegate": row.delegate,
        "tensor": row.name,
        "operations": _operations(row),
        **written,
        **({"writers": [_writer(part) for part in row.writers]} if len(row.writers) > 1 else {}),
        "shape": list(first.shape if row.values is None else row.values.shape),
        "dtype": first.dtype.name,
        "zero_point": first.zero_point,
        **({} if address is None else {"address": {"region": address[0], "byte": address[1]}}),
        **({} if row.range is None else {"range": _range(row.range)}),
        **({} if value is None else {"quantisation": {"scale": value.scale, "zero_point": value.zero_point}}),
        **_pytorch(row),
        **{
            name: _distance(found, row)
            for name, found in ((QUANTISED, row.quantised), (FLOAT, row.float_))
            if found is not None
        },
        **_own(row),
        **({"reason": row.reason} if row.reason else {}),
    }


def _operations(row: Layer) -> Record:
    return {
        "names": list(dict.fromkeys(part.operation.name for part in row.gathered.parts)),
        "offsets": list(row.gathered.offsets),
        **({"inner": row.gathered.inner} if row.gathered.inner else {}),
    }


def _writer(entry: Operation) -> Record:
    return Writer(vela=entry.vela, tosa=entry.tosa, source=entry.source).to_json()


def _range(found: Range) -> Record:
    return {
        "least": found.least,
        "largest": found.largest,
        "low_share": found.low_share,
        "high_share": found.high_share,
        "used_share": found.used_share,
        "distinct": found.distinct,
    }


def _pytorch(row: Layer) -> Record:
    if row.value is None:
        return {} if row.node is None else {"pytorch": {"node": row.node}}
    return {"pytorch": {"node": row.value.node, "operator": row.value.operator, "axes": list(row.axes)}}


def _distance(found: Distance, row: Layer) -> Record:
    assert row.value is not None
    numbers = {
        "sqnr_db": found.sqnr_db,
        "cosine": found.cosine,
        "largest_error": found.largest_error,
        "largest_error_steps": found.largest_error / row.value.scale,
        "mean_error": found.mean_error,
    }
    return {
        "elements": found.elements,
        "differing": found.differing,
        **{name: number for name, number in numbers.items() if math.isfinite(number)},
    }


def _own(row: Layer) -> Record:
    if row.own is None:
        return {}
    numbers = {"rounding_db": row.own.rounding_db, "clipping_db": row.own.clipping_db}
    return {"own": {name: number for name, number in numbers.items() if math.isfinite(number)}}


def _comparison(against: str, found: Sequence[Step], options: DebugOptions, *, ties_up: bool) -> Record:
    first = findings.first_break(found, options.threshold_db, against)
    worst = findings.largest_drop(found, against)
    return {
        "against": against,
        **({"rounding": NPU_ROUNDING if ties_up else PYTORCH_ROUNDING} if against == QUANTISED else {}),
        "layers": len(found),
        **({} if first is None else {"first_break": _step(first)}),
        **({} if worst is None else {"largest_drop": _step(worst)}),
    }


def _step(row: Step) -> Record:
    numbers = {"input_db": row.input_db, "output_db": row.output_db, "drop_db": row.drop_db}
    return {
        "layer": row.layer.index,
        "tensor": row.layer.name,
        **{name: number for name, number in numbers.items() if number is not None and math.isfinite(number)},
    }


def _advice(row: Advice) -> Record:
    layer = row.layer
    source = None if layer.origin is None else layer.origin.source
    module = None if source is None else source.module
    return {
        "remedy": row.remedy,
        "layer": layer.index,
        **({} if layer.value is None else {"node": layer.value.node}),
        **({"module": module} if module else {}),
        "sqnr_db": row.sqnr_db,
    }


def _file(path: Path, sha256: str | None = None) -> Record:
    entry = provenance.file_entry("", path, sha256)
    return {key: value for key, value in entry.items() if key != "role"}


def _dump(path: Path, layers: Sequence[Layer]) -> Record:
    return {
        **_file(path),
        "arrays": sum(row.values is not None for row in layers),
    }


def _unavailable(facts: DebugFacts) -> Iterator[Record]:
    target = facts.program.target()
    if target is None:
        yield target_record.without_npu("/target")
    for against, reason in facts.missing.items():
        yield {"path": f"/comparisons/{against}", "reason": reason}
    if not facts.notes and facts.layers:
        name = locations.compile_record(facts.path).name
        yield {
            "path": "/layers/-/tosa",
            "reason": f"there is no {name} of this program beside it: each NPU operation is an entry of its own, "
            "parts of a tensor are not put together",
        }
