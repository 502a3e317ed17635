"""A user's own Vela configuration file and flags: what is read, what is chosen, what is refused."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ethosu_sdk.base import board_profiles
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.targets import Target, parse_target
from ethosu_sdk.compile import vela_config
from ethosu_sdk.compile.program_options import ProgramOptions
from ethosu_sdk.compile.vela_config import resolve_target
from tests import installed
from tests.tables import each

SYSTEM = "[System_Config.Board]\ncore_clock=100e6\naxi0_port=Sram\naxi1_port=OffChipFlash\n"
OTHER = "[System_Config.Other]\ninherit=System_Config.Board\n"
MODE = "[Memory_Mode.Tight]\nconst_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n"


@pytest.fixture
def ini(tmp_path: Path) -> Path:
    return tmp_path / "my board.ini"


def test_names_are_found_and_content_decides_the_stored_name(ini: Path, tmp_path: Path) -> None:
    ini.write_text(SYSTEM + OTHER + MODE)
    config = vela_config.read_config(ini)
    assert (config.ini.names("System_Config"), config.ini.names("Memory_Mode")) == (
        ("Board", "Other"),
        ("Tight",),
    )
    copy = tmp_path / "copy.ini"
    copy.write_bytes(ini.read_bytes())
    assert vela_config.read_config(copy).stored_name == config.stored_name
    copy.write_text(SYSTEM + MODE)
    assert vela_config.read_config(copy).stored_name != config.stored_name
    assert " " not in config.stored_name
    assert config.stored_name.endswith(".ini")


@each(
    ("content", "words"),
    [
        (b"", "no section [System_Config.NAME]"),
        (SYSTEM.encode(), "no section [Memory_Mode.NAME]"),
        (b"core_clock=1", "not a Vela configuration file"),
        (b"[System_Config.A]\n[System_Config.A]\n", "not a Vela configuration file"),
        (b"\xff\xfe\x00", "not text in UTF-8"),
        ((SYSTEM + MODE + "inherit=Memory_Mode.Absent\n").encode(), "inherits from 'Memory_Mode.Absent'"),
        ((SYSTEM + MODE + "inherit=Memory_Mode.Tight\n").encode(), "inherits from 'Memory_Mode.Tight'"),
        (b"#" * ((1 << 20) + 1), "too large"),
    ],
)
def test_what_is_no_configuration_file(ini: Path, content: bytes, words: str) -> None:
    ini.write_bytes(content)
    with pytest.raises(InputError) as caught:
        vela_config.read_config(ini)
    assert words in caught.value.message
    assert "\n" not in caught.value.message


def test_files_that_are_missing_or_beside_a_profile_are_refused(ini: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        vela_config.read_config(ini)
    ini.write_text(SYSTEM + MODE)
    with pytest.raises(UsageError, match="--system and --vela-config"):
        resolve_target(None, None, None, ProgramOptions(system="alif-e8-hp", vela_config=ini))


def test_what_is_not_given_comes_from_the_file_or_the_table(ini: Path) -> None:
    assert resolve_target("ethos-u65-256", None, None, ProgramOptions()) == parse_target("ethos-u65-256")
    with pytest.raises(UsageError, match="does not belong to ethos-u55"):
        resolve_target("ethos-u55-128", "Ethos_U85_SYS_DRAM_Mid", None, ProgramOptions())
    ini.write_text(SYSTEM + MODE)
    found = resolve_target("ethos-u55-64", None, None, ProgramOptions(vela_config=ini))
    assert (found.system_config, found.memory_mode) == ("Board", "Tight")
    ini.write_text(SYSTEM + OTHER + MODE + "[System_Config.Ethos_U65_High_End]\n")
    assert (
        resolve_target("ethos-u65-256", None, None, ProgramOptions(vela_config=ini)).system_config
        == "Ethos_U65_High_End"
    )
    with pytest.raises(UsageError, match="has several system configurations") as caught:
        resolve_target("ethos-u85-256", None, None, ProgramOptions(vela_config=ini))
    assert "--system-config, one of: Board, Other, Ethos_U65_High_End" in caught.value.hint


def test_given_names_must_be_in_the_file(ini: Path) -> None:
    ini.write_text(SYSTEM + OTHER + MODE)
    options = ProgramOptions(vela_config=ini)
    chosen = resolve_target("ethos-u55-64", "Other", "Tight", options)
    assert chosen == Target("ethos-u55", 64, "Other", "Tight", vela_config.read_config(ini).stored_name)
    with pytest.raises(UsageError, match="has no system configuration 'Oter'") as caught:
        resolve_target("ethos-u55-64", "Oter", "Tight", ProgramOptions(vela_config=ini))
    assert caught.value.hint == "did you mean 'Other'? one of: Board, Other"
    with pytest.raises(UsageError, match="has no memory mode 'Shared_Sram'") as caught:
        resolve_target("ethos-u55-64", "Other", "Shared_Sram", ProgramOptions(vela_config=ini))
    assert "one of: Tight" in caught.value.hint
    with pytest.raises(UsageError, match="unknown target"):
        resolve_target("ethos-u55-65", "Other", "Tight", ProgramOptions(vela_config=ini))


ALIF = ProgramOptions(system="alif-e8-hp")


def test_a_board_profile_gives_what_is_not_named() -> None:
    found = resolve_target(None, None, None, ALIF)
    config = vela_config.chosen_config(ALIF)
    assert config is not None
    assert found == Target("ethos-u55", 256, "RTSS_HP_SRAM_MRAM", "Shared_Sram", config.stored_name)
    chosen = resolve_target("ethos-u55-256", "RTSS_HP_DTCM_Only", None, ALIF)
    assert (chosen.system_config, chosen.memory_mode) == ("RTSS_HP_DTCM_Only", "Sram_Only")
    assert resolve_target(None, None, "Sram_Only", ALIF).memory_mode == "Sram_Only"
    fvp = ProgramOptions(system="corstone-300-fvp")
    default = resolve_target(None, None, None, ProgramOptions())
    assert replace(resolve_target(None, None, None, fvp), vela_config="") == default
    assert resolve_target("ethos-u55-32", None, None, fvp).macs == 32


@pytest.mark.parametrize(
    ("name", "system", "mode", "words", "hint"),
    [
        ("ethos-u55-128", None, None, "alif-e8-hp has no ethos-u55-128", "did you mean 'ethos-u55-256'?"),
        ("ethos-u55-257", None, None, "unknown target 'ethos-u55-257'", "did you mean 'ethos-u55-256'?"),
        (None, "RTSS_HE_SRAM_MRAM", None, "has no system configuration", "did you mean 'RTSS_HP_SRAM_MRAM'?"),
        (
            None,
            "Ethos_U55_High_End_Embedded",
            None,
            "has no system configuration",
            "one of: RTSS_HP_SRAM_MRAM",
        ),
        (None, None, "Dedicated_Sram", "cannot be used with RTSS_HP_SRAM_MRAM of alif-e8-hp", "Shared_Sram"),
    ],
)
def test_what_a_board_does_not_have(
    name: str | None, system: str | None, mode: str | None, words: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_target(name, system, mode, ALIF)
    assert words in caught.value.message
    assert hint in caught.value.hint


def test_a_board_profile_is_compiled_as_its_configuration_file(ini: Path) -> None:
    """The text of a profile, given as a file, is the same configuration for Vela, down to its stored name."""
    ini.write_text(board_profiles.find_profile("alif-e8-hp").vela_ini())
    given, read = vela_config.chosen_config(ALIF), vela_config.chosen_config(ProgramOptions(vela_config=ini))
    assert given is not None
    assert read is not None
    assert given.stored_name == read.stored_name
    assert vela_config.chosen_config(ProgramOptions()) is None


# --- Flags that a user adds to Vela's: a whole table, compared with Vela's own.


def flags_of_vela() -> set[str]:
    """The options in Vela's source, read as text: importing it takes a second."""
    source = (installed.folder("ethosu") / "vela" / "vela.py").read_text(encoding="utf-8")
    return set(re.findall(r'add_argument\(\s*"(--[a-z0-9-]+)"', source))


