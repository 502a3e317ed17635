"""The NPU model behind its register window: loads and stores of any width, from any source."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from ethosu_sdk.errors import SdkError, SimulationError
from ethosu_sdk.simulators.qemu.gdbremote import GdbError
from ethosu_sdk.simulators.qemu.memory import NpuMemory


class NpuDevice(Protocol):
    """What the bridge needs of :class:`ethosu_sdk.npu.device.Device`."""

    @property
    def irq(self) -> bool:
        """The level of the interrupt line."""
        ...

    @property
    def jobs(self) -> Sequence[Any]:
        """What the device kept of each job."""
        ...

    def read32(self, offset: int) -> int:
        """The register at `offset` bytes."""
        ...

    def write32(self, offset: int, value: int) -> None:
        """Write the register at `offset` bytes; CMD.run executes the whole job."""
        ...


class NpuBridge:
    """`device` behind a window of `window_bytes`; `accesses` counts the instructions that reached it."""

    def __init__(self, device: NpuDevice, memory: NpuMemory, window_bytes: int) -> None:
        self._device = device
        self._memory = memory
        self.window_bytes = window_bytes
        self.accesses = 0
        self.last_access_at = 0.0

    @property
    def jobs(self) -> tuple[Any, ...]:
        """What the device kept of each job."""
        return tuple(self._device.jobs)

    @property
    def irq(self) -> bool:
        """The level of the interrupt line."""
        return self._device.irq

    def load(self, offset: int, size: int) -> int:
        """The `size` bytes at `offset`, a multiple of it: a load narrower than a word takes its lanes."""
        with self._faults_of_the_model(offset):
            return self._device.read32(offset & ~3) >> 8 * (offset & 3) & ((1 << 8 * size) - 1)

    def store(self, offset: int, size: int, value: int) -> None:
        """Store `size` bytes: a store narrower than a word leaves the register's other lanes as they read."""
        with self._faults_of_the_model(offset):
            if size == 4:
                self._device.write32(offset, value)
                return
            shift = 8 * (offset & 3)
            mask = ((1 << 8 * size) - 1) << shift
            word = self._device.read32(offset & ~3)
            self._device.write32(offset & ~3, (word & ~mask) | (value << shift & mask))

    def settle(self) -> None:
        """The access is over: what the NPU wrote is where the guest sees it. Raises GdbError."""
        self._memory.flush()
        self.accesses += 1
        self.last_access_at = time.monotonic()

    @contextlib.contextmanager
    def _faults_of_the_model(self, offset: int) -> Iterator[None]:
        try:
            yield
        except (SdkError, GdbError, MemoryError):
            raise
        except Exception as error:
            raise SimulationError(
                f"the NPU model failed at register {offset:#06x}: {type(error).__name__}: {error}",
                "this is a bug in the SDK; --debug shows where",
            ) from error


class NpuTransport(Protocol):
    """How accesses of the guest come to a bridge, and its answers back."""

    @property
    def announces_stops(self) -> bool:
        """Whether, after an error, a packet will announce that the guest has stopped at the access."""
        ...

    def attach(self) -> None:
        """Have every access to the NPU's registers served from now on. Raises GdbError."""
        ...

    def serve_stop(self, packet: bytes) -> bool:
        """Serve the access that `packet`, a stop reply, announces; False when it announces something else."""
        ...
