"""Runs firmware on Arm's FVP: where it is installed, its process, and what its output proves."""

from __future__ import annotations

import os
import re
import selectors
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from ethosu_sdk.base import error_catalogue, filesystem, proc
from ethosu_sdk.base.error_catalogue import KnownError
from ethosu_sdk.base.errors import InputError, SdkError, SimulationError, ToolError
from ethosu_sdk.simulate import fvp_models, fvp_output
from ethosu_sdk.simulate.fvp_models import FvpModel, FvpRun, fvp_argv, models_by_program
from ethosu_sdk.simulate.fvp_output import NOT_AN_FVP, FvpOutput
from ethosu_sdk.simulate.simulation import MEASURED, Figures, SimulationRequest, SimulationResult, open_log

# ---- simulators.fvp.elf
# Which board a firmware is linked for: the one that finds a vector table where it looks after reset.


def board_of(elf: Path) -> str | None:
    """The board, such as ``"corstone-300"``, that the firmware `elf` starts on; None when it is for none of them.

    InputError when the file cannot be read.
    """
    try:
        with filesystem.open_regular(elf) as stream:
            spans = [
                (row["p_paddr"], row["p_paddr"] + row["p_filesz"])
                for row in ELFFile(stream).iter_segments()
                if row["p_type"] == "PT_LOAD"
            ]
    except OSError as error:
        raise InputError(f"cannot read {elf}: {error.strerror}") from error
    except (ELFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{elf} is not an ELF file that can be read: {error}") from error
    for model in models_by_program().values():
        if any(start <= address < end for start, end in spans for address in model.vectors):
            return model.board
    return None


# ---- simulators.fvp.discovery
# Where an FVP is installed, and which version it is.

FVP_VARIABLE = "ETHOSU_FVP_DIR"

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*")
_VERSION_TIMEOUT_S = 30.0
# An installer of Arm's puts the programs into models/<platform>_<compiler>/ of the folder it is given.
_PLACES = ("{name}", "bin/{name}", "models/*/{name}", "*/models/*/{name}", "*/*/models/*/{name}")
_LAUNCHER_MARK = b"ethosu_sdk.simulate.fvp_launcher"
_HEAD_BYTES = 4096


@dataclass(frozen=True)
class InstalledFvp:
    """A program that is there, its version and the environment that it needs."""

    program: Path
    version: str
    environment: Mapping[str, str]


def install_root() -> Path:
    """The folder into which FVPs are installed by default, ``<board>/<version>/`` below it; need not exist (XDG base
    directory specification: $XDG_DATA_HOME, else ~/.local/share)."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser(
        "~/.local/share"
    )  # never fails, as Path.home() does
    return Path(base).absolute() / "ethosu-sdk" / "fvp"


def find_fvp(model: FvpModel) -> Path:
    """The program of `model`: below $ETHOSU_FVP_DIR, on PATH, or where `ethosu-sdk fvp install` puts it.

    ToolError, with how to install it, when there is none; the SDK's own launchers are none.
    """
    launcher = None
    for path in _candidates(model.program):
        if not is_launcher(path):
            return path
        launcher = path
    folder = os.environ.get(FVP_VARIABLE)
    where = f"below {folder} ({FVP_VARIABLE}) or on PATH" if folder else "on PATH"
    only = f"; {launcher} is this SDK's launcher, {NOT_AN_FVP}" if launcher is not None else ""
    raise ToolError(
        f"{model.program} was not found {where}{only}",
        f"`ethosu-sdk fvp install {model.board}` installs it once you accept Arm's licence; {FVP_VARIABLE} names "
        "the folder of one that is installed; `--simulator qemu` needs none",
    )


def _candidates(name: str) -> Iterator[Path]:
    folder = os.environ.get(FVP_VARIABLE)
    if folder:
        yield from _below(Path(folder), name)
    found = shutil.which(name)
    if found is not None:
        yield Path(found).absolute()
    yield from _below(install_root(), name)


def _below(folder: Path, name: str) -> Iterator[Path]:
    """The programs called `name` below `folder`; of several versions the one whose folder sorts last comes first."""
    for place in _PLACES:
        for path in sorted(folder.glob(place.format(name=name)), reverse=True):
            if path.is_file() and os.access(path, os.X_OK):
                yield path.absolute()


def is_launcher(path: Path) -> bool:
    """Whether the program at `path` is a launcher of this SDK."""
    try:
        with path.open("rb") as stream:
            return _LAUNCHER_MARK in stream.read(_HEAD_BYTES)
    except OSError:
        return False


def fvp_environment(program: Path) -> dict[str, str]:
    """The environment for `program`: SSE-320's is linked with the Python that is installed beside it."""
    result = dict(os.environ)
    root = program.resolve().parent
    for folder in (root, *root.parents[:2]):
        libraries = folder / "python" / "lib"
        if libraries.is_dir():
            known = [part for part in result.get("LD_LIBRARY_PATH", "").split(os.pathsep) if part]
            result["LD_LIBRARY_PATH"] = os.pathsep.join([str(libraries), *known])
            break
    return result


def installed_fvp(model: FvpModel) -> InstalledFvp:
    """The FVP of the kind `model`, asked for its version.

    ToolError when it is missing, cannot be started, prints no version, or is the SDK's own launcher.
    """
    program = find_fvp(model)
    variables = fvp_environment(program)
    try:
        answer = proc.run(
            [str(program), "--version"], timeout_s=_VERSION_TIMEOUT_S, env=variables, error=ToolError
        ).output
    except SdkError as error:
        raise ToolError(f"{program} does not start: {error.message}", error.hint) from error
    if NOT_AN_FVP in answer:
        raise ToolError(
            f"{program} is this SDK's launcher, {NOT_AN_FVP}",
            f"use --simulator qemu, which is what the launcher runs, or set {FVP_VARIABLE} to the folder of Arm's "
            "FVP",
        )
    match = _VERSION.search(answer)
    if match is None:
        raise ToolError(
            f"{program} does not print its version", "is it an FVP? `ethosu-sdk doctor` shows more"
        )
    return InstalledFvp(program, match.group(), variables)


# ---- simulators.fvp.process
# Runs an FVP as a child process: reads its output as it comes, and stops it when it hangs.

MAX_OUTPUT_BYTES = 256 << 20
_MAX_MESSAGE_BYTES = 64 << 10
_CHUNK_BYTES = 1 << 16
_END_S = 10.0

Cut = Literal["", "time", "idle", "output", "log"]


@dataclass(frozen=True)
class Watch:
    """When to cut a run, in seconds by the wall: its whole time, and the time without a byte of output."""

    timeout_s: float
    idle_timeout_s: float


@dataclass(frozen=True)
class Finished:
    """A run that is over. `cut` says why it was ended from outside, if it was; `messages` is standard error."""

    output: bytes = field(repr=False)
    messages: str
    returncode: int
    cut: Cut
    wall_time_s: float


class _Recorder:
    """Takes the output of a child: keeps it, and hands it on to logs."""

    def __init__(self, logs: Sequence[IO[bytes]]) -> None:
        self._logs = logs
        self.output = bytearray()
        self.messages = bytearray()
        self.last_byte_at = time.monotonic()
        self.cut: Cut = ""

    def take(self, data: bytes, *, is_output: bool) -> None:
        if not is_output:
            self.messages += data[: _MAX_MESSAGE_BYTES - len(self.messages)]
            return
        self.last_byte_at = time.monotonic()
        self.output += data
        if len(self.output) > MAX_OUTPUT_BYTES:
            self.cut = "output"
        try:
            for log in self._logs:
                log.write(data)
                log.flush()
        except OSError:
            self.cut = "log"


def run_fvp(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    cwd: Path | None,
    watch: Watch,
    logs: Sequence[IO[bytes]],
) -> Finished:
    """Run `argv` to its end, or until `watch` has it cut; its standard output also goes to every one of `logs`.

    Raises ToolError when it cannot be started.
    """
    begun = time.monotonic()
    recorder = _Recorder(logs)
    with proc.spawn(
        argv, env=environment, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        cut = _drain(process, recorder, begun, watch)
        if cut:
            proc.kill_tree(process)
        returncode = _wait(process)
        assert process.stderr is not None
        process.stderr.close()
    return Finished(
        output=bytes(recorder.output),
        messages=recorder.messages.decode(errors="replace").strip(),
        returncode=returncode,
        cut=cut,
        wall_time_s=time.monotonic() - begun,
    )


def _wait(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(_END_S)
    except subprocess.TimeoutExpired:  # it closed its output and lives on
        proc.kill_tree(process)
        return process.returncode


def _drain(process: subprocess.Popen[bytes], recorder: _Recorder, begun: float, watch: Watch) -> Cut:
    assert process.stdout is not None  # asked for as pipes
    assert process.stderr is not None
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, True)
        selector.register(process.stderr, selectors.EVENT_READ, False)
        while selector.get_map():
            now = time.monotonic()
            whole, idle = begun + watch.timeout_s, recorder.last_byte_at + watch.idle_timeout_s
            if now >= min(whole, idle):
                return "time" if whole <= idle else "idle"
            for key, _ in selector.select(min(whole, idle) - now):
                data = os.read(key.fd, _CHUNK_BYTES)
                if data:
                    recorder.take(data, is_output=key.data)
                else:
                    selector.unregister(key.fileobj)
            if recorder.cut:
                return recorder.cut
    return ""


# ---- simulators.fvp.simulator
# Runs firmware on Arm's FVP. Its exit status proves nothing; only its output does.

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
    """Arm's FVP for the NPU of a request; implements :class:`ethosu_sdk.simulate.simulation.Simulator`.

    `fast` has the NPU skip its timing. `simulated_limit_s` bounds the simulated time. One object serves one NPU: its
    version is that of the FVP for `npu`.
    """

    name = "fvp"

    def __init__(
        self, npu: str | None = None, *, fast: bool = False, simulated_limit_s: float | None = None
    ) -> None:
        self._model = fvp_models.model_for_npu(npu or _WITHOUT_NPU)
        self._fast = fast
        self._simulated_limit_s = simulated_limit_s
        self._installed: InstalledFvp | None = None

    @property
    def installed(self) -> InstalledFvp:
        """The FVP that is used, asked for its version once. ToolError when it is missing or does not start."""
        if self._installed is None:
            self._installed = installed_fvp(self._model)
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
        """Run the firmware to its own end; see :meth:`ethosu_sdk.simulate.simulation.Simulator.run`."""
        begun = time.monotonic()
        fvp = self.installed
        _check_board(request.elf, self._model)
        with tempfile.TemporaryDirectory(prefix="ethosu-sdk-fvp-") as name, open_log(request.uart_log) as log:
            argv = fvp_argv(str(fvp.program), self._model, self._fvp_run(request, Path(name)))
            finished = run_fvp(
                argv,
                environment=fvp.environment,
                cwd=request.semihosting_cwd,
                watch=Watch(request.timeout_s, request.idle_timeout_s),
                logs=[log, *([request.uart_tee] if request.uart_tee is not None else [])],
            )
        parted = fvp_output.parted_output(finished.output)
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
        raise _simulation_error(f"the firmware {reason.format(**values)}", hint, known, finished, parted)
    if parted.failures:
        raise _simulation_error(
            f"the FVP's log reports a failure: {parted.failures[0]}", "", known, finished, parted
        )
    if known and finished.returncode != 0:
        # The loader's and the FVP's complaints come before the first instruction.
        raise ToolError(
            f"the FVP does not run: {finished.messages.splitlines()[-1] if finished.messages else known[0].cause}",
            known[0].advice,
        )
    if finished.returncode != 0:
        raise _simulation_error(
            f"the FVP ended with exit status {finished.returncode}", "", known, finished, parted
        )


def _simulation_error(
    reason: str, hint: str, known: Sequence[KnownError], finished: Finished, parted: FvpOutput
) -> SimulationError:
    printed = parted.uart.decode("ascii", errors="replace").splitlines()[-_TAIL_LINES:]
    lines = [reason, "  last lines of the output:" if printed else "  nothing was printed on the UART"]
    lines += ["    " + "".join(c if c.isprintable() else "·" for c in line) for line in printed]
    if finished.messages:
        lines.append(f"  the FVP says: {finished.messages.splitlines()[-1]}")
    return SimulationError("\n".join(lines), known[0].advice if known else hint)
