"""What a pipe gets is not folded: digests, paths and names stay whole, and lines have no blanks at the end."""

import os
import pty
import re
import shutil
import struct
import termios
from fcntl import ioctl
from pathlib import Path

import pytest

from tests.integration.cli import COMMAND, sdk
from tests.places import GOLDEN_PTE

DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
PIPE = {"COLUMNS": "", "TERM": "dumb"}


def lines_of(text: str) -> list[str]:
    lines = text.splitlines()
    assert lines
    assert all(line == line.rstrip() for line in lines)
    return lines


def test_inspect_in_a_pipe_keeps_names_and_digests_whole(tmp_path: Path) -> None:
    name = f"{'a_long_name_' * 12}.pte"
    shutil.copy(GOLDEN_PTE / "add_u85_segment.pte", tmp_path / name)
    lines = lines_of(sdk("inspect", name, cwd=tmp_path, env=PIPE).out)
    assert any(name in line for line in lines)
    assert sum(bool(DIGEST.search(line)) for line in lines) == 1
    assert "target   ethos-u85-256, Ethos_U85_SYS_DRAM_Mid, Sram_Only" in lines
    assert "Vela blocks of delegate 0, for ethos-u85-256" in lines


def test_a_table_of_sentences_has_one_line_for_each(tmp_path: Path) -> None:
    outcome = sdk("explain", cwd=tmp_path, env=PIPE)
    lines = lines_of(outcome.out)
    ids = [line.split()[0] for line in lines]
    assert len(ids) == len(set(ids)) > 20
    assert max(map(len, lines)) > 200


@pytest.mark.parametrize("width", [60, 100])
def test_columns_is_respected(width: int, tmp_path: Path) -> None:
    lines = lines_of(sdk("explain", cwd=tmp_path, env={"COLUMNS": str(width), "TERM": "dumb"}).out)
    assert width - 12 < max(map(len, lines)) <= width


def test_a_terminal_keeps_its_width(tmp_path: Path) -> None:
    """In a terminal of 70 columns, which COLUMNS does not say."""
    parent, child = pty.openpty()
    ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 70, 0, 0))
    pid = os.fork()
    if pid == 0:
        os.close(parent)
        for stream in (0, 1, 2):
            os.dup2(child, stream)
        environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "CI")}
        os.execve(COMMAND, [str(COMMAND), "explain"], environment | {"TERM": "xterm", "NO_COLOR": "1"})
    os.close(child)
    text = b""
    while chunk := _read(parent):
        text += chunk
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode())
    widths = {len(line.rstrip()) for line in plain.splitlines()}
    assert 58 < max(widths) <= 70


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other end is closed
        return b""
