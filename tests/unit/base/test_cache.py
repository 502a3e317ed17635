"""The cache, and what an installation ships for it."""

from pathlib import Path

import pytest

from ethosu_sdk.base import cache
from ethosu_sdk.base.errors import BuildError


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that came with the installation, for the part ``firmware/1`` of the cache at ``tmp_path/cache``."""
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(cache.PREBUILT_VARIABLE, str(tmp_path / "shipped"))
    folder = tmp_path / "shipped" / (tmp_path / "cache").relative_to("/") / "firmware" / "1"
    folder.mkdir(parents=True)
    (folder / "object").write_text("made before")
    return folder


def test_a_part_starts_as_a_copy_with_the_times_that_ninja_compares(shipped: Path) -> None:
    folder = cache.directory("firmware/1")
    assert (folder / "object").read_text() == "made before"
    assert (folder / "object").stat().st_mtime_ns == (shipped / "object").stat().st_mtime_ns
    (folder / "object").write_text("made since")
    assert (cache.directory("firmware/1") / "object").read_text() == "made since"
    assert (shipped / "object").read_text() == "made before"
    assert [path.name for path in folder.parent.iterdir() if path.name != ".lock"] == ["1"]


def test_another_place_or_part_starts_empty(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CMake's trees hold absolute paths."""
    assert list(cache.directory("firmware/2").iterdir()) == []
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path / "elsewhere"))
    assert cache.prebuilt("firmware/1") is None
    assert list(cache.directory("firmware/1").iterdir()) == []


def test_a_cache_that_cannot_be_made_is_named(shipped: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in its place")
    with pytest.raises(BuildError) as caught:
        cache.directory("firmware/1")
    assert cache.CACHE_VARIABLE in (caught.value.hint or "")


def test_what_is_kept_is_made_once(tmp_path: Path) -> None:
    made: list[Path] = []

    def make(path: Path) -> None:
        made.append(path)
        path.write_bytes(b"weights")

    for _ in range(2):
        assert cache.kept(tmp_path / "w.npz", make).read_bytes() == b"weights"
    assert len(made) == 1
    assert cache.take_notes() == []


@pytest.mark.parametrize("damage", ["content", "digest", "no digest"])
def test_what_is_not_as_it_was_stored_is_made_anew_with_a_note(damage: str, tmp_path: Path) -> None:
    def make(path: Path) -> None:
        path.write_bytes(b"weights")

    path = cache.kept(tmp_path / "w.npz", make)
    digest = tmp_path / "w.npz.sha256"
    if damage == "content":
        path.write_bytes(b"weighty")
    elif damage == "digest":
        digest.write_bytes(b"\xff")
    else:
        digest.unlink()
    assert cache.kept(path, make).read_bytes() == b"weights"
    notes = cache.take_notes()
    assert len(notes) == (damage != "no digest")
    assert all("w.npz was changed since it was stored" in note for note in notes)
