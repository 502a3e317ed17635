"""The cycle estimate, made from the command stream alone, against the one that Vela makes for its layers.

Every layer costs exactly what Vela says, but for those that DEVIATIONS names. In memory mode Sram_Only the figures are
compared as they stand; where weights are copied before their use, with the waiting that Vela adds (vela_layers.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.cycles_weights import decode_cycles
from ethosu_sdk.npu.system_config import SystemConfig, memory_map
from ethosu_sdk.npu.weights import order_key, stream_sizes
from ethosu_sdk.targets import Target, parse_target, target_names
from tests.conformance.conftest import Corpus
from tests.conformance.selection import FULL, FULL_ONLY, Pair
from tests.conformance.vela_layers import Layer, compiled, with_waiting

pytestmark = pytest.mark.torch

# Where weights lie in the memory that everything lies in: a system configuration that allows it, by family.
SRAM_ONLY = {"ethos-u55": None, "ethos-u65": "Ethos_U65_High_End", "ethos-u85": None}
MOST_ROWS = 128  # OFM_BLK_HEIGHT_M1 of Ethos-U85 has seven bits


@dataclass(frozen=True)
class Deviation:
    """Layers that our estimate prices otherwise than Vela, why, and a model on a target that shows it."""

    reason: str
    covers: Callable[[Layer, Target], bool]
    example: Pair


def is_u85(target: Target) -> bool:
    return target.npu == "ethos-u85"


DEVIATIONS = {
    "transposition": Deviation(
        "Vela prices one pass over memory; the stream holds a pooling for each row or column",
        lambda layer, target: layer.operator == "Transpose" and not is_u85(target),
        Pair("networks", "inverted_residual", "ethos-u55-128"),
    ),
    "matrix product": Deviation(
        "Vela prices the sums as if their 32-bit IFM, the products, had the width of the factors",
        lambda layer, target: layer.operator == "MatMul" and not is_u85(target),
        Pair("networks", "matmul", "ethos-u55-128"),
    ),
    "copy of 32 bits": Deviation(
        "Vela prices 32-bit elements; the stream copies twice as many of 16 bits, which the hardware can pool",
        lambda layer, target: (
            layer.operator == "MemoryCopy"
            and layer.row["ifm_dtype"].endswith(("32", "64"))
            and not is_u85(target)
        ),
        Pair("elementwise", "broadcast_both", "ethos-u55-128"),
    ),
    "maximum along an axis": Deviation(
        "Vela knows it from max pooling, which it prices at half; the command is the same. Elsewhere the floor of "
        "one cycle per element hides that",
        lambda layer, target: layer.operator == "ReduceMax" and target.name == "ethos-u55-32",
        Pair("pools", "extrema", "ethos-u55-32"),
    ),
    "every second row": Deviation(
        "Each of the four operations of a transposed convolution makes a quarter of the OFM, which Vela prices whole",
        lambda layer, target: layer.row["ofm_strides_h"] != "1" and is_u85(target),
        Pair("networks", "unet", "ethos-u85-256"),
    ),
    "block of more than 128 rows": Deviation(
        "Vela prices the block that it chose; its height does not fit the register, which loses the upper bit",
        lambda layer, target: int(layer.row["ofm_block_h"] or 0) > MOST_ROWS and is_u85(target),
        Pair("convolutions", "conv_deep", "ethos-u85-2048"),
    ),
    "copy that exchanges axes": Deviation(
        "Vela prices computing 16-bit results for a copy and not for a transposition; the commands are the same",
        lambda layer, target: (
            layer.operator == "MemoryCopy" and layer.row["transpose_type"] != "None" and is_u85(target)
        ),
        Pair("normalisation", "layer_norm_int16", "ethos-u85-128"),
    ),
}

NETWORKS = [("networks", name) for name in ("digits_cnn", "inverted_residual", "resnet_block")]
SINGLE = [
    *(
        ("convolutions", name)
        for name in (
            "conv_5x3_stride_2",
            "conv_stride_3",
            "conv_dilated",
            "conv_grouped",
            "conv_10x11",
            "conv_deep",
            "conv_int16",
            "conv_transposed",
            "depthwise_3x3",
            "linear",
        )
    ),
    ("elementwise", "arithmetic"),
    ("elementwise", "arithmetic_int32"),
    ("pools", "max_pool"),
    ("pools", "average_pool"),
]


def chosen() -> list[Pair]:
    """The networks on every configuration; in the quick set the other models each on two, that change."""
    names = target_names()
    found = [Pair(*model, name) for model in NETWORKS for name in names]
    for index, model in enumerate(SINGLE):
        own = names if FULL else (names[index % 6], names[6 + index % 5])
        found += [Pair(*model, name) for name in own]
    return found


def sram_only(name: str) -> Target:
    npu = name.rpartition("-")[0]
    return parse_target(name, SRAM_ONLY[npu], "Sram_Only")


def deviation_of(layer: Layer, target: Target) -> str | None:
    return next((name for name, row in DEVIATIONS.items() if row.covers(layer, target)), None)


def compare(target: Target, tosa: bytes) -> int:
    """Assert that the layers of a graph cost what Vela says; how many convolutions and the like were compared."""
    system = memory_map(target)
    program = compiled(target, system, tosa)
    compared = 0
    for layer, ours in with_waiting(program, system):
        if ours is None or deviation_of(layer, target) is not None:
            continue
        assert ours == layer.price, layer.row
        compared += layer.operator != "Transpose"
        compare_decoding(layer, program.config, system)
    return compared


def compare_decoding(layer: Layer, config: NpuConfig, system: SystemConfig) -> None:
    """Ethos-U85: assert that decoding a layer's weights takes the cycles that Vela expects, reading them aside."""
    expected = layer.row.get("wd_cycles")
    op = layer.operations[0]
    if not expected or len(layer.operations) > 1 or op.weights is None:
        return
    streams = tuple(replace(part, length=0) for part in op.weights.streams)
    unread = replace(op, weights=replace(op.weights, streams=streams))
    latency = system.memory(streams[0].region).read_latency_cycles
    weights = sum(stream_sizes(order_key(op, config), op.offset))
    zeros = int(layer.row["weight_zero"] or 0) / weights
    distinct = int(layer.row["weight_distinct"] or 0)
    assert decode_cycles(unread, system, config, zeros, distinct) == max(int(expected), latency), layer.row


