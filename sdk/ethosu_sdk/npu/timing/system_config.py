"""The memories that an Ethos-U reaches through its AXI ports, as the vela.ini that comes with Vela describes them.

A *system configuration* says what hangs on the two ports and how fast it is, a *memory mode* which of the two holds
the constants, the arena and the cache. The figures are Arm's examples of systems, not properties of an NPU.
"""

from __future__ import annotations

import configparser
import functools
import importlib.resources
from dataclasses import dataclass

from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.targets import family

_INI = "config_files/Arm/vela.ini"  # inside ethos-u-vela's package `ethosu`
_SYSTEM, _MODE, _INHERIT = "System_Config", "Memory_Mode", "inherit"
# What the regions of a command stream are for, as Vela 5.1.0 numbers them.
_CONSTANTS_REGION, _CACHE_REGION = 0, 2


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

    `cache_bytes` is the size of the cache where the memory mode limits it.
    """

    name: str
    memory_mode: str
    clock_hz: float
    constants: Memory
    arena: Memory
    cache: Memory
    cache_bytes: int | None = None

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
    beat_bytes = family(npu).axi_beat_bytes
    system, mode = _section(_SYSTEM, system_config), _section(_MODE, memory_mode)
    ports = {f"Axi{number}": _memory(system, number, beat_bytes) for number in (0, 1)}
    size = mode.get("arena_cache_size")
    return SystemConfig(
        name=system_config,
        memory_mode=memory_mode,
        clock_hz=float(system["core_clock"]),
        constants=ports[mode["const_mem_area"]],
        arena=ports[mode["arena_mem_area"]],
        cache=ports[mode["cache_mem_area"]],
        cache_bytes=None if size is None else int(size),
    )


def _memory(system: dict[str, str], interface: int, beat_bytes: int) -> Memory:
    name = system[f"axi{interface}_port"]

    def value(key: str, least: int = 1) -> int:
        return max(least, int(system.get(f"{name}_{key}".lower(), "1")))

    ports = value("ports_used")
    return Memory(
        name=name,
        interface=interface,
        ports=ports,
        bytes_per_cycle=float(system[f"{name}_clock_scale".lower()]) * beat_bytes * ports,
        read_latency_cycles=value("read_latency", 0),
        write_latency_cycles=value("write_latency", 0),
        burst_bytes=value("burst_length"),
        max_reads=value("max_reads"),
        max_writes=value("max_writes"),
    )


@functools.cache
def _ini() -> configparser.ConfigParser:
    place = importlib.resources.files("ethosu") / _INI
    parser = configparser.ConfigParser()
    try:
        parser.read_string(place.read_text(encoding="utf-8"))
    except (OSError, configparser.Error) as error:
        raise InputError(f"vela.ini cannot be read: {error}", "install ethos-u-vela again") from error
    return parser


def _section(kind: str, name: str) -> dict[str, str]:
    """A section with what it inherits. Keys are lower case."""
    ini = _ini()
    if not ini.has_section(f"{kind}.{name}"):
        names = [section.removeprefix(f"{kind}.") for section in ini.sections() if section.startswith(kind)]
        raise UsageError(f"vela.ini has no {kind} '{name}'", f"one of: {', '.join(names)}")
    own = dict(ini[f"{kind}.{name}"])
    parent = own.pop(_INHERIT, None)
    return own if parent is None else _section(kind, parent.removeprefix(f"{kind}.")) | own
