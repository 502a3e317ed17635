"""Boards: the SDK's profiles against the vendors' files, profiles of users, and the table of simulated boards."""

import configparser
import itertools
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.base import board_profiles, boards
from ethosu_sdk.base.board_profiles import NOT_PUBLIC, BoardMemory, BoardProfile, source_of
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.targets import Family, families
from ethosu_sdk.simulate.fvp_models import models_by_program
from ethosu_sdk.simulate.qemu.memories import board_map
from tests.installed import vela_ini
from tests.places import ROOT
from tests.tables import each

PACKS = {name: tomllib.loads(path.read_text(encoding="utf-8")) for name, path in boards.pack_files().items()}
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
ALIF_BOARDS = [name for name in board_profiles.profile_names() if name.startswith("alif-")]


def parsed(profile: BoardProfile) -> configparser.ConfigParser:
    """The profile's configuration file as Vela reads it."""
    parser = configparser.ConfigParser()
    parser.read_string(profile.vela_ini())
    return parser


def numbers(section: Any) -> dict[str, float | str]:
    return {
        key: value if key.endswith(("_port", "_area")) else float(value) for key, value in section.items()
    }


@each("name", board_profiles.profile_names())
def test_every_value_has_a_source_and_what_is_absent_a_reason(name: str) -> None:
    profile = board_profiles.find_profile(name)
    for place, value in profile.values():
        source = profile.source(place)
        assert source, place
        assert (value is None) or source != NOT_PUBLIC, f"{place} has a value that nobody published"
        assert " " in source, f"{place}: the document {source} is not in the pack"
    for place in profile.sources:
        assert any(source_of(row, {place: "x"}) for row, _ in profile.values()), f"{place} is no value"


def test_every_document_is_a_source_and_values_without_one_are_noticed() -> None:
    for name, row in PACKS.items():
        used = set(row.get("sources", {}).values())
        assert set(row.get("documents", {})) - used == set(), f"{name} has a document that is no source"
    profile = replace(board_profiles.find_profile("alif-e8-hp"), sources={"cpu": "a manual"})
    assert profile.source("npu_hz") == NOT_PUBLIC
    assert profile.source("cpu.clock_hz") == "a manual"
    assert profile.source("cpu.icache_bytes") == NOT_PUBLIC, "the manual has it not"
    sources = {"memories": "a", "memories.*.npu": "b", "memories.SRAM": "c", "memories.SRAM.npu": "d"}
    places = ("memories.DTCM.kind", "memories.DTCM.npu", "memories.SRAM.kind", "memories.SRAM.npu", "npu_hz")
    assert [source_of(place, sources) for place in places] == ["a", "b", "c", "d", ""]


@each("name", ALIF_BOARDS)
def test_alifs_system_configurations_have_the_vendors_figures(name: str) -> None:
    profile, ini = board_profiles.find_profile(name), parsed(board_profiles.find_profile(name))
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
    used = {system.name for name in ALIF_BOARDS for system in board_profiles.find_profile(name).systems}
    assert used == set(ALIF)


@each("name", [name for name in board_profiles.profile_names() if name.startswith(("corstone-", "imx"))])
def test_what_arms_file_has_is_the_same(name: str) -> None:
    profile, ini, vela = (
        board_profiles.find_profile(name),
        parsed(board_profiles.find_profile(name)),
        vela_ini(),
    )
    for system in profile.systems:
        section = f"System_Config.{system.name}"
        assert numbers(ini[section]) == numbers(vela[section])
        known = families()[profile.npus[0].rpartition("-")[0]].system_configs[system.name]
        assert sorted(system.memory_modes) == sorted(known), "the targets of targets.toml are the check"


@each("name", board_profiles.profile_names())
def test_memory_modes_are_those_of_arms_file(name: str) -> None:
    ini, vela = parsed(board_profiles.find_profile(name)), vela_ini()
    sections = [section for section in ini.sections() if section.startswith("Memory_Mode.")]
    assert sections
    for section in sections:
        parent = vela[vela[section]["inherit"]] if "inherit" in vela[section] else {}
        expected = {**parent, **vela[section]}
        expected.pop("inherit", None)
        assert numbers(ini[section]) == numbers(expected)


