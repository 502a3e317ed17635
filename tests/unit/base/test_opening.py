"""The doors to files: only regular files are read, nothing is written through a link, and what is written is
whole.
"""

import errno
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ethosu_sdk.base import file_kinds, filesystem, json_text, npz, toml_source
from ethosu_sdk.base.errors import BuildError, InputError
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile import vela_config
from ethosu_sdk.compile.front_ends import model_spec
from ethosu_sdk.program import pte
from ethosu_sdk.records import bundle, provenance
from ethosu_sdk.records.bundle import read_raw_record
from ethosu_sdk.reporting import parse_log_command
from tests.tables import each

MINE = b"the user's own"
READERS = {
    "json_text.read_json": json_text.read_json,
    "hashing.sha256_file": filesystem.sha256_file,
    "results.read": read_raw_record,
    "npz": npz.read_npz,
    "pte": pte.read,
    "kinds": lambda path: file_kinds.recognise(path) if not path.is_dir() else filesystem.open_regular(path),
    "toml": lambda path: toml_source.read_toml(path, toml_source.TomlKind("a policy", 1 << 20, 1 << 10)),
    "vela_config": vela_config.read_config,
    "python_source": model_spec.check_python_source,
    "log": lambda path: parse_log_command.parse_log(path, Reporter(quiet=True)),
    "manifest": lambda path: bundle.read_manifest(path.parent),
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
        with filesystem.open_replacing(path) as stream:
            stream.write(MINE)
        assert path.is_fifo()
        assert reader.read() == MINE
    with pytest.raises(BuildError, match="a device or a pipe"):
        json_text.write_json(path, {})
    assert path.is_fifo()
    with filesystem.open_replacing(Path(os.devnull)) as stream:
        stream.write(MINE)
    assert Path(os.devnull).is_char_device()


@each("kind", ["pipe", "device", "socket", "folder"])
@each("reader", READERS)
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


def test_links_to_files_are_read_and_never_written_through(tmp_path: Path, outside: Path) -> None:
    (tmp_path / "file").write_bytes(MINE)
    (tmp_path / "link").symlink_to("file")
    assert filesystem.file_content(tmp_path / "link", 100) == MINE
    assert (
        filesystem.file_content(tmp_path / "link", 3) == MINE[:4]
    )  # one more than is allowed: the caller sees it
    path = outside.parent / "out" / "build.log"
    path.symlink_to(outside)
    with pytest.raises(OSError, match="symbolic link"), filesystem.open_appending(path) as stream:
        stream.write(b"x")
    assert outside.read_bytes() == MINE


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    path = tmp_path / "outside"
    path.write_bytes(MINE)
    (tmp_path / "out").mkdir()
    return path


def test_a_lock_that_is_a_link_or_pipe_is_refused_at_once(outside: Path, tmp_path: Path) -> None:
    lock = outside.parent / "out" / ".lock"
    lock.symlink_to(outside)
    with pytest.raises(BuildError, match="symbolic link"), filesystem.locked_folder(lock.parent):
        pytest.fail("the block must not run")
    assert outside.read_bytes() == MINE
    lock.unlink()
    lock.hardlink_to(outside)
    with filesystem.locked_folder(lock.parent):
        assert outside.read_bytes() == MINE
    os.mkfifo(tmp_path / ".lock")
    with pytest.raises(BuildError, match="not a regular file"), filesystem.locked_folder(tmp_path):
        pytest.fail("the block must not run")


@pytest.mark.parametrize("kind", ["link", "hard link", "link to nothing"])
def test_a_new_file_takes_the_place_of_a_link(kind: str, outside: Path) -> None:
    path = outside.parent / "out" / "uart.log"
    if kind == "hard link":
        path.hardlink_to(outside)
    else:
        path.symlink_to(outside if kind == "link" else outside.parent / "none")
    with filesystem.open_replacing(path) as stream:
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
        with pytest.raises(OSError, match="No such device"), filesystem.open_replacing(path):
            pytest.fail("the block must not run")


# --- What is written, and locks.


def test_a_written_file_is_whole_and_alone_or_not_there(tmp_path: Path) -> None:
    json_text.write_json(tmp_path / "a.json", {"b": 1})
    assert json_text.read_json(tmp_path / "a.json") == {"b": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]

    def interrupted(temporary: Path) -> None:
        temporary.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        filesystem.write_atomic(tmp_path / "b.json", interrupted)
    with pytest.raises(ValueError, match="Out of range"):
        json_text.write_json(tmp_path / "b.json", {"value": float("nan")})
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_failing_write_leaves_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    json_text.write_json(path, {"old": True})

    def fill_half(temporary: Path) -> None:
        temporary.write_text('{"new"')
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(BuildError, match="No space left on device") as caught:
        filesystem.write_atomic(path, fill_half)
    assert "free some space" in caught.value.hint
    assert json_text.read_json(path) == {"old": True}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


@each("text", ["", "{", "[1]", "null", "[" * 100_000, '{"a": 1'])
def test_what_is_not_a_json_object_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError):
        json_text.read_json(path)


def test_errors_of_the_block_and_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not JSON"):
        json_text.read_json(path)
    with pytest.raises(OSError, match="of the block"), filesystem.locked_folder(tmp_path):
        raise OSError("of the block")


def test_hashes_and_the_comparable_part(tmp_path: Path) -> None:
    record = {"created": "now", "wall_time_s": 1.0, "host": {}, "outputs": [1]}
    assert provenance.comparable(record) == {"outputs": [1]}
    (tmp_path / "a").write_bytes(b"abc")
    # FIPS 180-2, appendix B.1
    assert (
        filesystem.sha256_file(tmp_path / "a")
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
    with pytest.raises(InputError, match="there is no file"):
        filesystem.sha256_file(tmp_path / "missing")


@pytest.mark.parametrize("made", ["folder", "link"])
def test_a_folder_that_takes_no_lock_is_one_error(tmp_path: Path, made: str) -> None:
    """As a read-only folder, which root does not notice, or a full disk: the lock's file cannot be opened."""
    lock = tmp_path / ".lock"
    lock.mkdir() if made == "folder" else lock.symlink_to(lock)
    with (
        pytest.raises(BuildError, match=f"cannot lock the folder {tmp_path}: ") as caught,
        filesystem.locked_folder(tmp_path),
    ):
        pytest.fail("the block must not run")
    assert "-o" in caught.value.hint
    assert "ETHOSU_SDK_CACHE" in caught.value.hint
