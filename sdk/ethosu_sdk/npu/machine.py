"""The machine: a command stream run on memory, with counters and a trace of what was done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from ethosu_sdk.npu import timing
from ethosu_sdk.npu.config import NpuConfig, ceil_div
from ethosu_sdk.npu.errors import BranchError, UnsupportedCommand
from ethosu_sdk.npu.execute import Executor
from ethosu_sdk.npu.memory import Memory, Observer, Regions
from ethosu_sdk.npu.program import Branch, Segment, segment
from ethosu_sdk.npu.timing.price import OperationTrace
from ethosu_sdk.npu.timing.systems import SystemConfig, default_for
from ethosu_sdk.npu.weight_cache import WeightCache

_MOST_STEPS = 16384  # operations and branches of a job that branches: a loop that never ends must


@dataclass
class Counters:
    """Sums over one command stream. Cycles and beats are modelled; bytes are counted once per element.

    `total_cycles` is less than the sum over the operations where they run beside each other. `mac_cycles_by_bits` are
    `mac_cycles` by the width of the IFM's elements.
    """

    total_cycles: int = 0
    mac_cycles: int = 0
    macs: int = 0
    decoder_cycles: int = 0
    output_cycles: int = 0
    stalls: timing.Stalls = field(default_factory=timing.Stalls)
    mac_cycles_by_bits: Counter[int] = field(default_factory=Counter)
    bytes_moved: Counter[tuple[int, bool]] = field(default_factory=Counter)  # by (AXI port, is write)
    beats: Counter[tuple[int, bool]] = field(default_factory=Counter)  # likewise


@dataclass(frozen=True)
class Ports:
    """Which AXI port traffic takes: of a region, and of the command stream."""

    region: Callable[[int], int]
    commands: int


class Machine:
    """Runs one command stream on one memory. `counters`, `trace`, `position` and `irq_mask` hold what happened."""

    def __init__(
        self,
        config: NpuConfig,
        regions: Regions,
        cache: WeightCache,
        ports: Ports | None = None,
        system: SystemConfig | None = None,
        observer: Observer | None = None,
    ) -> None:
        """`system` gives the cycles and, without `ports`, the ports; by default it is the family's default.
        `observer` is told of every OFM."""
        self._config = config
        self._observer = observer
        self._system = memories = system or default_for(config.npu)
        self._cache = cache
        self._ports = ports or Ports(
            lambda region: memories.memory(region).interface, memories.command_stream.interface
        )
        self._regions = regions
        self._memory = Memory(regions, config.own_bytes, self._count)
        self.counters = Counters()
        self.trace: list[OperationTrace] = []
        self.position = 0
        self.irq_mask = 0
        self.result_flag: bool | None = None  # COND_STATUS; None when it is not known

    def run(self, stream: bytes) -> None:
        """Run `stream` to its NPU_OP_STOP. `position` then is the byte offset behind it.

        Raises CommandError, BusError, WeightStreamError, WeightOrderError or UnsupportedCommand; `position` then
        is the offset of the operation that failed, and `trace` and `counters` hold those before it.
        """
        executor = Executor(self._config, self._memory, self._cache, self._observer)
        entry = part = segment(stream, self._config)
        # What follows a segment depends on the branch alone: loops need not look it up by all their registers.
        known = {id(entry): entry}  # keeps them, and so their ids, alive
        followers: dict[tuple[int, bool], Segment] = {}
        steps = 0
        self.counters.total_cycles += timing.started(self._system)
        while True:
            self._run_segment(part, executor)
            if part.branch is None:
                return
            steps += 1 + len(part.operations)
            if steps > _MOST_STEPS:
                raise UnsupportedCommand("NPU_OP_BRANCH", self.position, 1, f"more than {_MOST_STEPS} steps")
            taken = self._takes(part.branch, executor)
            if (id(part), taken) not in followers:
                if taken and (part.branch.target % 4 or part.branch.target >= len(stream)):
                    raise BranchError(
                        f"a branch to byte {part.branch.target} of {len(stream)}, taken", part.branch.offset
                    )
                start = part.branch.target if taken else part.end
                follower = segment(stream, self._config, start, part.registers)
                followers[id(part), taken] = known.setdefault(id(follower), follower)
            part = followers[id(part), taken]

    def _run_segment(self, part: Segment, executor: Executor) -> None:
        self._cache.prepare(part.operations, Memory(self._regions, 0), self._config)
        traces = timing.costs(part, self._config, self._system)
        start, done = self.position, 0
        try:
            for op in part.operations:
                self.position = op.offset
                executor.run(op)
                done += 1
            self.position = part.end
            self.irq_mask |= part.irq_mask
        finally:
            self.result_flag = executor.result_flag
            self.counters.total_cycles += traces[done - 1].price.elapsed if done else 0
            self._add_up(traces[:done], max(0, self.position - start))

    def _takes(self, branch: Branch, executor: Executor) -> bool:
        if not branch.conditional:
            return True
        if executor.result_flag is None:
            raise UnsupportedCommand("NPU_OP_BRANCH", branch.offset, 1, "no single result to decide by")
        return executor.result_flag

    def _add_up(self, traces: tuple[OperationTrace, ...], command_bytes: int) -> None:
        self.trace.extend(traces)
        counters, commands = self.counters, (self._ports.commands, False)
        counters.bytes_moved[commands] += command_bytes
        counters.beats[commands] += ceil_div(command_bytes, self._config.beat_bytes)
        for price in (row.price for row in traces):
            mac, bits = price.stages.mac, price.stages.ifm_bits
            counters.mac_cycles += mac
            if mac:
                counters.mac_cycles_by_bits[bits] += mac
            counters.output_cycles += price.stages.output
            counters.stalls += price.stalls
            counters.macs += price.macs
            counters.decoder_cycles += price.stages.decoder
            for moved in price.transfers:
                if moved.region is not None:
                    port = self._ports.region(moved.region)
                    counters.beats[port, moved.stream.is_write] += moved.beats

    def _count(self, region: int, is_write: bool, length: int) -> None:
        self.counters.bytes_moved[self._ports.region(region), is_write] += length
