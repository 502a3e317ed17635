"""Running one delegate in one line: no firmware, no board."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.npu import vela_blocks
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.machine import Counters, Machine
from ethosu_sdk.npu.memory import FixedRegions, Observer
from ethosu_sdk.npu.operation import Array
from ethosu_sdk.npu.program import Reach, reach_of
from ethosu_sdk.npu.timing.price import OperationTrace
from ethosu_sdk.npu.timing.systems import SystemConfig
from ethosu_sdk.npu.weight_cache import WeightCache

MOST_SCRATCH_BYTES = 1 << 29  # twice the DDR of the boards
_DTYPES: dict[int, np.dtype[Any]] = {1: np.dtype("<i1"), 2: np.dtype("<i2"), 4: np.dtype("<i4")}


@dataclass(frozen=True)
class Program:
    """A delegate that is ready to run. Decoded weights stay with it from run to run."""

    blocks: vela_blocks.VelaBlocks
    config: NpuConfig
    system: SystemConfig | None = None  # None: the family's default
    cache: WeightCache = field(default_factory=WeightCache, compare=False, repr=False)

    @functools.cached_property
    def reach(self) -> Reach:
        """The regions that the stream may use."""
        return reach_of(self.blocks)


@dataclass(frozen=True)
class RunResult:
    """What one run gave.

    `outputs` are in the payload's order, of its six-dimensional shapes, signed integers of the element size.
    `counters` and the cycles in `operations` are estimates of the model.
    """

    outputs: list[Array]
    counters: Counters
    operations: tuple[OperationTrace, ...]


def load(blob: bytes | memoryview, system: SystemConfig | None = None) -> Program:
    """A delegate's payload, as ExecuTorch stores it, made ready to run.

    `system` is what cycles and AXI ports are modelled for, by default ExecuTorch's default for the family; see
    :func:`ethosu_sdk.npu.timing.systems.memory_map`.

    Raises InputError for a damaged payload, UsageError for an NPU that the model does not cover.
    """
    blocks = vela_blocks.parse(blob)
    if blocks.scratch_bytes > MOST_SCRATCH_BYTES:
        raise InputError(
            f"the delegate asks for {blocks.scratch_bytes:,} bytes of scratch memory, but at most "
            f"{MOST_SCRATCH_BYTES:,} can be simulated",
            "the boards have 268,435,456 bytes of DDR: use a smaller model or input",
        )
    for slot in (*blocks.inputs, *blocks.outputs):
        if slot.region != vela_blocks.REGION_SCRATCH or slot.element_bytes not in _DTYPES:
            raise InputError(
                f"the delegate has a tensor of {slot.element_bytes}-byte elements in region {slot.region}",
                "the NPU model runs delegates whose tensors have 1, 2 or 4 bytes and lie in scratch memory",
            )
    return Program(blocks, NpuConfig.from_word(blocks.config_word), system)


def run(
    blob_or_program: bytes | memoryview | Program, inputs: Sequence[Array], observer: Observer | None = None
) -> RunResult:
    """Run a delegate on `inputs`, one array per input in the payload's order, each of the input's size in bytes.

    `observer` is called with each OFM as it is written; what it raises ends the run. Regions 0 (constants),
    1 (scratch) and 2 (fast scratch) exist: Vela's memory modes use no others.

    Raises InputError for inputs that do not fit, CommandError or BusError for a command stream that hardware
    would refuse, WeightStreamError or WeightOrderError for damaged weights, UnsupportedCommand for what the
    model cannot do.
    """
    program = blob_or_program if isinstance(blob_or_program, Program) else load(blob_or_program)
    blocks = program.blocks
    scratch = np.zeros(blocks.scratch_bytes, np.uint8)
    if len(inputs) != len(blocks.inputs):
        raise InputError(f"{len(inputs)} inputs given, but the delegate has {len(blocks.inputs)}")
    for index, (slot, value) in enumerate(zip(blocks.inputs, inputs, strict=True)):
        data = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        if data.size != slot.nbytes:
            raise InputError(f"input {index} has {data.size} bytes, but the delegate takes {slot.nbytes}")
        scratch[slot.offset : slot.offset + slot.nbytes] = data
    memory = {
        vela_blocks.REGION_WEIGHTS: np.frombuffer(blocks.weights, np.uint8),
        vela_blocks.REGION_SCRATCH: scratch,
        vela_blocks.REGION_FAST_SCRATCH: np.zeros(
            program.reach.sizes[vela_blocks.REGION_FAST_SCRATCH], np.uint8
        ),
    }
    regions = FixedRegions(program.reach.regions(memory.__getitem__))
    machine = Machine(program.config, regions, program.cache, system=program.system, observer=observer)
    machine.run(bytes(blocks.command_stream))
    outputs = [
        scratch[slot.offset : slot.offset + slot.nbytes]
        .view(_DTYPES[slot.element_bytes])
        .reshape(slot.shape)
        .copy()
        for slot in blocks.outputs
    ]
    return RunResult(outputs, machine.counters, tuple(machine.trace))
