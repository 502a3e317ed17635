"""What a delegate's command stream may reach: one rule, wherever it runs.

Hardware has no bounds for regions: it sees the memory of its system from each region's base on. Where the model knows
the delegate, a region ends where the payload says so, and what nobody wrote before the job is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ethosu_sdk.errors import SdkError
from ethosu_sdk.npu import extent
from ethosu_sdk.npu.arrays import Bytes
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import BusError
from ethosu_sdk.vela_blocks import REGION_FAST_SCRATCH, REGION_SCRATCH, REGION_WEIGHTS, TensorSlot, VelaBlocks

_MOST_FAST_SCRATCH_BYTES = 1 << 26  # more than any SRAM has


@dataclass(frozen=True)
class Reach:
    """Region → its bytes, and the `inputs` that stand in the scratch memory before the job.

    Vela's memory modes use no other regions. `begins` is False for a piece of a stream, which goes on with what the
    piece before it left.
    """

    sizes: Mapping[int, int]
    inputs: tuple[TensorSlot, ...]
    begins: bool = True

    def regions(self, window: Callable[[int], Bytes]) -> dict[int, Bytes]:
        """The regions of a job, of which `window` gives the memory from the base on: weights are read-only."""
        found = {number: self._region(number, window) for number in self.sizes}
        if self.begins:
            _clear(found, self.inputs)
        return found

    def _region(self, number: int, window: Callable[[int], Bytes]) -> Bytes:
        size = self.sizes[number]
        if not size:
            return np.zeros(0, np.uint8)
        memory = window(number)
        if memory.size < size:
            raise BusError(
                f"region {number} needs {size:#x} bytes, but its memory ends after {memory.size:#x}", number
            )
        region = memory[:size]
        if number == REGION_WEIGHTS:
            region.flags.writeable = False  # of this view alone
        return region


def _clear(regions: Mapping[int, Bytes], inputs: tuple[TensorSlot, ...]) -> None:
    """Zeros wherever the stream may write, but for the inputs."""
    regions[REGION_FAST_SCRATCH][:] = 0
    scratch, end = regions[REGION_SCRATCH], 0
    for slot in sorted(inputs, key=lambda slot: slot.offset):
        scratch[end : max(end, slot.offset)] = 0
        end = max(end, slot.offset + slot.nbytes)
    scratch[end:] = 0


def reach_of(blocks: VelaBlocks) -> Reach:
    """What the delegate may reach. Fast scratch memory is as large as the commands write, for no payload says it:
    none for a stream that cannot be decoded, which whoever runs it refuses."""
    try:
        config = NpuConfig.from_word(blocks.config_word)
        written = extent.written_bytes(bytes(blocks.command_stream), config)
    except SdkError:
        written = {}
    fast = min(written.get(REGION_FAST_SCRATCH, 0), _MOST_FAST_SCRATCH_BYTES)
    sizes = {
        REGION_WEIGHTS: len(blocks.weights),
        REGION_SCRATCH: blocks.scratch_bytes,
        REGION_FAST_SCRATCH: fast,
    }
    return Reach(sizes, blocks.inputs)
