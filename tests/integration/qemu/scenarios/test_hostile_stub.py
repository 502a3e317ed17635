"""A QEMU whose gdb stub breaks the protocol: a failed simulation and words, in time, on both boards."""

import dataclasses
import sys
from pathlib import Path

import pytest

from ethosu_sdk.base.errors import SimulationError
from ethosu_sdk.simulate.qemu import run_loop
from tests.integration.qemu.conftest import Board, RequestFor
from tests.integration.qemu.firmware.build import Scenario
from tests.integration.qemu.firmware.doubles import MemoryLikeDevice

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]

DOUBLE = Path(__file__).with_name("gdb_double.py")


@pytest.fixture(scope="module")
def double(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that is called as QEMU is."""
    program = tmp_path_factory.mktemp("stub") / "qemu-system-arm"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{DOUBLE}" "$@"\n')
    program.chmod(0o755)
    return program


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
        ("corstone-300", "endless:b'+'", "did not end within 1.5 s"),
        ("corstone-300", "close:b'$W0'", "QEMU ended early"),
        ("corstone-320", "frame:b'Wzz'", "the stop reply b'Wzz' is malformed"),
        ("corstone-320", "endless:b'$xxxx'", "a packet has more than 65,536 bytes"),
        ("corstone-320", "close:b'$W0'", "QEMU ended early"),
    ],
    indirect=["board"],
)
def test_a_stub_that_breaks_the_protocol(
    request_for: RequestFor,
    board: Board,
    double: Path,
    monkeypatch: pytest.MonkeyPatch,
    says: str,
    words: str,
) -> None:
    monkeypatch.setenv("GDB_DOUBLE", says)
    monkeypatch.setattr(run_loop, "_DIAGNOSIS_S", 0.2)
    request = dataclasses.replace(request_for(Scenario.EXIT), timeout_s=1.5)
    with pytest.raises(SimulationError) as caught:
        dataclasses.replace(board, qemu=double).simulator(lambda *_: MemoryLikeDevice()).run(request)
    assert words in caught.value.message
