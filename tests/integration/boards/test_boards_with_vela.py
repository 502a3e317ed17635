"""Vela accepts every system configuration and memory mode of every board profile, and makes of Arm's what it makes of
its own file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.base import board_profiles
from ethosu_sdk.base.board_profiles import BoardProfile
from tests import warm
from tests.conftest import ZooPte

pytestmark = pytest.mark.torch

RUNS = Path(__file__).with_name("vela_runs.py")


def flags(npu: str, system: str, mode: str, ini: Path | str) -> list[str]:
    return [
        f"--accelerator-config={npu}",
        f"--system-config={system}",
        f"--memory-mode={mode}",
        f"--config={ini}",
    ]


def vela(zoo_pte: ZooPte, folder: Path, runs: Sequence[list[str]]) -> list[dict[str, Any]]:
    """What Vela makes of the zoo's digits_cnn with each of these flags."""
    output = zoo_pte("digits_cnn")
    graph = output.pte.parent / output.delegates[0].files.tosa
    done = warm.python(RUNS, graph, folder, given=json.dumps(runs))
    found: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == len(runs)
    return found


def written(profile: BoardProfile, folder: Path) -> Path:
    ini = folder / f"{profile.name}.ini"
    ini.write_text(profile.vela_ini(), encoding="utf-8")
    return ini


def test_vela_takes_every_combination(zoo_pte: ZooPte, tmp_path: Path) -> None:
    wanted, runs = [], []
    for profile in map(board_profiles.find_profile, board_profiles.profile_names()):
        ini = written(profile, tmp_path)
        for system in profile.systems:
            for mode in system.memory_modes:
                wanted.append((profile.name, system, mode))
                runs.append(flags(profile.npus[0], system.name, mode, ini))
    assert {name for name, *_ in wanted} == set(board_profiles.profile_names())
    for (name, system, mode), made in zip(wanted, vela(zoo_pte, tmp_path, runs), strict=True):
        assert "refused" not in made, (name, system.name, mode, made)
        row = made["summary"]
        assert (row["system_config"], row["memory_mode"]) == (system.name, mode)
        assert float(row["core_clock"]) == system.settings["core_clock"]
        assert int(row["cycles_total"]) > 0


def test_arms_boards_compile_to_what_vela_makes_by_itself(zoo_pte: ZooPte, tmp_path: Path) -> None:
    runs = []
    for profile in map(
        board_profiles.find_profile, ("corstone-300-fvp", "corstone-300-fvp-u65", "corstone-320-fvp")
    ):
        ini = written(profile, tmp_path)
        for system in profile.systems:
            for config in (ini, "Arm/vela.ini"):
                runs.append(flags(profile.npus[0], system.name, system.memory_modes[0], config))
    made = vela(zoo_pte, tmp_path, runs)
    assert made[::2] == made[1::2]
    assert len({row["summary"]["cycles_total"] for row in made}) > 1, "the configurations differ"


def test_vela_refuses_what_a_profile_may_not_have(zoo_pte: ZooPte, tmp_path: Path) -> None:
    """The negative control: a scratch on a flash, which profile files are refused for."""
    profile = board_profiles.find_profile("alif-e8-hp-u85")
    ini = tmp_path / "wrong.ini"
    ini.write_text(profile.vela_ini(), encoding="utf-8")
    (made,) = vela(
        zoo_pte, tmp_path, [flags("ethos-u85-256", "Ethos_U85_SRAM_MRAM", "Dedicated_Sram_384KB", ini)]
    )
    assert "refused" in made
