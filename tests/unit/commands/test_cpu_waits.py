"""Which memories the CPU waits for, and why it is sometimes not known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ethosu_sdk.boards import profiles
from ethosu_sdk.boards.profile import BoardProfile
from ethosu_sdk.cpu_cycles.waits import LineWaits
from ethosu_sdk.npu.timing import system_config
from ethosu_sdk.npu.timing.system_config import SystemConfig
from ethosu_sdk.steps.shared import cpu_waits

ALIF = profiles.find("alif-e8-hp")
SIZE = 10_000  # of the code


def system(name: str, mode: str) -> SystemConfig:
    return system_config.system_from_ini(ALIF.vela_ini(), ALIF.ini_source, "ethos-u55", name, mode)


@pytest.mark.parametrize(
    ("name", "mode", "places", "waits"),
    [
        ("RTSS_HP_SRAM_MRAM", "Shared_Sram", ("MRAM", "MRAM", "SRAM0"), LineWaits(93.1, 93.1, 34.2)),
        ("RTSS_HP_SRAM_MRAM", "Sram_Only", ("MRAM", "SRAM0", "SRAM0"), LineWaits(93.1, 34.2, 34.2)),
        ("RTSS_HP_DTCM_MRAM", "Shared_Sram", ("MRAM", "MRAM", "DTCM"), LineWaits(93.1, 93.1, 0)),
    ],
)
def test_the_memory_mode_says_where_things_lie(
    name: str, mode: str, places: tuple[str, ...], waits: LineWaits
) -> None:
    found = cpu_waits.of_board(ALIF, system(name, mode), SIZE)
    assert found.names is not None
    assert (found.names.code, found.names.constants, found.names.arena) == places
    assert (found.waits, found.reason) == (waits, "")
    assert found.source.startswith("board profile alif-e8-hp: Alif Semiconductor, ensemble_vela.ini")


def test_a_program_without_npu_lies_where_the_boards_first_system_has_it() -> None:
    assert cpu_waits.of_board(ALIF, None, SIZE).waits == LineWaits(93.1, 93.1, 34.2)


def with_sram(**facts: object) -> BoardProfile:
    rows = (replace(row, **facts) if row.name == "SRAM0" else row for row in ALIF.memories)  # type: ignore[arg-type]
    return replace(ALIF, memories=tuple(rows))


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        (None, "--system NAME prices a board"),
        (profiles.find("corstone-300-mps3"), "does not say which memories"),
        (with_sram(cpu_wait_cycles=None), "how long the CPU waits for SRAM0"),
        (with_sram(cached=False), "SRAM0 of alif-e8-hp is not cached"),
        (with_sram(cached=None), "SRAM0 of alif-e8-hp is not cached"),
        (replace(ALIF, cpu=replace(ALIF.cpu, dcache_bytes=0)), "has no data cache"),
        (replace(ALIF, cpu=replace(ALIF.cpu, icache_bytes=0)), "has no instruction cache"),
        (replace(ALIF, cpu=replace(ALIF.cpu, icache_bytes=SIZE - 1)), "does not stay in the 9,999 bytes"),
    ],
)
def test_what_is_not_known_is_named(profile: BoardProfile | None, words: str) -> None:
    found = cpu_waits.of_board(profile, None, SIZE)
    assert (found.names, found.waits) == (None, None)
    assert words in found.reason


def test_code_that_fits_is_fetched_once() -> None:
    profile = replace(ALIF, cpu=replace(ALIF.cpu, icache_bytes=SIZE))
    assert cpu_waits.of_board(profile, None, SIZE).waits is not None
