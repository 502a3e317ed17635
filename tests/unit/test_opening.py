"""The doors to files: what is not a regular file is refused at once, and nothing is written through a link."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ethosu_sdk import npz, pte
from ethosu_sdk.aot.model import python_source
from ethosu_sdk.aot.vela import vela_config
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.errors import BuildError, InputError
from ethosu_sdk.files import file_kinds, hashing, json_text, locks, opening, toml_source
from ethosu_sdk.readers.logs import parse_log_command
from ethosu_sdk.results import bundle
from ethosu_sdk.results.reading import read

MINE = b"the user's own"
READERS = {
    "json_text.read_json": json_text.read_json,
    "hashing.sha256_file": hashing.sha256_file,
    "results.read": read,
    "npz": npz.read_npz,
    "pte": pte.read,
    "kinds": lambda path: file_kinds.recognise(path) if not path.is_dir() else opening.regular(path),
    "toml": lambda path: toml_source.read(path, toml_source.Kind("a policy", 1 << 20, 1 << 10)),
    "vela_config": vela_config.read,
    "python_source": python_source.check,
    "log": lambda path: parse_log_command.parse_log(path, Reporter(quiet=True)),
    "manifest": lambda path: bundle.read(path.parent),
}


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    signal.alarm(20)
    yield
    signal.alarm(0)


def test_a_device_or_pipe_is_never_replaced(tmp_path: Path) -> None:
    """As for a log that goes to /dev/null: who is root would take it from the whole machine."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        with opening.replacing(path) as stream:
            stream.write(MINE)
        assert path.is_fifo()
        assert reader.read() == MINE
    with pytest.raises(BuildError, match="a device or a pipe"):
        json_text.write_json(path, {})
    assert path.is_fifo()
    with opening.replacing(Path(os.devnull)) as stream:
        stream.write(MINE)
    assert Path(os.devnull).is_char_device()


@pytest.mark.parametrize("kind", ["pipe", "device", "socket", "folder"])
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_regular_file_is_refused_at_once(reader: str, kind: str, tmp_path: Path) -> None:
    path = tmp_path / bundle.MANIFEST_NAME
    words = {"pipe": "a named pipe", "device": "a device", "socket": "a socket", "folder": "a folder"}[kind]
    with socket.socket(socket.AF_UNIX) as server:
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "device":
            path.symlink_to("/dev/zero")
        elif kind == "socket":
            server.bind(str(path))
        else:
            path.mkdir()
        with pytest.raises(InputError, match=words):
            READERS[reader](path)


def test_a_link_to_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(MINE)
    (tmp_path / "link").symlink_to("file")
    assert opening.content(tmp_path / "link", 100) == MINE
    assert opening.content(tmp_path / "link", 3) == MINE[:4]  # one more than is allowed: the caller sees it


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    path.write_bytes(MINE)
    (tmp_path / "out").mkdir()
    return path


def test_a_lock_that_is_a_link_truncates_nothing(outside: Path) -> None:
    lock = outside.parent / "out" / ".lock"
    lock.symlink_to(outside)
    with pytest.raises(BuildError, match="symbolic link"), locks.locked(lock.parent):
        pytest.fail("the block must not run")
    assert outside.read_bytes() == MINE
    lock.unlink()
    lock.hardlink_to(outside)
    with locks.locked(lock.parent):
        assert outside.read_bytes() == MINE


def test_a_lock_that_is_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".lock")
    with pytest.raises(BuildError, match="not a regular file"), locks.locked(tmp_path):
        pytest.fail("the block must not run")


@pytest.mark.parametrize("kind", ["link", "hard link", "link to nothing"])
def test_a_new_file_takes_the_place_of_a_link(kind: str, outside: Path) -> None:
    path = outside.parent / "out" / "uart.log"
    if kind == "hard link":
        path.hardlink_to(outside)
    else:
        path.symlink_to(outside if kind == "link" else outside.parent / "none")
    with opening.replacing(path) as stream:
        stream.write(b"x")
    assert (outside.read_bytes(), path.read_bytes(), path.is_symlink()) == (MINE, b"x", False)
    assert not (outside.parent / "none").exists()


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_a_pipe_that_nobody_reads_is_refused_at_once(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "compile.log"
    with socket.socket(socket.AF_UNIX) as server:
        if kind == "pipe":
            os.mkfifo(path)
        else:
            server.bind(str(path))
        with pytest.raises(OSError, match="No such device"), opening.replacing(path):
            pytest.fail("the block must not run")


def test_nothing_is_appended_through_a_link(outside: Path) -> None:
    path = outside.parent / "out" / "build.log"
    path.symlink_to(outside)
    with pytest.raises(OSError, match="symbolic link"), opening.appending(path) as stream:
        stream.write(b"x")
    assert outside.read_bytes() == MINE
