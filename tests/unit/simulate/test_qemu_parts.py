"""The QEMU simulator's parts: command line, memories, images, messages, the NPU's connection, counts of blocks."""

import io
import itertools
import os
import signal
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ethosu_sdk.base.errors import InputError, SimulationError
from ethosu_sdk.npu import errors
from ethosu_sdk.npu.device import BusError
from ethosu_sdk.simulate import block_counts
from ethosu_sdk.simulate.block_counts import BlockCounts, Mark
from ethosu_sdk.simulate.qemu import run_loop
from ethosu_sdk.simulate.qemu.firmware_image import Range, Symbols, check_images, read_symbols
from ethosu_sdk.simulate.qemu.machine import Channels, Console, IrqLine, MachineOptions, QtestError, qemu_argv
from ethosu_sdk.simulate.qemu.memories import (
    MPS3_AN547,
    Bank,
    BankAccess,
    Bytes,
    NpuMemory,
    board_map,
    changed_ranges,
)
from ethosu_sdk.simulate.qemu.npu_bridge import NpuBridge, NpuSocket
from tests.integration.qemu.firmware.doubles import MemoryLikeDevice
from tests.tables import each

# --- command line


STOCK = Channels(gdb=11, irq=12, memories={"DDR": 13})
SHARED = Channels(gdb=11, npu=12, memories={"BRAM": 13, "SRAM": 14, "QSPI": 15, "DDR": 16})


def test_the_command_line_names_channels_firmware_and_memories() -> None:
    argv = qemu_argv("/usr/bin/qemu-system-arm", Path("/a b/fw,1.elf"), STOCK, MachineOptions())
    assert argv[0] == "/usr/bin/qemu-system-arm"
    assert argv[argv.index("-kernel") + 1] == "/a b/fw,1.elf"
    assert "-S" in argv
    text = " ".join(argv)
    assert "-M mps3-an547,memory-backend=ddr " in text
    assert "socket,id=gdb,fd=11" in text
    assert "socket,id=qtest,fd=12" in text
    assert "mem-path=/proc/self/fd/13" in text
    assert f"size={2 << 30}" in text
    assert "ethos-u" not in text
    text = " ".join(
        qemu_argv(
            "qemu",
            Path("fw.elf"),
            SHARED,
            MachineOptions(board=board_map("corstone-320"), npu_window_bytes=0x2000),
        )
    )
    assert "-M corstone-320,code-sram=bram,internal-sram=sram,qspi=qspi,memory-backend=ddr " in text
    assert f"id=sram,size={4 << 20},share=on,mem-path=/proc/self/fd/14" in text
    assert "-chardev socket,id=npu,fd=12 -global ethos-u.chardev=npu -global ethos-u.size=8192" in text
    assert "qtest" not in text
    assert SHARED.all() == (11, 13, 14, 15, 16, 12)


def semihosting_of(options: MachineOptions) -> str:
    argv = qemu_argv("qemu", Path("fw.elf"), STOCK, options)
    return argv[argv.index("-semihosting-config") + 1]


def test_files_of_the_host_need_a_folder() -> None:
    assert semihosting_of(MachineOptions()) == "enable=on,target=gdb"
    assert semihosting_of(MachineOptions(semihosting_folder=Path("/data"))) == "enable=on,target=native"
    assert (
        semihosting_of(MachineOptions(semihosting_arguments=("a", "-m", "x,y")))
        == "enable=on,target=gdb,arg=a,arg=-m,arg=x,,y"
    )


# --- memory map


@pytest.mark.parametrize("name", ["corstone-300", "corstone-310", "corstone-320"])
def test_no_two_memories_overlap(name: str) -> None:
    board = board_map(name)
    spans = sorted((base, base + bank.size_bytes) for bank in board.banks for base in bank.bases)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))
    assert spans[-1][1] <= 1 << 32


