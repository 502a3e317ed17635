"""``debug/1``, from which schemas/debug.v1.schema.json is made."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import (
    Amount,
    Cosine,
    Count,
    Derived,
    Host,
    Model,
    Number,
    Part,
    PositiveAmount,
    PositiveCount,
    RecordKind,
    Sha256,
    Share,
    Some,
    SourceLine,
    Target,
    Text,
    TosaOperation,
    UnavailableMembers,
    VelaOperation,
    about,
)

StoredDtype = Literal["int8", "uint8", "int16", "uint16", "int32"]
Against = Literal["quantised", "float"]
Rounding = Literal["npu", "pytorch"]
Remedy = Literal["16 bits", "calibration", "weights"]


class Simulator(Part):
    name: Literal["host"]
    version: Text
    fidelity: Text


class Thresholds(Part):
    break_db: Number
    advice_db: Number


class Operations(Part):
    names: Some[Text]
    offsets: Some[Count]
    inner: Annotated[PositiveCount | None, about("operations that wrote only what these read")] = None


LastTosa = Annotated[
    TosaOperation | None,
    about(
        "the operator that Vela's last operation for the tensor stands for; what is fused with it comes behind"
    ),
]


class Writer(Part):
    vela: VelaOperation
    tosa: LastTosa = None
    source: SourceLine | None = None


class Address(Part):
    region: Count
    byte: Count


class Range(Part):
    least: int
    largest: int
    low_share: Annotated[Share, about("of the elements at the least value of the type")]
    high_share: Annotated[Share, about("of the elements at the largest value of the type")]
    used_share: Annotated[Share, about("of the type's values that lie between least and largest")]
    distinct: Annotated[PositiveCount, about("how many different values there are")]


class Quantisation(Part):
    scale: PositiveAmount
    zero_point: int


class Pytorch(Part):
    node: Text
    operator: Text | None = None
    axes: Annotated[
        tuple[Count, ...] | None, about("order in which the tensor has the axes of the model's value")
    ] = None
    moved_from: Annotated[
        Some[Text] | None,
        about(
            "the TOSA tensors whose values were only moved into this one: the model's values of these "
            "were moved likewise to compare; the node is that of the first"
        ),
    ] = None


class Distance(Part):
    elements: Annotated[PositiveCount, about("that were compared")]
    differing: Annotated[Count, about("elements that are not equal")]
    sqnr_db: Annotated[
        Number | None,
        about(
            "10 log10(sum r² / sum (c - r)²) with the model's values r; absent when it is not finite, "
            "as for equal values"
        ),
    ] = None
    cosine: Cosine | None = None
    largest_error: Annotated[Amount | None, about("absolute, in real units")] = None
    largest_error_steps: Annotated[Amount | None, about("the same in steps of the quantisation")] = None
    mean_error: Annotated[Number | None, about("signed, in real units")] = None


class Own(Part):
    rounding_db: Number | None = None
    clipping_db: Number | None = None


class Weights(Part):
    elements: PositiveCount
    sqnr_db: Annotated[
        Number | None,
        about(
            "10 log10(sum w² / sum (q - w)²) with the float model's weights w and the dequantised "
            "ones q; absent where they are equal"
        ),
    ] = None


class SharedScale(Part):
    node: Text
    module: Text | None = None
    through: Annotated[Text, about("the operator that gives all of its operands one scale")]


class Layer(Part):
    index: Annotated[Count, about("from 0, in the order in which the layers were begun")]
    name: Annotated[
        str, Meta(pattern="^layer[0-9]{3,}_[A-Za-z0-9_.-]+$", description="of its array in the dump")
    ]
    delegate: Count
    tensor: Annotated[
        Text,
        about(
            "the TOSA tensor's name, or Vela's where it made the tensor itself, or the NPU "
            "operation's where nothing is known of it"
        ),
    ]
    operations: Annotated[
        Operations,
        about("the NPU operations that wrote it: names in the words of the command stream, offsets in bytes"),
    ]
    vela: VelaOperation | None = None
    tosa: LastTosa = None
    source: SourceLine | None = None
    writers: Annotated[
        Annotated[tuple[Writer, ...], Meta(min_length=2)] | None,
        about(
            "where several of Vela's operations write parts of the tensor: all of them; the members "
            "above are those of the last"
        ),
    ] = None
    shape: Annotated[tuple[PositiveCount, ...], about("the TOSA tensor's; NHWC where there is none")]
    dtype: StoredDtype
    zero_point: Annotated[int, about("in the command stream, ahead of a look-up table if there is one")]
    address: Annotated[
        Address | None,
        about("of the first operation's first element; absent in a chaining buffer of Ethos-U85"),
    ] = None
    range: Annotated[
        Range | None, about("of the values as stored; absent when not all of them are known")
    ] = None
    quantisation: Annotated[Quantisation | None, about("value = (stored - zero_point) * scale")] = None
    pytorch: Annotated[Pytorch | None, about("what is quantised there in PyTorch")] = None
    quantised: Annotated[Distance | None, about("from the quantised model in PyTorch")] = None
    float: Annotated[Distance | None, about("from the float model in PyTorch")] = None
    own: Annotated[
        Own | None,
        about(
            "SQNR that this tensor's quantisation leaves by itself, of the float model's values: when "
            "they are rounded to its steps, and when they are clipped to its range; absent where that "
            "costs nothing"
        ),
    ] = None
    weights: Annotated[
        Weights | None, about("what quantisation costs the weights of the layer's operator")
    ] = None
    shared: Annotated[
        SharedScale | None,
        about(
            "the model's value whose scale the layer has to have, and whose range is at least twice as wide"
        ),
    ] = None
    reason: Annotated[Text | None, about("why the layer is not compared, or its values are not known")] = None


class Counts(Part):
    layers: Count
    of_the_graph: Annotated[Count, about("that are tensors of a TOSA graph")]
    gathered: Annotated[Count, about("all of whose values are known")]
    quantised: Annotated[Count, about("compared with the quantised model")]
    float: Annotated[Count, about("compared with the float model")]
    left_out_operations: Annotated[Count, about("NPU operations whose results were too many to keep")]


class Misplaced(Part):
    tensor: Text
    operator: Text
    layer: Annotated[Count | None, about("absent where the NPU has no operation for it")] = None


class Step(Part):
    layer: Annotated[Count, about("its index")]
    tensor: Text
    input_db: Annotated[
        Number | None,
        about(
            "least SQNR of the compared layers that it is computed from, to one decimal as it is "
            "shown and judged"
        ),
    ] = None
    reliable_input_db: Annotated[
        Number | None,
        about(
            "least SQNR of its inputs, of each no more than rounding errors leave that are evenly "
            "spread over a step"
        ),
    ] = None
    inputs_equal: Annotated[
        Literal[True] | None,
        about(
            "in place of input_db: all the compared layers that it is computed from equal the model's values"
        ),
    ] = None
    output_db: Annotated[
        Number | None, about("its own, likewise; absent when nothing of the signal is left")
    ] = None
    drop_db: Number | None = None
    perhaps: Annotated[
        Some[Count] | None,
        about(
            "layers between it and its compared inputs that are not comparable: the cause may be in "
            "one of them as well"
        ),
    ] = None
    misplaced: Annotated[
        Misplaced | None,
        about(
            "the TOSA tensor that the layer is computed from and whose elements are not in the places "
            "in which the model has them: the cause"
        ),
    ] = None


class Comparison(Part):
    against: Against
    rounding: Annotated[
        Rounding | None,
        about("of the quantised model: ties up and exact arithmetic, as on the NPU, or PyTorch's own"),
    ] = None
    layers: Count
    first_break: Annotated[
        Step | None,
        about("the first layer below the threshold whose inputs are not; absent when there is none"),
    ] = None
    further_breaks: Annotated[
        Some[Step] | None, about("the other layers below the threshold whose inputs are not")
    ] = None
    largest_drop: Annotated[Step | None, about("the layer in which the SQNR falls most")] = None


class Advice(Part):
    remedy: Remedy
    layer: Count
    node: Text | None = None
    module: Text | None = None
    sqnr_db: Annotated[
        Number, about("that rounding to 8 bits, clipping, or the rounding of its weights leaves by itself")
    ]


class Change(Part):
    remedy: Annotated[
        Literal[Remedy, "fault"],
        about(
            "fault: the NPU does not compute what the quantised model computes, which no change of "
            "bits or samples helps"
        ),
    ]
    layer: Count
    module: Text | None = None
    sqnr_db: Annotated[Number | None, about("that its own loss leaves")] = None


class Dump(Part):
    file: Text
    bytes: Count
    sha256: Sha256
    arrays: Count


class Debug(Derived[Literal["done"]], tag_field="schema", tag="debug/1"):
    """The numerics of every layer inside of a program's delegates."""

    model: Model
    target: Target | None = None
    simulator: Simulator
    inputs: Annotated[Text, about("where the inputs come from")]
    thresholds: Thresholds
    layers: tuple[Layer, ...]
    counts: Counts
    comparisons: tuple[Comparison, ...]
    advice: Annotated[
        tuple[Advice, ...],
        Meta(
            max_length=30,
            description="int8 layers to give 16 bits, layers whose range needs other calibration samples, and "
            "layers whose weights lose much; the worst of each first",
        ),
    ]
    change: Annotated[
        Change | None,
        about(
            "the one operator to change first; absent where the program's outputs keep the threshold "
            "of advice against the float model, or no layer's own loss explains theirs"
        ),
    ] = None
    dump: Dump | None = None
    unavailable: UnavailableMembers
    wall_time_s: Amount
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