@pytest.mark.parametrize("pair", chosen(), ids=str)
def test_layers_cost_what_vela_says(corpus: Corpus, pair: Pair) -> None:
    (delegate,) = corpus(pair)
    assert compare(sram_only(pair.target), delegate.tosa)


DEFAULTS = [pair for pair in chosen() if not pair.target.startswith("ethos-u85")]


@pytest.mark.parametrize("pair", DEFAULTS, ids=str)
def test_layers_cost_what_vela_says_where_weights_are_copied(corpus: Corpus, pair: Pair) -> None:
    (delegate,) = corpus(pair)
    assert compare(parse_target(pair.target), delegate.tosa)


@pytest.mark.parametrize(
    "name", [name for name, row in DEVIATIONS.items() if FULL or row.example.model not in FULL_ONLY]
)
def test_deviations_exist(corpus: Corpus, name: str) -> None:
    """So that one that is gone is noticed."""
    pair = DEVIATIONS[name].example
    target = parse_target(pair.target)
    (delegate,) = corpus(pair)
    system = memory_map(target)
    layers = with_waiting(compiled(target, system, delegate.tosa), system)
    deviating = [
        (ours, layer.price)
        for layer, ours in layers
        if deviation_of(layer, target) == name and ours is not None
    ]
    assert any(ours != price for ours, price in deviating)
