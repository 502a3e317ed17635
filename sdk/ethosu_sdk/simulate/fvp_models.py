"""Which FVPs there are, what their parameters are called (fvp_models.toml), the command line of one, and its output
split into the firmware's UART and the simulator's own lines.
"""

from __future__ import annotations

import functools
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ethosu_sdk.base import error_catalogue
from ethosu_sdk.base.error_catalogue import KnownError
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import suggestion

# The SDK's own launchers say this in answer to --version: their counters must not pass for an FVP's.
NOT_AN_FVP = "not Arm's FVP"


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


@dataclass(frozen=True)
class FvpOutput:
    """An FVP's output, split. `uart` is what the firmware printed, `simulator` the FVP's own lines.

    `errors` are known ones, `failures` the lines, known or not, that tell of a failure.
    """

    uart: bytes = field(repr=False)
    simulator: tuple[str, ...]
    errors: tuple[KnownError, ...]
    failures: tuple[str, ...]


@functools.cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Lines that are the firmware's, that are the simulator's, and with which its statistics begin."""
    table = tomllib.loads((Path(__file__).parent / "fvp_messages.toml").read_text(encoding="utf-8"))
    return (
        re.compile(table["payload"]),
        re.compile("|".join(table["noise"])),
        re.compile(table["statistics"]),
    )


def parted_output(output: bytes) -> FvpOutput:
    """Part the standard output of an FVP, line by line."""
    payload, noise, statistics = _patterns()
    uart: list[bytes] = []
    simulator: list[str] = []
    errors: dict[str, KnownError] = {}
    failures: list[str] = []
    in_statistics = False
    for raw in output.splitlines(keepends=True):
        line = raw.decode("utf-8", errors="replace").rstrip("\r\n\x04")
        if payload.match(line):
            uart.append(raw)
            continue
        in_statistics = in_statistics or statistics.match(line) is not None
        known = error_catalogue.in_line(line)
        grave = [error for error in known if not error.harmless]
        errors.update((error.id, error) for error in grave)
        if grave or error_catalogue.has_failure_form(line):
            failures.append(line)
        if in_statistics or noise.match(line) or any(error.area == "fvp" for error in known):
            simulator.append(line)
        else:
            uart.append(raw)
    return FvpOutput(b"".join(uart), tuple(simulator), tuple(errors.values()), tuple(failures))
