"""A user's own board profile: what is taken from it, and what is refused with its line."""

from __future__ import annotations

import configparser
import re
from pathlib import Path

import pytest

from ethosu_sdk.boards import profiles
from ethosu_sdk.boards.profile import BoardMemory
from ethosu_sdk.errors import InputError
from tests.places import ROOT

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


def test_a_profile_of_the_users(file: Path) -> None:
    file.write_text(OWN)
    found = profiles.find(str(file))
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


def test_the_files_name_is_the_profiles(tmp_path: Path) -> None:
    (tmp_path / "our-board.toml").write_text(OWN)
    assert profiles.find(str(tmp_path / "our-board.toml")).name == "our-board"


def test_a_profile_like_another_one(file: Path) -> None:
    file.write_text(LIKE + '[sources]\n"memories.MRAM.size_bytes" = "our order"\n')
    found, base = profiles.find(str(file)), profiles.find("alif-e8-hp")
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
    assert profiles.find(str(file)).default_system.areas["Sram"] == "SRAM0"
    systems = '[systems]\nEthos_U55_Deep_Embedded = ["Sram_Only"]\n'
    file.write_text(LIKE + systems)
    assert profiles.find(str(file)).default_system.areas == {}
    file.write_text(LIKE + systems + '[areas]\nEthos_U55_Deep_Embedded = { code = "ITCM", Sram = "DTCM" }\n')
    assert profiles.find(str(file)).default_system.areas == {"code": "ITCM", "Sram": "DTCM"}


@pytest.mark.parametrize(
    ("areas", "words"),
    [
        ('RTSS = { Sram = "SRAM" }', "'RTSS' is not a member here"),
        ('our_sram_flash = { Ram = "SRAM" }', "'Ram' is not a member here"),
        ('our_sram_flash = { Sram = "DTCM" }', "Sram must be one of: SRAM"),
        ("our_sram_flash = { Sram = 5 }", "Sram must be one of: SRAM"),
        ('our_sram_flash = "SRAM"', "our_sram_flash must be a table"),
    ],
)
def test_areas_that_do_not_exist_are_refused(areas: str, words: str, file: Path) -> None:
    file.write_text(f"{OWN}\n[areas]\n{areas}\n")
    with pytest.raises(InputError) as error:
        profiles.find(str(file))
    assert words in error.value.message


def test_the_example_of_the_guide_is_a_profile(tmp_path: Path) -> None:
    guide = (ROOT / "docs/guide/boards.md").read_text(encoding="utf-8")
    examples = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    assert len(examples) == 2
    for number, example in enumerate(examples):
        (tmp_path / f"{number}.toml").write_text(example)
        profiles.find(str(tmp_path / f"{number}.toml"))


