"""The board profiles of the SDK: their values are those of the vendors' files, and each has a source."""

from __future__ import annotations

import configparser
import importlib.util
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.boards import profiles
from ethosu_sdk.boards.profile import NOT_PUBLIC, BoardProfile, source_of
from ethosu_sdk.errors import UsageError
from ethosu_sdk.targets import families
from tests.places import ROOT

TABLE = tomllib.loads((ROOT / "sdk/ethosu_sdk/boards/profiles.toml").read_text(encoding="utf-8"))
HP, HE, U85 = 400e6, 160e6, 400e6
# Alif's ensemble_vela.ini: clock, memory on the second port, and of both memories clock scale, burst length, read and
# write latency; for Ethos-U85 also ports, reads and writes under way.
ALIF: dict[str, tuple[Any, ...]] = {
    "RTSS_HP_SRAM_MRAM": (HP, "OffChipFlash", (0.762, 8, 29, 29), (0.121, 16, 60, 60)),
    "RTSS_HP_SRAM_OSPI": (HP, "OffChipFlash", (0.762, 8, 29, 29), (0.052, 16, 108, 108)),
    "RTSS_HP_SRAM_Only": (HP, "OnChipFlash", (1.0, 8, 29, 29), (1.0, 8, 29, 29)),
    "RTSS_HP_DTCM_Only": (HP, "OnChipFlash", (0.889, 32, 5, 5), (0.889, 32, 5, 5)),
    "RTSS_HP_DTCM_MRAM": (HP, "OffChipFlash", (0.889, 32, 5, 5), (0.118, 64, 60, 60)),
    "RTSS_HP_DTCM_SRAM": (HP, "Dram", (1.0, 16, 5, 5), (0.762, 32, 29, 29)),
    "RTSS_HE_SRAM_MRAM": (HE, "OffChipFlash", (1.0, 8, 13, 13), (0.303, 16, 24, 24)),
    "RTSS_HE_SRAM_Only": (HE, "OnChipFlash", (1.0, 8, 13, 13), (1.0, 8, 13, 13)),
    "RTSS_HE_DTCM_Only": (HE, "OnChipFlash", (0.889, 32, 5, 5), (0.889, 32, 5, 5)),
    "Ethos_U85_SRAM_Only": (U85, "OnChipFlash", (1.0, 32, 2, 2, 2, 2, 2), (1.0, 32, 2, 2, 2, 2, 2)),
    "Ethos_U85_SRAM_MRAM": (U85, "OffChipFlash", (1.0, 32, 2, 2, 2, 2, 2), (0.121, 256, 15, 0, None, 1, 0)),
    "Ethos_U85_SRAM_OSPI": (U85, "Dram", (1.0, 32, 2, 2, 2, 2, 2), (0.052, 16, 54, 54, None, 2, 2)),
}
MEMBERS = (
    "clock_scale",
    "burst_length",
    "read_latency",
    "write_latency",
    "ports_used",
    "max_reads",
    "max_writes",
)
ALIF_BOARDS = [name for name in profiles.names() if name.startswith("alif-")]


def parsed(profile: BoardProfile) -> configparser.ConfigParser:
    """The profile's configuration file as Vela reads it."""
    parser = configparser.ConfigParser()
    parser.read_string(profile.vela_ini())
    return parser


def numbers(section: Any) -> dict[str, float | str]:
    return {
        key: value if key.endswith(("_port", "_area")) else float(value) for key, value in section.items()
    }


@pytest.mark.parametrize("name", profiles.names())
def test_every_value_has_a_source_and_what_is_absent_a_reason(name: str) -> None:
    profile = profiles.find(name)
    for place, value in profile.values():
        source = profile.source(place)
        assert source, place
        assert (value is None) or source != NOT_PUBLIC, f"{place} has a value that nobody published"
        assert source not in TABLE["documents"], f"{place}: {source}"
    for place in profile.sources:
        assert any(source_of(row, {place: "x"}) for row, _ in profile.values()), f"{place} is no value"


def test_every_document_is_the_source_of_something() -> None:
    used = {text for row in TABLE["boards"].values() for text in row.get("sources", {}).values()}
    assert set(TABLE["documents"]) - used == set()
    assert {text for text in used if " " not in text} <= set(TABLE["documents"]), (
        "a document that is not in the table"
    )


