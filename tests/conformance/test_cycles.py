"""The cycle estimate, made from the command stream alone, against the one that Vela prints for its layers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pytest

from ethosu_sdk import npu
from ethosu_sdk.npu.program import operations
from tests.conformance.conftest import Corpus
from tests.conformance.lower import MACS

pytestmark = pytest.mark.torch

OPERATIONS = {
    "Conv2D": "CONV",
    "FullyConnected": "CONV",
    "DepthwiseConv2D": "DEPTHWISE",
    "MaxPool": "POOL_MAX",
    "Add": "ELEMENTWISE_ADD",
    "Sub": "ELEMENTWISE_SUB",
    "Mul": "ELEMENTWISE_MUL",
}
MODELS = [
    *(
        ("convolutions", name)
        for name in (
            "conv_5x3_stride_2",
            "conv_stride_3",
            "conv_dilated",
            "conv_10x11",
            "conv_deep",
            "depthwise_3x3",
            "linear",
        )
    ),
    *(
        ("networks", name)
        for name in ("digits_cnn", "inverted_residual", "arithmetic", "arithmetic_int32", "max_pool")
    ),
]


def grouped(rows: Iterable[tuple[str | None, int]]) -> dict[str, list[int]]:
    """Cycles by operation, sorted: Vela lists independent layers in another order than it emits them."""
    found = defaultdict(list)
    for name, cycles in rows:
        if name is not None:
            found[name].append(cycles)
    return {name: sorted(values) for name, values in found.items()}


@pytest.mark.parametrize("macs", MACS)
@pytest.mark.parametrize(("group", "model"), MODELS)
def test_estimates_are_those_of_vela(corpus: Corpus, group: str, model: str, macs: int) -> None:
    compared = 0
    for delegate in corpus(group, model):
        program = npu.load(delegate.payloads[macs])
        listed = operations(bytes(program.blocks.command_stream), program.config)
        ours = grouped((trace.name, trace.total_cycles) for trace in listed.traces)
        vela = grouped(
            (OPERATIONS.get(row["NNG Operator"]), round(float(row["NPU"]))) for row in delegate.layers[macs]
        )
        for name, cycles in vela.items():
            if len(cycles) == len(ours[name]):  # else Vela has cut layers into slices
                assert ours[name] == cycles
                compared += 1
    assert compared
