"""The machine: a command stream run on memory, with counters and a trace of what was done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.execute import Executor, WeightCache
from ethosu_sdk.npu.memory import Memory, Regions, Traffic
from ethosu_sdk.npu.program import OperationList, OperationTrace, operations


@dataclass
class Counters:
    """Sums over one command stream. Cycles are estimates; bytes are counted once per element."""

    total_cycles: int = 0
    mac_cycles: int = 0
    macs: int = 0
    bytes_moved: dict[tuple[int, bool], int] = field(default_factory=dict)  # (AXI port, is write) → bytes

    def move(self, port: int, is_write: bool, length: int) -> None:
        """Add `length` bytes to an AXI port's traffic."""
        key = (port, is_write)
        self.bytes_moved[key] = self.bytes_moved.get(key, 0) + length


@dataclass(frozen=True)
class Ports:
    """Which AXI port traffic takes: of a region, and of the command stream."""

    region: Callable[[int], int]
    commands: int


# ExecuTorch's default for Ethos-U55: constants and commands on port 1 (flash), everything else on port 0 (SRAM).
DEFAULT_PORTS = Ports(lambda region: 1 if region == 0 else 0, 1)


class Machine:
    """Runs one command stream on one memory. `counters`, `trace`, `position` and `irq_mask` tell what happened."""

    def __init__(
        self, config: NpuConfig, regions: Regions, cache: WeightCache, ports: Ports = DEFAULT_PORTS
    ) -> None:
        self._config = config
        self._cache = cache
        self._ports = ports
        self._memory = Memory(regions, config.shram_kib * 1024, self._count)
        self.counters = Counters()
        self.trace: tuple[OperationTrace, ...] = ()
        self.position = 0
        self.irq_mask = 0

    def run(self, stream: bytes) -> None:
        """Run `stream` to its NPU_OP_STOP. `position` then is the byte offset behind it.

        Raises CommandError, BusError, WeightStreamError, WeightOrderError or UnsupportedCommand; `position` then
        is the offset of the operation that failed, and `trace` and `counters` hold those before it.
        """
        program = operations(stream, self._config)
        self._cache.prepare(program.operations, self._memory.unobserved(), self._config)
        executor = Executor(self._config, self._memory, self._cache)
        done = 0
        try:
            for op in program.operations:
                self.position = op.offset
                executor.run(op)
                done += 1
            self.position = program.stop_offset + 4
            self.irq_mask = program.irq_mask
        finally:
            self._add_up(program, done)

    def _add_up(self, program: OperationList, done: int) -> None:
        self.trace = program.traces if done == len(program.traces) else program.traces[:done]
        self.counters.move(self._ports.commands, False, self.position)
        for row in self.trace:
            self.counters.total_cycles += row.total_cycles
            self.counters.mac_cycles += row.mac_cycles
            self.counters.macs += row.macs

    def _count(self, traffic: Traffic) -> None:
        self.counters.move(self._ports.region(traffic.region), traffic.is_write, traffic.length)