def test_a_value_without_a_source_is_noticed() -> None:
    profile = replace(profiles.find("alif-e8-hp"), sources={"cpu": "a manual"})
    assert profile.source("npu_hz") == NOT_PUBLIC
    assert profile.source("cpu.clock_hz") == "a manual"
    assert profile.source("cpu.icache_bytes") == NOT_PUBLIC, "the manual has it not"


def test_the_longest_place_counts_and_a_star_after_names() -> None:
    sources = {"memories": "a", "memories.*.npu": "b", "memories.SRAM": "c", "memories.SRAM.npu": "d"}
    places = ("memories.DTCM.kind", "memories.DTCM.npu", "memories.SRAM.kind", "memories.SRAM.npu", "npu_hz")
    assert [source_of(place, sources) for place in places] == ["a", "b", "c", "d", ""]


@pytest.mark.parametrize("name", ALIF_BOARDS)
def test_alifs_system_configurations_have_the_vendors_figures(name: str) -> None:
    profile, ini = profiles.find(name), parsed(profiles.find(name))
    clock = HE if profile.npus == ("ethos-u55-128",) else HP
    assert profile.npu_hz == clock
    for system in profile.systems:
        hertz, second, *memories = ALIF[system.name]
        expected: dict[str, float | str] = {"core_clock": hertz, "axi0_port": "Sram", "axi1_port": second}
        for area, figures in zip(("Sram", second), memories, strict=True):
            for member, figure in zip(MEMBERS, figures, strict=False):
                if figure is not None:
                    expected[f"{area}_{member}".lower()] = figure
        assert numbers(ini[f"System_Config.{system.name}"]) == expected
        assert hertz == clock


def test_every_system_configuration_of_alif_is_on_a_board() -> None:
    used = {system.name for name in ALIF_BOARDS for system in profiles.find(name).systems}
    assert used == set(ALIF)


def arms() -> configparser.ConfigParser:
    """The vela.ini in ethos-u-vela."""
    found = importlib.util.find_spec("ethosu")
    assert found is not None
    assert found.submodule_search_locations is not None
    parser = configparser.ConfigParser()
    assert parser.read(Path(next(iter(found.submodule_search_locations))) / "config_files/Arm/vela.ini")
    return parser


@pytest.mark.parametrize("name", [name for name in profiles.names() if name.startswith(("corstone-", "imx"))])
def test_what_arms_file_has_is_the_same(name: str) -> None:
    profile, ini, vela = profiles.find(name), parsed(profiles.find(name)), arms()
    for system in profile.systems:
        section = f"System_Config.{system.name}"
        assert numbers(ini[section]) == numbers(vela[section])
        known = families()[profile.npus[0].rpartition("-")[0]].system_configs[system.name]
        assert sorted(system.memory_modes) == sorted(known), "the targets of targets.toml are the check"


@pytest.mark.parametrize("name", profiles.names())
def test_memory_modes_are_those_of_arms_file(name: str) -> None:
    ini, vela = parsed(profiles.find(name)), arms()
    sections = [section for section in ini.sections() if section.startswith("Memory_Mode.")]
    assert sections
    for section in sections:
        parent = vela[vela[section]["inherit"]] if "inherit" in vela[section] else {}
        expected = {**parent, **vela[section]}
        expected.pop("inherit", None)
        assert numbers(ini[section]) == numbers(expected)


def test_corstone_boards_default_to_what_their_families_do() -> None:
    for name in ("corstone-300-fvp", "corstone-300-fvp-u65", "corstone-320-fvp"):
        profile = profiles.find(name)
        family = families()[profile.npus[0].rpartition("-")[0]]
        system = profile.default_system
        assert (system.name, system.memory_modes[0]) == (
            family.default_system_config,
            family.default_memory_mode,
        )


