"""Which FVPs there are and what their parameters are called (models.toml)."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ethosu_sdk.errors import UsageError
from ethosu_sdk.targets import suggestion


@dataclass(frozen=True)
class FvpModel:
    """One FVP: its program's name, its NPU, its board, and its parameters by role.

    `vectors` are the addresses at which the processor may find its vector table. `instances` are the names of the
    model's parts, `no_windows` and `no_telnet` the parameters that keep it off the screen,
    `terminals` the numbers of its UARTs that have a terminal.
    """

    program: str
    npu: str
    board: str
    macs: tuple[int, ...]
    default_macs: int
    vectors: tuple[int, ...]
    instances: Mapping[str, str]
    roles: Mapping[str, str]
    no_windows: tuple[str, ...]
    no_telnet: tuple[str, ...]
    terminals: tuple[int, ...]

    def parameter(self, role: str) -> str:
        """The full name of the parameter that plays `role`."""
        return self.roles[role]


@functools.cache
def _table() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "models.toml").read_text(encoding="utf-8"))


@functools.cache
def models() -> dict[str, FvpModel]:
    """All FVPs by the name of their program."""
    return {name: _model(name, row) for name, row in _table()["models"].items()}


@functools.cache
def launchers() -> dict[str, FvpModel]:
    """The programs that launchers replace, by name: all FVPs, and others with the same command line."""
    like = {
        name: replace(
            models()[row["model"]], program=name, board=row.get("board", models()[row["model"]].board)
        )
        for name, row in _table()["like"].items()
    }
    return {**models(), **like}


def _model(name: str, row: dict[str, Any]) -> FvpModel:
    subsystem = _table()["subsystems"][row["subsystem"]]
    instances = subsystem["instances"]
    telnet = _table()["telnet"]
    return FvpModel(
        program=name,
        npu=row["npu"],
        board=subsystem["board"],
        macs=tuple(row["macs"]),
        default_macs=row["default_macs"],
        vectors=tuple(subsystem["vectors"]),
        instances=instances,
        roles={role: pattern.format(**instances) for role, pattern in _table()["roles"].items()},
        no_windows=tuple(pattern.format(**instances) for pattern in subsystem["no_windows"]),
        no_telnet=tuple(
            telnet["parameter"].format(**instances, number=number) for number in telnet["terminals"]
        ),
        terminals=tuple(telnet["terminals"]),
    )


def command_line_limit() -> int:
    """The characters of a semihosting command line that reach the firmware; the FVP cuts the rest."""
    return int(_table()["limits"]["command_line_characters"])


def installed_programs(machine: str) -> str:
    """The folder of the programs where Arm's installer has put an FVP, on a `machine` such as ``"x86_64"``."""
    folders: dict[str, str] = _table()["installed"]["programs"]
    return folders.get(machine, folders["x86_64"])


def installed_python() -> str:
    """The folder of Corstone-320's own Python, beside those of the programs."""
    return str(_table()["installed"]["python"])


def for_npu(npu: str) -> FvpModel:
    """The FVP that carries `npu`, such as ``"ethos-u55"``. UsageError when there is none."""
    for model in models().values():
        if model.npu == npu:
            return model
    raise UsageError(f"no FVP has the NPU '{npu}'", suggestion(npu, [row.npu for row in models().values()]))