def changed(old: str, new: str) -> str:
    assert OWN.count(old) == 1, old
    return OWN.replace(old, new)


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        ("", 1, "there is no title"),
        ("title = ", None, "this is not TOML"),
        (changed('title = "A board of ours"\n', ""), 1, "there is no title"),
        (changed('"A board of ours"', '"a\\nb"'), 1, "title must be a text"),
        (changed('"A board of ours"', '"\\u001b[31m"'), 1, "title must be a text"),
        (changed('"A board of ours"', "7"), 1, "title must be a text"),
        (changed('"ethos-u55-64", "ethos-u55-128"', ""), 2, "npus must be a list of texts"),
        (changed('"ethos-u55-64"', '"ethos-u55-65"'), 2, "there is no NPU 'ethos-u55-65'"),
        (changed('"ethos-u55-64"', '"ethos-u85-256"'), 2, "of two families"),
        (changed("npu_hz = 200_000_000", "npu_hz = 0"), 3, "npu_hz must be a whole number from 1"),
        (changed("npu_hz = 200_000_000", "npu_hz = true"), 3, "npu_hz must be a whole number"),
        (changed("npu_hz = 200_000_000", "npu_hz = nan"), 3, "npu_hz must be a whole number"),
        (changed("npu_hz", "npu_clock"), 3, "'npu_clock' is not a member here"),
        (changed('["Shared_Sram", "Sram_Only"]', '"Shared_Sram"'), 6, "must be a list of texts"),
        (changed('"Shared_Sram", "Sram_Only"', '"Shared_Ram"'), 6, "there is no memory mode 'Shared_Ram'"),
        (changed('"Shared_Sram", "Sram_Only"', '"Dedicated_Sram"'), 6, "Dedicated_Sram needs Dram"),
        (changed("Ethos_U55_Deep_Embedded", "Ethos_U55_Deep"), 7, "no system configuration 'Ethos_U55_Deep'"),
        (changed('"cortex-m55"', '"Cortex M55"'), 10, "core must be a name such as"),
        (changed('core = "cortex-m55"\n', ""), 9, "there is no core in cpu"),
        (changed("[memories.SRAM]", '[memories."S RAM"]'), 13, "'S RAM' is not a name"),
        (changed('kind = "sram"', 'kind = "ram"'), 14, "kind must be one of: tcm"),
        (changed("size_bytes = 0x10_0000", "size_bytes = -1"), 15, "size_bytes must be a whole number"),
        (changed("size_bytes = 0x10_0000", f"size_bytes = {'9' * 5000}"), None, "this is not TOML"),
        (changed('cycles_of = "cpu"\n', ""), 13, "no clock for them"),
        (
            changed("[system_configs.our_sram_flash]", "[system_configs.RA8P1]"),
            19,
            "has a system configuration RA8P1 already",
        ),
        (changed("[system_configs.our_sram_flash]", '[system_configs."a]\\n[b"]'), 19, "is not a name"),
        (changed("core_clock = 200e6", "core_clock = inf"), 20, "core_clock must be a number above 0"),
        (changed('axi0_port = "Sram"', 'axi0_port = "Dram"'), 21, "axi0_port must be one of: Sram"),
        (changed('axi1_port = "OffChipFlash"', "axi1_port = []"), 22, "axi1_port must be one of"),
        (changed("Sram_clock_scale = 1.0\n", ""), 19, "there is no Sram_clock_scale"),
        (
            changed("Sram_clock_scale = 1.0", "Sram_clock_scale = nan"),
            23,
            "Sram_clock_scale must be a number above 0",
        ),
        (
            changed("Sram_read_latency = 4", "Sram_read_latency = 4.5"),
            24,
            "Sram_read_latency must be a whole",
        ),
        (changed("Sram_read_latency", "Dram_read_latency"), 24, "'Dram_read_latency' is not a member"),
        (changed("OffChipFlash_clock_scale", "inherit"), 25, "'inherit' is not a member here"),
        (changed('"our manual, page 7"', "7"), 27, "sources must be a table of texts"),
        ('like = "alif-e9"\n', 1, "there is no board profile 'alif-e9'"),
        ("like = []\n", 1, "like must be a text"),
        ('like = "alif-e8-hp"\nmemories = 1\n', 2, "memories must be a table"),
        ('like = "alif-e8-hp"\n[memories]\nMRAM = 1\n', 3, "MRAM must be a table"),
        ("a = " + "[" * 5000, None, "is not TOML"),
        ("#" * ((256 << 10) + 1), None, "too large for a board profile"),
    ],
)
def test_what_is_refused(file: Path, content: str, line: int | None, words: str) -> None:
    file.write_text(content)
    with pytest.raises(InputError) as caught:
        profiles.find(str(file))
    assert words in caught.value.message
    assert "\n" not in caught.value.message.removeprefix(str(file))
    if line is not None:
        assert caught.value.message.startswith(f"{file}:{line}: ")


def test_what_is_no_text_file(file: Path, tmp_path: Path) -> None:
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not UTF-8"):
        profiles.find(str(file))
    with pytest.raises(InputError, match="there is no file"):
        profiles.find(str(tmp_path / "absent.toml"))
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(InputError):
        profiles.find(str(tmp_path / "folder.toml"))
