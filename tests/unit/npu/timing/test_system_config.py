"""vela.ini, read for the cycle model: Arm's examples of systems."""

from __future__ import annotations

import pytest

from ethosu_sdk import targets
from ethosu_sdk.errors import UsageError
from ethosu_sdk.npu.timing import system_config


@pytest.mark.parametrize("name", targets.target_names())
def test_every_system_of_the_targets_table_is_known(name: str) -> None:
    npu = name.rpartition("-")[0]
    for config, modes in targets.families()[npu].system_configs.items():
        for mode in modes:
            found = system_config.memory_map(npu, config, mode)
            assert found.clock_hz >= 100e6
            assert found.memory(0) is found.constants is found.command_stream


def test_ethos_u55_high_end_embedded_in_shared_sram() -> None:
    """The figures of vela.ini's section: a 500 MHz system with SRAM at full and flash at an eighth of the speed."""
    found = system_config.memory_map("ethos-u55", "Ethos_U55_High_End_Embedded", "Shared_Sram")
    assert found.clock_hz == 500e6
    assert (found.arena.interface, found.arena.bytes_per_cycle) == (0, 8.0)
    assert (found.arena.read_latency_cycles, found.arena.burst_bytes) == (32, 32)
    assert (found.constants.interface, found.constants.bytes_per_cycle) == (1, 1.0)
    assert (found.constants.read_latency_cycles, found.constants.burst_bytes) == (64, 128)


def test_dedicated_sram_has_its_cache_and_nothing_else_on_port_0() -> None:
    found = system_config.memory_map("ethos-u65", "Ethos_U65_High_End", "Dedicated_Sram_384KB")
    assert [found.memory(region).interface for region in (0, 1, 2, 3)] == [1, 1, 0, 1]
    assert found.cache_bytes == 384 * 1024


def test_unknown_names_are_errors_that_list_the_known_ones() -> None:
    with pytest.raises(UsageError, match="Nowhere") as raised:
        system_config.memory_map("ethos-u55", "Nowhere", "Shared_Sram")
    assert "Ethos_U55_High_End_Embedded" in (raised.value.hint or "")
    with pytest.raises(UsageError, match="Nothing"):
        system_config.memory_map("ethos-u55", "Ethos_U55_High_End_Embedded", "Nothing")
    with pytest.raises(UsageError, match="ethos-u99"):
        system_config.default_for("ethos-u99")
    assert system_config.known("ethos-u55", "Nowhere", "Shared_Sram") is None
