"""The memories that an Ethos-U reaches: Vela's configuration files, and the timing adapters of Arm's boards and FVPs.

A *system configuration* says what hangs on the two AXI ports and how fast it is, a *memory mode* which of the two
holds the constants, the arena and the cache. Vela configuration files have them in sections ``System_Config.NAME``
and ``Memory_Mode.NAME``, with what they inherit; the form is that of the vela.ini in ethos-u-vela 5.1.0, which has
Arm's examples. Files may be anybody's: what is wrong with one is an InputError that names the file, the section and
the key.
"""

from __future__ import annotations

import configparser
import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.resources
import itertools
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.targets import MemoryAreas, family, suggestion
from ethosu_sdk.npu.timing import constants

SYSTEM, MODE = "System_Config", "Memory_Mode"
LARGEST_BYTES = 1 << 20  # of a file
_INHERIT = "inherit"
_MOST_LEVELS = 64  # of inheritance
_LONGEST = 60  # characters of a value in a message
_KINDS = {SYSTEM: "system configuration", MODE: "memory mode"}


@dataclass(frozen=True)
class Section:
    """A section with what it inherits, keys in lower case; `where` is it and its file, for messages."""

    values: dict[str, str]
    where: str

    def text(self, key: str, known: Sequence[str]) -> str:
        """The value of `key`, which is one of `known`."""
        value = self._value(key)
        if value not in known:
            raise self._wrong(key, value, f"one of: {', '.join(known)}")
        return value

    def number(self, key: str, least: float, largest: float) -> float:
        """The number of `key`."""
        value = self._value(key)
        with contextlib.suppress(ValueError):
            if least <= (found := float(value)) <= largest:  # a NaN is not
                return found
        raise self._wrong(key, value, f"a number from {least:g} to {largest:g}")

    def whole(self, key: str, default: int, least: int, largest: int) -> int:
        """The whole number of `key`, `default` where it is not given."""
        if key.lower() not in self.values:
            return default
        value = self._value(key)
        with contextlib.suppress(ValueError):
            if least <= (found := int(value)) <= largest:
                return found
        raise self._wrong(key, value, f"a whole number from {least} to {largest:,}")

    def optional(self, key: str, largest: int) -> int | None:
        """The whole number of `key`; None where it is not given."""
        return self.whole(key, 0, 0, largest) if key.lower() in self.values else None

    def _value(self, key: str) -> str:
        value = self.values.get(key.lower())
        if value is None:
            raise InputError(f"{self.where} has no {key}")
        return value

    def _wrong(self, key: str, value: str, allowed: str) -> InputError:
        return InputError(f"{key} in {self.where} is {value[:_LONGEST]!r}", f"give {allowed}")


@dataclass(frozen=True)
class VelaIni:
    """A configuration file that was read; `source` is its name."""

    source: str
    _sections: dict[str, dict[str, str]]

    def names(self, kind: str) -> tuple[str, ...]:
        """The names of `kind`, ``System_Config`` or ``Memory_Mode``, in the file's order."""
        prefix = f"{kind}."
        return tuple(name.removeprefix(prefix) for name in self._sections if name.startswith(prefix))

    def chosen(self, kind: str, wanted: str | None, default: str) -> str:
        """The name of `kind` that is `wanted`; without one `default` if the file has that, or the file's only one.

        UsageError for a name that the file does not have, and where there are several to choose from.
        """
        known, what = self.names(kind), _KINDS[kind]
        if wanted is None:
            if default in known:
                return default
            if len(known) == 1:
                return known[0]
            option = f"--{what.replace(' ', '-').replace('uration', '')}"
            raise UsageError(
                f"{self.source} has several {what}s", f"choose with {option}, one of: {', '.join(known)}"
            )
        if wanted not in known:
            raise UsageError(f"{self.source} has no {what} '{wanted}'", suggestion(wanted, known))
        return wanted

    def section(self, kind: str, name: str) -> Section:
        """The section of `kind` called `name`. UsageError when there is none."""
        full = f"{kind}.{name}"
        self.chosen(kind, name, "")
        values: dict[str, str] = {}
        for ancestor in _line(full, self._sections):
            values = self._sections[ancestor] | values
        return Section(values, f"[{full}] of {self.source}")


