import configparser
import itertools
from importlib.util import find_spec
from pathlib import Path

import pytest

from ethosu_sdk.errors import UsageError
from ethosu_sdk.targets import Target, families, parse_name, parse_target, target_names


def test_the_eleven_targets() -> None:
    assert target_names() == (
        "ethos-u55-32",
        "ethos-u55-64",
        "ethos-u55-128",
        "ethos-u55-256",
        "ethos-u65-256",
        "ethos-u65-512",
        "ethos-u85-128",
        "ethos-u85-256",
        "ethos-u85-512",
        "ethos-u85-1024",
        "ethos-u85-2048",
    )


@pytest.mark.parametrize("name", target_names())
def test_defaults_belong_to_the_family(name: str) -> None:
    target = parse_target(name)
    assert target.name == name
    assert target.memory_mode in target.family.system_configs[target.system_config]


def test_defaults_are_executorchs_but_for_the_memory_mode_of_ethos_u85() -> None:
    """Sram_Only, ExecuTorch's there, has no room for a large network on any board (test_defaults.py)."""
    assert parse_target("ethos-u55-128") == Target(
        "ethos-u55", 128, "Ethos_U55_High_End_Embedded", "Shared_Sram"
    )
    assert parse_target("ethos-u65-256").memory_mode == "Dedicated_Sram_384KB"
    assert parse_target("ethos-u85-256") == Target(
        "ethos-u85", 256, "Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB"
    )


@pytest.mark.parametrize(
    "name", ["ethos-u55-999", "Ethos-U55-128", "ethos-u85-64", "u55", "", "ethos-u65-128"]
)
def test_unknown_targets_are_refused_with_a_suggestion(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_target(name)
    assert "ethos-u55-128" in caught.value.hint


def test_a_near_miss_is_suggested_first() -> None:
    with pytest.raises(UsageError) as caught:
        parse_target("Ethos-U55-128")
    assert caught.value.hint.startswith("did you mean 'ethos-u55-128'?")


def test_another_familys_system_config_is_refused() -> None:
    with pytest.raises(UsageError, match="does not belong to ethos-u55"):
        parse_target("ethos-u55-128", "Ethos_U85_SYS_DRAM_Mid")


def test_dedicated_sram_needs_dram() -> None:
    with pytest.raises(UsageError, match="cannot be used with Ethos_U55_Deep_Embedded"):
        parse_target("ethos-u55-128", "Ethos_U55_Deep_Embedded", "Dedicated_Sram")


def test_a_default_mode_that_does_not_fit_the_chosen_config_is_replaced() -> None:
    """By the one that leaves the model out of the SRAM."""
    assert parse_target("ethos-u65-256", "Ethos_U65_Embedded").memory_mode == "Shared_Sram"
    assert parse_target("ethos-u85-256", "Ethos_U85_SYS_Flash_High").memory_mode == "Shared_Sram"
    assert parse_target("ethos-u85-256", "Ethos_U85_SYS_DRAM_Low").memory_mode == "Dedicated_Sram_384KB"


def test_every_family_names_its_board() -> None:
    assert {family.name: family.board for family in families().values()} == {
        "ethos-u55": "corstone-300",
        "ethos-u65": "corstone-300",
        "ethos-u85": "corstone-320",
    }


def vela_ini() -> configparser.ConfigParser:
    """Vela's own configuration file, found without importing Vela."""
    package = find_spec("ethosu")
    assert package is not None
    assert package.submodule_search_locations is not None
    parser = configparser.ConfigParser()
    parser.read(Path(next(iter(package.submodule_search_locations)), "config_files", "Arm", "vela.ini"))
    return parser


def test_all_726_combinations_are_judged_as_velas_file_has_them() -> None:
    """A system configuration belongs to the family in its name; Dedicated_Sram needs DRAM behind its second port.

    Vela checks the latter alone, and that by an exception.
    """
    ini = vela_ini()
    systems, modes = (
        [name.removeprefix(prefix) for name in ini.sections() if name.startswith(prefix)]
        for prefix in ("System_Config.", "Memory_Mode.")
    )
    allowed, refused = 0, 0
    for name, system, mode in itertools.product(target_names(), systems, modes):
        family = name.rpartition("-")[0].replace("ethos-u", "Ethos_U")
        has_dram = ini[f"System_Config.{system}"]["axi1_port"] == "Dram"
        if system.startswith(family + "_") and (has_dram or not mode.startswith("Dedicated_Sram")):
            assert parse_target(name, system, mode).name == name
            allowed += 1
        else:
            with pytest.raises(UsageError) as caught:
                parse_target(name, system, mode)
            assert "one of: " in caught.value.hint
            refused += 1
    assert (allowed, refused) == (166, 560)


def test_name_alone() -> None:
    family, macs = parse_name("ethos-u85-2048")
    assert (family.name, macs) == ("ethos-u85", 2048)
    with pytest.raises(UsageError, match="unknown target"):
        parse_name("ethos-u85")