def test_every_flag_of_vela_is_either_allowed_or_refused() -> None:
    known = flags_of_vela()
    assert len(known) > 40
    deprecated = {
        "--verbose-packing",
        "--verbose-tensor-purpose",
        "--verbose-operators",
        "--verbose-progress",
    }
    deprecated |= {"--show-subgraph-io-summary"}
    assert set(vela_config.ALLOWED_FLAGS) | set(vela_config.REFUSED_FLAGS) == known - deprecated
    assert not set(vela_config.ALLOWED_FLAGS) & set(vela_config.REFUSED_FLAGS)


@each(
    "flag",
    [
        "--optimise=Size",
        "--tensor-allocator=LinearAlloc",
        "--arena-cache-size=65536",
        "--max-block-dependency=0",
        "--disable-chaining",
        "--experimental-softmax-int16-neg-exp-range=12.5",
        "--verbose-schedule",
    ],
)
def test_what_may_be_added(flag: str) -> None:
    vela_config.check_flags([flag])


@each("name", vela_config.REFUSED_FLAGS)
def test_what_breaks_the_contract_is_refused_by_name(name: str) -> None:
    for flag in (name, f"{name}=x"):
        with pytest.raises(UsageError, match=f"Vela's flag {name} cannot be added: "):
            vela_config.check_flags(["--disable-fwd", flag])


@each(
    ("flag", "words"),
    [
        ("--nonsense", "Vela has no flag --nonsense"),
        ("--out=x", "Vela has no flag --out"),  # argparse would take it for --output-dir or --output-format
        ("--optimise", "takes one of: Size, Performance"),
        ("--optimise=size", "takes one of: Size, Performance, not 'size'"),
        ("--arena-cache-size=-1", "takes a whole number, not '-1'"),
        ("--arena-cache-size=", "takes a whole number"),
        ("--disable-fwd=1", "takes no value"),
        ("--experimental-softmax-int16-neg-exp-range=0", "takes a number"),
        ("--experimental-softmax-int16-neg-exp-range=1e9", "takes a number"),
        ("--optimise Size", "is not a single flag of Vela"),
        ("--optimise=Size\n--cop-format=COP2", "is not a single flag of Vela"),
        ("network.tosa", "is not a single flag of Vela"),
        ("", "is not a single flag of Vela"),
        ("-o", "is not a single flag of Vela"),
    ],
)
def test_what_is_refused(flag: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        vela_config.check_flags([flag])
    assert words in caught.value.message


def test_the_nearest_flag_is_suggested() -> None:
    with pytest.raises(UsageError) as caught:
        vela_config.check_flags(["--optimize=Size"])
    assert caught.value.hint.startswith("did you mean '--optimise'?")
