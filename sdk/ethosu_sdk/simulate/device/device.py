"""A device on a wire as a simulator of firmware: one more way to run, with the same request and result."""

from __future__ import annotations

import contextlib
import hashlib
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct

from ethosu_sdk.base.errors import SimulationError
from ethosu_sdk.program import protocol
from ethosu_sdk.simulate.device import transfer
from ethosu_sdk.simulate.device.port import Limits, Wire, open_port, parse_place
from ethosu_sdk.simulate.device.transfer import Content
from ethosu_sdk.simulate.simulation import (
    MEASURED,
    MODEL_FIGURES,
    Figures,
    SimulationRequest,
    SimulationResult,
    cycles_band,
    open_log,
)

DEVICE = "device"
MAX_UART_BYTES = 256 << 20
_NO_CPU_CYCLES = "the cycles of the processor are not read from a device"
_UNKNOWN = (
    "the device does not say that it is a simulator, and this machine sees no hardware behind its port: nobody knows "
    "whether its counters are measured"
)


class Identity(Struct, frozen=True):
    """What a device says of itself, and the `adapter` that this machine sees at its port (empty: none).

    `simulator` is the name and version of the one that says to stand for the board; empty: none does.
    """

    place: str
    firmware: str
    board: str
    code_bytes: int
    code_sha256: str
    simulator: str
    adapter: str

    @property
    def kind(self) -> Literal["hardware", "simulated", "unknown"]:
        if self.simulator:
            return "simulated"
        return "hardware" if self.adapter else "unknown"

    @property
    def figures(self) -> Figures:
        """A simulator's are those that it has; measured ones are a board's that hangs on a port of this machine."""
        name = self.simulator.partition(" ")[0]
        if name == "qemu":
            return MODEL_FIGURES
        if name == "fvp" or self.kind == "hardware":
            return Figures(MEASURED, every_event=True, no_cpu_cycles=_NO_CPU_CYCLES)
        absent = f"nobody knows what the counters of {self.simulator} are" if self.simulator else _UNKNOWN
        return Figures(MEASURED, every_event=True, no_cpu_cycles=_NO_CPU_CYCLES, absent=absent)


class Device:
    """A device whose connection is open; implements :class:`ethosu_sdk.simulate.simulation.Simulator`.

    `places` are the symbols of its firmware by address: what a request lays there is sent under their names.
    """

    name = DEVICE

    def __init__(self, wire: Wire, identity: Identity) -> None:
        self._wire = wire
        self.identity = identity
        self.places: Mapping[int, str] = {}

    @property
    def figures(self) -> Figures:
        return self.identity.figures

    def fidelity(self, npu: str | None, macs: int | None = None) -> str:
        if self.identity.simulator:
            band = cycles_band(npu, macs) if self.figures is MODEL_FIGURES else ""
            return f"a simulator on a wire stands for the device: {self.identity.simulator}{band}"
        if self.identity.adapter:
            return "a device on a wire, with counters of its own; untested on hardware: nobody has proved this board"
        return _UNKNOWN

    def version(self) -> str:
        return self.identity.firmware

    def no_block_counts(self) -> str:
        return "a device does not count executed blocks"

    def run(self, request: SimulationRequest) -> SimulationResult:
        content = self._content(request)
        session = transfer.new_session()
        tee = () if request.uart_tee is None else (request.uart_tee,)
        with open_log(request.uart_log) as log:
            transfer.send_content(self._wire, content, session)
            limits = Limits(request.timeout_s, request.idle_timeout_s, MAX_UART_BYTES)
            printed, code = self._wire.copy_until_end(session, (log, *tee), limits)
        return SimulationResult(uart=printed, exit_code=code, npu_accesses=0, npu_jobs=None)

    def _content(self, request: SimulationRequest) -> Content:
        parts = {self.places[address]: data for address, data in request.images}
        return Content(
            program_header=parts[protocol.PROGRAM_HEADER_SYMBOL],
            program=parts[protocol.PROGRAM_MEMORY_SYMBOL],
            image=parts[protocol.INPUT_IMAGE_SYMBOL],
        )


@contextlib.contextmanager
def open_device(place: str) -> Iterator[Device]:
    """The device at `place`, such as ``serial:/dev/ttyACM0``, which has said what it is.

    UsageError for what is no place, SimulationError when it cannot be opened or does not answer.
    """
    with open_port(parse_place(place)) as port:
        wire = Wire(port)
        said = transfer.identify(wire)
        own = {key: said[key] for key in ("firmware", "board", "code_bytes", "code_sha256", "simulator")}
        yield Device(wire, Identity(place=place, adapter=port.adapter, **own))


def check_firmware(identity: Identity, board: str, code: bytes, elf: str) -> None:
    """SimulationError unless the device is a `board` that runs this `code`, which is in the file `elf`."""
    if identity.board != board:
        raise SimulationError(
            f"the device is a {identity.board}, but the program would run on {board}",
            f"--board {identity.board} runs it on the device, if that has the NPU",
        )
    if (identity.code_bytes, identity.code_sha256) != (len(code), hashlib.sha256(code).hexdigest()):
        raise SimulationError(
            f"the device runs another firmware than this SDK makes for it: {identity.firmware}, "
            f"{identity.code_bytes:,} bytes with SHA-256 {identity.code_sha256[:16]}…",
            f"flash {elf}",
        )


def mark(simulator: str) -> bytes:
    """What a simulator lays at the symbol `device_mark` of the firmware, so that it is not taken for hardware."""
    text = simulator.encode("ascii", "replace")[: protocol.DEVICE_MARK_TEXT_BYTES]
    text = text.ljust(protocol.DEVICE_MARK_TEXT_BYTES, b"\0")
    return struct.pack("<2I", protocol.DEVICE_MARK_MAGIC, zlib.crc32(text)) + text
