"""The systems of published runs: what Vela was told, and what the FVP's timing adapters let through."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ethosu_sdk.npu.timing.systems import (
    Memory,
    SystemConfig,
    behind_adapters,
    executorch_adapters,
    memory_map,
)

ARENA_CACHE_BYTES = 393216  # of Arm's evaluation kit for Dedicated_Sram; Vela's published totals confirm it
_MODES = {"Shared": "Shared_Sram", "Dedicated": "Dedicated_Sram", "Sram_Only": "Sram_Only"}
_NPU_CLOCK_OF_LATENCIES = {128: 0.5, 256: 0.5}  # Ethos-U85: latencies in ns at 500 MHz, else at 1 GHz
_SRAM_BYTES_PER_CYCLE = 32.0  # of Ethos-U85's timing adapters: two of them, a beat of 16 bytes in each cycle
_EXT_BYTES_PER_CYCLE = 12.0  # at most


@dataclass(frozen=True)
class System:
    """What to compile for and what to price for."""

    npu: str
    macs: int
    system_config: str
    memory_mode: str
    cache_bytes: int | None
    priced: SystemConfig

    @property
    def accelerator(self) -> str:
        """Vela's name of the configuration."""
        return f"{self.npu}-{self.macs}"


def system_of(target: str, mode: str, *, zero_latency: bool = False) -> System:
    """The system of a row such as ("u85-256", "Dedicated"). KeyError or ValueError for what is not known.

    `zero_latency`: memories that answer at once, as wide as their ports.
    """
    family, _, macs_text = target.partition("-")
    npu, macs = f"ethos-{family}", int(macs_text)
    memory_mode = _MODES[mode]
    config = _system_config(npu, macs, memory_mode)
    plain = memory_map(npu, config, memory_mode)
    priced = plain
    if npu in ("ethos-u55", "ethos-u65"):
        priced = behind_adapters(plain, executorch_adapters(config, memory_mode), npu)
    if npu == "ethos-u85":
        change = _at_once if zero_latency else _behind_adapter
        constants, arena, cached = (
            change(memory, macs, memory_mode) for memory in (plain.constants, plain.arena, plain.cache)
        )
        priced = replace(plain, constants=constants, arena=arena, cache=cached)
    cache_bytes = ARENA_CACHE_BYTES if memory_mode == "Dedicated_Sram" else None
    return System(npu, macs, config, memory_mode, cache_bytes, priced)


def _system_config(npu: str, macs: int, memory_mode: str) -> str:
    if npu == "ethos-u85":
        if memory_mode == "Sram_Only" and macs == 128:  # Arm's learning path
            return "Ethos_U85_SYS_DRAM_Mid"
        speed = {128: "Low", 256: "Low", 2048: "High"}.get(macs, "Mid")
        return f"Ethos_U85_SYS_DRAM_{speed}"
    return {"ethos-u55": "Ethos_U55_High_End_Embedded", "ethos-u65": "Ethos_U65_High_End"}[npu]


def _at_once(memory: Memory, macs: int, memory_mode: str) -> Memory:
    del macs, memory_mode
    return replace(memory, read_latency_cycles=0, write_latency_cycles=0, bytes_per_cycle=16.0 * memory.ports)


def _behind_adapter(memory: Memory, macs: int, memory_mode: str) -> Memory:
    if memory.interface == 0:
        return replace(memory, bytes_per_cycle=_SRAM_BYTES_PER_CYCLE)
    clock = 1.0 if memory_mode == "Sram_Only" else _NPU_CLOCK_OF_LATENCIES.get(macs, 1.0)
    return replace(
        memory,
        bytes_per_cycle=min(memory.bytes_per_cycle, _EXT_BYTES_PER_CYCLE),
        read_latency_cycles=int(memory.read_latency_cycles * clock),
        write_latency_cycles=int(memory.write_latency_cycles * clock),
    )
