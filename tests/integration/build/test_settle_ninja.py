"""container/settle-ninja: what the image ships of a build tree does not tell when it was made, and Ninja takes it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

pytestmark = pytest.mark.toolchain

SCRIPT = ROOT / "container" / "settle-ninja"
RULES = """\
rule cc
  command = arm-none-eabi-gcc -MD -MF $out.d -c $in -o $out
  deps = gcc
  depfile = $out.d
build one.o: cc one.c
build two.o: cc two.c
"""


def ninja(folder: Path, *arguments: str) -> str:
    command = ["ninja", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def make(folder: Path, *order: str) -> None:
    """A built tree; its objects are compiled in `order`."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    (folder / "build.ninja").write_text(RULES)
    (folder / "shared.h").write_text("int value;\n")
    for name in ("one", "two"):
        (folder / f"{name}.c").write_text(f'#include "shared.h"\nint {name}(void) {{ return value; }}\n')
    for name in order:
        ninja(folder, f"{name}.o")


def settle(folder: Path) -> tuple[bytes, bytes]:
    subprocess.run([sys.executable, SCRIPT, folder], check=True)
    return (folder / ".ninja_log").read_bytes(), (folder / ".ninja_deps").read_bytes()


def test_notes_do_not_tell_when_and_in_which_order_they_were_made(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    make(tree, "one", "two")
    raw, first = (tree / ".ninja_deps").read_bytes(), settle(tree)
    make(tree, "two", "one")
    assert (tree / ".ninja_deps").read_bytes() != raw  # else there was nothing to settle
    assert settle(tree) == first


def test_dependencies_survive(tmp_path: Path) -> None:
    make(tmp_path / "tree", "one", "two")
    before = [line for line in ninja(tmp_path / "tree", "-t", "deps").splitlines() if "#deps" not in line]
    settle(tmp_path / "tree")
    after = [line for line in ninja(tmp_path / "tree", "-t", "deps").splitlines() if "#deps" not in line]
    assert sorted(after) == sorted(before)
    assert any("shared.h" in line for line in after)


@pytest.mark.parametrize("file_time_s", [0, 315619200, 1753000000], ids=["1970", "1980", "2025"])
def test_ninja_takes_the_objects_whatever_time_the_image_gave_them(tmp_path: Path, file_time_s: int) -> None:
    tree = tmp_path / "tree"
    make(tree, "one", "two")
    settle(tree)
    for path in tree.iterdir():
        os.utime(path, (file_time_s + 1, file_time_s + 1))
    assert "no work to do" in ninja(tree)
    (tree / "shared.h").write_text("long value;\n")  # negative control: a source that changes is noticed
    assert "[2/2]" in ninja(tree)