@each(
    ("board", "address", "name", "offset"),
    [
        ("corstone-300", 0x0000_0000, "ITCM", 0),
        ("corstone-300", 0x1007_FFFF, "ITCM", 0x7_FFFF),
        ("corstone-300", 0x1100_0010, "BRAM", 0x10),
        ("corstone-300", 0x3000_0000, "DTCM", 0),
        ("corstone-300", 0x2120_0000, "SRAM", 0x20_0000),
        ("corstone-300", 0x313F_FFFF, "SRAM", 0x3F_FFFF),
        ("corstone-300", 0x6000_0000, "DDR", 0),
        ("corstone-300", 0x7000_0000, "DDR", 0x1000_0000),  # no alias of 0x60000000
        ("corstone-300", 0xDFFF_FFFF, "DDR", 0x7FFF_FFFF),
        ("corstone-310", 0x1100_0010, "BRAM", 0x10),
        ("corstone-310", 0x1000_7FFF, "ITCM", 0x7FFF),
        ("corstone-320", 0x1100_0010, "ROM", 0x10),
        ("corstone-320", 0x1200_0010, "BRAM", 0x10),
        ("corstone-320", 0x3000_7FFF, "DTCM", 0x7FFF),
        ("corstone-320", 0x313F_FFFF, "SRAM", 0x3F_FFFF),
        ("corstone-320", 0x9000_0000, "DDR", 0x3000_0000),
    ],
)
def test_an_address_finds_its_memory(board: str, address: int, name: str, offset: int) -> None:
    found = board_map(board).find_bank(address)
    assert found is not None
    assert (found[0].name, found[1]) == (name, offset)
    for elsewhere in (0x0008_0000, 0x2140_0000, 0x2800_0000, 0x5810_2000, 0xE000_0000):
        assert MPS3_AN547.find_bank(elsewhere) is None


@each(
    ("address", "size", "window", "offset"),
    [
        (0x5810_2000, 4, 0x1000, 0),
        (0x4810_2FFC, 4, 0x1000, 0xFFC),
        (0x5810_2FFC, 8, 0x1000, None),
        (0x5810_3180, 4, 0x1000, None),
        (0x5810_3180, 4, 0x2000, 0x1180),
        (0x5810_1FFC, 8, 0x2000, None),
    ],
)
def test_the_npus_window_ends_where_its_registers_do(
    address: int, size: int, window: int, offset: int | None
) -> None:
    assert MPS3_AN547.npu_offset(address, size, window) == offset


# --- memory as the NPU sees it


class BanksDouble:
    """Memories that are plain bytearrays, and a record of what was written."""

    def __init__(self) -> None:
        self.contents: dict[Bank, bytearray] = {}
        self.reads: list[str] = []
        self.writes: list[tuple[str, int, int]] = []

    def read(self, bank: Bank) -> bytes:
        self.reads.append(bank.name)
        return bytes(self.contents.setdefault(bank, bytearray(bank.size_bytes)))

    def write(self, bank: Bank, offset: int, data: memoryview) -> None:
        self.contents[bank][offset : offset + len(data)] = data
        self.writes.append((bank.name, offset, len(data)))


@pytest.fixture
def ddr() -> Bytes:
    return np.zeros(1 << 16, np.uint8)


def test_memories_are_seen_in_place_or_copied_page_wise(ddr: Bytes) -> None:
    memory = NpuMemory({"DDR": ddr}, BanksDouble())
    memory.window(0x6000_0010)[0] = 7
    assert ddr[0x10] == 7
    assert np.shares_memory(memory.window(0x6000_0000), ddr)
    banks = BanksDouble()
    memory = NpuMemory({"DDR": ddr}, banks)
    memory.window(0x2100_0000)[5] = 1
    assert memory.window(0x3100_0005)[0] == 1
    memory.window(0x3140_0000 - 1)[0] = 2  # the last byte of the second block
    memory.window(0x1100_2000)[:2] = 3
    assert len(memory.window(0x3120_0000)) == 2 << 20
    memory.flush()
    assert banks.reads == ["SRAM", "BRAM"]
    assert banks.writes == [("SRAM", 0, 4096), ("SRAM", (4 << 20) - 4096, 4096), ("BRAM", 8192, 4096)]
    memory.flush()
    assert len(banks.writes) == 3


