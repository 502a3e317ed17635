"""`--memory-timing board`: what Arm's evaluation kit sets for each size of the NPU, whatever the program is for.

Expected are the registers that a published study of the FVP lists, and the rates that follow from them.
"""

import pytest

from ethosu_sdk.base import board_profiles
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import Target
from ethosu_sdk.compile import pricing_system
from ethosu_sdk.compile.pricing_system import PricingSystem
from ethosu_sdk.npu.timing.systems import SystemConfig
from ethosu_sdk.run.job import choose_memories
from tests.tables import each


def _seen(macs: int, system: str, board: str = "corstone-320-fvp") -> SystemConfig:
    profile = board_profiles.find_profile(board)
    plain = pricing_system.system_of_board(profile, system, "Dedicated_Sram")
    target = Target("ethos-u85", macs, system, "Dedicated_Sram")
    found = choose_memories(target, PricingSystem(plain, True, plain.areas), "board", profile)
    assert found is not None
    return found


@each(
    "macs, sram, reads, read, write, rate",
    (
        pytest.param(128, 16, 24, 250, 125, 7.5, id="128-low"),
        pytest.param(256, 16, 24, 250, 125, 7.5, id="256-low"),
        pytest.param(512, 32, 1 << 16, 500, 250, 12.0, id="512-mid"),
        pytest.param(1024, 32, 1 << 16, 500, 250, 12.0, id="1024-mid"),
    ),
)
def test_the_size_decides(macs: int, sram: int, reads: int, read: int, write: int, rate: float) -> None:
    for system in ("Ethos_U85_SYS_DRAM_Low", "Ethos_U85_SYS_DRAM_Mid"):
        found = _seen(macs, system)
        assert found.cache.read_latency_cycles == found.cache.write_latency_cycles == sram
        assert (found.arena.read_latency_cycles, found.arena.write_latency_cycles) == (read, write)
        assert found.arena.max_reads == reads
        assert found.arena.bytes_per_cycle == pytest.approx(rate, rel=0.01)


def test_a_board_without_adapters_is_refused() -> None:
    profile = board_profiles.find_profile("ek-ra8p1")
    plain = pricing_system.system_of_board(profile)
    target = Target("ethos-u55", 256, plain.name, plain.memory_mode)
    priced = PricingSystem(plain, True, plain.areas)
    with pytest.raises(UsageError, match="ek-ra8p1 has no settings of timing adapters for ethos-u55-256"):
        choose_memories(target, priced, "board", profile)
    with pytest.raises(UsageError, match="needs a board"):
        choose_memories(target, priced, "board")
