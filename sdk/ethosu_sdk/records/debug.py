"""``debug/1``, from which schemas/debug.v1.schema.json is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from ethosu_sdk.records import common as c, rules
from ethosu_sdk.records.common import Derived, Part, RecordKind

StoredDtype = Literal["int8", "uint8", "int16", "uint16", "int32"]
Against = Literal["quantised", "float"]
Rounding = Literal["npu", "pytorch"]
Remedy = Literal["16 bits", "calibration", "weights"]


class Simulator(Part):
    name: Literal["host"]
    version: c.Text
    fidelity: c.Text


class Thresholds(Part):
    break_db: c.Number
    advice_db: c.Number


class Operations(Part):
    names: c.Some[c.Text]
    offsets: c.Some[c.Count]
    inner: c.PositiveCount | None = None  #: operations that wrote only what these read


LastTosa = Annotated[
    c.TosaOperation | None,
    Meta(
        description="the operator that Vela's last operation for the tensor stands for; "
        "what is fused with it comes behind"
    ),
]


class Writer(Part):
    vela: c.VelaOperation
    tosa: LastTosa = None
    source: c.SourceLine | None = None


class Address(Part):
    region: c.Count
    byte: c.Count


class Range(Part):
    least: int
    largest: int
    low_share: c.Share  #: of the elements at the least value of the type
    high_share: c.Share  #: of the elements at the largest value of the type
    used_share: c.Share  #: of the type's values that lie between least and largest
    distinct: c.PositiveCount  #: how many different values there are


class Quantisation(Part):
    scale: c.PositiveAmount
    zero_point: int


class Pytorch(Part):
    node: c.Text
    operator: c.Text | None = None
    axes: tuple[c.Count, ...] | None = None  #: order in which the tensor has the axes of the model's value
    #: the TOSA tensors whose values were only moved into this one: the model's values of these were moved
    #: likewise to compare; the node is that of the first
    moved_from: c.Some[c.Text] | None = None


class Distance(Part):
    elements: c.PositiveCount  #: that were compared
    differing: c.Count  #: elements that are not equal
    #: 10 log10(sum r² / sum (c - r)²) with the model's values r; absent when it is not finite, as for equal
    #: values
    sqnr_db: c.Number | None = None
    cosine: c.Cosine | None = None
    largest_error: c.Amount | None = None  #: absolute, in real units
    largest_error_steps: c.Amount | None = None  #: the same in steps of the quantisation
    mean_error: c.Number | None = None  #: signed, in real units


class Own(Part):
    rounding_db: c.Number | None = None
    clipping_db: c.Number | None = None


class Weights(Part):
    elements: c.PositiveCount
    #: 10 log10(sum w² / sum (q - w)²) with the float model's weights w and the dequantised ones q; absent
    #: where they are equal
    sqnr_db: c.Number | None = None


class SharedScale(Part):
    node: c.Text
    module: c.Text | None = None
    through: c.Text  #: the operator that gives all of its operands one scale


class Layer(Part):
    index: c.Count  #: from 0, in the order in which the layers were begun
    name: Annotated[str, Meta(pattern="^layer[0-9]{3,}_[A-Za-z0-9_.-]+$")]  #: of its array in the dump
    delegate: c.Count
    #: the TOSA tensor's name, or Vela's where it made the tensor itself, or the NPU operation's where nothing
    #: is known of it
    tensor: c.Text
    #: the NPU operations that wrote it: names in the words of the command stream, offsets in bytes
    operations: Operations
    vela: c.VelaOperation | None = None
    tosa: LastTosa = None
    source: c.SourceLine | None = None
    #: where several of Vela's operations write parts of the tensor: all of them; the members above are those
    #: of the last
    writers: Annotated[tuple[Writer, ...], Meta(min_length=2)] | None = None
    shape: tuple[c.PositiveCount, ...]  #: the TOSA tensor's; NHWC where there is none
    dtype: StoredDtype
    zero_point: int  #: in the command stream, ahead of a look-up table if there is one
    #: of the first operation's first element; absent in a chaining buffer of Ethos-U85
    address: Address | None = None
    range: Range | None = None  #: of the values as stored; absent when not all of them are known
    quantisation: Quantisation | None = None  #: value = (stored - zero_point) * scale
    pytorch: Pytorch | None = None  #: what is quantised there in PyTorch
    quantised: Distance | None = None  #: from the quantised model in PyTorch
    float: Distance | None = None  #: from the float model in PyTorch
    #: SQNR that this tensor's quantisation leaves by itself, of the float model's values: when they are
    #: rounded to its steps, and when they are clipped to its range; absent where that costs nothing
    own: Own | None = None
    weights: Weights | None = None  #: what quantisation costs the weights of the layer's operator
    #: the model's value whose scale the layer has to have, and whose range is at least twice as wide
    shared: SharedScale | None = None
    reason: c.Text | None = None  #: why the layer is not compared, or its values are not known


class Counts(Part):
    layers: c.Count
    of_the_graph: c.Count  #: that are tensors of a TOSA graph
    gathered: c.Count  #: all of whose values are known
    quantised: c.Count  #: compared with the quantised model
    float: c.Count  #: compared with the float model
    left_out_operations: c.Count  #: NPU operations whose results were too many to keep


class Misplaced(Part):
    tensor: c.Text
    operator: c.Text
    layer: c.Count | None = None  #: absent where the NPU has no operation for it


class Step(Part):
    layer: c.Count  #: its index
    tensor: c.Text
    #: least SQNR of the compared layers that it is computed from, to one decimal as it is shown and judged
    input_db: c.Number | None = None
    #: least SQNR of its inputs, of each no more than rounding errors leave that are evenly spread over a step
    reliable_input_db: c.Number | None = None
    #: in place of input_db: all the compared layers that it is computed from equal the model's values
    inputs_equal: Literal[True] | None = None
    output_db: c.Number | None = None  #: its own, likewise; absent when nothing of the signal is left
    drop_db: c.Number | None = None
    #: layers between it and its compared inputs that are not comparable: the cause may be in one of them as
    #: well
    perhaps: c.Some[c.Count] | None = None
    #: the TOSA tensor that the layer is computed from and whose elements are not in the places in which the
    #: model has them: the cause
    misplaced: Misplaced | None = None


class Comparison(Part):
    against: Against
    #: of the quantised model: ties up and exact arithmetic, as on the NPU, or PyTorch's own
    rounding: Rounding | None = None
    layers: c.Count
    #: the first layer below the threshold whose inputs are not; absent when there is none
    first_break: Step | None = None
    further_breaks: c.Some[Step] | None = None  #: the other layers below the threshold whose inputs are not
    largest_drop: Step | None = None  #: the layer in which the SQNR falls most


class Advice(Part):
    remedy: Remedy
    layer: c.Count
    node: c.Text | None = None
    module: c.Text | None = None
    sqnr_db: c.Number  #: that rounding to 8 bits, clipping, or the rounding of its weights leaves by itself


class Change(Part):
    #: fault: the NPU does not compute what the quantised model computes, which no change of bits or samples
    #: helps
    remedy: Literal[Remedy, "fault"]
    layer: c.Count
    module: c.Text | None = None
    sqnr_db: c.Number | None = None  #: that its own loss leaves


class Dump(Part):
    file: c.Text
    bytes: c.Count
    sha256: c.Sha256
    arrays: c.Count


class Debug(Derived[Literal["done"]], tag_field="schema", tag="debug/1"):
    """The numerics of every layer inside of a program's delegates."""

    model: c.Model
    target: c.Target | None = None
    simulator: Simulator
    inputs: c.Text  #: where the inputs come from
    thresholds: Thresholds
    layers: tuple[Layer, ...]
    counts: Counts
    comparisons: tuple[Comparison, ...]
    #: int8 layers to give 16 bits, layers whose range needs other calibration samples, and layers whose
    #: weights lose much; the worst of each first
    advice: Annotated[tuple[Advice, ...], Meta(max_length=30)]
    #: the one operator to change first; absent where the program's outputs keep the threshold of advice
    #: against the float model, or no layer's own loss explains theirs
    change: Change | None = None
    dump: Dump | None = None
    unavailable: c.UnavailableMembers
    wall_time_s: c.Amount
    host: c.Host