def test_the_guests_changes_are_seen_after_a_flush(ddr: Bytes) -> None:
    banks = BanksDouble()
    memory = NpuMemory({"DDR": ddr}, banks)
    assert memory.window(0x3100_0000)[0] == 0
    sram = next(bank for bank in MPS3_AN547.banks if bank.name == "SRAM")
    banks.contents[sram][0] = 99
    assert memory.window(0x3100_0000)[0] == 0
    memory.flush()
    assert memory.window(0x3100_0000)[0] == 99
    assert banks.writes == []


@pytest.mark.parametrize("address", [0x1000_0000, 0x3000_0000, 0x2140_0000, 0xE000_0000, 1 << 32])
def test_what_the_npu_does_not_see_is_a_bus_error(ddr: Bytes, address: int) -> None:
    with pytest.raises(BusError, match=f"{address:#010x}"):
        NpuMemory({"DDR": ddr}, BanksDouble()).window(address)


def test_shared_memories_are_seen_in_place_and_never_copied() -> None:
    shared = {"DDR": np.zeros(64, np.uint8), "SRAM": np.zeros(4 << 20, np.uint8)}
    banks = BanksDouble()
    memory = NpuMemory(shared, banks, board_map("corstone-320"))
    memory.window(0x3100_0010)[0] = 9
    memory.flush()
    assert shared["SRAM"][0x10] == 9
    assert (banks.reads, banks.writes) == ([], [])
    with pytest.raises(BusError, match="private to the processor"):
        memory.window(0x1100_0000)  # the boot ROM


