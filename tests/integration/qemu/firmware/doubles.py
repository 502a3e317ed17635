"""Test doubles of the NPU device: small, and nothing of an Ethos-U but the interface."""

from dataclasses import dataclass, field

import numpy as np

from ethosu_sdk.simulate.qemu.memories import NpuMemory

_STATUS, _CMD, _QBASE = 0x04, 0x08, 0x10
_WINDOW_BYTES = 0x2000


@dataclass
class MemoryLikeDevice:
    """A device whose registers keep what is written, as memory would."""

    irq: bool = False
    jobs: list[int] = field(default_factory=list)
    words: dict[int, int] = field(default_factory=dict)

    def read32(self, offset: int) -> int:
        """The register at `offset`."""
        assert 0 <= offset < _WINDOW_BYTES
        assert offset % 4 == 0
        return self.words.get(offset, 0)

    def write32(self, offset: int, value: int) -> None:
        """Keep `value`."""
        assert 0 <= value < 1 << 32
        self.words[offset] = value


class IncrementDevice(MemoryLikeDevice):
    """CMD.run reads the job (bytes, source, destination) at QBASE and stores source + 1 at destination.

    STATUS bit 1 and the interrupt line rise with the end of a job and fall with CMD bit 1. `failures` maps a
    register to the exception that writing it raises.
    """

    def __init__(self, memory: NpuMemory, failures: dict[int, Exception] | None = None) -> None:
        super().__init__()
        self._memory = memory
        self._failures = failures or {}

    def write32(self, offset: int, value: int) -> None:
        """Keep `value`, fail, or run a job."""
        if offset in self._failures:
            raise self._failures[offset]
        super().write32(offset, value)
        if offset == _CMD and value & 1:
            self._run()
        if offset == _CMD:
            self.irq = bool(value & 1)
            self.words[_STATUS] = 2 * self.irq

    def _run(self) -> None:
        descriptor = self._memory.window(self.words[_QBASE])[:12]
        size, source, destination = (int(word) for word in descriptor.view(np.uint32))
        self._memory.window(destination)[:size] = self._memory.window(source)[:size] + np.uint8(1)
        self.jobs.append(size)