def debug_layers_exist(record: Debug) -> Iterator[str]:
    """Layers are numbered as they stand, and findings name one of them by number and tensor."""
    layers = record.layers
    yield from (
        f"layer {row.index} stands at {place}" for place, row in enumerate(layers) if row.index != place
    )
    if record.counts.layers != len(layers):
        yield f"{record.counts.layers} layers are counted, {len(layers)} are there"
    steps = [
        step
        for row in record.comparisons
        for step in (row.first_break, row.largest_drop, *(row.further_breaks or ()))
        if step
    ]
    named: list[tuple[int | None, str | None]] = [(step.layer, step.tensor) for step in steps]
    named += [(number, None) for step in steps for number in step.perhaps or ()]
    named += [(step.misplaced.layer, step.misplaced.tensor) for step in steps if step.misplaced is not None]
    named += [(row.layer, None) for row in (*record.advice, record.change) if row is not None]
    for number, tensor in named:
        if number is not None and number >= len(layers):
            yield f"there is no layer {number}"
        elif number is not None and tensor not in (None, layers[number].tensor):
            yield f"layer {number} is not {tensor}"


KIND = RecordKind(
    Debug,
    (rules.unavailable_is_absent, rules.model_is_that_of_the_provenance, debug_layers_exist),
    file="debug.json",
    role="record of the layers",
)