def test_corstone_boards_default_to_what_their_families_do() -> None:
    for name in ("corstone-300-fvp", "corstone-300-fvp-u65", "corstone-320-fvp"):
        profile = board_profiles.find_profile(name)
        family = families()[profile.npus[0].rpartition("-")[0]]
        system = profile.default_system
        assert (system.name, system.memory_modes[0]) == (
            family.default_system_config,
            family.default_memory_mode,
        )


def test_memories_and_processors_of_the_chips() -> None:
    """Figures of Alif's soc_features.h, of Zephyr's devicetrees and of the boards' pages."""
    sizes = {
        name: {row.name: row.size_bytes for row in board_profiles.find_profile(name).memories}
        for name in board_profiles.profile_names()
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
    found = {
        name: (board_profiles.find_profile(name).cpu.core, board_profiles.find_profile(name).cpu.clock_hz)
        for name in board_profiles.profile_names()
    }
    assert found["alif-e8-hp"] == ("cortex-m55", 400_000_000)
    assert found["alif-e8-he-u85"] == ("cortex-m55", 160_000_000)
    assert found["ek-ra8p1"] == ("cortex-m85", 1_000_000_000)
    assert found["corstone-300-mps3"] == ("cortex-m55", 32_000_000)
    assert found["corstone-320-fvp"] == ("cortex-m85", None)


def test_the_digest_is_of_the_values_alone() -> None:
    digests = [board_profiles.find_profile(name).sha256 for name in board_profiles.profile_names()]
    assert len(set(digests)) == len(digests)
    profile = board_profiles.find_profile("alif-e8-hp")
    assert replace(profile, title="x", sources={}).sha256 == profile.sha256
    assert replace(profile, npu_hz=1).sha256 != profile.sha256


@pytest.mark.parametrize(
    ("typed", "meant"), [("alif-e8", "alif-e8-hp"), ("Corstone-300-FVP", "corstone-300-fvp")]
)
def test_a_typo_gets_a_suggestion(typed: str, meant: str) -> None:
    with pytest.raises(UsageError, match=f"there is no board profile '{typed}'") as caught:
        board_profiles.find_profile(typed)
    assert f"did you mean '{meant}'?" in caught.value.hint


# The system configuration of the CPU's own NPU in Alif's file, and the cycles for a line from SRAM and from MRAM.
WAITS = {"hp": ("RTSS_HP_SRAM_MRAM", 34.2, 93.1), "he": ("RTSS_HE_SRAM_MRAM", 17, 37.2)}


@each("name", ALIF_BOARDS)
def test_waits_of_alifs_cpus_are_those_of_a_line_by_the_vendors_figures(name: str) -> None:
    """The read latency, and 32 bytes at the clock scale of a port of 8 bytes; no bank of SRAM differs."""
    profile = board_profiles.find_profile(name)
    system, *expected = WAITS[name.split("-")[2]]
    _, _, *areas = ALIF[system]
    assert [round(latency + 32 / (8 * scale), 1) for scale, _, latency, _ in areas] == expected
    found = {row.name: row.cpu_wait_cycles for row in profile.memories}
    assert (found["SRAM0"], found["SRAM1"], found["MRAM"]) == (expected[0], *expected)
    assert found["DTCM"] is found["OSPI"] is None


@each("name", ALIF_BOARDS)
def test_areas_of_alifs_systems_are_in_the_memories_of_their_names(name: str) -> None:
    """RTSS_HP_DTCM_MRAM: Sram is the DTCM, and the second port leads to MRAM. Of ..._Only, both are the same."""
    profile = board_profiles.find_profile(name)
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
    others = [
        board_profiles.find_profile(name)
        for name in board_profiles.profile_names()
        if name not in ALIF_BOARDS
    ]
    assert others
    for profile in others:
        assert all(row.cpu_wait_cycles is None for row in profile.memories)


@each("name", board_profiles.profile_names())
def test_every_profile_says_what_lies_in_which_memory(name: str) -> None:
    for system in board_profiles.find_profile(name).systems:
        assert {"code", system.settings["axi0_port"], system.settings["axi1_port"]} == {*system.areas}


# --- A user's own board profile: what is taken from it, and what is refused with its line.

OWN = """title = "A board of ours"
npus = ["ethos-u55-64", "ethos-u55-128"]
npu_hz = 200_000_000

[systems]
our_sram_flash = ["Shared_Sram", "Sram_Only"]
Ethos_U55_Deep_Embedded = ["Sram_Only"]

[cpu]
core = "cortex-m55"
clock_hz = 200_000_000

[memories.SRAM]
kind = "sram"
size_bytes = 0x10_0000
read_cycles = 4
cycles_of = "cpu"

[system_configs.our_sram_flash]
core_clock = 200e6
axi0_port = "Sram"
axi1_port = "OffChipFlash"
Sram_clock_scale = 1.0
Sram_read_latency = 4
OffChipFlash_clock_scale = 0.25

[sources]
cpu = "our manual, page 7"
"""
LIKE = """like = "alif-e8-hp"
title = "Slower"
npu_hz = 200_000_000
[memories]
MRAM = { kind = "mram", size_bytes = 1024 }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "our board.toml"


def test_a_profile_of_the_users_has_the_name_of_its_file(file: Path, tmp_path: Path) -> None:
    file.write_text(OWN)
    found = board_profiles.find_profile(str(file))
    assert (found.name, found.title, found.npu_hz) == ("board", "A board of ours", 200_000_000)
    assert found.npus == ("ethos-u55-64", "ethos-u55-128")
    assert found.memories == (BoardMemory("SRAM", "sram", 0x10_0000, read_cycles=4, cycles_of="cpu"),)
    assert found.source("cpu.core") == "our manual, page 7"
    ini = configparser.ConfigParser()
    ini.read_string(found.vela_ini())
    assert ini.sections() == [
        *("System_Config.our_sram_flash", "System_Config.Ethos_U55_Deep_Embedded"),
        *("Memory_Mode.Shared_Sram", "Memory_Mode.Sram_Only"),
    ]
    assert float(ini["System_Config.our_sram_flash"]["core_clock"]) == 200e6
    assert float(ini["System_Config.Ethos_U55_Deep_Embedded"]["OffChipFlash_clock_scale"]) == 0.0625
    (tmp_path / "our-board.toml").write_text(OWN)
    assert board_profiles.find_profile(str(tmp_path / "our-board.toml")).name == "our-board"


def test_a_profile_like_another_one(file: Path) -> None:
    file.write_text(LIKE + '[sources]\n"memories.MRAM.size_bytes" = "our order"\n')
    found, base = board_profiles.find_profile(str(file)), board_profiles.find_profile("alif-e8-hp")
    assert (found.npus, found.cpu, found.systems) == (base.npus, base.cpu, base.systems)
    assert found.npu_hz == 200_000_000
    assert [row.name for row in found.memories] == [row.name for row in base.memories]
    assert found.memories[4] == BoardMemory("MRAM", "mram", 1024)
    assert found.source("memories.MRAM.size_bytes") == "our order"
    # What the file changes does not come from the vendor, whose words would otherwise stand there.
    assert found.source("npu_hz") == found.source("memories.MRAM.kind") == "this file (board)"
    assert found.source("memories.SRAM0.size_bytes") == base.source("memories.SRAM0.size_bytes")


def test_areas_are_those_of_the_files_own_systems(file: Path) -> None:
    """A file with its own systems does not take over the areas of others."""
    file.write_text(LIKE)
    assert board_profiles.find_profile(str(file)).default_system.areas["Sram"] == "SRAM0"
    systems = '[systems]\nEthos_U55_Deep_Embedded = ["Sram_Only"]\n'
    file.write_text(LIKE + systems)
    assert board_profiles.find_profile(str(file)).default_system.areas == {}
    file.write_text(LIKE + systems + '[areas]\nEthos_U55_Deep_Embedded = { code = "ITCM", Sram = "DTCM" }\n')
    assert board_profiles.find_profile(str(file)).default_system.areas == {"code": "ITCM", "Sram": "DTCM"}


def test_the_example_of_the_guide_is_a_profile(tmp_path: Path) -> None:
    guide = (ROOT / "docs/guide/boards.md").read_text(encoding="utf-8")
    examples = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    assert len(examples) == 2
    for number, example in enumerate(examples):
        (tmp_path / f"{number}.toml").write_text(example)
        board_profiles.find_profile(str(tmp_path / f"{number}.toml"))


def changed(old: str, new: str) -> str:
    assert OWN.count(old) == 1, old
    return OWN.replace(old, new)


@each(
    ("content", "line", "words"),
    [
        ("", 1, "a board profile has no title"),
        ("title = ", None, "this is not TOML"),
        (changed('title = "A board of ours"\n', ""), 1, "a board profile has no title"),
        (changed('"A board of ours"', '"a\\nb"'), 1, "title must be a text"),
        (changed('"A board of ours"', '"\\u001b[31m"'), 1, "title must be a text"),
        (changed('"A board of ours"', "7"), 1, "title must be a text"),
        (changed('"ethos-u55-64", "ethos-u55-128"', ""), 2, "npus must be a list of texts"),
        (changed('"ethos-u55-64"', '"ethos-u55-65"'), 2, "there is no NPU 'ethos-u55-65'"),
        (changed('"ethos-u55-64"', '"ethos-u85-256"'), 2, "of two families"),
        (changed("npu_hz = 200_000_000", "npu_hz = 0"), 3, "npu_hz must be a whole number from 1"),
        (changed("npu_hz = 200_000_000", "npu_hz = true"), 3, "npu_hz must be a whole number"),
        (changed("npu_hz = 200_000_000", "npu_hz = nan"), 3, "npu_hz must be a whole number"),
        (changed("npu_hz", "npu_clock"), 3, "a board profile has no 'npu_clock'"),
        (changed('["Shared_Sram", "Sram_Only"]', '"Shared_Sram"'), 6, "must be a list of texts"),
        (changed('"Shared_Sram", "Sram_Only"', '"Shared_Ram"'), 6, "there is no memory mode 'Shared_Ram'"),
        (changed('"Shared_Sram", "Sram_Only"', '"Dedicated_Sram"'), 6, "Dedicated_Sram needs Dram"),
        (changed("Ethos_U55_Deep_Embedded", "Ethos_U55_Deep"), 7, "no system configuration 'Ethos_U55_Deep'"),
        (changed('"cortex-m55"', '"Cortex M55"'), 10, "core must be a name such as"),
        (changed('core = "cortex-m55"\n', ""), 9, "cpu has no core"),
        (changed("[memories.SRAM]", '[memories."S RAM"]'), 13, "'S RAM' is not a name"),
        (changed('kind = "sram"', 'kind = "ram"'), 14, "kind cannot be 'ram'"),
        (changed("size_bytes = 0x10_0000", "size_bytes = -1"), 15, "size_bytes must be a whole number"),
        (changed("size_bytes = 0x10_0000", f"size_bytes = {'9' * 5000}"), None, "this is not TOML"),
        (changed('cycles_of = "cpu"\n', ""), 13, "no clock for them"),
        (
            changed("[system_configs.our_sram_flash]", "[system_configs.RA8P1]"),
            19,
            "has a system configuration RA8P1 already",
        ),
        (changed("[system_configs.our_sram_flash]", '[system_configs."a]\\n[b"]'), 19, "is not a name"),
        (changed("core_clock = 200e6", "core_clock = inf"), 20, "core_clock must be a number from"),
        (
            changed("core_clock = 200e6", "core_clock = 5e-324"),
            20,
            "core_clock must be a number from 1000 to",
        ),
        (
            changed("Sram_clock_scale = 1.0", "Sram_clock_scale = 5e-324"),
            23,
            "must be a number from 0.0001 to 16",
        ),
        (changed('axi0_port = "Sram"', 'axi0_port = "Dram"'), 21, "axi0_port cannot be 'Dram'"),
        (changed('axi1_port = "OffChipFlash"', "axi1_port = []"), 22, "axi1_port cannot be 'list'"),
        (changed("Sram_clock_scale = 1.0\n", ""), 19, "our_sram_flash has no Sram_clock_scale"),
        (
            changed("Sram_clock_scale = 1.0", "Sram_clock_scale = nan"),
            23,
            "Sram_clock_scale must be a number from",
        ),
        (
            changed("Sram_read_latency = 4", "Sram_read_latency = 4.5"),
            24,
            "Sram_read_latency must be a whole",
        ),
        (changed("Sram_read_latency", "Dram_read_latency"), 24, "our_sram_flash has no 'Dram_read_latency'"),
        (changed("OffChipFlash_clock_scale", "inherit"), 25, "our_sram_flash has no 'inherit'"),
        (changed('"our manual, page 7"', "7"), 28, "cpu must be a text"),
        ('like = "alif-e9"\n', 1, "there is no board profile 'alif-e9'"),
        ("like = []\n", 1, "like must be a text"),
        ('like = "alif-e8-hp"\nmemories = 1\n', 2, "memories must be a table"),
        ('like = "alif-e8-hp"\n[memories]\nMRAM = 1\n', 3, "MRAM must be a table"),
        ("a = " + "[" * 5000, None, "is not TOML"),
        ("#" * ((256 << 10) + 1), None, "too large for a board profile"),
        *(
            (f"{OWN}\n[areas]\n{areas}\n", None, words)
            for areas, words in (
                ('RTSS = { Sram = "SRAM" }', "areas has no 'RTSS'"),
                ('our_sram_flash = { Ram = "SRAM" }', "our_sram_flash has no 'Ram'"),
                ('our_sram_flash = { Sram = "DTCM" }', "Sram cannot be 'DTCM'"),
                ("our_sram_flash = { Sram = 5 }", "Sram must be a text"),
                ('our_sram_flash = "SRAM"', "our_sram_flash must be a table"),
            )
        ),
    ],
)
def test_what_is_refused(file: Path, content: str, line: int | None, words: str) -> None:
    file.write_text(content)
    with pytest.raises(InputError) as caught:
        board_profiles.find_profile(str(file))
    assert words in caught.value.message
    assert "\n" not in caught.value.message.removeprefix(str(file))
    if line is not None:
        assert caught.value.message.startswith(f"{file}:{line}: ")


def test_what_is_no_text_file(file: Path, tmp_path: Path) -> None:
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not UTF-8"):
        board_profiles.find_profile(str(file))
    with pytest.raises(InputError, match="there is no file"):
        board_profiles.find_profile(str(tmp_path / "absent.toml"))
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(InputError):
        board_profiles.find_profile(str(tmp_path / "folder.toml"))


# --- The board table against the simulators and the targets.


@pytest.mark.parametrize("name", boards.BOARD_NAMES)
def test_no_two_memories_overlap(name: str) -> None:
    rows = sorted(boards.board_named(name).memories, key=lambda row: row.origin)
    for low, high in itertools.pairwise(rows):
        assert low.origin + low.size_bytes <= high.origin
        assert not low.holds(high.origin)


def test_an_unknown_board_is_a_usage_error_and_buffers_lie_where_the_npu_reaches() -> None:
    with pytest.raises(UsageError, match="corstone-3000") as caught:
        boards.board_named("corstone-3000")
    assert "did you mean 'corstone-300'?" in caught.value.hint
    # Tightly coupled memories are the processor's own.
    for row in boards.all_boards().values():
        assert "TCM" not in row.fast.name + row.bulk.name


def test_every_simulator_has_the_boards_and_npus_that_the_table_gives_it() -> None:
    of_fvp = {(model.board, model.npu) for model in models_by_program().values()}
    assert {
        (row.name, npu) for row in boards.all_boards().values() for npu in row.simulators.get("fvp", ())
    } == of_fvp
    on_qemu = [row for row in boards.all_boards().values() if "qemu" in row.simulators]
    assert {row.name for row in on_qemu} == {"corstone-300", "corstone-320"}
    assert {npu for row in on_qemu for npu in row.simulators["qemu"]} == set(families())
    for row in on_qemu:
        for memory in row.memories:
            found = board_map(row.name).find_bank(memory.origin)
            assert found is not None
            assert found[1] + memory.size_bytes <= found[0].size_bytes


@pytest.mark.parametrize("family", families().values(), ids=lambda family: family.name)
def test_the_board_of_a_family_has_its_npu(family: Family) -> None:
    assert family.name in boards.board_named(family.board).npus


def test_packs_of_the_users_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that C++ source or a path cannot take is no pack; one that is taken is the SDK's."""
    for name in ("ours", "host", "common", 'x"y', "alif-e8-hp"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "board.toml").write_text('like = "alif-e8-hp"\ntitle = "Ours"\n')
    (tmp_path / "empty").mkdir()
    before = board_profiles.profile_names()
    assert not set(boards.BOARD_NAMES) & set(before), "what is simulated is no board of anybody's"
    monkeypatch.setenv(boards.PACKS_VARIABLE, str(tmp_path))
    assert set(board_profiles.profile_names()) - set(before) == {"ours"}
    assert board_profiles.find_profile("ours").title == "Ours"
    assert board_profiles.find_profile("alif-e8-hp").title != "Ours"
    by_path = board_profiles.find_profile(f"{tmp_path}/ours/")
    assert by_path == board_profiles.find_profile("ours")


def test_packs_that_are_like_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "board.toml").write_text(f'like = "{other}"\n')
    monkeypatch.setenv(boards.PACKS_VARIABLE, str(tmp_path))
    with pytest.raises(InputError, match="there is no board profile 'a'"):
        board_profiles.find_profile("a")


