"""Rules about what runs on the NPU: channels, layouts, memory modes, layers of eight bits, and smaller NPUs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence, Set

from ethosu_sdk.base import plain_text
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.targets import families
from ethosu_sdk.records import common
from ethosu_sdk.records.advice import Evidence, Item
from ethosu_sdk.records.common import source_module
from ethosu_sdk.records.debug import Layer
from ethosu_sdk.records.profile import Operation
from ethosu_sdk.records.run_facts import Mode
from ethosu_sdk.reporting.advise.advice_facts import (
    CHANNELS,
    MAC_UNITS,
    NPU_CYCLES,
    SQNR,
    SRAM,
    WORTH_SHARE,
    Advice,
    Facts,
    expected_change,
    figure_evidence,
    modelled_cycles,
)


def channel_steps(facts: Facts) -> list[Item]:
    """Convolutions whose pace the MAC unit sets, with channels that are no multiple of what it computes at once."""
    step = facts.channel_step
    if step is None:
        return []
    rows = [row for row in facts.npu_rows if row.kind == "conv" and row.scheduled is not None]
    # Vela cuts a convolution into slices of channels, or into stripes.
    groups = itertools.groupby(rows, lambda row: (row.delegate, row.scheduled))
    return [advice for _, own in groups for advice in _partial(facts, list(own), step)]


def _partial(facts: Facts, rows: Sequence[Operation], step: int) -> Iterator[Item]:
    """What a convolution of slices has to gain; of stripes, all are partial, and nothing is said."""
    partial = [row for row in rows if _depth(row) % step]
    if len(partial) != 1 or partial[0].bound_by != "MAC unit" or not all(map(_depth, rows)):
        return
    row, channels = partial[0], sum(map(_depth, rows))
    cycles = sum(map(modelled_cycles, rows))
    more = -(-channels // step) * step
    saved = modelled_cycles(row) * step // (_depth(row) + more - channels)
    if saved < WORTH_SHARE * facts.npu_cycles:
        return
    how = f"the MAC unit computes {step} channels at once, and the last of them are computed and thrown away now"
    name = common.source_name(row.source)
    fewer = f" {more - step} save one step." if more > step else ""
    yield Advice(
        finding=f"{channels} output channels take as long as {more}.{fewer}",
        where=name or None,
        evidence=(
            figure_evidence("cycles of the convolution", cycles, "cycles", "modelled"),
            figure_evidence(f"cycles of one step of {step} channels", saved, "cycles", "modelled"),
        ),
        code=(
            f"# {plain_text.line(name)}: out_channels={more} in place of {channels}, "
            "and in_channels of what reads it",
        ),
        gains=(expected_change(CHANNELS, channels, more, how),),
        limits=(
            "the network has to be trained again",
            "weights and feature maps grow: where a memory sets the pace behind it, that costs",
        ),
    )


def _depth(row: Operation) -> int:
    """The channels of a row's OFM, 0 where the profile does not tell."""
    return (row.ofm or (0,))[-1]


_SPATIAL = {"CONV2D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D", "MAX_POOL2D", "AVG_POOL2D"}
_PERMUTES = {"aten_permute_copy_default", "aten_transpose_copy_int"}
# The largest kernel that Vela 5.1.0 gives the NPU: its height, and height by width.
_MOST_KERNEL_HEIGHT, _MOST_KERNEL_AREA = 64, 64 * 64
CHANNELS_LAST = "example_inputs = tuple(x.to(memory_format=torch.channels_last) for x in example_inputs)"
CHANNELS_LAST_LIMITS = (
    "the application has to hand over bytes in the order NHWC: where it has NCHW, the work moves to the CPU",
    "example inputs from --inputs F.npz are NCHW: the line belongs into the model's file",
)