@given(st.lists(st.integers(0, 8 * 4096 - 1), max_size=12))
def test_changed_ranges_cover_every_change_and_no_clean_page(places: list[int]) -> None:
    before = np.zeros(8 * 4096, np.uint8)
    after = before.copy()
    after[places] = 1
    ranges = changed_ranges(before, after)
    covered = {page for start, end in ranges for page in range(start // 4096, end // 4096)}
    assert covered == {place // 4096 for place in places}
    assert all(first[1] < second[0] for first, second in itertools.pairwise(ranges))


# --- images and symbols


@each("address", [0, 0x3100_0000, 0x5FFF_FFFF, 0xDFFF_FFFE, 0xFFFF_FFFF, -1])
def test_images_outside_of_ddr_are_refused(address: int) -> None:
    with pytest.raises(InputError, match="DDR"):
        check_images([(address, b"123")], [])


def test_images_lie_in_shared_memory_and_do_not_overlap() -> None:
    check_images([(0x3100_0000, b"123"), (0x7000_0000, b"1")], [], board_map("corstone-320"))
    for address in (0x1100_0000, 0x313F_FFFE, 0x3000_0000):
        with pytest.raises(InputError, match="DDR or QSPI or SRAM or BRAM"):
            check_images([(address, b"123")], [], board_map("corstone-320"))
    loaded = [Range(0x7000_0000, 16)]
    check_images([(0x7000_0010, b"1234"), (0x7000_0014, b""), (0x6FFF_FFFF, b"1")], loaded)
    for images in (
        [(0x7000_000F, b"1")],
        [(0x6FFF_FFFF, b"12")],
        [(0x7100_0000, b"1234"), (0x7100_0003, b"1")],
    ):
        with pytest.raises(InputError, match="overlaps"):
            check_images(images, loaded)


def test_addresses_are_named_by_function_where_there_are_symbols(tmp_path: Path) -> None:
    symbols = Symbols((0x100, 0x200), (0x20, 0), ("first", "assembly_label"))
    assert symbols.locate(0x100) == "first+0x0"
    assert symbols.locate(0x11F) == "first+0x1f"
    assert symbols.locate(0x120) == ""
    assert symbols.locate(0x202) == "assembly_label+0x2"
    assert symbols.locate(0) == ""
    (tmp_path / "no.elf").write_bytes(b"\x7fELF but no more")
    assert read_symbols(tmp_path / "no.elf").names == ()
    assert read_symbols(tmp_path / "absent.elf").names == ()


def test_after_the_deadline_the_npu_gets_no_memory() -> None:
    memory = NpuMemory({"DDR": np.zeros(64, np.uint8)}, BanksDouble())
    assert memory.window(0x6000_0010).size == 48
    over = pytest.raises(SimulationError, match="the time limit was reached during an NPU job")
    with errors.until(time.monotonic() - 1), over:
        memory.window(0x6000_0010)


# --- console


@pytest.fixture
def pipes() -> Iterator[tuple[int, int, int, int]]:
    uart, messages = os.pipe(), os.pipe()
    yield (*uart, *messages)
    for descriptor in (*uart, *messages):
        try:
            os.close(descriptor)
        except OSError:
            continue  # the test closed it


def test_output_is_taken_while_another_stream_is_awaited(
    pipes: tuple[int, int, int, int], tmp_path: Path
) -> None:
    uart_read, uart_write, messages_read, messages_write = pipes
    ours, theirs = socket.socketpair()
    tee = io.BytesIO()
    with ours, theirs, (tmp_path / "uart.log").open("wb", buffering=0) as log:
        console = Console(uart_read, messages_read, [log, tee])
        os.write(uart_write, b"first\r\n\x1b[2Jsecond\n")
        os.write(messages_write, b"qemu: fatal: Lockup: reason\nR00=00000000\n")
        assert not console.wait(ours.fileno(), 0.05)
        theirs.send(b"x")
        assert console.wait(ours.fileno(), 5)
        os.write(uart_write, b"third")
        os.close(uart_write)
        os.close(messages_write)
        console.drain(5)
    assert console.output == b"first\r\n\x1b[2Jsecond\nthird"
    assert (tmp_path / "uart.log").read_bytes() == tee.getvalue() == console.output
    assert console.last_lines() == ["first", "·[2Jsecond", "third"]
    assert console.messages.startswith("qemu: fatal")


def test_draining_gives_up_on_a_pipe_that_stays_open(
    pipes: tuple[int, int, int, int], tmp_path: Path
) -> None:
    with (tmp_path / "uart.log").open("wb", buffering=0) as log:
        console = Console(pipes[0], pipes[2], [log])
        os.write(pipes[1], b"text")
        console.drain(0.05)
    assert console.output == b"text"


# --- messages


@pytest.mark.parametrize(
    ("returncode", "messages", "expected"),
    [
        (-signal.SIGABRT, "qemu: fatal: Lockup: can't escalate 3\n\nR00=0", "locked up: can't escalate 3"),
        (-signal.SIGABRT, "assertion failed", "QEMU aborted"),
        (-signal.SIGKILL, "", "killed from outside by SIGKILL"),
        (-63, "", "killed from outside by signal 63"),
        (1, "out of memory", "ended early with exit status 1"),
    ],
)
def test_how_qemu_ended(returncode: int, messages: str, expected: str) -> None:
    assert expected in run_loop.how_qemu_ended(returncode, messages)


def test_registers_are_read_from_qemus_dump() -> None:
    dump = "R12=00000000 R13=30005ff0 R14=1000035d R15=10000220\nXPSR=41000003"
    assert run_loop.dumped_place(dump) == run_loop.Place(pc=0x1000_0220, lr=0x1000_035D, sp=0x3000_5FF0)
    assert run_loop.dumped_place("qemu: nothing of that kind R15=10000220") is None


# --- interrupt line


def test_only_changes_of_the_level_are_sent() -> None:
    ours, theirs = socket.socketpair(type=socket.SOCK_SEQPACKET)  # keeps the two answers apart
    with ours, theirs:
        theirs.sendall(b"OK\n")
        theirs.sendall(b"OK\n")
        line = IrqLine(ours)
        for level in (False, True, True, False, False):
            line.set(level)
        assert theirs.recv(1000) == b"set_irq_in /machine/iotkit EXP_IRQ 24 1\n"
        assert theirs.recv(1000) == b"set_irq_in /machine/iotkit EXP_IRQ 24 0\n"
        theirs.setblocking(False)
        with pytest.raises(BlockingIOError):
            theirs.recv(1000)


@pytest.mark.parametrize("answer", [b"FAIL unknown device\n", b""])
def test_a_refused_level_is_an_error(answer: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(answer)
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(QtestError):
            IrqLine(ours).set(True)


# --- The SDK's end of the NPU device's connection: every request is looked at before it is carried out.

WINDOW = 0x1000
READ, WRITE = 1, 2


class Ends:
    """A transport, the device behind it, and the socket that plays QEMU."""

    def __init__(self, ours: socket.socket, theirs: socket.socket, console: Console) -> None:
        self.device = MemoryLikeDevice()
        memory = NpuMemory({"DDR": np.zeros(16, np.uint8)}, BankAccess(None))  # type: ignore[arg-type]
        self.bridge = NpuBridge(self.device, memory, WINDOW)
        self.transport = NpuSocket(ours, console, self.bridge)
        self.qemu = theirs

    def ask(self, *fields: int) -> tuple[int, ...]:
        self.qemu.sendall(struct.pack("<BBHII", *fields))
        assert self.transport.service()
        return struct.unpack("<BBHI", self.qemu.recv(8))


@pytest.fixture
def ends() -> Iterator[Ends]:
    ours, theirs = socket.socketpair()
    uart, writer = os.pipe()
    with ours, theirs:
        yield Ends(ours, theirs, Console(uart, writer, ()))
    os.close(uart)
    os.close(writer)


def test_reads_and_writes_reach_the_device(ends: Ends) -> None:
    assert ends.ask(WRITE, 4, 0, 8, 0xFFFF_FFFE) == (0, 0, 0, 0)
    assert ends.ask(READ, 4, 0, 8, 0) == (0, 0, 0, 0xFFFF_FFFE)
    assert ends.ask(WRITE, 1, 0, 9, 0x12) == (0, 0, 0, 0)
    assert ends.ask(READ, 2, 0, 8, 0) == (0, 0, 0, 0x12FE)
    ends.device.irq = True
    assert ends.ask(READ, 1, 0, 11, 0) == (0, 1, 0, 0xFF)
    assert ends.bridge.accesses == 5


@each(
    "fields",
    [
        (0, 4, 0, 0, 0),
        (3, 4, 0, 0, 0),
        (READ, 0, 0, 0, 0),
        (READ, 3, 0, 0, 0),
        (READ, 8, 0, 0, 0),
        (READ, 4, 1, 0, 0),
        (READ, 4, 0, 2, 0),
        (READ, 2, 0, 1, 0),
        (READ, 4, 0, WINDOW, 0),
        (READ, 4, 0, 0xFFFF_FFFC, 0),
        (READ, 4, 0, 0, 1),
        (WRITE, 1, 0, 0, 0x100),
    ],
)
def test_what_is_no_access_is_refused_and_stops_the_guest(ends: Ends, fields: tuple[int, ...]) -> None:
    ends.qemu.sendall(struct.pack("<BBHII", *fields))
    with pytest.raises(SimulationError, match="sent an invalid access"):
        ends.transport.service()
    assert struct.unpack("<BBHI", ends.qemu.recv(8)) == (1, 0, 0, 0)
    assert (ends.device.words, ends.bridge.accesses) == ({}, 0)


def test_requests_come_in_pieces_until_the_end(ends: Ends) -> None:
    request = struct.pack("<BBHII", READ, 4, 0, 4, 0)
    for piece in (request[:1], request[1:7]):
        ends.qemu.sendall(piece)
        assert ends.transport.service()
    ends.qemu.sendall(request[7:])
    assert ends.transport.service()
    assert len(ends.qemu.recv(64)) == 8
    ends.qemu.sendall(b"\x01")
    ends.qemu.shutdown(socket.SHUT_RDWR)
    assert ends.transport.service()
    assert not ends.transport.service()


# --- What the host makes of the plugin's file.

MARKS = (Mark("begin", 0x1000_0020), Mark("end", 0x1000_0030, ends=True))
PARTS_AT = 56  # of `struct counts`: magic, a count, six words, two reserved
SEGMENTS_AT = PARTS_AT + 32 * (1 << 17)
DELTAS_AT = SEGMENTS_AT + 8 * (1 << 16)
CODE_AT = DELTAS_AT + 16 * (1 << 22)


def words(*values: int) -> bytes:
    return np.array(values, "<u4").tobytes()


def part(executions: int, start: int, size: int, instructions: int, number: int, count: int) -> bytes:
    return np.uint64(executions).tobytes() + words(start, 0, size, instructions, number, count)


def read(header: bytes, parts: bytes = b"", segments: bytes = b"", deltas: bytes = b"") -> BlockCounts:
    with block_counts.open_counts_file(Path("/plugin.so"), MARKS) as file:
        for at, data in ((0, header), (PARTS_AT, parts), (SEGMENTS_AT, segments), (DELTAS_AT, deltas)):
            os.pwrite(file.descriptor, data, at)
        os.pwrite(file.descriptor, bytes(range(16)), CODE_AT)
        return file.read()


def header(parts: int, segments: int = 0, deltas: int = 0, magic: bytes = b"EUBLOCK2") -> bytes:
    return magic + np.uint64(7).tobytes() + words(parts, 16, segments, deltas, 0, 0)


def test_a_block_that_was_left_in_its_middle_is_two() -> None:
    """Of ten executions four ended with the first part, at an access to a device; the mark's own block is no work."""
    rows = (
        part(10, 0x1000_0000, 4, 2, 0, 2)
        + part(6, 0x1000_0000, 10, 4, 1, 2)
        + part(3, MARKS[0].address, 2, 1, 0, 1)
    )
    delta = np.uint64(5).tobytes() + words(0, 0) + np.uint64(2).tobytes() + words(1, 0)
    found = read(header(3, 1, 2), rows, words(0, 2), delta)
    assert [(row.start, row.end, row.instructions, row.executions) for row in found.blocks] == [
        (0x1000_0000, 0x1000_0004, 2, 4),
        (0x1000_0000, 0x1000_000A, 4, 6),
        (MARKS[0].address, MARKS[0].address + 2, 1, 0),
    ]
    assert found.blocks[1].code == bytes(range(10))
    assert [row.name for row in found.segments] == ["", "begin"]
    assert [
        dict(zip(row.blocks.tolist(), row.executions.tolist(), strict=True)) for row in found.segments
    ] == [
        {0: 3, 1: 2},
        {0: 1, 1: 4},
    ]
    assert found.unplaced_instructions == 7


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ((header(0, magic=b"\0" * 8),), "wrote nothing"),
        ((header(1, 1, 2), part(1, 0, 2, 1, 0, 1), words(0, 9)), "the segments do not add up"),
        ((header(1, 1, 0), part(1, 0, 2, 1, 0, 1), words(77, 0)), "index"),
        (
            (header(1, 1, 1), part(1, 0, 2, 1, 0, 1), words(0, 1), np.uint64(1).tobytes() + words(99, 0)),
            "index",
        ),
    ],
)
def test_a_file_without_sense_is_refused(content: tuple[bytes, ...], why: str) -> None:
    with pytest.raises(SimulationError, match=why):
        read(*content)


def test_qemu_gets_the_file_and_the_marks() -> None:
    file = block_counts.CountsFile(9, Path("/a,b/block-counts.so"), MARKS)
    assert file.option() == "/a,,b/block-counts.so,fd=9,mark=0x10000020,last=0x10000030"
