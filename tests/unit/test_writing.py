import errno
from pathlib import Path

import pytest

from ethosu_sdk import records
from ethosu_sdk.errors import BuildError, InputError
from ethosu_sdk.files import hashing, json_text, locks, writing


def test_a_written_file_is_whole_and_alone(tmp_path: Path) -> None:
    json_text.write_json(tmp_path / "a.json", {"b": 1})
    assert json_text.read_json(tmp_path / "a.json") == {"b": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_a_failing_write_leaves_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    json_text.write_json(path, {"old": True})

    def fill_half(temporary: Path) -> None:
        temporary.write_text('{"new"')
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(BuildError, match="No space left on device") as caught:
        writing.write_atomic(path, fill_half)
    assert "free some space" in caught.value.hint
    assert json_text.read_json(path) == {"old": True}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.json"]


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    def interrupted(temporary: Path) -> None:
        temporary.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        writing.write_atomic(tmp_path / "a.json", interrupted)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", "[1]", "null", "[" * 100_000, '{"a": 1'])
def test_what_is_not_a_json_object_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError):
        json_text.read_json(path)


def test_bytes_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not JSON"):
        json_text.read_json(path)


def test_nan_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Out of range"):
        json_text.write_json(tmp_path / "a.json", {"value": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_the_comparable_part_has_neither_time_nor_host() -> None:
    record = {"created": "now", "wall_time_s": 1.0, "host": {}, "outputs": [1]}
    assert records.comparable(record) == {"outputs": [1]}


def test_sha256_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    # FIPS 180-2, appendix B.1
    assert (
        hashing.sha256_file(tmp_path / "a")
        == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )
    with pytest.raises(InputError, match="there is no file"):
        hashing.sha256_file(tmp_path / "missing")


@pytest.mark.parametrize("made", ["folder", "link"])
def test_a_folder_that_takes_no_lock_is_one_error(tmp_path: Path, made: str) -> None:
    """As a read-only folder, which root does not notice, or a full disk: the lock's file cannot be opened."""
    lock = tmp_path / ".lock"
    lock.mkdir() if made == "folder" else lock.symlink_to(lock)
    with (
        pytest.raises(BuildError, match=f"cannot lock the folder {tmp_path}: ") as caught,
        locks.locked(tmp_path),
    ):
        pytest.fail("the block must not run")
    assert "-o" in caught.value.hint
    assert "ETHOSU_SDK_CACHE" in caught.value.hint


def test_an_error_of_the_block_passes_a_lock_unchanged(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="of the block"), locks.locked(tmp_path):
        raise OSError("of the block")
