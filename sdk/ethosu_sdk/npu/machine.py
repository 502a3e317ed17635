"""The machine: a command stream run on memory, with counters and a trace of what was done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ethosu_sdk.npu import cycles
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.execute import Executor, WeightCache
from ethosu_sdk.npu.memory import Memory, Regions, Traffic
from ethosu_sdk.npu.program import operations


@dataclass(frozen=True)
class OperationTrace:
    """One operation as it was carried out: place in the stream, name, estimated cycles, multiply-accumulates."""

    offset: int
    name: str
    total_cycles: int
    mac_cycles: int
    macs: int


@dataclass
class Counters:
    """Sums over one command stream. Cycles are estimates; bytes are counted once per element."""

    total_cycles: int = 0
    mac_cycles: int = 0
    macs: int = 0
    bytes_moved: dict[tuple[int, bool], int] = field(default_factory=dict)  # (AXI port, is write) → bytes


def default_port(region: int) -> int:
    """The AXI port of a region with ExecuTorch's default settings: constants on port 1, the rest on port 0."""
    return 1 if region == 0 else 0


class Machine:
    """Runs command streams on one memory. `counters`, `trace` and `position` tell what happened."""

    def __init__(
        self,
        config: NpuConfig,
        regions: Regions,
        cache: WeightCache,
        port: Callable[[int], int] = default_port,
    ) -> None:
        self._config = config
        self._cache = cache
        self._port = port
        self._memory = Memory(regions, config.shram_kib * 1024, self._count)
        self.counters = Counters()
        self.trace: list[OperationTrace] = []
        self.position = 0

    def run(self, stream: bytes) -> int:
        """Run `stream` to its NPU_OP_STOP; the byte offset behind it.

        Raises CommandError, BusError, WeightStreamError, UnsupportedCommand; `position` then is the offset of
        the operation that failed.
        """
        program = operations(stream, self._config)
        self._cache.prepare(program.operations, self._silent_memory(), self._config)
        executor = Executor(self._config, self._memory, self._cache)
        for op in program.operations:
            self.position = op.offset
            executor.run(op)
            estimate = cycles.estimate(op, self._config)
            self.trace.append(
                OperationTrace(op.offset, op.name, estimate.total_cycles, estimate.mac_cycles, estimate.macs)
            )
            self.counters.total_cycles += estimate.total_cycles
            self.counters.mac_cycles += estimate.mac_cycles
            self.counters.macs += estimate.macs
        self.position = program.stop_offset + 4
        return self.position

    def _silent_memory(self) -> Memory:
        """The same regions, without counting: looking at weights ahead of time is not traffic."""
        return self._memory.unobserved()

    def _count(self, traffic: Traffic) -> None:
        key = (self._port(traffic.region), traffic.is_write)
        self.counters.bytes_moved[key] = self.counters.bytes_moved.get(key, 0) + traffic.length
