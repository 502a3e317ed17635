"""Build keys and stamps."""

from __future__ import annotations

from pathlib import Path

import pytest

from ethosu_sdk.firmware_build import cache


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "firmware"
    (root / "app").mkdir(parents=True)
    (root / "app" / "main.cpp").write_text("one")
    return root


def test_the_tree_hash_follows_names_and_contents(tree: Path) -> None:
    seen = {cache.tree_hash(tree)}
    (tree / "app" / "main.cpp").write_text("two")
    seen.add(cache.tree_hash(tree))
    (tree / "app" / "main.cpp").rename(tree / "app" / "other.cpp")
    seen.add(cache.tree_hash(tree))
    assert len(seen) == 3


def test_tests_are_no_part_of_a_firmware(tree: Path) -> None:
    before = cache.tree_hash(tree)
    (tree / "app" / "tests").mkdir()
    (tree / "app" / "tests" / "x.cpp").write_text("x")
    assert cache.tree_hash(tree) == before


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
