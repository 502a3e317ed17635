"""When the operations of a command stream end: block operations and transfers run side by side between waits."""

from __future__ import annotations

from dataclasses import dataclass, field

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.timing.pipeline import Stages


@dataclass
class Schedule:
    """Cycles from the first command on.

    One engine computes and one copies. Each takes its operations in order, one after the other, while the stream is
    read on, until a wait or until more would be at work than the NPU keeps (:attr:`NpuConfig.at_work`). With a
    BLOCKDEP above 0, a block operation fetches its first blocks while as many blocks of the operation before are in
    work. Its first weights are fetched and decoded as soon as its command is read.
    """

    config: NpuConfig
    _now: int = 0
    _transfers: list[int] = field(default_factory=list)  # when those at work end, ascending
    _kernels: list[int] = field(default_factory=list)
    _last: Stages = field(default_factory=lambda: Stages(0, 0, 0))

    def wait_for_transfers(self, at_most: int) -> None:
        """NPU_OP_DMA_WAIT: go on when at most so many transfers are at work."""
        self._transfers = self._wait(self._transfers, at_most)

    def wait_for_kernels(self, at_most: int) -> None:
        """NPU_OP_KERNEL_WAIT: go on when at most so many block operations are at work."""
        self._kernels = self._wait(self._kernels, at_most)

    def transfer(self, stages: Stages) -> int:
        """Begin a transfer; the cycle at which all that has begun has ended."""
        self.wait_for_transfers(self.config.transfers_at_work - 1)
        begin = max(self._now, self._transfers[-1] if self._transfers else 0)
        self._transfers.append(begin + stages.total)
        return self._end()

    def kernel(self, stages: Stages, blockdep: int) -> int:
        """Begin a block operation; the cycle at which all that has begun has ended."""
        self.wait_for_kernels(self.config.kernels_at_work - 1)
        last = self._kernels[-1] if self._kernels else 0
        before = self._last
        hidden = before.end + min(blockdep, before.blocks) * before.body // before.blocks if blockdep else 0
        free = max(self._now, last - min(hidden, stages.begin + before.end))
        self._kernels.append(max(last, stages.ended(self._now, free)))
        self._last = stages
        return self._end()

    def _wait(self, ends: list[int], at_most: int) -> list[int]:
        if len(ends) > at_most:
            self._now = max(self._now, ends[-at_most - 1])
        return [end for end in ends if end > self._now]

    def _end(self) -> int:
        return max(self._now, *self._transfers[-1:], *self._kernels[-1:])
