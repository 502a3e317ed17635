"""A cache that was copied or altered builds what was asked for, or is made anew."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.base import cache
from ethosu_sdk.firmware_build import executable
from tests.integration.cli import Outcome, sdk_ok
from tests.places import GOLDEN_PTE
from tests.records import read

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]


def build(name: str, folder: Path, cache_folder: Path) -> tuple[Outcome, dict[str, Any]]:
    """The firmware of a golden program, its model compared with the file."""
    command = ("build", GOLDEN_PTE / f"{name}.pte", "-o", folder, "--json")
    outcome = sdk_ok(*command, cwd=folder.parent, env={cache.CACHE_VARIABLE: str(cache_folder)})
    assert (
        executable.section_bytes(folder / "executor_runner.elf", ".model")
        == (GOLDEN_PTE / f"{name}.pte").read_bytes()
    )
    return outcome, json.loads(outcome.out)["elf"]


def test_a_copied_and_an_altered_cache(tmp_path: Path) -> None:
    original = Path(os.environ[cache.CACHE_VARIABLE])
    expected = {name: build(name, tmp_path / f"first-{name}", original)[1] for name in ("softmax", "add_u55")}
    copied = tmp_path / "copied cache"
    shutil.copytree(original / "firmware", copied / "firmware")
    # What a tree of absolute paths would do: build from the first cache, where this object is another one.
    outcome, made = build("softmax", tmp_path / "softmax", copied)
    assert made == expected["softmax"]
    assert "warning" not in outcome.err
    (altered,) = {path for path in (copied / "firmware").rglob("crc32.cpp.obj") if _is_open(path)}
    altered.write_bytes(altered.with_name("sha256.cpp.obj").read_bytes())
    outcome, made = build("add_u55", tmp_path / "add_u55", copied)
    assert made == expected["add_u55"]
    assert "was changed since the last build" in outcome.err
    assert "crc32.cpp.obj" in outcome.err
    assert build("softmax", tmp_path / "again", copied)[1] == expected["softmax"]


def _is_open(path: Path) -> bool:
    """Whether the object is of the tree that was built at its place."""
    tree = next(folder for folder in path.parents if folder.name == "build")
    return bool(read(tree / "configured-for.json")["place"] == str(tree))
