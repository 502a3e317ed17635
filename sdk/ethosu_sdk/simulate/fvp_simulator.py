"""Runs firmware on Arm's FVP: where it is installed, its process, and what its output proves.

Its exit status proves nothing; only its output does.
"""

from __future__ import annotations

import functools
import os
import re
import selectors
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from ethosu_sdk.base import error_catalogue, filesystem, proc
from ethosu_sdk.base.errors import InputError, SdkError, SimulationError, ToolError
from ethosu_sdk.simulate import fvp_models
from ethosu_sdk.simulate.fvp_models import (
    NOT_AN_FVP,
    FvpModel,
    FvpOutput,
    FvpRun,
    fvp_argv,
    models_by_program,
)
from ethosu_sdk.simulate.simulation import (
    MEASURED,
    Figures,
    SimulationRequest,
    SimulationResult,
    last_lines,
    open_log,
)

_FIDELITY = (
    "Arm's model: instructions and NPU arithmetic are exact, NPU counters measured on it, CPU time is not"
)
_NO_CPU_CYCLES = "the FVP is not cycle-accurate: it counts instructions, not the time that the CPU takes"
_NO_COUNTERS = "the FVP ran with --fast: its NPU counters are not representative of hardware"
_WITHOUT_NPU = "ethos-u55"  # a firmware without an NPU runs on any board that has one
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

    @functools.cached_property
    def _installed(self) -> InstalledFvp:
        """The FVP that is used, asked for its version once. ToolError when it is missing or does not start."""
        return installed_fvp(self._model)

    @property
    def figures(self) -> Figures:
        return Figures(
            MEASURED,
            every_event=True,
            no_cpu_cycles=_NO_CPU_CYCLES,
            absent=_NO_COUNTERS if self._fast else "",
        )

    def fidelity(self, npu: str | None, macs: int | None = None) -> str:
        del npu, macs
        return _FIDELITY + ("; --fast: NPU counters are not representative" if self._fast else "")

    def version(self) -> str:
        """The version of the FVP that is installed, with the name of its program. ToolError when it is missing."""
        return f"{self._installed.version} ({self._model.program})"

    def no_block_counts(self) -> str:
        return "the FVP does not count what the CPU executes: --simulator qemu does"

    def run(self, request: SimulationRequest) -> SimulationResult:
        fvp = self._installed
        _check_board(request.elf, self._model)
        with tempfile.TemporaryDirectory(prefix="ethosu-sdk-fvp-") as name, open_log(request.uart_log) as log:
            argv = fvp_argv(str(fvp.program), self._model, self._fvp_run(request, Path(name)))
            finished = _run_fvp(argv, fvp.environment, request, log)
        parted = fvp_models.parted_output(bytes(finished.output))
        _refuse(finished, parted, request)
        return SimulationResult(
            uart=parted.uart,
            exit_code=finished.returncode,
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


def _refuse(finished: _Execution, parted: FvpOutput, request: SimulationRequest) -> None:
    """Raise for a run that did not end by itself, or whose output reports a failure."""
    messages = finished.messages
    complaints = (row for row in error_catalogue.in_text(messages) if not row.harmless)
    causes = [*parted.errors, *complaints]
    hint = ""
    if finished.cut:
        text, hint = _CUTS[finished.cut]
        reason = f"the firmware {text.format(**vars(request))}"
    elif parted.failures:
        reason = f"the FVP's log reports a failure: {parted.failures[0]}"
    elif finished.returncode == 0:
        return
    elif causes:  # the loader's and the FVP's complaints come before the first instruction
        raise ToolError(
            f"the FVP does not run: {messages[-1] if messages else causes[0].cause}", causes[0].advice
        )
    else:
        reason = f"the FVP ended with exit status {finished.returncode}"
    printed = last_lines(parted.uart, 12)
    lines = [reason, "  last lines of the output:" if printed else "  nothing was printed on the UART"]
    lines += [f"    {line}" for line in printed]
    if messages:
        lines.append(f"  the FVP says: {messages[-1]}")
    raise SimulationError("\n".join(lines), causes[0].advice if causes else hint)


def board_of(elf: Path) -> str | None:
    """The board, such as ``"corstone-300"``, that the firmware `elf` is linked for, because it finds a vector table
    where it looks after reset; None when it is none of them.

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


FVP_VARIABLE = "ETHOSU_FVP_DIR"
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*")

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
    # expanduser never fails, as Path.home() does.
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
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
            others = [name for name in result.get("LD_LIBRARY_PATH", "").split(os.pathsep) if name]
            result["LD_LIBRARY_PATH"] = os.pathsep.join([str(libraries), *others])
            break
    return result


def installed_fvp(model: FvpModel) -> InstalledFvp:
    """The FVP of the kind `model`, asked for its version.

    ToolError when it is missing, cannot be started, prints no version, or is the SDK's own launcher.
    """
    program = find_fvp(model)
    variables = fvp_environment(program)
    try:
        answer = proc.run([str(program), "--version"], timeout_s=30.0, env=variables, error=ToolError).output
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


_MAX_OUTPUT_BYTES = 256 << 20
_MAX_MESSAGE_BYTES = 64 << 10
_CHUNK_BYTES = 1 << 16


class _Execution:
    """A run of an FVP: what came of it, which is handed on to `logs` as it comes. `cut` says why it was ended from
    outside, if it was: a key of `_CUTS`."""

    def __init__(self, logs: Sequence[IO[bytes]]) -> None:
        self._logs = logs
        self._messages = bytearray()
        self.output = bytearray()
        self.last_byte_at = time.monotonic()
        self.cut = ""
        self.returncode = 0

    @property
    def messages(self) -> list[str]:
        """The lines of its standard error."""
        return self._messages.decode(errors="replace").strip().splitlines()

    def take(self, data: bytes, *, is_output: bool) -> None:
        if not is_output:
            self._messages += data[: _MAX_MESSAGE_BYTES - len(self._messages)]
            return
        self.last_byte_at = time.monotonic()
        self.output += data
        if len(self.output) > _MAX_OUTPUT_BYTES:
            self.cut = "output"
        try:
            for log in self._logs:
                log.write(data)
                log.flush()
        except OSError:
            self.cut = "log"


def _run_fvp(
    argv: Sequence[str], environment: Mapping[str, str], request: SimulationRequest, log: IO[bytes]
) -> _Execution:
    """Run `argv` to its end, or until it is cut after the request's times by the wall; its standard output also goes
    to `log` and the request's `uart_tee`.

    Raises ToolError when it cannot be started.
    """
    pipe, tee = subprocess.PIPE, request.uart_tee
    run = _Execution([log] if tee is None else [log, tee])
    with proc.spawn(argv, env=environment, cwd=request.semihosting_cwd, stdout=pipe, stderr=pipe) as process:
        _drain(process, run, request)
        if run.cut:
            proc.kill_tree(process)
        try:
            process.wait(10.0)
        except subprocess.TimeoutExpired:  # it closed its output and lives on
            proc.kill_tree(process)
        assert process.stderr is not None
        process.stderr.close()
    run.returncode = process.returncode
    return run


def _drain(process: subprocess.Popen[bytes], run: _Execution, request: SimulationRequest) -> None:
    assert process.stdout is not None  # asked for as pipes
    assert process.stderr is not None
    whole = time.monotonic() + request.timeout_s
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ, True)
        selector.register(process.stderr, selectors.EVENT_READ, False)
        while selector.get_map() and not run.cut:
            now, idle = time.monotonic(), run.last_byte_at + request.idle_timeout_s
            if now >= min(whole, idle):
                run.cut = "time" if whole <= idle else "idle"
                return
            for key, _ in selector.select(min(whole, idle) - now):
                data = os.read(key.fd, _CHUNK_BYTES)
                if data:
                    run.take(data, is_output=key.data)
                else:
                    selector.unregister(key.fileobj)
