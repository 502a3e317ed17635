"""Feature maps that are turned around: the NPU keeps channels last, PyTorch has them first."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from ethosu_sdk.plain_text import counted
from ethosu_sdk.readers.advise.advice import NPU_CYCLES, Advice, change, figure
from ethosu_sdk.readers.advise.facts import WORTH_SHARE, Facts, modelled
from ethosu_sdk.records.profile import Operation
from ethosu_sdk.results import source_place

_SPATIAL = {"CONV2D", "DEPTHWISE_CONV2D", "TRANSPOSE_CONV2D", "MAX_POOL2D", "AVG_POOL2D"}
_PERMUTES = {"aten_permute_copy_default", "aten_transpose_copy_int"}
# The largest kernel that Vela 5.1.0 gives the NPU: its height, and height by width.
_MOST_KERNEL_HEIGHT, _MOST_KERNEL_AREA = 64, 64 * 64
_FALLS_AWAY = "the modelled cycles of these TRANSPOSEs fall away"
_SPREADS = (
    "the modelled cycles of these TRANSPOSEs fall away, and often those of others: `advise --try` shows"
)
CHANNELS_LAST = "example_inputs = tuple(x.to(memory_format=torch.channels_last) for x in example_inputs)"
CHANNELS_LAST_LIMITS = (
    "the application has to hand over bytes in the order NHWC: where it has NCHW, the work moves to the CPU",
    "example inputs from --inputs F.npz are NCHW: the line belongs into the model's file",
)


def turns_an_input(facts: Facts) -> bool:
    """Whether the NPU turns feature maps around, and there is an input whose order of axes could be why."""
    has_images = any(len(row.shape) == 4 for row in facts.compiled.inputs)
    return has_images and any(_is_transpose(row) for row in facts.npu_rows)


def channels_last_input(facts: Facts) -> list[Advice]:
    """TRANSPOSEs in front of the first convolution or pooling, for a 4-D input whose channels come first."""
    turned = list(itertools.takewhile(_is_transpose, facts.npu_rows))
    following = facts.npu_rows[len(turned) : len(turned) + 1]
    inputs = [row.shape for row in facts.compiled.inputs if _has_channels(row.shape)]
    sizes = {math.prod(row.ifm) for row in turned}
    shapes = [shape for shape in inputs if math.prod(shape) in sizes]
    own = {row.operator for row in facts.compiled.delegation or ()} & _PERMUTES
    if not shapes or own or not following or following[0].operator not in _SPATIAL:
        return []
    shape = "x".join(map(str, shapes[0]))
    return _worth(
        facts,
        turned,
        finding=f"the input {shape} is turned from NCHW to NHWC on the NPU, in {_operations(turned)}",
        where=source_place.module_or_line(following[0].source),
        code=(CHANNELS_LAST,),
        limits=CHANNELS_LAST_LIMITS,
        spreads=True,
    )


def flatten_as_convolution(facts: Facts) -> list[Advice]:
    """TRANSPOSEs between a feature map and the linear layer that takes all of it: a convolution with a kernel of the
    map's size computes the same, with the same weights, and needs no other order."""
    found = []
    rows = facts.npu_rows
    for start, end in _transposes(rows):
        linear = rows[end] if end < len(rows) else None
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
        name = source_place.module_or_line(linear.source)
        found += _worth(
            facts,
            rows[start:end],
            finding=f"the feature map {height}x{width}x{channels} is turned from NHWC to NCHW on the NPU, in "
            f"{_operations(rows[start:end])}, for the linear layer that flattens it",
            where=name,
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
    where: str,
    code: tuple[str, ...],
    limits: tuple[str, ...],
    spreads: bool = False,
) -> list[Advice]:
    """The advice, if the cycles of the rows `turned` are worth it; those of all TRANSPOSEs where the order `spreads`
    to the layers behind."""
    cycles, whole = sum(map(modelled, turned)), facts.npu_cycles
    all_turned = sum(modelled(row) for row in facts.npu_rows if _is_transpose(row))
    if not cycles or (all_turned if spreads else cycles) < WORTH_SHARE * whole:
        return []
    return [
        Advice(
            finding=finding,
            where=where,
            evidence=(
                figure("cycles of the TRANSPOSEs", cycles, "cycles", "modelled"),
                figure("cycles of all TRANSPOSEs", all_turned, "cycles", "modelled"),
                figure("cycles of an inference", whole, "cycles", "modelled"),
            ),
            code=code,
            gains=(
                change(NPU_CYCLES, whole, whole - cycles, _SPREADS if spreads else _FALLS_AWAY, "modelled"),
            ),
            limits=limits,
        )
    ]


def _transposes(rows: Sequence[Operation]) -> list[tuple[int, int]]:
    """First row and end of each run of TRANSPOSEs."""
    found, start = [], 0
    for is_transpose, group in itertools.groupby(rows, _is_transpose):
        end = start + len(list(group))
        if is_transpose:
            found.append((start, end))
        start = end
    return found


def _is_transpose(row: Operation) -> bool:
    return row.operator == "TRANSPOSE"


def _has_channels(shape: Sequence[int]) -> bool:
    return len(shape) == 4 and shape[1] > 1 and shape[2] * shape[3] > 1


def _operations(rows: Sequence[Operation]) -> str:
    return counted(len(rows), "operation")
