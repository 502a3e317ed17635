"""Published latencies of boards with an Ethos-U, and the model's where the system is known."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from campaigns.fidelity import networks
from campaigns.fidelity.comparison import DATA, priced, rows
from campaigns.fidelity.vela import compile_network
from ethosu_sdk.npu.timing.systems import Memory, SystemConfig
from tests.published_systems import System, system_of

_BEAT_BYTES = 8  # of an AXI port of Ethos-U55
_LATENCIES = "hardware_latencies.csv"


@dataclass(frozen=True)
class Latency:
    """A published latency in milliseconds, with the model's, or why there is none."""

    network: str
    npu: str
    system: str
    published_ms: float
    what: str
    source: str
    modelled_ms: float | None = None
    why: str = ""

    @property
    def error(self) -> float | None:
        """The model's error, as a share of what is published."""
        return None if self.modelled_ms is None else self.modelled_ms / self.published_ms - 1


def latencies() -> Iterator[Latency]:
    """All rows of hardware_latencies.csv. The model's figure is the NPU's time alone."""
    table = tomllib.loads((DATA / "hardware_systems.toml").read_text(encoding="utf-8"))
    for row in rows(DATA / _LATENCIES):
        system = f"{row['cpu']}; {row['memory_system']}"
        modelled, why = _modelled(row, table)
        yield Latency(
            network=row["network"],
            npu=row["npu"],
            system=system,
            published_ms=float(row["latency_ms"]),
            what=row["what"],
            source=row["source"],
            modelled_ms=modelled,
            why=why,
        )


def _modelled(row: Mapping[str, str], table: Mapping[str, Any]) -> tuple[float | None, str]:
    facts = next((found for found in table.values() if found["memory_system"] == row["memory_system"]), None)
    if facts is None:
        return None, "not judged: the memories' figures are not public"
    build = networks.NETWORKS.get(facts["networks"].get(row["network"], ""))
    if build is None:
        return None, "not judged: the network's layers are not known here"
    return _priced_ms(build, row["npu"], facts), ""


def _priced_ms(build: Callable[[], bytes], npu: str, facts: Mapping[str, Any]) -> float:
    """Milliseconds of the NPU, compiled for Arm's example of a system and priced with the board's memories."""
    example = system_of(npu, facts["mode"])
    compiled = compile_network(
        build(), "", example.accelerator, example.system_config, example.memory_mode, example.cache_bytes
    )
    cycles, _ = priced(compiled, _on_board(example, facts))
    return 1e3 * cycles / float(facts["clock_hz"])


def _on_board(example: System, facts: Mapping[str, Any]) -> System:
    plain = example.priced
    ports = {
        number: _memory(facts[f"axi{number}"], old)
        for number, old in (
            (plain.arena.interface, plain.arena),
            (plain.constants.interface, plain.constants),
        )
    }
    board = SystemConfig(
        name=facts["name"],
        memory_mode=plain.memory_mode,
        clock_hz=float(facts["clock_hz"]),
        constants=ports[plain.constants.interface],
        arena=ports[plain.arena.interface],
        cache=ports[plain.cache.interface],
        cache_bytes=plain.cache_bytes,
    )
    return System(
        example.npu, example.macs, example.system_config, example.memory_mode, example.cache_bytes, board
    )


def _memory(facts: Mapping[str, Any], example: Memory) -> Memory:
    return Memory(
        name=example.name,
        interface=example.interface,
        ports=example.ports,
        bytes_per_cycle=facts["clock_scale"] * _BEAT_BYTES,
        read_latency_cycles=facts["latency"],
        write_latency_cycles=facts["latency"],
        burst_bytes=facts["burst_length"],
        max_reads=example.max_reads,
        max_writes=example.max_writes,
    )