def test_what_is_of_one_board_alone_is_not_taken_over() -> None:
    """A board that is like a simulator is none, and its addresses are new facts beside the digest of values."""
    assert board_profiles.find_profile("corstone-300-fvp").hardware == "simulator"
    assert board_profiles.find_profile("corstone-300-mps3").untested == "untested on hardware"
    profile = board_profiles.find_profile("alif-e8-hp-u85")
    assert (profile.npu.base, profile.npu.irq) == (0x4904_2000, None), "55 is the Ethos-U55's"
    moved = replace(
        profile, npu=boards.Device(base=1), hardware="proved on hardware", console=boards.NO_DEVICE
    )
    assert moved.sha256 == profile.sha256


# Of the vendors' headers and devicetrees: NPU, interrupt, console, memory and its address.
CHIPS = {
    "grove-vision-ai-v2": ("ethos-u55-64", 0x5302_0000, 192, 0x5400_3000, "FLASH", 0x3A00_0000, 16 << 20),
    "psoc-edge-e84": ("ethos-u55-128", 0x4460_0000, 38, 0x429A_0000, "SOCMEM", 0x3600_0000, 5 << 20),
    "numaker-m55m1": ("ethos-u55-256", 0x4000_3000, 13, 0x4024_D000, "FLASH", 0x0010_0000, 2 << 20),
}


@each("name", CHIPS)
def test_addresses_of_the_chips(name: str) -> None:
    profile = board_profiles.find_profile(name)
    npu, base, irq, console, memory, address, size = CHIPS[name]
    assert (profile.npus, profile.npu.bases[-1], profile.npu.irq) == ((npu,), base, irq)
    assert profile.console.bases[-1] == console
    row = profile.memory(memory)
    assert row is not None
    assert (row.secure_base or row.base, row.size_bytes) == (address, size)
