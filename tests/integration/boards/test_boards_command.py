"""`boards`, and `--system` of the commands that compile, as users call them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.base import board_profiles
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.records import printed, read

OURS = """like = "alif-e8-hp"
[systems]
ours = ["Shared_Sram"]
[system_configs.ours]
core_clock = 123e6
axi0_port = "Sram"
axi1_port = "OffChipFlash"
Sram_clock_scale = 1.0
OffChipFlash_clock_scale = 0.25
"""
FIRMWARE = """
[firmware]
clock_hz = 25_000_000
irq_count = 480
fast = "SRAM"
bulk = "SRAM"
near = "SRAM"
[firmware.simulators]
qemu = ["ethos-u55"]
[firmware.memories]
SRAM = { access = "rwx", origin = 0x3100_0000, size_bytes = 0x40_0000 }
"""


def test_the_list_and_its_record(tmp_path: Path) -> None:
    shown = sdk_ok("boards", cwd=tmp_path)
    assert [line.split()[0] for line in shown.out.splitlines()[1:]] == list(board_profiles.profile_names())
    found = printed(sdk("boards", "--json", cwd=tmp_path))
    assert [row["name"] for row in found["boards"]] == list(board_profiles.profile_names())
    assert list(tmp_path.iterdir()) == []


def test_one_board_with_its_sources(tmp_path: Path) -> None:
    shown = sdk_ok("boards", "alif-e8-hp", cwd=tmp_path)
    for words in ("RTSS_HP_SRAM_MRAM", "5.5 MiB", "29 NPU cycles", "ensemble_vela.ini", "absent: not public"):
        assert words in shown.out
    (board,) = printed(sdk("boards", "alif-e8-hp", "--json", cwd=tmp_path))["boards"]
    assert board["cpu"] == {"core": "cortex-m55", "clock_hz": 400_000_000}
    sources = {row["value"]: row["source"] for row in board["sources"]}
    assert sources["cpu.icache_bytes"] == "not public"


def test_a_file_of_the_users(tmp_path: Path) -> None:
    (tmp_path / "ours.toml").write_text(OURS)
    (board,) = printed(sdk("boards", "ours.toml", "--json", cwd=tmp_path))["boards"]
    assert (board["name"], [row["name"] for row in board["systems"]]) == ("ours", ["ours"])


@pytest.mark.parametrize("command", [("boards",), ("compile", "zoo:add", "--system")])
def test_what_is_no_profile(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "wrong.toml").write_text('like = "alif-e8-hp"\nnpu_hz = "fast"\n')
    (tmp_path / "binary.toml").write_bytes(b"\xff\x00")
    for word, code, words in (
        ("alif-e8", 2, "did you mean 'alif-e8-hp'?"),
        ("wrong.toml", 3, "wrong.toml:2: npu_hz must be a whole number"),
        ("binary.toml", 3, "is not UTF-8"),
        ("absent.toml", 3, "there is no file"),
    ):
        assert_clear(sdk(*command, word, cwd=tmp_path), code, words)
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--target", "ethos-u85-256"), "alif-e8-hp has no ethos-u85-256"),
        (("--vela-config", "ours.ini"), "--system and --vela-config"),
        (("--memory-mode", "Dedicated_Sram"), "cannot be used with RTSS_HP_SRAM_MRAM"),
        (("--system-config", "RTSS_HE_SRAM_MRAM"), "has no system configuration 'RTSS_HE_SRAM_MRAM'"),
    ],
)
def test_what_does_not_go_with_a_board(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    assert_clear(sdk("compile", "zoo:add", "--system", "alif-e8-hp", *words, cwd=tmp_path), 2, message)


def test_a_new_pack_is_found_by_its_path_and_in_the_folder_of_packs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sdk_ok("boards", "new", "packs/ours", "--target", "ethos-u65-256", cwd=tmp_path)
    shown = sdk_ok("boards", "check", "packs/ours/", cwd=tmp_path).out
    assert "ours: the pack is valid; untested on hardware" in shown
    assert "npu.base" in shown
    assert "memories.SRAM.size_bytes" in shown
    assert_clear(sdk("boards", "new", "packs/ours", cwd=tmp_path), 2, "is there already")
    assert_clear(sdk("boards", "ours", cwd=tmp_path), 2, "there is no board profile 'ours'")
    monkeypatch.setenv("ETHOSU_SDK_BOARDS", str(tmp_path / "packs"))
    assert "ours" in [line.split()[0] for line in sdk_ok("boards", "list", cwd=tmp_path).out.splitlines()[1:]]
    (by_name,) = printed(sdk("boards", "ours", "--json", cwd=tmp_path))["boards"]
    (by_path,) = printed(sdk("boards", "packs/ours/", "--json", cwd=tmp_path))["boards"]
    assert by_name == by_path
    assert by_name["npus"] == ["ethos-u65-256"]


def test_system_configurations_of_a_vela_ini_are_imported(tmp_path: Path) -> None:
    """Those that are Arm's are known by name; one with Arm's name and other values gets a name of its own."""
    section = "axi0_port=Sram\naxi1_port=OffChipFlash\nSram_clock_scale=1\nOffChipFlash_clock_scale=0.125\n"
    (tmp_path / "vendor.ini").write_text(
        f"[System_Config.Ours]\ncore_clock=300e6\n{section}OffChipFlash_read_latency=77\n"
        f"[System_Config.Ethos_U55_Deep_Embedded]\ncore_clock=1e6\n{section}"
        "[Memory_Mode.Parent]\nconst_mem_area=Axi1\narena_mem_area=Axi0\ncache_mem_area=Axi0\n"
    )
    for base in ((), ("--like", "alif-e8-hp")):
        name = f"a{len(base)}"
        sdk_ok("boards", "new", name, *base, "--vela-ini", "vendor.ini", cwd=tmp_path)
        (board,) = printed(sdk("boards", f"{name}/", "--json", cwd=tmp_path))["boards"]
        ours, renamed = board["systems"]
        assert (renamed["name"], renamed["memory_modes"]) == (
            "Ethos_U55_Deep_Embedded_of_board",
            ["Shared_Sram"],
        )
        settings = {row["key"]: row["value"] for row in ours["settings"]}
        assert (settings["core_clock"], settings["OffChipFlash_read_latency"]) == (300_000_000, 77)
    (tmp_path / "odd.ini").write_text(
        (tmp_path / "vendor.ini").read_text().replace("arena_mem_area=Axi0", "arena_mem_area=Axi7")
    )
    assert_clear(sdk("boards", "new", "b", "--vela-ini", "odd.ini", cwd=tmp_path), 3, "is none of Arm's")
    assert not (tmp_path / "b").exists()


def test_firmware_of_a_pack_is_checked(tmp_path: Path) -> None:
    sdk_ok("boards", "new", "ours", "--like", "corstone-310-fvp", cwd=tmp_path)
    pack = tmp_path / "ours" / "board.toml"
    text = pack.read_text() + FIRMWARE
    pack.write_text(text)
    sdk_ok("boards", "check", "ours/", cwd=tmp_path)
    for old, new, words in (
        ('fast = "SRAM"', 'fast = "SRAMM"', "firmware.memories has no 'SRAMM'"),
        ("SRAM = { access", "DATA = { access", "no memory can be called DATA"),
        ("irq_count = 480", "irq_count = 4", "irq_count must be a whole number from 16"),
        ('access = "rwx"', "access = 5", "access must be a word"),
        ('["ethos-u55"]', '["ethos-u56"]', "no NPU 'ethos-u56'"),
    ):
        assert text.count(old) == 1
        pack.write_text(text.replace(old, new))
        assert_clear(sdk("boards", "check", "ours/", cwd=tmp_path), 3, words)


def estimated_clock(found: dict[str, Any]) -> float:
    (delegate,) = found["delegates"]
    (clock,) = (row["value"] for row in delegate["estimates"] if row["name"] == "core_clock")
    return float(clock)


@pytest.mark.torch
def test_a_program_for_a_board(tmp_path: Path) -> None:
    """The board gives target and settings. The program is the one that the same text makes as a file."""
    compiled = printed(sdk("compile", "zoo:add", "--system", "alif-e8-hp", "--json", cwd=tmp_path))
    profile = board_profiles.find_profile("alif-e8-hp")
    assert compiled["board_profile"] == {
        "name": "alif-e8-hp",
        "sha256": profile.sha256,
        "hardware": "untested on hardware",
    }
    assert compiled["target"] == {
        "npu": "ethos-u55",
        "macs": 256,
        "system_config": "RTSS_HP_SRAM_MRAM",
        "memory_mode": "Shared_Sram",
    }
    assert compiled["check"]["status"] == "pass"
    assert estimated_clock(compiled) == 400e6
    (tmp_path / "alif.ini").write_text(profile.vela_ini())
    given = (
        "--target",
        "ethos-u55-256",
        "--system-config",
        "RTSS_HP_SRAM_MRAM",
        "--memory-mode",
        "Shared_Sram",
    )
    same = printed(
        sdk("compile", "zoo:add", "--vela-config", "alif.ini", *given, "--json", "-o", "same", cwd=tmp_path)
    )
    assert "board_profile" not in same
    assert same["model"]["sha256"] == compiled["model"]["sha256"]


@pytest.mark.torch
def test_a_program_for_a_users_board_runs_and_is_made_anew_when_the_board_changes(tmp_path: Path) -> None:
    board = tmp_path / "ours.toml"
    board.write_text(OURS)
    command = ("run", "zoo:add", "--system", board, "--simulator", "host", "--json")
    ran = printed(sdk(*command, cwd=tmp_path))
    assert (ran["status"], ran["target"]["system_config"]) == ("pass", "ours")
    (path,) = tmp_path.glob("build/*/add.compile.json")
    first = read(path)
    assert (first["system"]["name"], estimated_clock(first)) == ("ours", 123e6)
    assert ("board profile", "ours.toml") in {
        (row["role"], row.get("file")) for row in first["provenance"]["inputs"]
    }
    board.write_text(OURS.replace("123e6", "124e6"))
    printed(sdk(*command, cwd=tmp_path))
    second = read(path)
    assert estimated_clock(second) == 124e6
    assert second["system"]["sha256"] != first["system"]["sha256"]
    created = second["created"]
    assert "is up to date" in sdk(*command, "-v", cwd=tmp_path).err
    assert read(path)["created"] == created
