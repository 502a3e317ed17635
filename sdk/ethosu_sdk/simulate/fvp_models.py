"""Which FVPs there are, what their parameters are called (fvp_models.toml), and the command line of one."""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import suggestion


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
        return self.roles[role]


@functools.cache
def _table() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "fvp_models.toml").read_text(encoding="utf-8"))


@functools.cache
def models_by_program() -> dict[str, FvpModel]:
    """All FVPs by the name of their program."""
    return {name: _model(name, row) for name, row in _table()["models"].items()}


@functools.cache
def launchers() -> dict[str, FvpModel]:
    """The programs that launchers replace, by name: all FVPs, and others with the same command line."""
    like = {
        name: replace(
            models_by_program()[row["model"]],
            program=name,
            board=row.get("board", models_by_program()[row["model"]].board),
        )
        for name, row in _table()["like"].items()
    }
    return {**models_by_program(), **like}


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


def model_for_npu(npu: str) -> FvpModel:
    """The FVP that carries `npu`, such as ``"ethos-u55"``. UsageError when there is none."""
    for model in models_by_program().values():
        if model.npu == npu:
            return model
    raise UsageError(
        f"no FVP has the NPU '{npu}'", suggestion(npu, [row.npu for row in models_by_program().values()])
    )


@dataclass(frozen=True)
class FvpRun:
    """What one run of an FVP is given. `data` are files and the addresses at which they stand before the run.

    `time_limit_s` is the host's processor time, `simulated_limit_s` the board's. `fast` has the NPU skip its timing:
    its counters then mean nothing. `semihosting_folder` is where the firmware finds files, `semihosting_arguments`
    its command line.
    """

    elf: Path
    macs: int
    data: Sequence[tuple[Path, int]] = ()
    time_limit_s: float | None = None
    simulated_limit_s: float | None = None
    fast: bool = False
    semihosting_folder: Path | None = None
    semihosting_arguments: Sequence[str] = ()


def fvp_argv(program: str, model: FvpModel, run: FvpRun) -> tuple[str, ...]:
    """The words that start `program`, an FVP of the kind `model`, for `run`. UART0 is its standard output.

    UsageError when the model has no such MAC count, or the semihosting command line is longer than it takes.
    """
    if run.macs not in model.macs:
        known = ", ".join(map(str, model.macs))
        raise UsageError(f"{model.program} has no {run.macs} MACs", f"one of: {known}")
    words = [program]
    for name, value in _parameters(model, run):
        words += ["-C", f"{name}={value}"]
    words += ["-a", str(run.elf)]
    for path, address in run.data:
        words += ["--data", f"{path}@{address:#010x}"]
    if run.time_limit_s is not None:
        words += ["--timelimit", str(math.ceil(run.time_limit_s))]
    if run.simulated_limit_s is not None:
        words += ["--simlimit", f"{run.simulated_limit_s:g}"]
    return tuple(words)


def _parameters(model: FvpModel, run: FvpRun) -> list[tuple[str, str]]:
    role = model.parameter
    rows = [(role("macs"), str(run.macs))]
    rows += [(name, "1") for name in model.no_windows]
    rows += [(name, "0") for name in model.no_telnet]
    rows += [
        (role("uart_file"), "-"),
        (role("uart_unbuffered"), "1"),
        (role("uart_end_on_eot"), "1"),
        (role("semihosting"), "1"),  # the firmware ends a run by semihosting too, for simulators without EOT
        (role("semihosting_stack"), "0"),
        (role("semihosting_heap"), "0"),
    ]
    if run.semihosting_folder is not None:
        rows.append((role("semihosting_folder"), str(run.semihosting_folder)))
    if run.semihosting_arguments:
        rows.append((role("semihosting_command_line"), _command_line(run.semihosting_arguments)))
    if run.fast:
        rows.append((role("npu_arguments"), "--fast"))
    return rows


def _command_line(arguments: Sequence[str]) -> str:
    line = " ".join(arguments)
    limit = command_line_limit()
    if len(line) > limit:
        raise UsageError(
            f"the firmware's command line has {len(line)} characters, but the FVP accepts at most {limit}",
            "shorten the file names",
        )
    return line
