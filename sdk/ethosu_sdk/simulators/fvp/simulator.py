"""Runs firmware on Arm's FVP. Its exit status proves nothing; only its output does."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ethosu_sdk import error_catalogue
from ethosu_sdk.error_catalogue import KnownError
from ethosu_sdk.errors import InputError, SimulationError, ToolError
from ethosu_sdk.evidence import fvp_output
from ethosu_sdk.evidence.fvp_output import FvpOutput
from ethosu_sdk.simulators.base import MEASURED, Figures, SimulationRequest, SimulationResult
from ethosu_sdk.simulators.fvp import discovery, models, process
from ethosu_sdk.simulators.fvp.command_line import FvpRun, fvp_argv
from ethosu_sdk.simulators.fvp.discovery import InstalledFvp
from ethosu_sdk.simulators.fvp.elf import board_of
from ethosu_sdk.simulators.fvp.models import FvpModel
from ethosu_sdk.simulators.fvp.process import Finished, Watch
from ethosu_sdk.simulators.uart_log import open_log

_FIDELITY = (
    "Arm's model: instructions and NPU arithmetic are exact, NPU counters measured on it, CPU time is not"
)
_NO_CPU_CYCLES = "the FVP is not cycle-accurate: it counts instructions, not the time that the CPU takes"
_NO_COUNTERS = "the FVP ran with --fast: its NPU counters are not representative of hardware"
_FAST = "; --fast: NPU counters are not representative"
_WITHOUT_NPU = "ethos-u55"  # a firmware without an NPU runs on any board that has one
_TAIL_LINES = 12
_CUTS = {
    "time": ("did not end within {timeout_s:g} s", "--timeout gives it more time"),
    "idle": ("hangs: for {idle_timeout_s:g} s it printed nothing", "its last lines show how far it came"),
    "output": ("prints too much output", ""),
    "log": ("was stopped: its UART log cannot be written", "is the disk full?"),
}


class FvpSimulator:
    """Arm's FVP for the NPU of a request; implements :class:`ethosu_sdk.simulators.base.Simulator`.

    `fast` has the NPU skip its timing. `simulated_limit_s` bounds the simulated time. One object serves one NPU: its
    version is that of the FVP for `npu`.
    """

    name = "fvp"

    def __init__(
        self, npu: str | None = None, *, fast: bool = False, simulated_limit_s: float | None = None
    ) -> None:
        self._model = models.for_npu(npu or _WITHOUT_NPU)
        self._fast = fast
        self._simulated_limit_s = simulated_limit_s
        self._installed: InstalledFvp | None = None

    @property
    def installed(self) -> InstalledFvp:
        """The FVP that is used, asked for its version once. ToolError when it is missing or does not start."""
        if self._installed is None:
            self._installed = discovery.installed(self._model)
        return self._installed

    @property
    def figures(self) -> Figures:
        """Measured on Arm's model, unless it skips the NPU's timing."""
        return Figures(
            MEASURED,
            every_event=True,
            no_cpu_cycles=_NO_CPU_CYCLES,
            absent=_NO_COUNTERS if self._fast else "",
        )

    def fidelity(self, npu: str | None, macs: int | None = None) -> str:
        """What of a run is exact, what measured."""
        del npu, macs
        return f"{_FIDELITY}{_FAST if self._fast else ''}"

    def version(self) -> str:
        """The version of the FVP that is installed, with the name of its program. ToolError when it is missing."""
        return f"{self.installed.version} ({self._model.program})"

    def no_block_counts(self) -> str:
        """The FVP does not count what the CPU executes."""
        return "the FVP does not count what the CPU executes: --simulator qemu does"

    def run(self, request: SimulationRequest) -> SimulationResult:
        """Run the firmware to its own end; see :meth:`ethosu_sdk.simulators.base.Simulator.run`."""
        begun = time.monotonic()
        fvp = self.installed
        _check_board(request.elf, self._model)
        with tempfile.TemporaryDirectory(prefix="ethosu-sdk-fvp-") as name, open_log(request.uart_log) as log:
            argv = fvp_argv(str(fvp.program), self._model, self._fvp_run(request, Path(name)))
            finished = process.run(
                argv,
                environment=fvp.environment,
                cwd=request.semihosting_cwd,
                watch=Watch(request.timeout_s, request.idle_timeout_s),
                logs=[log, *([request.uart_tee] if request.uart_tee is not None else [])],
            )
        parted = fvp_output.part(finished.output)
        _refuse(finished, parted, request)
        return SimulationResult(
            uart=parted.uart,
            exit_code=finished.returncode,
            wall_time_s=time.monotonic() - begun,
            npu_accesses=0,
            npu_jobs=None,
        )

    def _fvp_run(self, request: SimulationRequest, folder: Path) -> FvpRun:
        data = []
        for index, (address, content) in enumerate(request.images):
            path = folder / f"image{index}.bin"
            path.write_bytes(content)
            data.append((path, address))
        return FvpRun(
            elf=request.elf.absolute(),
            macs=request.target.macs if request.target else self._model.default_macs,
            data=data,
            time_limit_s=request.timeout_s,
            simulated_limit_s=self._simulated_limit_s,
            fast=self._fast or request.fast,
            semihosting_folder=request.semihosting_cwd,
            semihosting_arguments=request.semihosting_arguments,
        )


def _check_board(elf: Path, model: FvpModel) -> None:
    board = board_of(elf)
    if board != model.board:
        kind = f"it is linked for {board}" if board else "it has no vector table where that board starts"
        raise InputError(
            f"{elf} cannot run on {model.program}, which is a {model.board}: {kind}",
            f"build it with --board {model.board}",
        )


def _refuse(finished: Finished, parted: FvpOutput, request: SimulationRequest) -> None:
    """Raise for a run that did not end by itself, or whose output reports a failure."""
    messages = error_catalogue.in_text(finished.messages.splitlines())
    known = [*parted.errors, *(row for row in messages if not row.harmless)]
    if finished.cut:
        reason, hint = _CUTS[finished.cut]
        values = {"timeout_s": request.timeout_s, "idle_timeout_s": request.idle_timeout_s}
        raise _error(f"the firmware {reason.format(**values)}", hint, known, finished, parted)
    if parted.failures:
        raise _error(f"the FVP's log reports a failure: {parted.failures[0]}", "", known, finished, parted)
    if known and finished.returncode != 0:
        # The loader's and the FVP's complaints come before the first instruction.
        raise ToolError(
            f"the FVP does not run: {finished.messages.splitlines()[-1] if finished.messages else known[0].cause}",
            known[0].advice,
        )
    if finished.returncode != 0:
        raise _error(f"the FVP ended with exit status {finished.returncode}", "", known, finished, parted)


def _error(
    reason: str, hint: str, known: Sequence[KnownError], finished: Finished, parted: FvpOutput
) -> SimulationError:
    printed = parted.uart.decode("ascii", errors="replace").splitlines()[-_TAIL_LINES:]
    lines = [reason, "  last lines of the output:" if printed else "  nothing was printed on the UART"]
    lines += ["    " + "".join(c if c.isprintable() else "·" for c in line) for line in printed]
    if finished.messages:
        lines.append(f"  the FVP says: {finished.messages.splitlines()[-1]}")
    return SimulationError("\n".join(lines), known[0].advice if known else hint)
