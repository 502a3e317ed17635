"""The command line of an FVP: pure, so that it can be read, tested and printed without one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.errors import UsageError
from ethosu_sdk.simulators.fvp.models import FvpModel, command_line_limit


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