def parse(text: str, source: str) -> VelaIni:
    """The file with the content `text`, called `source` in messages.

    InputError for what is no such file, is too large, has no section of either kind, or inherits from a section that
    does not exist or in a circle.
    """
    if len(text) > LARGEST_BYTES:
        raise InputError(f"{source} is too large for a Vela configuration file")
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text, source)
    except configparser.Error as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{source} is not a Vela configuration file: {reason}") from error
    sections = {name: dict(parser[name]) for name in parser.sections()}
    _check_inheritance(sections, source)
    found = VelaIni(source, sections)
    for kind in _KINDS:
        if not found.names(kind):
            raise InputError(f"{source} has no section [{kind}.NAME]", "see the vela.ini of ethos-u-vela")
    return found


def _check_inheritance(sections: dict[str, dict[str, str]], source: str) -> None:
    for name, values in sections.items():
        parent = values.get(_INHERIT)
        if parent is not None and (parent == name or parent not in sections):
            raise InputError(
                f"section {name} of {source} inherits from '{parent[:_LONGEST]}', which is itself or does not exist"
            )
    for name in sections:
        if next(itertools.islice(_line(name, sections), _MOST_LEVELS, None), None) is not None:
            raise InputError(
                f"section {name} of {source} inherits in a circle, or through more than {_MOST_LEVELS} sections"
            )


def _line(name: str, sections: dict[str, dict[str, str]]) -> Iterator[str]:
    """The section called `name` and those that it inherits from, the nearest first."""
    current: str | None = name
    while current is not None:
        yield current
        current = sections[current].get(_INHERIT)


_PACKAGE = "ethos-u-vela"
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
        if region == 0:
            return self.constants
        return self.cache if region == 2 else self.arena

    @property
    def command_stream(self) -> Memory:
        """The memory that the NPU fetches its commands from: they lie beside the constants."""
        return self.constants


def known_system(npu: str, system_config: str, memory_mode: str) -> SystemConfig | None:
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
    found = _system(parse(text, source), npu, system_config, memory_mode)
    return replace(found, source=source, sha256=hashlib.sha256(text.encode()).hexdigest())


def _system(ini: VelaIni, npu: str, system_config: str, memory_mode: str) -> SystemConfig:
    beat_bytes = family(npu).axi_beat_bytes
    system = ini.section(SYSTEM, system_config)
    mode = ini.section(MODE, memory_mode)
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
    place = importlib.resources.files("ethosu") / "config_files/Arm/vela.ini"
    try:
        content = place.read_bytes()
    except OSError as error:
        raise InputError(f"vela.ini cannot be read: {error}", "install ethos-u-vela again") from error
    return parse(content.decode("utf-8"), place.name), hashlib.sha256(content).hexdigest()


# Timing adapters: Arm's boards and FVPs put one in front of each memory that the NPU reaches. An adapter delays every
# transaction by a latency, and lets through at most BWCAP beats in each pulse of PULSE_ON open and PULSE_OFF closed
# cycles. What it is set to, not vela.ini, is then the speed of the memory.

_SIZED = re.compile(r"_\d+(KB|MB)$")
_UNLIMITED = 1 << 16  # transactions, where the register holds 0
_LARGEST = 1 << 24
# In front of an interface. Published: YOLO-Fastest on Ethos-U85 moves up to 1.5 beats of SRAM in a cycle, and on
# Ethos-U85-2048, which has four ports there, MobileNetV2 is not as fast as twice as many would make it.
_ADAPTERS = 2
# Members of a table in a user's file, in the order of the rows of adapters.toml.
_MEMBERS = ("max_reads", "max_writes", "read_latency", "write_latency", "pulse_on", "pulse_off", "bwcap")


