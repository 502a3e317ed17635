"""Running hand-written streams on the machine, without a device in front of it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.machine import Machine
from ethosu_sdk.npu.memory import FixedRegions
from ethosu_sdk.npu.weight_cache import WeightCache

U55_128 = NpuConfig.for_target("ethos-u55", 128)
U65_256 = NpuConfig.for_target("ethos-u65", 256)
U65_512 = NpuConfig.for_target("ethos-u65", 512)
U85_256 = NpuConfig.for_target("ethos-u85", 256)
SCRATCH_BYTES = 1 << 16


def place(*parts: tuple[int, NDArray[Any]]) -> NDArray[np.uint8]:
    """A scratch region with arrays at byte offsets."""
    scratch = np.zeros(SCRATCH_BYTES, np.uint8)
    for offset, values in parts:
        data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
        scratch[offset : offset + data.size] = data
    return scratch


def run(
    stream: bytes,
    scratch: NDArray[np.uint8],
    constants: bytes = b"",
    config: NpuConfig = U55_128,
) -> Machine:
    """The machine after it ran `stream` on `scratch` (region 1) and `constants` (region 0)."""
    regions = FixedRegions({0: np.frombuffer(constants, np.uint8), 1: scratch})
    machine = Machine(config, regions, WeightCache())
    machine.run(stream)
    return machine


def taken(scratch: NDArray[np.uint8], offset: int, count: int, dtype: str) -> list[int]:
    """`count` elements of `scratch` from byte `offset`."""
    values: list[int] = (
        scratch[offset:].view(np.uint8)[: count * np.dtype(dtype).itemsize].view(dtype).tolist()
    )
    return values
