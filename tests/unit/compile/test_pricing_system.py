"""The system that a program's cycles are for: found again, given, or another one that stands in."""

from pathlib import Path

import msgspec
import pytest

from ethosu_sdk.base import cache, json_text
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.targets import Target
from ethosu_sdk.compile import pricing_system
from ethosu_sdk.compile.program_options import ProgramOptions
from ethosu_sdk.npu.timing.systems import default_for
from ethosu_sdk.program import pte
from ethosu_sdk.records import common, wording as words
from tests.places import GOLDEN_PTE
from tests.records import content, example

# The names are those of one of Vela's systems: the file decides, not the name.
INI = """[System_Config.Ethos_U55_High_End_Embedded]
core_clock=123e6
axi0_port=Sram
axi1_port=OffChipFlash
Sram_clock_scale=0.5
OffChipFlash_clock_scale=0.0625
OffChipFlash_read_latency=77
[Memory_Mode.Shared_Sram]
const_mem_area=Axi1
arena_mem_area=Axi0
cache_mem_area=Axi0
"""


@pytest.fixture(autouse=True)
def no_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path / "cache"))


@pytest.fixture
def ini(tmp_path: Path) -> Path:
    path = tmp_path / "my board.ini"
    path.write_text(INI)
    return path


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A program that ExecuTorch compiled with a user's file, whose name stands in for Vela's in the flags."""
    path = tmp_path / "own.pte"
    content = (GOLDEN_PTE / "add_u55.pte").read_bytes()
    assert content.count(b"--config=Arm/vela.ini") == 1
    path.write_bytes(content.replace(b"--config=Arm/vela.ini", b"--config=own/mine.ini"))
    return path


def priced(path: Path, vela_config: Path | None = None) -> pricing_system.PricingSystem:
    found = pricing_system.pricing_of_program(path, pte.read(path), vela_config)
    assert found is not None
    return found


def _target(path: Path) -> Target:
    found = pte.read(path).target()
    assert found is not None
    return found


def test_a_program_is_priced_by_velas_file_only_where_it_has_it(own: Path) -> None:
    found = priced(GOLDEN_PTE / "add_u55.pte")
    assert (found.system, found.is_compiled_for) == (default_for("ethos-u55"), True)
    assert (
        pricing_system.pricing_of_program(GOLDEN_PTE / "softmax.pte", pte.read(GOLDEN_PTE / "softmax.pte"))
        is None
    )
    found = priced(own)
    assert (found.system, found.is_compiled_for, found.areas) == (default_for("ethos-u55"), False, None)
    part = msgspec.convert(found.part(), common.Priced)
    assert words.system_line(part) == "for Ethos_U55_High_End_Embedded, not the system you compiled for"


def test_the_file_that_is_given_is_priced_where_it_has_the_system(own: Path, ini: Path) -> None:
    found = priced(own, ini)
    assert (found.system.clock_hz, found.system.constants.read_latency_cycles) == (123e6, 77)
    assert found.is_compiled_for
    assert found.system.source == "my board.ini"
    assert not priced(GOLDEN_PTE / "add_u55.pte", ini).is_compiled_for
    ini.write_text(INI.replace("High_End", "Low_End"))
    with pytest.raises(InputError, match=r"no system configuration '.*', which own.pte is compiled for"):
        priced(own, ini)


def test_modes_that_vela_refuses_are_left_out(own: Path, ini: Path) -> None:
    """No arena lies in flash: Vela 5.1.0 takes Sram or Dram alone."""
    mode = "[Memory_Mode.{}]\nconst_mem_area=Axi1\narena_mem_area=Axi{}\ncache_mem_area=Axi{}\n"
    ini.write_text(INI + mode.format("Same", 0, 0) + mode.format("Arena", 1, 0) + mode.format("Cache", 0, 1))
    found = [row.memory_mode for row in pricing_system.systems_in_every_mode(ini, _target(own))]
    assert found == ["Shared_Sram", "Same"]


def test_the_cache_knows_the_program_by_its_digest(own: Path, ini: Path, tmp_path: Path) -> None:
    pricing_system.keep_vela_config(own, ProgramOptions(vela_config=ini))
    found = priced(own)
    assert (found.system, found.is_compiled_for) == (pricing_system.system_of_file(ini, _target(own)), True)
    (entry,) = (tmp_path / "cache").rglob("my board.ini")
    entry.write_text("[")
    assert not priced(own).is_compiled_for
    assert "was changed since it was stored" in " ".join(cache.take_notes())
    entry.write_text(INI)
    own.write_bytes(own.read_bytes() + b"\0")
    assert not priced(own).is_compiled_for


def test_the_compile_record_knows_it(own: Path, ini: Path) -> None:
    target = _target(own)
    system = pricing_system.system_of_file(ini, target)
    record = example("compile-ds_cnn")
    record["model"]["sha256"] = pte.read(own).sha256
    record["target"]["macs"] = target.macs
    record["system"] = pricing_system.system_part(system)
    json_text.write_json(own.with_name("another.compile.json"), record)
    assert priced(own).system == system
    assert priced(own, ini).is_compiled_for
    ini.write_text(f"# the same figures\n{INI}")
    assert priced(own, ini).is_compiled_for
    ini.write_text(INI.replace("=77", "=78"))
    assert not priced(own, ini).is_compiled_for
    assert priced(own, ini).areas == system.areas
    record["model"]["sha256"] = "0" * 64
    json_text.write_json(own.with_name("another.compile.json"), record)
    assert not priced(own).is_compiled_for


def test_a_system_comes_back_from_its_record() -> None:
    system = default_for("ethos-u65")
    part = pricing_system.system_part(system)
    assert pricing_system.system_of_record(msgspec.convert(part, common.System)) == system
    run = content("run-ds_cnn")
    assert run.priced is not None
    assert pricing_system.system_of_record(run.priced.system) == default_for("ethos-u55")