def channels_last_input(facts: Facts) -> list[Item]:
    """TRANSPOSEs in front of the first convolution or pooling, for a 4-D input whose channels come first."""
    turned = list(itertools.takewhile(_is_transpose, facts.npu_rows))
    following = facts.npu_rows[len(turned) : len(turned) + 1]
    sizes = {math.prod(row.ifm) for row in turned}
    shapes = [
        shape
        for shape in (row.shape for row in facts.compiled.inputs)
        if len(shape) == 4 and shape[1] > 1 and shape[2] * shape[3] > 1 and math.prod(shape) in sizes
    ]
    own = {row.operator for row in facts.compiled.delegation or ()} & _PERMUTES
    if not shapes or own or not following or following[0].operator not in _SPATIAL:
        return []
    shape = "x".join(map(str, shapes[0]))
    return _worth(
        facts,
        turned,
        finding=f"the input {shape} is turned from NCHW to NHWC on the NPU, in {counted(len(turned), 'operation')}",
        where=common.source_name(following[0].source) or None,
        code=(CHANNELS_LAST,),
        limits=CHANNELS_LAST_LIMITS,
        spreads=True,
    )


def flatten_as_convolution(facts: Facts) -> list[Item]:
    """TRANSPOSEs between a feature map and the linear layer that takes all of it: a convolution with a kernel of the
    map's size computes the same, with the same weights, and needs no other order."""
    found = []
    rows = facts.npu_rows
    end = 0
    for is_transpose, group in itertools.groupby(rows, _is_transpose):
        start, end = end, end + len(list(group))
        linear = rows[end] if is_transpose and end < len(rows) else None
        if not start or linear is None or linear.source is None or linear.source.module_type != "Linear":
            continue
        shape = next((row.ofm for row in reversed(rows[:start]) if row.ofm), ())
        if len(shape) != 3 or len(linear.ofm) != 3:
            continue
        height, width, channels = shape
        if linear.ifm != (1, 1, height * width * channels) or height * width == 1:
            continue
        if height > _MOST_KERNEL_HEIGHT or height * width > _MOST_KERNEL_AREA:
            continue
        name = common.source_name(linear.source)
        found += _worth(
            facts,
            rows[start:end],
            finding=f"the feature map {height}x{width}x{channels} is turned from NHWC to NCHW on the NPU, in "
            f"{counted(end - start, 'operation')}, for the linear layer that flattens it",
            where=name or None,
            code=_convolution(name, (height, width, channels), linear.ofm[2]),
            limits=(
                "training goes on with the convolution; a checkpoint of the linear layer has to be reshaped as above",
                "quantisation is that of a convolution: outputs may differ by a step",
            ),
        )
    return found


def _convolution(name: str, shape: tuple[int, int, int], outputs: int) -> tuple[str, ...]:
    """The lines that put a convolution in the place of the linear layer `name` of `model`."""
    height, width, channels = shape
    return (
        f"linear = model.get_submodule({name!r})",
        f"conv = nn.Conv2d({channels}, {outputs}, ({height}, {width}), bias=linear.bias is not None)",
        "shapes = {name: value.shape for name, value in conv.state_dict().items()}",
        "conv.load_state_dict({name: value.reshape(shapes[name]) for name, value in linear.state_dict().items()})",
        f"model.set_submodule({name!r}, nn.Sequential(conv, nn.Flatten(1)))  # and no flatten in front of it",
    )


def _worth(
    facts: Facts,
    turned: Sequence[Operation],
    *,
    finding: str,
    where: str | None,
    code: tuple[str, ...],
    limits: tuple[str, ...],
    spreads: bool = False,
) -> list[Item]:
    """The advice, if the cycles of the rows `turned` are worth it; those of all TRANSPOSEs where the order `spreads`
    to the layers behind."""
    cycles, whole = sum(map(modelled_cycles, turned)), facts.npu_cycles
    all_turned = sum(modelled_cycles(row) for row in facts.npu_rows if _is_transpose(row))
    if not cycles or (all_turned if spreads else cycles) < WORTH_SHARE * whole:
        return []
    how = "the modelled cycles of these TRANSPOSEs fall away"
    how += ", and often those of others: `advise --try` shows" if spreads else ""
    return [
        Advice(
            finding=finding,
            where=where,
            evidence=(
                figure_evidence("cycles of the TRANSPOSEs", cycles, "cycles", "modelled"),
                figure_evidence("cycles of all TRANSPOSEs", all_turned, "cycles", "modelled"),
                figure_evidence("cycles of an inference", whole, "cycles", "modelled"),
            ),
            code=code,
            gains=(expected_change(NPU_CYCLES, whole, whole - cycles, how, "modelled"),),
            limits=limits,
        )
    ]


