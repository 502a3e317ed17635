"""When the operations of a command stream end: block operations and transfers run side by side between waits."""

from __future__ import annotations

from dataclasses import dataclass, field

from ethosu_sdk.npu.config import NpuConfig


@dataclass
class Schedule:
    """Cycles from the first command on, under what ethos-u-vela 5.1.0 assumes of the hardware.

    One engine computes and one copies. Each takes its operations in order, one after the other, while the stream
    is read on, until a wait or until more would be at work than the NPU keeps (:attr:`NpuConfig.at_work`).
    Commands themselves take no time, and what BLOCKDEP lets block operations overlap is not known.
    """

    config: NpuConfig
    _now: int = 0
    _transfers: list[int] = field(default_factory=list)  # when those at work end, ascending
    _kernels: list[int] = field(default_factory=list)

    def wait_for_transfers(self, at_most: int) -> None:
        """NPU_OP_DMA_WAIT: go on when at most so many transfers are at work."""
        self._transfers = self._wait(self._transfers, at_most)

    def wait_for_kernels(self, at_most: int) -> None:
        """NPU_OP_KERNEL_WAIT: go on when at most so many block operations are at work."""
        self._kernels = self._wait(self._kernels, at_most)

    def transfer(self, cycles: int) -> int:
        """Begin a transfer of so many cycles; the cycle at which all that has begun has ended."""
        self.wait_for_transfers(self.config.at_work[0] - 1)
        self._begin(self._transfers, cycles)
        return self._end()

    def kernel(self, cycles: int) -> int:
        """Begin a block operation of so many cycles; the cycle at which all that has begun has ended."""
        self.wait_for_kernels(self.config.at_work[1] - 1)
        self._begin(self._kernels, cycles)
        return self._end()

    def _wait(self, ends: list[int], at_most: int) -> list[int]:
        if len(ends) > at_most:
            self._now = max(self._now, ends[-at_most - 1])
        return [end for end in ends if end > self._now]

    def _begin(self, ends: list[int], cycles: int) -> None:
        ends.append(max(self._now, ends[-1] if ends else 0) + cycles)

    def _end(self) -> int:
        return max(self._now, *self._transfers[-1:], *self._kernels[-1:])
