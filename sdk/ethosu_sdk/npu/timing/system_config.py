"""The memories that an Ethos-U reaches through its AXI ports, as a Vela configuration file describes them.

A *system configuration* says what hangs on the two ports and how fast it is, a *memory mode* which of the two holds
the constants, the arena and the cache. The vela.ini that comes with Vela has Arm's examples of systems; a user's file
has the user's own.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.resources
from dataclasses import dataclass, replace

from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.npu.timing import vela_ini
from ethosu_sdk.npu.timing.vela_ini import Section, VelaIni
from ethosu_sdk.targets import MemoryAreas, family

_PACKAGE = "ethos-u-vela"
_INI = "config_files/Arm/vela.ini"  # inside that package's `ethosu`
# What the regions of a command stream are for, as Vela 5.1.0 numbers them.
_CONSTANTS_REGION, _CACHE_REGION = 0, 2
_NAMES = ("Sram", "Dram", "OnChipFlash", "OffChipFlash")  # Vela's memories
_AREAS = ("Axi0", "Axi1")
# Bounds of what a file may say: far from any system, near enough for arithmetic.
_LEAST_HZ, _LEAST_SCALE = 1e3, 1e-4  # of less, cycles and times overflow
_MOST_HZ, _MOST_SCALE, _MOST_CYCLES, _MOST_BYTES = 1e11, 1e3, 1 << 24, 1 << 24
_MOST_PORTS, _MOST_TRANSACTIONS, _MOST_CACHE_BYTES = 64, 1 << 16, 1 << 40


@dataclass(frozen=True)
class Memory:
    """One memory as the NPU sees it through `ports` ports of AXI interface `interface` (0 or 1).

    `bytes_per_cycle` is for all ports together; latencies are in NPU cycles, `max_reads` and `max_writes` are
    transactions under way per port.
    """

    name: str
    interface: int
    ports: int
    bytes_per_cycle: float
    read_latency_cycles: int
    write_latency_cycles: int
    burst_bytes: int
    max_reads: int
    max_writes: int


@dataclass(frozen=True)
class SystemConfig:
    """A system configuration in a memory mode: the clock and the memory of each kind of data.

    `cache_bytes` is the size of the cache where the memory mode limits it. `source` names the file that says all
    this, `sha256` is its digest.
    """

    name: str
    memory_mode: str
    clock_hz: float
    constants: Memory
    arena: Memory
    cache: Memory
    cache_bytes: int | None = None
    source: str = ""
    sha256: str = ""

    @property
    def areas(self) -> MemoryAreas:
        """Which AXI interface each kind of data is at."""
        return MemoryAreas(
            constants=self.constants.interface,
            arena=self.arena.interface,
            cache=self.cache.interface,
            cache_bytes=self.cache_bytes,
        )

    def memory(self, region: int | None) -> Memory:
        """The memory of a command stream's region: 0 holds the constants, 2 the cache, any other is in the arena."""
        if region == _CONSTANTS_REGION:
            return self.constants
        return self.cache if region == _CACHE_REGION else self.arena

    @property
    def command_stream(self) -> Memory:
        """The memory that the NPU fetches its commands from: they lie beside the constants."""
        return self.constants


def known(npu: str, system_config: str, memory_mode: str) -> SystemConfig | None:
    """The memories of a target, or None when vela.ini does not name them: users have files of their own."""
    try:
        return memory_map(npu, system_config, memory_mode)
    except UsageError:
        return None


@functools.cache
def default_for(npu: str) -> SystemConfig:
    """The memories of a family such as ``ethos-u55`` with its default system configuration and memory mode.

    UsageError when there is no such family.
    """
    row = family(npu)
    return memory_map(npu, row.default_system_config, row.default_memory_mode)


@functools.cache
def memory_map(npu: str, system_config: str, memory_mode: str) -> SystemConfig:
    """The memories of an NPU such as ``ethos-u55`` in a system. UsageError when vela.ini does not name them."""
    ini, digest = _vela_ini()
    found = _system(ini, npu, system_config, memory_mode)
    version = importlib.metadata.version(_PACKAGE)
    return replace(found, source=f"{ini.source} of {_PACKAGE} {version}", sha256=digest)


def system_from_ini(text: str, source: str, npu: str, system_config: str, memory_mode: str) -> SystemConfig:
    """The memories of an NPU such as ``ethos-u55`` as the Vela configuration file called `source` has them.

    `text` may be anything. In it ``clock_scale`` is a memory's data rate in units of the port's, latencies are NPU
    cycles, ``burst_length`` is bytes per burst; ports, bursts and transactions that are not given count as 1,
    latencies as 0, as in Vela. UsageError when the file has no such system configuration or memory mode, InputError
    when it is no such file, lacks a key that sets the pace, or says what cannot be.
    """
    found = _system(vela_ini.parse(text, source), npu, system_config, memory_mode)
    return replace(found, source=source, sha256=hashlib.sha256(text.encode()).hexdigest())


def _system(ini: VelaIni, npu: str, system_config: str, memory_mode: str) -> SystemConfig:
    beat_bytes = family(npu).axi_beat_bytes
    system = ini.section(vela_ini.SYSTEM, system_config)
    mode = ini.section(vela_ini.MODE, memory_mode)
    ports = {area: _memory(system, number, beat_bytes) for number, area in enumerate(_AREAS)}

    def area(kind: str) -> Memory:
        return ports[mode.text(f"{kind}_mem_area", _AREAS)]

    return SystemConfig(
        name=system_config,
        memory_mode=memory_mode,
        clock_hz=system.number("core_clock", _LEAST_HZ, _MOST_HZ),
        constants=area("const"),
        arena=area("arena"),
        cache=area("cache"),
        cache_bytes=mode.optional("arena_cache_size", _MOST_CACHE_BYTES),
    )


def _memory(system: Section, interface: int, beat_bytes: int) -> Memory:
    name = system.text(f"axi{interface}_port", _NAMES)

    def value(key: str, default: int, least: int, largest: int) -> int:
        return system.whole(f"{name}_{key}", default, least, largest)

    def transactions(key: str) -> int:
        return max(1, value(key, 1, 0, _MOST_TRANSACTIONS))  # 0: none of this direction is ever made

    ports = value("ports_used", 1, 1, _MOST_PORTS)
    return Memory(
        name=name,
        interface=interface,
        ports=ports,
        bytes_per_cycle=system.number(f"{name}_clock_scale", _LEAST_SCALE, _MOST_SCALE) * beat_bytes * ports,
        read_latency_cycles=value("read_latency", 0, 0, _MOST_CYCLES),
        write_latency_cycles=value("write_latency", 0, 0, _MOST_CYCLES),
        burst_bytes=value("burst_length", 1, 1, _MOST_BYTES),
        max_reads=transactions("max_reads"),
        max_writes=transactions("max_writes"),
    )


@functools.cache
def _vela_ini() -> tuple[VelaIni, str]:
    """The file in Vela's package, and its digest."""
    place = importlib.resources.files("ethosu") / _INI
    try:
        content = place.read_bytes()
    except OSError as error:
        raise InputError(f"vela.ini cannot be read: {error}", "install ethos-u-vela again") from error
    return vela_ini.parse(content.decode("utf-8"), place.name), hashlib.sha256(content).hexdigest()
