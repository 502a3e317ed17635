"""Systems in a user's own Vela configuration file, with Vela's own reader of these files as the oracle."""

import time
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.npu.timing.systems import Memory, SystemConfig, memory_map, system_from_ini
from tests.tables import each

INI = """
[System_Config.Base]
core_clock=400e6
axi0_port=Sram
axi1_port=Dram
Sram_clock_scale=0.75
Sram_burst_length=8
Sram_read_latency=29
Sram_write_latency=28
Dram_clock_scale=0.125
Dram_ports_used=1
Dram_burst_length=16
Dram_read_latency=60
[System_Config.Fast]
inherit=System_Config.Base
core_clock=5e8
Sram_ports_used=2
Sram_max_reads=6
Sram_max_writes=0
[Memory_Mode.Mine]
const_mem_area=Axi1
arena_mem_area=Axi0
cache_mem_area=Axi0
[Memory_Mode.Small]
inherit=Memory_Mode.Mine
arena_mem_area=Axi1
arena_cache_size=65536
"""


def read(text: str = INI, npu: str = "ethos-u55", system: str = "Base", mode: str = "Mine") -> SystemConfig:
    return system_from_ini(text, "board.ini", npu, system, mode)


def test_what_the_file_says_and_inherits() -> None:
    """On Ethos-U55 a port has 8 bytes a cycle: three quarters of it are 6, an eighth is 1."""
    found = read()
    assert (found.name, found.memory_mode, found.source, found.clock_hz) == ("Base", "Mine", "board.ini", 4e8)
    assert found.arena == found.cache == Memory("Sram", 0, 1, 6.0, 29, 28, 8, 1, 1)
    assert found.constants == found.command_stream == Memory("Dram", 1, 1, 1.0, 60, 0, 16, 1, 1)
    assert (found.areas.constants, found.areas.arena, found.areas.cache) == (1, 0, 0)
    assert found.cache_bytes is None
    found = read(system="Fast", mode="Small", npu="ethos-u85")
    assert found.clock_hz == 5e8
    assert found.cache == Memory("Sram", 0, 2, 0.75 * 16 * 2, 29, 28, 8, 6, 1)
    assert (found.arena.name, found.cache_bytes) == ("Dram", 65536)
    assert found.sha256 != read(INI + "\n").sha256


@pytest.mark.parametrize(
    ("system", "mode"), [("Base", "Mine"), ("Base", "Small"), ("Fast", "Mine"), ("Fast", "Small")]
)
def test_vela_reads_the_same(system: str, mode: str, tmp_path: Path) -> None:
    from ethosu.vela.architecture_features import ArchitectureFeatures
    from ethosu.vela.tensor import BandwidthDirection

    path = tmp_path / "board.ini"
    path.write_text(INI)
    arch: Any = ArchitectureFeatures([str(path)], "ethos-u55-256", system, mode, 2, False, None)
    found = read(system=system, mode=mode)
    assert found.clock_hz == arch.core_clock
    for memory, area in (
        (found.constants, arch.permanent_storage_mem_area),
        (found.arena, arch.feature_map_storage_mem_area),
        (found.cache, arch.fast_storage_mem_area),
    ):
        assert memory.name == area.name
        assert memory.ports == arch.memory_ports_used[area]
        assert memory.bytes_per_cycle == arch.memory_clock_scales[area] * 8 * memory.ports
        assert memory.burst_bytes == arch.memory_burst_length[area]
        latencies = arch.memory_latency[area]
        assert memory.read_latency_cycles == latencies[BandwidthDirection.Read]
        assert memory.write_latency_cycles == latencies[BandwidthDirection.Write]
    if found.cache_bytes is not None:
        assert found.cache_bytes == arch.arena_cache_size


@each(
    ("old", "new", "words"),
    [
        ("core_clock=400e6", "core_clock=fast", "core_clock in [System_Config.Base] of board.ini is 'fast'"),
        ("core_clock=400e6", "core_clock=nan", "is 'nan'"),
        ("core_clock=400e6", "core_clock=inf", "is 'inf'"),
        ("core_clock=400e6", "core_clock=0", "is '0'"),
        ("core_clock=400e6", "core_clock=-1", "is '-1'"),
        ("core_clock=400e6", "core_clock=1e300", "is '1e300'"),
        ("core_clock=400e6", "", "[System_Config.Base] of board.ini has no core_clock"),
        ("axi1_port=Dram", "", "has no axi1_port"),
        (
            "axi1_port=Dram",
            "axi1_port=Tape",
            "axi1_port in [System_Config.Base] of board.ini is 'Tape'",
        ),
        ("Sram_clock_scale=0.75", "", "has no Sram_clock_scale"),
        ("Sram_clock_scale=0.75", "Sram_clock_scale=-0.75", "is '-0.75'"),
        ("Sram_burst_length=8", "Sram_burst_length=0", "is '0'"),
        ("Sram_burst_length=8", "Sram_burst_length=8.5", "is '8.5'"),
        ("Sram_read_latency=29", "Sram_read_latency=-29", "is '-29'"),
        ("Sram_read_latency=29", f"Sram_read_latency={'9' * 5000}", "a whole number from 0"),
        ("Dram_ports_used=1", "Dram_ports_used=0", "is '0'"),
        ("const_mem_area=Axi1", "const_mem_area=Axi2", "const_mem_area in [Memory_Mode.Small]"),
        ("cache_mem_area=Axi0", "", "has no cache_mem_area"),
        ("arena_cache_size=65536", "arena_cache_size=much", "is 'much'"),
        ("[Memory_Mode.Mine]", "[Memory_Mode.Mine", "not a Vela configuration file"),
        ("core_clock=400e6", "core_clock=1\ncore_clock=2", "not a Vela configuration file"),
        ("core_clock=400e6", "inherit=System_Config.Fast", "in a circle"),
        ("core_clock=400e6", "inherit=System_Config.Base", "is itself or does not exist"),
        ("core_clock=400e6", "inherit=System_Config.Gone", "is itself or does not exist"),
        (INI, "[Memory_Mode.Mine]\n", "no section [System_Config.NAME]"),
        (INI, "", "no section [System_Config.NAME]"),
        (INI, "#" * (1 << 20) + "\n", "too large"),
    ],
)
def test_what_a_file_cannot_say(old: str, new: str, words: str) -> None:
    text = INI.replace(old, new, 1)
    assert text != INI
    with pytest.raises(InputError) as caught:
        read(text, mode="Small")
    assert words in f"{caught.value.message} {caught.value.hint}"
    assert len(caught.value.message) < 300


def test_a_long_line_of_inheritance_ends_soon() -> None:
    """Every section inherits from the one behind it."""
    rows = "".join(f"[a{number}]\ninherit=a{number + 1}\n" for number in range(5000))
    begun = time.process_time()
    with pytest.raises(InputError, match="through more than 64 sections"):
        read(f"{rows}[a5000]\n{INI}")
    assert time.process_time() - begun < 3


def test_names_that_the_file_does_not_have() -> None:
    with pytest.raises(UsageError, match="has no system configuration 'Bace'") as caught:
        read(system="Bace")
    assert "did you mean 'Base'?" in (caught.value.hint or "")
    with pytest.raises(UsageError, match="has no memory mode 'Shared_Sram'"):
        read(mode="Shared_Sram")


def test_velas_own_file_says_which_it_is() -> None:
    from importlib.metadata import version

    found = memory_map("ethos-u55", "Ethos_U55_High_End_Embedded", "Shared_Sram")
    assert found.source == f"vela.ini of ethos-u-vela {version('ethos-u-vela')}"
    assert len(found.sha256) == 64
