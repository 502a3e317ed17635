"""Build keys and stamps."""

from pathlib import Path

import pytest

from ethosu_sdk.firmware_build import cache, generate


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "firmware"
    (root / "app").mkdir(parents=True)
    (root / "app" / "main.cpp").write_text("one")
    return root


def test_sources_are_all_files_but_tests(tree: Path) -> None:
    (tree / "app" / "tests").mkdir()
    (tree / "app" / "tests" / "x.cpp").write_text("x")
    (tree / "README.md").write_text("x")
    assert cache.sources(tree).keys() == {"app/main.cpp", *generate.shared_sources()}
    assert cache.sources(tree)["app/main.cpp"] == b"one"


def test_hashes_follow_names_and_contents(tree: Path) -> None:
    seen = [cache.hashes(cache.sources(tree))]
    (tree / "app" / "main.cpp").write_text("two")
    seen.append(cache.hashes(cache.sources(tree)))
    (tree / "app" / "main.cpp").rename(tree / "app" / "other.cpp")
    seen.append(cache.hashes(cache.sources(tree)))
    assert len({cache.build_key(row) for row in seen}) == 3


def test_a_stamp_holds_only_for_its_key_and_its_products(tmp_path: Path) -> None:
    stamp, product = tmp_path / "current.json", tmp_path / "a.elf"
    product.write_bytes(b"elf")
    assert not cache.is_current(stamp, "key", {"a.elf": product})
    cache.remember(stamp, "key", {"a.elf": product})
    assert cache.is_current(stamp, "key", {"a.elf": product})
    assert not cache.is_current(stamp, "other", {"a.elf": product})
    product.write_bytes(b"elf!")
    assert not cache.is_current(stamp, "key", {"a.elf": product})
    product.unlink()
    assert not cache.is_current(stamp, "key", {"a.elf": product})


def test_a_damaged_stamp_is_no_stamp(tmp_path: Path) -> None:
    stamp = tmp_path / "current.json"
    stamp.write_text("{")
    assert not cache.is_current(stamp, "key", {})


def test_the_key_follows_every_part() -> None:
    keys = {cache.build_key(parts) for parts in ({"a": 1}, {"a": 2}, {"b": 1}, {"a": 1, "b": 1})}
    assert len(keys) == 4
    assert cache.build_key({"a": 1, "b": 2}) == cache.build_key({"b": 2, "a": 1})


def test_the_work_folder_is_one_for_each_identity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ETHOSU_SDK_CACHE", str(tmp_path / "cache"))
    one = cache.work_directory({"source": "/a"})
    assert one is not None
    assert one == cache.work_directory({"source": "/a"})
    assert one != cache.work_directory({"source": "/b"})
    assert one.parent == tmp_path / "cache" / "firmware"


def test_a_cache_that_cannot_be_written_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("ETHOSU_SDK_CACHE", str(blocked))
    assert cache.work_directory({"source": "/a"}) is None


def test_the_user_cache_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ETHOSU_SDK_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = cache.work_directory({})
    assert folder is not None
    assert folder.is_relative_to(tmp_path / "ethosu-sdk" / "firmware")
