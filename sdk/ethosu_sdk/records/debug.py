"""``debug/1``: schemas/debug.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import (
    Derived,
    Host,
    Model,
    Number,
    SourceLine,
    Target,
    TosaOperation,
    Unavailable,
    VelaOperation,
)
from ethosu_sdk.records.kind import Part, RecordKind

StoredDtype = Literal["int8", "uint8", "int16", "uint16", "int32"]
Against = Literal["quantised", "float"]
Rounding = Literal["npu", "pytorch"]
Remedy = Literal["16 bits", "calibration", "weights"]


class Simulator(Part):
    name: Literal["host"]
    version: str
    fidelity: str


class Thresholds(Part):
    break_db: Number
    advice_db: Number


class Operations(Part):
    names: tuple[str, ...]
    offsets: tuple[int, ...]
    inner: int | None = None


class Writer(Part):
    vela: VelaOperation
    tosa: TosaOperation | None = None
    source: SourceLine | None = None


class Address(Part):
    region: int
    byte: int


class Range(Part):
    least: int
    largest: int
    low_share: Number
    high_share: Number
    used_share: Number
    distinct: int


class Quantisation(Part):
    scale: Number
    zero_point: int


class Pytorch(Part):
    node: str
    operator: str | None = None
    axes: tuple[int, ...] | None = None
    moved_from: tuple[str, ...] | None = None


class Distance(Part):
    elements: int
    differing: int
    sqnr_db: Number | None = None
    cosine: Number | None = None
    largest_error: Number | None = None
    largest_error_steps: Number | None = None
    mean_error: Number | None = None


class Own(Part):
    rounding_db: Number | None = None
    clipping_db: Number | None = None


class Weights(Part):
    elements: int
    sqnr_db: Number | None = None


class SharedScale(Part):
    node: str
    module: str | None = None
    through: str


class Layer(Part):
    index: int
    name: str
    delegate: int
    tensor: str
    operations: Operations
    vela: VelaOperation | None = None
    tosa: TosaOperation | None = None
    source: SourceLine | None = None
    writers: tuple[Writer, ...] | None = None
    shape: tuple[int, ...]
    dtype: StoredDtype
    zero_point: int
    address: Address | None = None
    range: Range | None = None
    quantisation: Quantisation | None = None
    pytorch: Pytorch | None = None
    quantised: Distance | None = None
    float: Distance | None = None
    own: Own | None = None
    weights: Weights | None = None
    shared: SharedScale | None = None
    reason: str | None = None


class Counts(Part):
    layers: int
    of_the_graph: int
    gathered: int
    quantised: int
    float: int
    left_out_operations: int


class Misplaced(Part):
    tensor: str
    operator: str
    layer: int | None = None


class Step(Part):
    layer: int
    tensor: str
    input_db: Number | None = None
    reliable_input_db: Number | None = None
    inputs_equal: Literal[True] | None = None
    output_db: Number | None = None
    drop_db: Number | None = None
    perhaps: tuple[int, ...] | None = None
    misplaced: Misplaced | None = None


class Comparison(Part):
    against: Against
    rounding: Rounding | None = None
    layers: int
    first_break: Step | None = None
    further_breaks: tuple[Step, ...] | None = None
    largest_drop: Step | None = None


class Advice(Part):
    remedy: Remedy
    layer: int
    node: str | None = None
    module: str | None = None
    sqnr_db: Number


class Change(Part):
    remedy: Literal[Remedy, "fault"]
    layer: int
    module: str | None = None
    sqnr_db: Number | None = None


class Dump(Part):
    file: str
    bytes: int
    sha256: str
    arrays: int


class Debug(Derived[Literal["done"]], tag_field="schema", tag="debug/1"):
    """The numerics of every layer inside of a program's delegates."""

    model: Model
    target: Target | None = None
    simulator: Simulator
    inputs: str
    thresholds: Thresholds
    layers: tuple[Layer, ...]
    counts: Counts
    comparisons: tuple[Comparison, ...]
    advice: tuple[Advice, ...]
    change: Change | None = None
    dump: Dump | None = None
    unavailable: tuple[Unavailable, ...]
    wall_time_s: Number
    host: Host


def debug_layers_exist(record: Debug) -> list[str]:
    """Layers are numbered as they stand, and findings name one of them by number and tensor."""
    layers = record.layers
    found = [f"layer {row.index} stands at {place}" for place, row in enumerate(layers) if row.index != place]
    if record.counts.layers != len(layers):
        found.append(f"{record.counts.layers} layers are counted, {len(layers)} are there")
    steps = [
        step
        for row in record.comparisons
        for step in (row.first_break, row.largest_drop, *(row.further_breaks or ()))
        if step
    ]
    named: list[tuple[int, str | None]] = [(step.layer, step.tensor) for step in steps]
    named += [(number, None) for step in steps for number in step.perhaps or ()]
    named += [
        (step.misplaced.layer, step.misplaced.tensor)
        for step in steps
        if step.misplaced is not None and step.misplaced.layer is not None
    ]
    named += [(row.layer, None) for row in (*record.advice, record.change) if row is not None]
    for number, tensor in named:
        if number >= len(layers):
            found.append(f"there is no layer {number}")
        elif tensor not in (None, layers[number].tensor):
            found.append(f"layer {number} is not {tensor}")
    return found


KIND = RecordKind(
    Debug,
    (rules.unavailable_is_absent, rules.model_is_that_of_the_provenance, debug_layers_exist),
    file="debug.json",
    role="record of the layers",
)