def test_memories_of_the_chips() -> None:
    """Figures of Alif's soc_features.h, of Zephyr's devicetrees and of the boards' pages."""
    sizes = {
        name: {row.name: row.size_bytes for row in profiles.find(name).memories} for name in profiles.names()
    }
    assert sizes["alif-e3-hp"] == sizes["alif-e7-hp"]
    assert sizes["alif-e7-hp"]["SRAM1"] == 0x0028_0000
    assert sizes["alif-e8-hp"]["SRAM1"] == sizes["alif-e8-he-u85"]["SRAM1"] == 0x0040_0000
    assert sizes["alif-e8-hp"]["DTCM"] == 0x0010_0000
    assert sizes["alif-e8-he"]["DTCM"] == sizes["alif-e8-he-u85"]["DTCM"] == 0x0004_0000
    assert {row["MRAM"] for name, row in sizes.items() if name.startswith("alif")} == {0x0058_0000}
    assert sizes["ek-ra8p1"] == {"TCM": 256 << 10, "SRAM": 1664 << 10, "MRAM": 1 << 20, "OSPI": 64 << 20}
    assert sizes["corstone-300-fvp"]["SRAM"] == 2 << 20
    assert sizes["corstone-320-fvp"]["SRAM"] == 4 << 20


def test_processors() -> None:
    found = {
        name: (profiles.find(name).cpu.core, profiles.find(name).cpu.clock_hz) for name in profiles.names()
    }
    assert found["alif-e8-hp"] == ("cortex-m55", 400_000_000)
    assert found["alif-e8-he-u85"] == ("cortex-m55", 160_000_000)
    assert found["ek-ra8p1"] == ("cortex-m85", 1_000_000_000)
    assert found["corstone-300-mps3"] == ("cortex-m55", 32_000_000)
    assert found["corstone-320-fvp"] == ("cortex-m85", None)


def test_the_digest_is_of_the_values_alone() -> None:
    digests = [profiles.find(name).sha256 for name in profiles.names()]
    assert len(set(digests)) == len(digests)
    profile = profiles.find("alif-e8-hp")
    assert replace(profile, title="x", sources={}).sha256 == profile.sha256
    assert replace(profile, npu_hz=1).sha256 != profile.sha256


@pytest.mark.parametrize(
    ("typed", "meant"), [("alif-e8", "alif-e8-hp"), ("Corstone-300-FVP", "corstone-300-fvp")]
)
def test_a_typo_gets_a_suggestion(typed: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"there is no board profile '{typed}'") as caught:
        profiles.find(typed)
    assert f"did you mean '{meant}'?" in caught.value.hint


# The system configuration of the CPU's own NPU in Alif's file, and the cycles for a line from SRAM and from MRAM.
WAITS = {"hp": ("RTSS_HP_SRAM_MRAM", 34.2, 93.1), "he": ("RTSS_HE_SRAM_MRAM", 17, 37.2)}


@pytest.mark.parametrize("name", ALIF_BOARDS)
def test_waits_of_alifs_cpus_are_those_of_a_line_by_the_vendors_figures(name: str) -> None:
    """The read latency, and 32 bytes at the clock scale of a port of 8 bytes; no bank of SRAM differs."""
    profile = profiles.find(name)
    system, *expected = WAITS[name.split("-")[2]]
    _, _, *areas = ALIF[system]
    assert [round(latency + 32 / (8 * scale), 1) for scale, _, latency, _ in areas] == expected
    found = {row.name: row.cpu_wait_cycles for row in profile.memories}
    assert (found["SRAM0"], found["SRAM1"], found["MRAM"]) == (expected[0], *expected)
    assert found["DTCM"] is found["OSPI"] is None


@pytest.mark.parametrize("name", ALIF_BOARDS)
def test_areas_of_alifs_systems_are_in_the_memories_of_their_names(name: str) -> None:
    """RTSS_HP_DTCM_MRAM: Sram is the DTCM, and the second port leads to MRAM. Of ..._Only, both are the same."""
    profile = profiles.find(name)
    for system in profile.systems:
        first, second = system.name.split("_")[2:]
        memory = {"SRAM": "SRAM0", "Only": {"SRAM": "SRAM0", "DTCM": "DTCM"}[first]}
        port = str(system.settings["axi1_port"])
        expected = {
            "code": "MRAM",
            "Sram": memory.get(first, first),
            port: memory.get(second, second),
        }
        assert system.areas == expected


def test_where_nobody_published_the_cpus_waits_there_are_none() -> None:
    others = [profiles.find(name) for name in profiles.names() if name not in ALIF_BOARDS]
    assert others
    for profile in others:
        assert all(row.cpu_wait_cycles is None for row in profile.memories)
        assert not any(row.areas for row in profile.systems)
