import itertools

import pytest

from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import Target, parse_name, parse_target, target_names
from tests.installed import vela_ini
from tests.tables import each


def test_names_and_defaults_of_targets() -> None:
    """ExecuTorch's, but for Ethos-U85: Sram_Only has no room for a large network on any board (test_defaults.py)."""
    assert parse_target("ethos-u55-128") == Target(
        "ethos-u55", 128, "Ethos_U55_High_End_Embedded", "Shared_Sram"
    )
    assert parse_target("ethos-u65-256").memory_mode == "Dedicated_Sram_384KB"
    assert parse_target("ethos-u85-256") == Target(
        "ethos-u85", 256, "Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB"
    )
    # A default mode that does not fit the configuration gives way to the one that leaves the model out of the SRAM.
    assert parse_target("ethos-u65-256", "Ethos_U65_Embedded").memory_mode == "Shared_Sram"
    assert parse_target("ethos-u85-256", "Ethos_U85_SYS_Flash_High").memory_mode == "Shared_Sram"
    assert parse_target("ethos-u85-256", "Ethos_U85_SYS_DRAM_Low").memory_mode == "Dedicated_Sram_384KB"
    family, macs = parse_name("ethos-u85-2048")
    assert (family.name, macs) == ("ethos-u85", 2048)
    with pytest.raises(UsageError, match="unknown target"):
        parse_name("ethos-u85")


@each(
    ("name", "hint"),
    [
        ("ethos-u55-999", "ethos-u55 has 32, 64, 128 or 256 MACs per cycle"),
        ("Ethos-U55-128", "did you mean 'ethos-u55-128'?"),
        ("ethos-u85-64", "2048 MACs per cycle; with 64 there are ethos-u55-64"),
        ("u55", "one of: ethos-u55-32"),
        ("", "one of: ethos-u55-32"),
        ("ethos-u65-128", "with 128 there are ethos-u55-128, ethos-u85-128"),
        ("ethos-u65", "add its MACs per cycle: ethos-u65-256, ethos-u65-512"),
    ],
)
def test_unknown_targets_are_refused_with_a_suggestion(name: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_target(name)
    assert hint in caught.value.hint


def test_what_does_not_belong_together_is_refused() -> None:
    with pytest.raises(UsageError, match="does not belong to ethos-u55"):
        parse_target("ethos-u55-128", "Ethos_U85_SYS_DRAM_Mid")
    with pytest.raises(UsageError, match="cannot be used with Ethos_U55_Deep_Embedded"):
        parse_target("ethos-u55-128", "Ethos_U55_Deep_Embedded", "Dedicated_Sram")
    with pytest.raises(UsageError) as caught:
        parse_target("Ethos-U55-128")
    assert caught.value.hint.startswith("did you mean 'ethos-u55-128'?")


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