def _is_transpose(row: Operation) -> bool:
    return row.operator == "TRANSPOSE"


def memory_mode(facts: Facts) -> list[Item]:
    """The mode with the fewest cycles among those that fit, if it saves some; else the one with the least SRAM whose
    cycles are the same."""
    target = facts.compiled.target
    if target is None:
        return []
    present = facts.modes.get(target.memory_mode)
    if present is None:
        return []
    others = [row for row in facts.modes.values() if row.name != present.name and row.fits]
    fastest = min(others, key=lambda row: (row.cycles, row.sram_bytes), default=present)
    if fastest.cycles <= (1 - WORTH_SHARE) * present.cycles:
        return [_mode_advice(facts, present, fastest, is_faster=True)]
    same = [row for row in others if row.cycles <= (1 + WORTH_SHARE) * present.cycles]
    smallest = min(same, key=lambda row: (row.sram_bytes, row.cycles), default=present)
    if smallest.sram_bytes <= (1 - WORTH_SHARE) * present.sram_bytes:
        return [_mode_advice(facts, present, smallest, is_faster=False)]
    return []


def _mode_advice(facts: Facts, present: Mode, other: Mode, *, is_faster: bool) -> Item:
    how = f"the same command stream, priced with the memories of {other.name}"
    cycles = expected_change(NPU_CYCLES, present.cycles, other.cycles, how, "modelled")
    how = f"the present sizes, placed as {other.name} has them"
    sram = expected_change(SRAM, present.sram_bytes, other.sram_bytes, how)
    changes = (cycles, sram) if is_faster else (sram, cycles)
    finding = f"{other.name} takes less SRAM for about the same cycles"
    if is_faster:
        waiting = sum(modelled_cycles(row) for row in facts.npu_rows if row.bound_by in facts.memories)
        share = waiting / facts.npu_cycles if facts.npu_cycles else 0.0
        finding = f"{share:.0%} of the cycles go into operations that wait for a memory; in {other.name} it is nearer"
    return Advice(
        finding=finding,
        evidence=(
            *(
                figure_evidence(f"{name} read and written", moved, "bytes", "modelled")
                for name, moved in (
                    (row.memory, row.read_bytes + row.write_bytes) for row in facts.profile.memories
                )
            ),
            figure_evidence("SRAM in use", present.sram_bytes, "bytes"),
        ),
        command=facts.compiled_again(memory_mode=other.name),
        gains=tuple(row for row in changes if row.after < row.before),
        costs=tuple(row for row in changes if row.after > row.before),
        limits=(
            "Vela schedules anew for another memory mode: cycles can fall or rise beyond that",
            "the board has to have the memory: the firmware's settings and the linker script follow the memory mode",
            "SRAM forgets: with Sram_Only an application copies the program there after power-up, which takes time "
            "once",
        ),
    )


def sixteen_bits(facts: Facts) -> list[Item]:
    """The first layer that breaks against the floating-point model although its inputs do not: it and the module
    whose eight bits it reads."""
    layers = facts.debug.layers
    floats = [row.first_break for row in facts.debug.comparisons if row.against == "float"]
    step = next((row for row in floats if row is not None), None)
    if step is None or step.reliable_input_db is None or step.output_db is None:
        return []
    layer = layers[step.layer]
    own, near = source_module(layer.source), layer.quantised
    # The module of the nearest compared layer in front.
    names = (source_module(row.source) for row in reversed(layers[: step.layer]) if row.float is not None)
    source = next((name for name in names if name and name != own), "")
    # Where the NPU computes something else than the quantised model, bits do not help.
    is_faithful = near is not None and (near.differing == 0 or (near.sqnr_db or 0.0) >= 30.0)
    if layer.dtype != "int8" or not own or not source or not is_faithful:
        return []
    if step.reliable_input_db - step.output_db < 6.0:  # what any layer of eight bits may cost
        return []
    return [_bits_advice(facts, (step.reliable_input_db, step.output_db), layer, (source, own))]