@dataclass(frozen=True)
class TimingAdapter:
    """The registers MAXR, MAXW, RLATENCY, WLATENCY, PULSE_ON, PULSE_OFF and BWCAP; 0 of a limit is none."""

    max_reads: int
    max_writes: int
    read_latency: int
    write_latency: int
    pulse_on: int
    pulse_off: int
    bwcap: int

    @property
    def beats_per_cycle(self) -> float:
        """Data beats that pass in a cycle, on average; one at most.

        Transactions that are accepted before BWCAP is reached pass as a whole.
        """
        pulse = self.pulse_on + self.pulse_off
        if not pulse or not self.pulse_on:
            return 0.0 if pulse else 1.0
        passed = self.bwcap + constants.ADAPTER_EXCESS_BEATS if self.bwcap else math.inf
        return min(1.0, min(passed, self.pulse_on) / pulse)


Adapters = tuple[TimingAdapter, TimingAdapter]  # of AXI interface 0 and 1


def behind_adapters(system: SystemConfig, adapters: Adapters, npu: str) -> SystemConfig:
    """`system` as an NPU such as ``ethos-u55`` sees it through an adapter in front of each interface."""

    def seen(memory: Memory) -> Memory:
        adapter = adapters[memory.interface]
        return replace(
            memory,
            bytes_per_cycle=family(npu).axi_beat_bytes
            * adapter.beats_per_cycle
            * min(memory.ports, _ADAPTERS),
            read_latency_cycles=adapter.read_latency,
            write_latency_cycles=adapter.write_latency,
            max_reads=adapter.max_reads or _UNLIMITED,
            max_writes=adapter.max_writes or _UNLIMITED,
        )

    return replace(
        system, constants=seen(system.constants), arena=seen(system.arena), cache=seen(system.cache)
    )


def executorch_adapters(system_config: str, memory_mode: str) -> Adapters:
    """What ExecuTorch's runner sets. UsageError for a configuration and mode that it does not know."""
    modes = _table().get(system_config, {})
    rows = modes.get(_SIZED.sub("", memory_mode))
    if rows is None:
        known = ", ".join(f"{name} with {' or '.join(row)}" for name, row in _table().items())
        raise UsageError(
            f"ExecuTorch's runner has no timing adapter settings for {system_config} with {memory_mode}",
            f"it has settings for: {known}",
        )
    first, second = (TimingAdapter(*row) for row in rows)
    return first, second


@functools.cache
def _table() -> dict[str, dict[str, list[list[int]]]]:
    place = importlib.resources.files("ethosu_sdk.npu.timing") / "adapters.toml"
    return tomllib.loads(place.read_text(encoding="utf-8"))


def adapters_from_tables(tables: Mapping[str, Any], name: str) -> Adapters:
    """The adapters in a user's file: tables ``axi0`` and ``axi1`` with a value for every register.

    InputError, with `name` of the file, for anything else.
    """
    if sorted(tables) != ["axi0", "axi1"]:
        raise InputError(f"{name} has {', '.join(tables) or 'nothing'}", "it needs two tables: axi0 and axi1")
    first, second = (_adapter(tables[key], f"{key} of {name}") for key in ("axi0", "axi1"))
    return first, second


def _adapter(table: Any, where: str) -> TimingAdapter:
    if not isinstance(table, Mapping) or sorted(table) != sorted(_MEMBERS):
        raise InputError(
            f"{where} does not have each register once", f"give these registers: {', '.join(_MEMBERS)}"
        )
    values: Sequence[Any] = [table[key] for key in _MEMBERS]
    for key, value in zip(_MEMBERS, values, strict=True):
        if type(value) is not int or not 0 <= value < _LARGEST:
            raise InputError(f"{key} in {where} is {value!r}, not a number from 0 to {_LARGEST - 1:,}")
    found = TimingAdapter(*values)
    if not found.beats_per_cycle:
        raise InputError(f"{where} blocks all traffic: PULSE_ON is 0", "give PULSE_ON of at least 1")
    return found
