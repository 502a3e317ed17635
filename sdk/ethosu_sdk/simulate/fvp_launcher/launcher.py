"""One run of a launcher: from the FVP's options to QEMU and the NPU model."""

from __future__ import annotations

import codecs
import functools
import io
import os
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, cast

from ethosu_sdk.base import filesystem, plain_text
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.targets import Target
from ethosu_sdk.simulate.fvp_launcher.command_line import HELP, Options, known_parameters, parse_options
from ethosu_sdk.simulate.fvp_models import NOT_AN_FVP, FvpModel, command_line_limit, launchers

_NO_LIMIT_S = 7 * 24 * 3600.0  # an FVP without --timelimit runs for ever
_BOARD = "corstone-300"
# What an FVP says, word for word: scripts look for it.
_TIME_OVER = "\nInfo: Simulation is stopping. Reason: CPU time has been exceeded.\n"
_TIME_LIMIT_EXIT_CODE = 6


class _Uart:
    """Takes what the firmware prints, all of it, and hands it on to `out` at once."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def write(self, data: bytes) -> int:
        self._out.write(data)
        self._out.flush()
        return len(data)


class _Terminal(io.RawIOBase):
    """UART0 on a terminal: control codes are shown as text. Pipes and files get the bytes unchanged."""

    def __init__(self) -> None:
        super().__init__()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def write(self, data: Any) -> int:
        text = self._decoder.decode(bytes(data))
        sys.stdout.write(plain_text.lines(text.replace("\r\n", "\n")))
        return len(data)

    def flush(self) -> None:
        sys.stdout.flush()


def launch(program: str, words: Sequence[str]) -> int:
    """Do what the command line `words` asks of the launcher called `program`; its exit status.

    Raises SdkError as the simulator does, UsageError for a command line that it does not understand.
    """
    model = launchers()[program]
    options = parse_options(words, model)
    if options.action:
        sys.stdout.write(_answer(options.action, model))
        return 0
    if options.elf is None:
        raise UsageError("no firmware was given", "-a FIRMWARE.elf")
    board = _board(options.elf, model)
    for line in _notes(model, options, board):
        sys.stderr.write(f"{program}: {line}\n")
    sys.stderr.flush()
    begun = time.monotonic()
    status = _run(model, options, options.elf, board)
    if options.statistics:
        sys.stdout.write(
            "\n--- cpu_core statistics: " + "-" * 54 + "\n"
            f"Wall clock                              : {time.monotonic() - begun:.6f}s\n"
            "Simulated time                          : not modelled\n"
        )
    return status


def _answer(action: str, model: FvpModel) -> str:
    from ethosu_sdk import __version__

    if action == "version":
        return (
            f"ethosu-sdk {__version__}: launcher with the command line of {model.program}; {NOT_AN_FVP}\n"
            "It runs the firmware on QEMU and the SDK's own model of the Ethos-U.\n"
        )
    if action == "help":
        return HELP.format(program=model.program) + f"This is ethosu-sdk's launcher, {NOT_AN_FVP}.\n"
    rows = known_parameters(model).values()
    return "".join(
        f"{row.name:<64} # ({row.kind}){'' if row.honoured else ' accepted, but has no effect here'}\n"
        for row in rows
    )


def _notes(model: FvpModel, options: Options, board: str) -> list[str]:
    """Notes for the user before the run, one line each."""
    lines = [f"a launcher of ethosu-sdk, {NOT_AN_FVP}: QEMU and the SDK's NPU model run {options.elf}"]
    if model.board != board:
        what = f"the board is a {board} with {model.npu} in it, no {model.board}"
        lines.append(f"the firmware is for {board}: {what}")
    lines += [f"{limit} is ignored: simulated time is not modelled" for limit in options.unhonoured_limits]
    if not options.values.get(model.parameter("uart_file")):
        lines.append(f"UART0 is not shown: -C {model.parameter('uart_file')}=- prints it")
    if len(_text(model, options, "semihosting_command_line")) > command_line_limit():
        lines.append(f"Arm's FVP cuts the firmware's command line after {command_line_limit()} characters")
    return lines


def _run(model: FvpModel, options: Options, elf: Path, board: str) -> int:
    # Here and not above: --version must not wait for NumPy.
    from ethosu_sdk.base.errors import SimulationError
    from ethosu_sdk.simulate.qemu.simulator import QemuSimulator, named_system, open_npu_model
    from ethosu_sdk.simulate.simulation import SimulationRequest

    limit = options.time_limit_s or _NO_LIMIT_S
    system = named_system(model.npu, options.vela_config, options.system_config, options.memory_mode)
    device = functools.partial(open_npu_model, system=system)
    images = ((address, filesystem.file_content(path, sys.maxsize - 1)) for path, address in options.data)
    # `install-launchers` has checked the version of QEMU on PATH; None leaves it to the simulator to find one.
    program = shutil.which("qemu-system-arm") if board == _BOARD else None
    begun = time.monotonic()
    with _open_uart(model, options) as out:
        request = SimulationRequest(
            elf=elf,
            images=tuple(images),
            target=Target(model.npu, _macs(model, options), system_config="", memory_mode=""),
            timeout_s=limit,
            idle_timeout_s=limit,  # an FVP knows no other limit
            uart_log=Path(os.devnull),
            semihosting_cwd=Path(_text(model, options, "semihosting_folder")).absolute(),
            semihosting_arguments=tuple(_text(model, options, "semihosting_command_line").split()),
            uart_tee=cast(IO[bytes], _Uart(out)),
            fast=_text(model, options, "npu_arguments") == "--fast",
            end_marks=_end_marks(model, options),
            read_back=tuple((row.address, row.size_bytes) for row in options.dumps),
        )
        try:
            result = QemuSimulator(device, Path(program) if program else None, board).run(request)
        except SimulationError:
            if time.monotonic() - begun < limit:
                raise
            sys.stdout.write(_TIME_OVER)
            return _TIME_LIMIT_EXIT_CODE
    for row, content in zip(options.dumps, result.memory, strict=True):
        filesystem.write_bytes(row.file, content)
    if result.exit_code:
        sys.stderr.write(f"{model.program}: the firmware ended with exit code {result.exit_code}\n")
    return result.exit_code


def _text(model: FvpModel, options: Options, role: str) -> str:
    """The value of the parameter that plays `role`; empty without one."""
    return str(options.values.get(model.parameter(role), ""))


def _board(elf: Path, model: FvpModel) -> str:
    """The board that the firmware `elf` is linked for. Corstone-310 and Corstone-320 look at one place after reset.

    InputError for a board that neither the program nor QEMU has.
    """
    from ethosu_sdk.base import tools
    from ethosu_sdk.simulate.fvp_simulator import board_of

    linked = board_of(elf)
    if linked in (None, _BOARD):
        return _BOARD
    if model.board == _BOARD:
        raise InputError(
            f"{elf} is linked for {linked}, which is not the board of {model.program}",
            f"build it for {_BOARD} (--board {_BOARD}; MLIA: --backend {_BOARD})",
        )
    own = tools.probe("qemu-corstone")
    if own.status != "found":
        raise InputError(
            f"{elf} is linked for {model.board}, which the installed QEMU does not support",
            f"build it for {_BOARD} (--board {_BOARD}; MLIA: --backend {_BOARD}), or install the SDK's QEMU: "
            f"{own.tool.fix}; Arm's FVP runs it too",
        )
    return model.board


def _macs(model: FvpModel, options: Options) -> int:
    macs = options.values.get(model.parameter("macs"), model.default_macs)
    if macs not in model.macs:
        raise UsageError(
            f"the number of MACs parameter value '{macs}' is not valid for {model.npu}",
            f"one of: {', '.join(map(str, model.macs))}",
        )
    return int(macs)


def _open_uart(model: FvpModel, options: Options) -> IO[bytes]:
    name = _text(model, options, "uart_file") or os.devnull
    if name == "-" and os.isatty(sys.stdout.fileno()):
        return cast(IO[bytes], _Terminal())
    if name == "-":
        return os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    try:
        return open(name, "wb", buffering=0)
    except OSError as error:
        raise InputError(f"cannot write UART0's output to {name}: {error.strerror}") from error


def _end_marks(model: FvpModel, options: Options) -> tuple[bytes, ...]:
    tag = str(options.values.get(f"{model.instances['board']}.uart0.shutdown_tag", "")).encode()
    on_eot = bool(options.values.get(model.parameter("uart_end_on_eot"), False))
    return tuple(filter(None, (b"\x04" if on_eot else b"", tag)))
