"""A build tree is used again only if it is as it was left."""

from pathlib import Path

import pytest

from ethosu_sdk import cache
from ethosu_sdk.firmware_build import build_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "build"
    (folder / "objects" / "app").mkdir(parents=True)
    (folder / "objects" / "app" / "main.obj").write_bytes(b"object")
    (folder / "objects" / ".ninja_log").write_text("then")
    build_tree.close_tree(folder)
    cache.take_notes()
    return folder


def test_a_tree_that_nobody_touched_is_kept_and_open_until_it_is_closed(tree: Path) -> None:
    (tree / "objects" / ".ninja_log").write_text("now")
    build_tree.open_tree(tree)
    assert (tree / "objects" / "app" / "main.obj").is_file()
    build_tree.open_tree(tree)  # nobody closed it: it may be half done
    assert not tree.exists()
    assert cache.take_notes() == []


@pytest.mark.parametrize("damage", ["changed", "gone", "new", "link"])
def test_a_tree_that_was_altered_is_made_anew_with_a_note(damage: str, tree: Path) -> None:
    objects = tree / "objects" / "app"
    if damage in ("gone", "link"):
        (objects / "main.obj").unlink()
    if damage == "link":
        (objects / "main.obj").symlink_to("elsewhere.obj")
    if damage in ("changed", "new"):
        (objects / {"changed": "main.obj", "new": "other.obj"}[damage]).write_bytes(b"other")
    build_tree.open_tree(tree)
    assert not tree.exists()
    (note,) = cache.take_notes()
    assert "was changed since the last build" in note
    assert "other.obj" in note if damage == "new" else "main.obj" in note


def test_a_damaged_note_is_no_note(tree: Path) -> None:
    (tree / "objects.json").write_text("[]")
    build_tree.open_tree(tree)
    assert not tree.exists()
