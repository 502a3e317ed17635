"""A sweep takes from its folder what it wrote there, and does the rest again."""

import random
import re
import shutil
from pathlib import Path

import pytest

from tests.integration.cli import assert_clear, sdk
from tests.integration.sweep.sweeps import SMALL, by_cell, finished, record, sweep, write

pytestmark = [pytest.mark.torch]


def _edit(path: Path, choice: random.Random) -> None:
    """Change a digit somewhere."""
    text = path.read_text(encoding="utf-8")
    place = choice.choice([found.start() for found in re.finditer(r"[0-9]", text)])
    path.write_text(f"{text[:place]}{(int(text[place]) + 1) % 10}{text[place + 1 :]}", encoding="utf-8")


def test_edited_results_are_done_again(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(small / "out", out)
    file = write(tmp_path, SMALL)
    edited = finished(out)[:3]
    choice = random.Random(7)
    cycles = edited[0].read_text(encoding="utf-8")
    edited[0].write_text(re.sub(r'"npu_cycles": \d+', '"npu_cycles": 1', cycles), encoding="utf-8")
    _edit(edited[1], choice)
    (edited[2].parent / "manifest.json").unlink()
    # What those cells are made from, too: their programs and records.
    for program in (out / "compiled").glob("*/add.pte"):
        program.write_bytes(program.read_bytes()[:-1] + b"x")
    done = sweep(file, out, "-j", "1")
    assert done.code == 0, done.err
    for path in edited[:2]:
        assert f"{path} is not what was written: it is done again" in done.err
    assert f"{edited[2].parent}/manifest.json" in done.err
    assert record(out)["session"]["finish_steps"] == 3
    assert record(out)["session"]["compile_steps"] == 3
    assert by_cell(out) == by_cell(small / "out")
    for path in edited:
        assert sdk("validate", path.parent, cwd=tmp_path).code == 0


def test_an_edited_table_is_not_asked(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(small / "out", out)
    content = bytearray((out / "cells.parquet").read_bytes())
    content[len(content) // 2] ^= 1
    (out / "cells.parquet").write_bytes(content)
    for words in (("query", "SELECT 1", out), ("compare", small / "out", out)):
        assert_clear(sdk("sweep", *words, cwd=tmp_path), 3, "its SHA-256 differs")
