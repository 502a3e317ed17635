"""Layers of a graph, priced from the command stream alone, against Vela's own prices.

Every layer costs exactly what Vela says, but for those that DEVIATIONS names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ethosu_sdk.npu import cycles_geometry
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.cycles_weights import decode_cycles
from ethosu_sdk.npu.operation import Kind, PoolMode
from ethosu_sdk.npu.system_config import SystemConfig, memory_map
from ethosu_sdk.npu.weights import order_key, stream_sizes
from ethosu_sdk.targets import Target
from tests.conformance.selection import Pair
from tests.conformance.vela_layers import Layer, compiled, with_waiting

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
    "copy in blocks of odd depth": Deviation(
        "Vela does not round the depth of a copy's IFM block up to a unit of the IFM memory, as it does for other "
        "pooling; the command is the same",
        lambda layer, target: (
            layer.operator == "MemoryCopy" and int(layer.row["ifm_block_c"]) % 16 != 0 and is_u85(target)
        ),
        Pair("normalisation", "layer_norm_int16", "ethos-u85-128"),
    ),
}


def deviation_of(layer: Layer, target: Target) -> str | None:
    return next((name for name, row in DEVIATIONS.items() if row.covers(layer, target)), None)


def compare(target: Target, tosa: bytes) -> int:
    """Assert that the layers of a graph cost what Vela says; how many convolutions and the like were compared."""
    system = memory_map(target.npu, target.system_config, target.memory_mode)
    program = compiled(target, system, tosa)
    compared = 0
    for layer, ours in with_waiting(program, system):
        if ours is None or deviation_of(layer, target) is not None:
            continue
        assert ours == layer.price, layer.row
        compared += layer.operator != "Transpose"
        compare_blocks(layer, program.config)
        compare_decoding(layer, program.config, system)
    return compared


def compare_blocks(layer: Layer, config: NpuConfig) -> None:
    """Assert that the IFM blocks, which no register tells of, are those that Vela reckons with."""
    op = layer.operations[0]
    expected = tuple(int(layer.row[f"ifm_block_{axis}"] or 0) for axis in "hwc")
    if op.kind is not Kind.ELEMENTWISE and op.mode is not PoolMode.NONE and layer.operator != "Transpose":
        assert cycles_geometry.of(op, config).ifm_block == expected, layer.row


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
