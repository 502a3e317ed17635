"""`run` with a QEMU whose gdb stub breaks the protocol: exit code 6 and words, in time."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.integration.cli import sdk
from tests.places import GOLDEN_PTE

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]

ADD = GOLDEN_PTE / "add_u55.pte"
DOUBLE = Path(__file__).with_name("gdb_double.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a double of QEMU in `bin`, and the firmware built."""
    path = tmp_path_factory.mktemp("stub")
    (path / "bin").mkdir()
    program = path / "bin" / "qemu-system-arm"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{DOUBLE}" "$@"\n')
    program.chmod(0o755)
    assert sdk("build", ADD, "-o", path / "out", cwd=path, timeout_s=900).code == 0
    return path


@pytest.mark.parametrize(
    ("says", "words"),
    [
        ("frame:b'Wzz'", "the stop reply b'Wzz' is malformed"),
        ("frame:b'W'", "the stop reply b'W' is malformed"),
        ("frame:b'W+1'", "the stop reply b'W+1' is malformed"),
        ("frame:b'Tzz'", "the stop reply b'Tzz' is malformed"),
        ("frame:b'S'", "the stop reply b'S' is malformed"),
        ("frame:b''", "QEMU reported b''"),
        ("frame:b'T05watch:zz;'", ""),
        ("raw:b'$W00#00'", "checksum of packet b'W00' is wrong"),
        ("raw:b'$W00#zz'", "checksum of packet b'W00' is wrong"),
        ("endless:b'x'", "unexpected bytes between packets"),
        ("endless:b'$xxxx'", "a packet has more than 65,536 bytes"),
        ("endless:b'+'", "did not end within 3 s"),
        ("close:b'$W0'", "QEMU ended early"),
    ],
)
def test_a_stub_that_breaks_the_protocol(folder: Path, says: str, words: str) -> None:
    path = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "GDB_DOUBLE": says}
    command = ("run", ADD, "--simulator", "qemu", "--timeout", "3", "-o", folder / "out")
    outcome = sdk(*command, cwd=folder, env=path, timeout_s=120)
    assert outcome.code == 6, outcome.err
    assert words in outcome.err
    assert "internal error" not in outcome.err
