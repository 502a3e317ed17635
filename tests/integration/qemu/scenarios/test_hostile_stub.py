"""`run` with a QEMU whose gdb stub breaks the protocol: exit code 6 and words, in time, on both boards."""

import os
import sys
from pathlib import Path

import pytest

from tests.integration.cli import sdk
from tests.integration.qemu.conftest import Board
from tests.own_qemu import VARIABLE
from tests.places import GOLDEN_PTE

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]

PROGRAMS = {"corstone-300": GOLDEN_PTE / "add_u55.pte", "corstone-320": GOLDEN_PTE / "add_u85_segment.pte"}
DOUBLE = Path(__file__).with_name("gdb_double.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a double of QEMU in `bin`, and the firmware built."""
    path = tmp_path_factory.mktemp("stub")
    (path / "bin").mkdir()
    program = path / "bin" / "qemu-system-arm"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{DOUBLE}" "$@"\n')
    program.chmod(0o755)
    for board, pte in PROGRAMS.items():
        outcome = sdk("build", pte, "--board", board, "-o", path / board, cwd=path, timeout_s=900)
        assert outcome.code == 0, outcome.err
    return path


@pytest.mark.parametrize(
    ("board", "says", "words"),
    [
        ("corstone-300", "frame:b'Wzz'", "the stop reply b'Wzz' is malformed"),
        ("corstone-300", "frame:b'W'", "the stop reply b'W' is malformed"),
        ("corstone-300", "frame:b'W+1'", "the stop reply b'W+1' is malformed"),
        ("corstone-300", "frame:b'Tzz'", "the stop reply b'Tzz' is malformed"),
        ("corstone-300", "frame:b'S'", "the stop reply b'S' is malformed"),
        ("corstone-300", "frame:b''", "QEMU reported b''"),
        ("corstone-300", "frame:b'T05watch:zz;'", ""),
        ("corstone-300", "raw:b'$W00#00'", "checksum of packet b'W00' is wrong"),
        ("corstone-300", "raw:b'$W00#zz'", "checksum of packet b'W00' is wrong"),
        ("corstone-300", "endless:b'x'", "unexpected bytes between packets"),
        ("corstone-300", "endless:b'$xxxx'", "a packet has more than 65,536 bytes"),
        ("corstone-300", "endless:b'+'", "did not end within 3 s"),
        ("corstone-300", "close:b'$W0'", "QEMU ended early"),
        ("corstone-320", "frame:b'Wzz'", "the stop reply b'Wzz' is malformed"),
        ("corstone-320", "endless:b'$xxxx'", "a packet has more than 65,536 bytes"),
        ("corstone-320", "close:b'$W0'", "QEMU ended early"),
    ],
    indirect=["board"],
)
def test_a_stub_that_breaks_the_protocol(folder: Path, board: Board, says: str, words: str) -> None:
    double = folder / "bin" / "qemu-system-arm"
    environment = {"PATH": f"{double.parent}:{os.environ['PATH']}", VARIABLE: str(double), "GDB_DOUBLE": says}
    options = ("--board", board.name, "--simulator", "qemu", "--timeout", "3", "-o", folder / board.name)
    outcome = sdk("run", PROGRAMS[board.name], *options, cwd=folder, env=environment, timeout_s=120)
    assert outcome.code == 6, outcome.err
    assert words in outcome.err
    assert "internal error" not in outcome.err
