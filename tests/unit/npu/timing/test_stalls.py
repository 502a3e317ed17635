"""What the MAC unit waits for, against counters of published runs and against the sum of an operation's parts."""

from dataclasses import replace

import pytest

from ethosu_sdk.npu import timing
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import BlockOp, Kernel, Kind, ScaleFormat, ScaleStreams, Stream, WeightStreams
from ethosu_sdk.npu.timing.systems import SystemConfig
from tests.tables import each
from tests.unit.npu.operations import dense, operation
from tests.unit.npu.timing.test_timing import CONV_1X1, DEPTHWISE, DRAM, SQUARE, U85, WITHOUT_LATENCY


def total(row: timing.Priced) -> int:
    return row.stalls.weights + row.stalls.accumulators + row.stalls.ifm


@each("system", [DRAM, WITHOUT_LATENCY], ids=["dram", "without latency"])
@each("op", [CONV_1X1, SQUARE, DEPTHWISE], ids=["1x1", "3x3", "depthwise"])
def test_work_stalls_and_output_are_all_of_an_operation(op: BlockOp, system: SystemConfig) -> None:
    (row,) = timing.price([op], U85, system)
    assert row.stages.mac + total(row) + row.stages.end == row.elapsed


def test_stalls_are_counted_once_and_of_the_mac_unit_alone() -> None:
    operations = [SQUARE, *(replace(op, blockdep=3) for op in (CONV_1X1, DEPTHWISE, SQUARE, CONV_1X1))]
    rows = timing.price(operations, U85, DRAM)
    assert sum(row.stages.mac + total(row) for row in rows) <= rows[-1].elapsed
    shape = (8, 8, 16)
    add = operation(Kind.ELEMENTWISE, shape, dense(0, shape), dense(4096, shape))
    assert timing.price([add], U85, DRAM)[0].stalls == timing.Stalls()


def slower(system: SystemConfig, region: str) -> SystemConfig:
    memory = getattr(system, region)
    return replace(system, **{region: replace(memory, read_latency_cycles=20_000)})


def test_what_is_fetched_late_is_the_cause() -> None:
    plain = timing.price([CONV_1X1], U85, DRAM)[0].stalls
    weights = timing.price([CONV_1X1], U85, slower(DRAM, "constants"))[0].stalls
    ifm = timing.price([CONV_1X1], U85, slower(DRAM, "arena"))[0].stalls
    assert weights.weights > plain.weights + 10_000
    assert ifm.ifm > plain.ifm + 10_000
    assert ifm.weights <= plain.weights


def fully_connected(inputs: int, outputs: int, encoded: int) -> BlockOp:
    return replace(
        operation(
            Kind.CONV,
            (1, 1, outputs),
            dense(1, (1, 1, inputs)),
            dense(1 << 16, (1, 1, outputs)),
            ifm_depth=inputs,
            kernel=Kernel(1, 1, 1, 1, 1, 1, part_kernel_first=False),
            weights=WeightStreams((Stream(0, 0, encoded),), fast=False),
            scales=ScaleStreams((Stream(0, encoded, 10 * outputs),), ScaleFormat.BIAS_32),
        ),
        block=(1, 1, min(outputs, 128)),
        micro_block=(1, 2, 8),  # one row of one element: half of it is used
    )


def test_a_perceptron_waits_for_its_weights() -> None:
    """Published with ExecuTorch: 784-512-256-10 on Ethos-U85-128; MAC unit 8,000 of 97,000 cycles, decoder 74,000.

    507 KB of weights were read faster than Vela's configuration of that flash allows: no timing adapter was set.
    """
    config = NpuConfig.for_target("ethos-u85", 128)
    sizes = ((784, 512), (512, 256), (256, 10))
    weights = sum(inputs * outputs for inputs, outputs in sizes)
    layers = [
        fully_connected(inputs, outputs, 507_000 * inputs * outputs // weights) for inputs, outputs in sizes
    ]
    rows = timing.price(layers, config, WITHOUT_LATENCY)
    stalls = sum((row.stalls for row in rows), timing.Stalls())
    assert sum(row.stages.decoder for row in rows) == pytest.approx(74_000, rel=0.05)
    assert sum(row.stages.mac for row in rows) == pytest.approx(8_000, rel=0.10)
    assert stalls.weights > 0.95 * (stalls.weights + stalls.ifm + stalls.accumulators) > 60_000
    assert rows[-1].elapsed > 74_000  # the layers share one decoder