def _bits_advice(facts: Facts, ratios: tuple[float, float], layer: Layer, modules: tuple[str, str]) -> Item:
    """The advice for `layer`, whose inputs and output have `ratios`, and `modules`: the one before, and its own."""
    source, module = modules
    after, before = ratios
    # Of the MAC unit on Ethos-U55; it makes fewer passes where it has wider products.
    passes, whole = 3, facts.npu_cycles
    rows = [row for row in facts.npu_rows if source_module(row.source) in modules]
    more = (passes - 1) * sum(min(row.busy.mac * row.calls, modelled_cycles(row)) for row in rows)
    slower = f"with 16 bits the MAC unit takes up to {passes} times the cycles in these modules"
    lossless = "at least what its inputs have, if sixteen bits lose nothing"
    return Advice(
        finding=f"its inputs have {after:.1f} dB against floating point, its output {before:.1f} dB; "
        f"eight bits are too few for what {source} hands over",
        where=module or None,
        evidence=tuple(_bits_evidence(facts, ratios, layer)),
        code=(
            "from executorch.backends.arm.quantizer import get_symmetric_a16w8_quantization_config",
            "def quantizer(q):",
            f"    for name in ({source!r}, {module!r}):",
            "        q.set_module_name(name, get_symmetric_a16w8_quantization_config())",
        ),
        gains=(expected_change(SQNR, before, after, lossless, "modelled"),),
        costs=(expected_change(NPU_CYCLES, whole, whole + more, slower, "modelled"),) if more else (),
        limits=(
            f"{source} is the layer that ran before: where {module} reads others too, name those as well",
            "what layers before have lost does not come back; extend a quantizer that the file has",
        ),
    )


def _bits_evidence(facts: Facts, ratios: tuple[float, float], layer: Layer) -> Iterator[Evidence]:
    yield figure_evidence("SQNR of its inputs", ratios[0], "dB", "modelled")
    yield figure_evidence("SQNR of its output", ratios[1], "dB", "modelled")
    if layer.own is not None and layer.own.rounding_db is not None:
        name = "SQNR that rounding its output leaves by itself"
        yield figure_evidence(name, layer.own.rounding_db, "dB", "modelled")
    floats = (row.float.sqnr_db for row in reversed(facts.debug.layers) if row.float is not None)
    last = next((value for value in floats if value is not None), None)
    if last is not None:
        yield figure_evidence("SQNR of the last layer", last, "dB", "modelled")


def smaller_target(facts: Facts) -> list[Item]:
    """A program that keeps the MAC unit waiting, so that half of it would do. A board's NPU is what it is."""
    target = facts.compiled.target
    if target is None:
        return []
    macs = [count for count in families()[target.npu].macs if count < target.macs]
    whole = facts.npu_cycles
    if facts.compiled.board_profile or not macs or not whole or 2 * max(macs) != target.macs:
        return []
    more = sum(_more(row, facts.memories) for row in facts.npu_rows)
    if more > 0.05 * whole:  # too much for half of the MACs
        return []
    smaller = f"{target.npu}-{max(macs)}"
    busy = sum(row.busy.mac * row.calls for row in facts.npu_rows)
    how = "operations take twice the cycles, but where a memory sets the pace and hides it"
    cycles = expected_change(NPU_CYCLES, whole, whole + more, how, "modelled")
    return [
        Advice(
            finding=f"the MAC unit works in {busy / whole:.0%} of the cycles: {smaller} would do",
            evidence=(
                figure_evidence("cycles of an inference", whole, "cycles", "modelled"),
                figure_evidence("cycles of the MAC unit", busy, "cycles", "modelled"),
            ),
            command=facts.compiled_again(target=smaller),
            gains=(expected_change(MAC_UNITS, target.macs, max(macs), "half of the MACs"),),
            costs=(cycles,) if more else (),
            limits=(
                "it is about the NPU of a design that is not fixed yet; a larger one costs nothing where it is there",
                "a smaller NPU has less memory of its own: other blocks, more traffic",
            ),
        )
    ]


def _more(row: Operation, memories: Set[str]) -> int:
    """The cycles that an operation takes longer with half of the MACs, in all of its calls: all of its cycles, unless
    a memory sets its pace."""
    if row.bound_by not in memories:
        return modelled_cycles(row)
    busy = row.busy
    hidden = max(row.modelled_cycles, busy.mac, busy.output, busy.weight_decoder, busy.memory)
    return row.calls * max(0, 2 * max(busy.mac, busy.output) - hidden)
