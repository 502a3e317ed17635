"""The systems that vela.ini describes: values are those of the file, copied by hand."""

from dataclasses import replace

import pytest

from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import Family, families
from ethosu_sdk.npu.timing.systems import Memory, default_for, known_system, memory_map

FLASH = Memory("OffChipFlash", 1, 1, 8 * 0.125, 64, 0, 128, 2, 1)
DRAM = Memory("Dram", 1, 1, 16 * 0.234375, 500, 250, 128, 24, 12)


def test_defaults_have_their_memories() -> None:
    system = default_for("ethos-u55")
    assert (system.name, system.memory_mode) == ("Ethos_U55_High_End_Embedded", "Shared_Sram")
    assert system.clock_hz == 500e6
    assert system.constants == system.command_stream == FLASH
    assert system.arena == system.cache == Memory("Sram", 0, 1, 8.0, 32, 32, 32, 4, 4)
    assert system.cache_bytes is None
    system = default_for("ethos-u65")
    assert (system.memory_mode, system.cache_bytes) == ("Dedicated_Sram_384KB", 393216)
    assert system.constants == system.arena == DRAM
    assert system.cache == Memory("Sram", 0, 1, 16.0, 32, 32, 32, 16, 16)
    with pytest.raises(UsageError, match="ethos-u56"):
        default_for("ethos-u56")


def test_ports_add_up_and_regions_have_their_memories() -> None:
    system = memory_map("ethos-u85", "Ethos_U85_SYS_DRAM_Mid", "Sram_Only")
    assert system.constants == system.arena == system.cache == Memory("Sram", 0, 2, 32.0, 32, 32, 64, 8, 8)
    high = memory_map("ethos-u85", "Ethos_U85_SYS_DRAM_High", "Shared_Sram")
    assert (high.arena.ports, high.arena.bytes_per_cycle) == (4, 64.0)
    assert (high.constants.ports, high.constants.bytes_per_cycle) == (2, 24.0)
    system = replace(default_for("ethos-u65"), constants=FLASH)
    memories = [system.memory(region) for region in (0, 1, 2, 3, None)]
    assert memories == [FLASH, DRAM, system.cache, DRAM, DRAM]


@pytest.mark.parametrize(
    ("names", "word"),
    [
        (("ethos-u77", "Ethos_U55_Deep_Embedded", "Sram_Only"), "ethos-u77"),
        (("ethos-u55", "Ethos_U55_High_End", "Sram_Only"), "Ethos_U55_High_End_Embedded"),
        (("ethos-u55", "Ethos_U55_Deep_Embedded", "Sram_only"), "Sram_Only"),
        (("ethos-u65", "Ethos_U65_Mid_End", "inherit"), "Dedicated_Sram"),
    ],
)
def test_unknown_names_are_refused(names: tuple[str, str, str], word: str) -> None:
    with pytest.raises(UsageError) as caught:
        memory_map(*names)
    assert word in f"{caught.value.message} {caught.value.hint}"
    assert known_system(*names) is None


@pytest.mark.parametrize("family", families().values(), ids=lambda family: family.name)
def test_every_pairing_of_the_targets_exists(family: Family) -> None:
    default = default_for(family.name)
    assert (default.name, default.memory_mode) == (family.default_system_config, family.default_memory_mode)
    for name, modes in family.system_configs.items():
        for mode in modes:
            system = known_system(family.name, name, mode)
            assert system is not None
            assert (system.cache.name, system.clock_hz > 0) == ("Sram", True)
