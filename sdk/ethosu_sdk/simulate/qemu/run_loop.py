"""The run loop: let the guest run, serve its NPU accesses, notice how it ends or that it does not, and say so."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from dataclasses import dataclass

from ethosu_sdk.base.errors import SdkError, SimulationError, ToolError
from ethosu_sdk.simulate.qemu import gdb_remote
from ethosu_sdk.simulate.qemu.firmware_image import Symbols, read_symbols
from ethosu_sdk.simulate.qemu.gdb_remote import GdbClosedError, GdbError
from ethosu_sdk.simulate.qemu.machine import Machine, QtestError
from ethosu_sdk.simulate.qemu.npu_bridge import NpuBridge, NpuTransport
from ethosu_sdk.simulate.simulation import SimulationRequest


@dataclass(frozen=True)
class Place:
    """Where the processor stood: program counter, link register, stack pointer."""

    pc: int
    lr: int
    sp: int


_GDB_SIGNAL_QUIT = 3  # how the stub reports that the guest has reset or powered off the machine
_CATCH_UP_S = 0.2
_DIAGNOSIS_S = 2.0
_END_S = 5.0
_GRACE_S = 0.5  # between a broken connection and the end of the process behind it


class _StoppedError(Exception):
    """The guest will not go on by itself; `running` when it must be stopped to see where it is."""

    def __init__(self, reason: str, hint: str = "", *, running: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.running = running


class RunLoop:
    """One run of the firmware of `request` in `machine`, with the NPU behind `bridge` and `transport` or without one.

    It is given up after the request's `timeout_s`, and after `idle_timeout_s` without a UART byte or NPU access.
    """

    def __init__(
        self,
        machine: Machine,
        bridge: NpuBridge | None,
        transport: NpuTransport | None,
        request: SimulationRequest,
    ) -> None:
        self._machine = machine
        self._bridge = bridge
        self._transport = transport
        self._request = request

    def prepare(self) -> None:
        """Greet the stub and attach the NPU.

        Raises ToolError when QEMU ended instead, SimulationError when something killed it.
        """
        try:
            self._machine.gdb.handshake()
            if self._transport is not None:
                self._transport.attach()
        except GdbError as error:
            returncode = self._wait_for_end() if self._has_ended() else None
            if returncode is None:
                raise self._error(f"QEMU does not take part as expected: {error}", None) from error
            if returncode > 0:
                raise ToolError(
                    f"QEMU could not start the board: {self._machine.console.messages}",
                    "`ethosu-sdk doctor` checks the installed QEMU",
                ) from error
            raise self._early_end(returncode) from error

    def run(self) -> int:
        """Run the firmware until it ends itself; its exit code.

        Raises SimulationError, with reason, place and last UART lines, when it does not end in that way.
        """
        try:
            self._machine.gdb.resume(())
            code = self._until_exit()
        except _StoppedError as stopped:
            place = self._find_place(interrupt=stopped.running)
            raise self._error(stopped.reason, place, stopped.hint) from None
        except GdbClosedError as error:
            raise self._early_end(self._wait_for_end()) from error
        except (GdbError, QtestError) as error:
            if self._has_ended():
                raise self._early_end(self._wait_for_end()) from error
            raise self._error(f"QEMU does not take part as expected: {error}", None) from error
        except SdkError as error:
            # From the NPU model or about an access: the guest stands at the instruction in question.
            announced = self._transport is not None and self._transport.announces_stops
            error.message = f"{error.message}\n{self._context(self._find_place(interrupt=announced))}"
            error.args = (error.message,)
            raise
        returncode = self._wait_for_end()
        if returncode != code:
            raise self._early_end(returncode)
        if self._machine.console.trouble:
            raise self._error(self._machine.console.trouble, None)
        return code

    def _until_exit(self) -> int:
        """The exit code that QEMU announces, which it does when the firmware exits by semihosting."""
        started = time.monotonic()
        while True:
            deadline, _ = self._next_deadline(started)
            packet = self._machine.gdb.receive(max(0.0, deadline - time.monotonic()))
            if packet is None:
                if self._machine.console.trouble:
                    raise _StoppedError(self._machine.console.trouble, running=True)
                if self._is_over(started):
                    raise self._next_deadline(started)[1]
            elif (code := gdb_remote.exit_code(packet)) is not None:
                return code
            elif self._transport is None or not self._transport.serve_stop(packet):
                raise _StoppedError(_stop_reason(packet))

    def _is_over(self, started: float) -> bool:
        """Whether a limit is passed. On a busy machine, what the firmware said may not have been taken in yet."""
        if self._next_deadline(started)[0] > time.monotonic():
            return False
        time.sleep(_CATCH_UP_S)
        return self._next_deadline(started)[0] <= time.monotonic()

    def _next_deadline(self, started: float) -> tuple[float, _StoppedError]:
        limits = self._request
        whole = started + limits.timeout_s
        accessed = 0.0 if self._bridge is None else self._bridge.last_access_at
        idle = max(accessed, self._machine.console.last_byte_at, started) + limits.idle_timeout_s
        if whole <= idle:
            return whole, _StoppedError(
                f"the firmware did not end within {limits.timeout_s:g} s",
                "--timeout gives it more time",
                running=True,
            )
        return idle, _StoppedError(
            f"the firmware hangs: for {limits.idle_timeout_s:g} s it neither printed nor used the NPU",
            running=True,
        )

    def _wait_for_end(self) -> int | None:
        """Take the last output and QEMU's exit status; None when it does not end."""
        self._machine.console.drain(_END_S)
        try:
            return self._machine.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            return None

    def _has_ended(self) -> bool:
        try:
            self._machine.process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _early_end(self, returncode: int | None) -> SimulationError:
        if returncode is None:
            return self._error("QEMU closed its gdb connection but does not exit", None)
        messages = self._machine.console.messages
        return self._error(how_qemu_ended(returncode, messages), dumped_place(messages))

    def _find_place(self, *, interrupt: bool) -> Place | None:
        """Where the guest is; None when QEMU does not say."""
        gdb = self._machine.gdb
        try:
            if interrupt:
                gdb.interrupt()
                if gdb.receive(_DIAGNOSIS_S) is None:
                    return None
            registers = gdb.registers()
        except GdbError:
            return None  # the place serves the message: its lack must not hide the reason
        return Place(pc=registers[15], lr=registers[14], sp=registers[13])

    def _context(self, place: Place | None) -> str:
        """The lines below an error's first: place, last UART output, what QEMU itself said."""
        console, lines = self._machine.console, []
        if place is not None:
            symbols = read_symbols(self._request.elf)
            pc, lr = (_named_address(address, symbols) for address in (place.pc, place.lr))
            lines.append(f"  at pc {pc}, lr {lr}, sp {place.sp:#010x}")
        printed = console.last_lines()
        lines.append("  last lines on the UART:" if printed else "  nothing was printed on the UART")
        lines += [f"    {line}" for line in printed]
        if console.messages:
            lines.append(f"  QEMU says: {console.messages.splitlines()[0]}")
        return "\n".join(lines)

    def _error(self, reason: str, place: Place | None, hint: str = "") -> SimulationError:
        return SimulationError(f"{reason}\n{self._context(place)}", hint)


