"""Timing adapters: what their registers let through, against what published runs say of their memories."""

import tomllib

import pytest

from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.npu.timing import systems
from ethosu_sdk.npu.timing.systems import TimingAdapter, memory_map
from tests.tables import each

TABLE = "max_reads=1\nmax_writes=2\nread_latency=3\nwrite_latency=4\npulse_on=5\npulse_off=6\nbwcap=7\n"


# Bytes per cycle and read latency of AXI interface 0 and 1, as the published runs state them.
@pytest.mark.parametrize(
    ("npu", "config", "mode", "first", "second"),
    [
        ("ethos-u55", "Ethos_U55_High_End_Embedded", "Shared_Sram", (8, 32), (1.11, 64)),
        ("ethos-u85", "Ethos_U85_SYS_DRAM_Low", "Dedicated_Sram", (32, 16), (7.5, 250)),
        ("ethos-u85", "Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB", (32, 32), (12, 500)),
    ],
)
def test_executorch_sets_what_published_runs_state(
    npu: str, config: str, mode: str, first: tuple[float, int], second: tuple[float, int]
) -> None:
    system = systems.behind_adapters(
        memory_map(npu, config, mode), systems.executorch_adapters(config, mode), npu
    )
    memories = {row.interface: row for row in (system.constants, system.arena, system.cache)}
    for memory, (speed, latency) in zip((memories[0], memories[1]), (first, second), strict=True):
        assert memory.bytes_per_cycle == pytest.approx(speed, rel=5e-3)
        assert memory.read_latency_cycles == latency


def test_settings_are_executorchs_or_a_files() -> None:
    with pytest.raises(UsageError, match="no timing adapter settings for Ethos_U65_Embedded"):
        systems.executorch_adapters("Ethos_U65_Embedded", "Sram_Only")
    found = systems.adapters_from_tables(tomllib.loads(f"[axi0]\n{TABLE}[axi1]\n{TABLE}"), "ta.toml")
    assert found == (TimingAdapter(1, 2, 3, 4, 5, 6, 7),) * 2


@pytest.mark.parametrize(
    ("registers", "beats"),
    [
        ((0, 0, 0, 0, 0, 0, 0), 1.0),  # not set: nothing is limited
        ((0, 0, 0, 0, 10, 0, 0), 1.0),
        ((0, 0, 0, 0, 10, 30, 0), 0.25),  # open for a quarter of the time
        ((0, 0, 0, 0, 10000, 30000, 4000), 0.1),
        ((0, 0, 0, 0, 10, 0, 40), 1.0),  # no more than a beat in a cycle
    ],
)
def test_beats_that_pass(registers: tuple[int, ...], beats: float) -> None:
    assert TimingAdapter(*registers).beats_per_cycle == pytest.approx(beats, rel=2e-3)


def test_a_short_pulse_lets_more_pass_than_its_limit() -> None:
    """Published: Ethos-U55 reads 14,165 beats of RNNoise's weights in less than 105,087 cycles. Bursts: 16 beats."""
    flash = systems.executorch_adapters("Ethos_U55_High_End_Embedded", "Shared_Sram")[1]
    assert 14165 / 105087 < flash.beats_per_cycle < (50 + 16) / 400


@each(
    ("text", "words"),
    [
        ("", "has nothing"),
        (f"[axi0]\n{TABLE}", "has axi0"),
        (f"[axi0]\n{TABLE}[axi1]\npulse_on=1\n", "axi1 of ta.toml does not have each register"),
        (f"[axi0]\n{TABLE}[axi1]\n{TABLE}more=1\n", "does not have each register"),
        (f"axi0=1\n[axi1]\n{TABLE}", "axi0 of ta.toml does not have each register"),
        (f"[axi0]\n{TABLE}[axi1]\n{TABLE.replace('=4', '=-1')}", "write_latency in axi1 of ta.toml is -1"),
        (f"[axi0]\n{TABLE}[axi1]\n{TABLE.replace('=5', '=true')}", "pulse_on in axi1 of ta.toml is True"),
        (f"[axi0]\n{TABLE}[axi1]\n{TABLE.replace('=3', '=99999999999')}", "not a number from 0 to"),
        (f"[axi0]\n{TABLE}[axi1]\n{TABLE.replace('=5', '=0')}", "blocks all traffic"),
    ],
)
def test_a_damaged_file_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        systems.adapters_from_tables(tomllib.loads(text), "ta.toml")
