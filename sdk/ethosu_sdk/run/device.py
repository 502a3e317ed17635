"""`run --device`: the SDK's device firmware on a wire takes the program, runs it and sends the records of a run."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from ethosu_sdk.base import boards, cache, filesystem, resources
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.firmware_build import executable, resident_firmware
from ethosu_sdk.firmware_build.executable import Executable
from ethosu_sdk.program import protocol
from ethosu_sdk.records.run import Device as DevicePart
from ethosu_sdk.run import firmware
from ethosu_sdk.run.execution import Execution
from ethosu_sdk.run.job import RunJob
from ethosu_sdk.run.options import DEVICE, RunOptions
from ethosu_sdk.simulate import program_board
from ethosu_sdk.simulate.device import device
from ethosu_sdk.simulate.device.port import parse_place
from ethosu_sdk.simulate.program_board import BoardAndSimulator

_BITS = 10  # of a byte on the line
_LONG_S = 5.0


def choose(npu: str | None, options: RunOptions) -> BoardAndSimulator:
    """The board that the program is for; the device says itself whether it is one."""
    assert options.device is not None
    parse_place(options.device)
    chosen = program_board.choose_board(npu, options.board)
    return BoardAndSimulator(chosen.board, DEVICE, f"{chosen.reason} ({options.device} was asked for)")


def execute(job: RunJob, reporter: Reporter) -> Execution:
    """Send `job` to the device, which must run the firmware that this SDK makes for the board."""
    assert job.options.device is not None
    image = firmware.resident_image(job, device_firmware(job.choice.board, reporter), reporter)
    cut = firmware.split_streams(job)
    if (seconds := job.program.size * _BITS / protocol.WIRE_BAUD) > _LONG_S:
        reporter.note(
            f"sending {job.program.size:,} bytes takes {seconds:.0f} s at {protocol.WIRE_BAUD:,} baud"
        )
    with device.open_device(job.options.device) as opened:
        identity = opened.identity
        device.check_firmware(identity, job.choice.board, code_of(image.firmware), str(image.firmware.elf))
        opened.places = {image.firmware.symbols[name].address: name for name in resident_firmware.SYMBOLS}
        execution = firmware.execute_on(opened, job, image, cut, reporter)
    part = DevicePart(
        kind=identity.kind,
        place=identity.place,
        board=identity.board,
        firmware=identity.firmware,
        code_sha256=identity.code_sha256,
        simulator=identity.simulator or None,
        adapter=identity.adapter or None,
    )
    return replace(execution, device=part)


def device_firmware(board: str, reporter: Reporter, out_dir: Path | None = None) -> Executable:
    """The firmware that a device of this kind runs, in `out_dir` or the cache. UsageError for another board."""
    if board not in boards.BOARD_NAMES:
        raise UsageError(f"no firmware can be built for board '{board}'")
    tree = filesystem.sha256_bytes(str(resources.directory("firmware")).encode())
    folder = out_dir or cache.directory(f"device/{board}-{tree[:16]}")
    with reporter.stage("preparing the device's firmware (built the first time only)"):
        return resident_firmware.build_resident(folder, board, resident_firmware.DEVICE_EXECUTABLE)


def build_firmware(board: str, out_dir: Path | None, reporter: Reporter) -> None:
    """The firmware to flash, in `out_dir`, by default build/device-BOARD."""
    folder = filesystem.make_directory(out_dir or Path(f"build/device-{board}"))
    built = device_firmware(board, reporter, folder)
    code = code_of(built)
    reporter.show(
        f"{escape(str(built.elf))}: for {board}, {len(code):,} bytes of code with SHA-256 "
        f"{filesystem.sha256_bytes(code)[:16]}…"
    )


def code_of(built: Executable) -> bytes:
    """The code and constants in the ELF that the device digests: see firmware/board/common/sections.ld."""
    first, end = (built.symbols[f"board_code_{name}"].address for name in ("begin", "end"))
    return executable.memory_bytes(built.elf, first, end - first)