def _named_address(address: int, symbols: Symbols) -> str:
    """The address with the function that it lies in, if that is known."""
    name = symbols.locate(address & ~1)
    return f"{address:#010x} ({name})" if name else f"{address:#010x}"


def _stop_reason(packet: bytes) -> str:
    number = gdb_remote.stop_signal(packet)
    if number is not None:
        if number == _GDB_SIGNAL_QUIT:
            return "the firmware reset or powered off the board instead of ending the run"
        return f"the processor stopped unexpectedly ({_signal_name(number)})"
    if packet[:1] == b"F":  # gdb's file I/O: semihosting with the target "gdb"
        return "the firmware asked for a file on the host, but this run gives it no access to files"
    return f"QEMU reported {packet[:40]!r}"


_DUMPED_REGISTER = re.compile(r"\bR(\d\d)=([0-9a-f]{8})")
_LOCKUP = re.compile(r"Lockup: (.*)")


def how_qemu_ended(returncode: int, messages: str) -> str:
    """What it means that QEMU ended with `returncode`, negative for a signal, and nobody asked it to."""
    if lockup := _LOCKUP.search(messages):
        return f"the processor locked up: {lockup[1].strip()}"
    if returncode == -signal.SIGABRT:
        return "QEMU aborted"
    if returncode < 0:
        return f"QEMU was killed from outside by {_signal_name(-returncode)}"
    return f"QEMU ended early with exit status {returncode}"


def dumped_place(messages: str) -> Place | None:
    """The registers that QEMU prints when it aborts; None when it printed none."""
    registers = {int(number): int(value, 16) for number, value in _DUMPED_REGISTER.findall(messages)}
    if not {13, 14, 15} <= registers.keys():
        return None
    return Place(registers[15], registers[14], registers[13])


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
