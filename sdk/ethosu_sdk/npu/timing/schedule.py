"""When the operations of a command stream end: block operations and transfers run side by side between waits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.timing.pipeline import Stages
from ethosu_sdk.npu.timing.stalls import Span, Stalls, stalls


@dataclass(frozen=True)
class _Running:
    """An operation at work from `begin` to `end`, which keeps each port busy for the cycles in `needs`."""

    begin: int
    end: int
    needs: tuple[float, ...]


def _delay(op: _Running, other: _Running, now: int) -> int:
    """The cycles by which `op` ends later because `other` uses the same ports from `now` on.

    Both spread what they need over the time that they take, so that `op` gets what `other` leaves.
    """
    together = min(op.end, other.end) - now
    if together <= 0:
        return 0
    delays = [0.0]
    for mine, theirs in zip(op.needs, other.needs, strict=False):
        own, others = (need / max(1, run.end - run.begin) for need, run in ((mine, op), (theirs, other)))
        delays.append(min(1.0, own, others, max(0.0, own + others - 1.0)) * together)
    return int(max(delays))


@dataclass
class Schedule:
    """Cycles from the first command on.

    One engine computes and one copies. Each takes its operations in order, one after the other, while the stream is
    read on, until a wait or until more would be at work than the NPU keeps (:attr:`NpuConfig.at_work`). With a
    BLOCKDEP above 0, a block operation fetches its first blocks while as many blocks of the operation before are in
    work. Its first weights are fetched and decoded as soon as its command is read and the decoder is free. Where both
    engines need the same memory at the same time, they share it.
    """

    config: NpuConfig
    _now: int = 0
    _transfers: list[int] = field(default_factory=list)  # when those at work end, ascending
    _kernel: _Running = field(default_factory=lambda: _Running(0, 0, ()))  # the latest one of each engine
    _copy: _Running = field(default_factory=lambda: _Running(0, 0, ()))
    _kernels: list[int] = field(default_factory=list)
    _last: Stages = field(default_factory=lambda: Stages(0, 0, 0))
    _mac_free: int = 0  # when the MAC unit has ended its part of the latest operation
    _decoder_free: int = 0  # likewise the weight decoder, which may be ahead

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
        copy = _Running(begin, begin + stages.total, stages.needs)
        if self._kernels and self._kernel.end > begin:
            self._kernels[-1] += _delay(self._kernel, copy, begin)
            self._kernel = replace(self._kernel, end=self._kernels[-1])
        self._transfers.append(copy.end + _delay(copy, self._kernel, begin))
        self._copy = replace(copy, end=self._transfers[-1])
        return self._end()

    def kernel(self, stages: Stages, blockdep: int) -> tuple[int, Stalls]:
        """Begin a block operation; the cycle at which all that has begun has ended, and the MAC unit's stalls."""
        self.wait_for_kernels(self.config.kernels_at_work - 1)
        last = self._kernels[-1] if self._kernels else 0
        before = self._last
        hidden = before.end + min(blockdep, before.blocks) * before.body // before.blocks if blockdep else 0
        free = max(self._now, last - min(hidden, stages.begin + before.end))
        issued = max(self._now, self._decoder_free) if stages.decoder else self._now
        self._decoder_free = max(self._decoder_free, issued + stages.decoder)
        kernel = _Running(free, max(last, stages.ended(issued, free)), stages.needs)
        self._kernels.append(kernel.end + _delay(kernel, self._copy, free))
        self._kernel = replace(kernel, end=self._kernels[-1])
        found = stalls(stages, Span(self._mac_free, issued, free, self._kernel.end))
        if stages.mac:
            self._mac_free = self._kernel.end - stages.end
        if self._transfers and self._copy.end > free:
            self._transfers[-1] += _delay(self._copy, kernel, free)
            self._copy = replace(self._copy, end=self._transfers[-1])
        self._last = stages
        return self._end(), found

    def _wait(self, ends: list[int], at_most: int) -> list[int]:
        if len(ends) > at_most:
            self._now = max(self._now, ends[-at_most - 1])
        return [end for end in ends if end > self._now]

    def _end(self) -> int:
        return max(self._now, *self._transfers[-1:], *self._kernels[-1:])
