"""A user's own Vela configuration file: what is read from it, what is chosen, what is refused."""

from pathlib import Path

import pytest

from ethosu_sdk.aot import resolve_target
from ethosu_sdk.aot.vela import vela_config
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.targets import Target, parse_target

SYSTEM = "[System_Config.Board]\ncore_clock=100e6\naxi0_port=Sram\naxi1_port=OffChipFlash\n"
OTHER = "[System_Config.Other]\ninherit=System_Config.Board\n"
MODE = "[Memory_Mode.Tight]\nconst_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n"


@pytest.fixture
def ini(tmp_path: Path) -> Path:
    return tmp_path / "my board.ini"


def test_names_are_found_and_content_decides_the_stored_name(ini: Path, tmp_path: Path) -> None:
    ini.write_text(SYSTEM + OTHER + MODE)
    config = vela_config.read(ini)
    assert (config.ini.names("System_Config"), config.ini.names("Memory_Mode")) == (
        ("Board", "Other"),
        ("Tight",),
    )
    copy = tmp_path / "copy.ini"
    copy.write_bytes(ini.read_bytes())
    assert vela_config.read(copy).stored_name == config.stored_name
    copy.write_text(SYSTEM + MODE)
    assert vela_config.read(copy).stored_name != config.stored_name
    assert " " not in config.stored_name
    assert config.stored_name.endswith(".ini")


@pytest.mark.parametrize(
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
        vela_config.read(ini)
    assert words in caught.value.message
    assert "\n" not in caught.value.message


def test_a_missing_file(ini: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        vela_config.read(ini)


def test_without_a_file_the_table_of_the_family_decides() -> None:
    assert resolve_target("ethos-u65-256", None, None, None) == parse_target("ethos-u65-256")
    with pytest.raises(UsageError, match="does not belong to ethos-u55"):
        resolve_target("ethos-u55-128", "Ethos_U85_SYS_DRAM_Mid", None, None)


def test_given_names_must_be_in_the_file(ini: Path) -> None:
    ini.write_text(SYSTEM + OTHER + MODE)
    chosen = resolve_target("ethos-u55-64", "Other", "Tight", ini)
    assert chosen == Target("ethos-u55", 64, "Other", "Tight", vela_config.read(ini).stored_name)
    with pytest.raises(UsageError, match="has no system configuration 'Oter'") as caught:
        resolve_target("ethos-u55-64", "Oter", "Tight", ini)
    assert caught.value.hint == "did you mean 'Other'? one of: Board, Other"
    with pytest.raises(UsageError, match="has no memory mode 'Shared_Sram'") as caught:
        resolve_target("ethos-u55-64", "Other", "Shared_Sram", ini)
    assert "one of: Tight" in caught.value.hint
    with pytest.raises(UsageError, match="unknown target"):
        resolve_target("ethos-u55-65", "Other", "Tight", ini)


def test_what_is_not_given(ini: Path) -> None:
    ini.write_text(SYSTEM + MODE)
    found = resolve_target("ethos-u55-64", None, None, ini)
    assert (found.system_config, found.memory_mode) == ("Board", "Tight")
    ini.write_text(SYSTEM + OTHER + MODE + "[System_Config.Ethos_U65_High_End]\n")
    assert resolve_target("ethos-u65-256", None, None, ini).system_config == "Ethos_U65_High_End"
    with pytest.raises(UsageError, match="has several system configurations") as caught:
        resolve_target("ethos-u85-256", None, None, ini)
    assert "--system-config, one of: Board, Other, Ethos_U65_High_End" in caught.value.hint
