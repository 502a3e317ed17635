"""Runs side by side: none meets another, none leaves a process behind. ETHOSU_SDK_MANY_RUNS asks for more."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base import filesystem, npz
from tests.integration.cli import sdk
from tests.places import GOLDEN_PTE

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain]
RUNS = int(os.environ.get("ETHOSU_SDK_MANY_RUNS", "24"))
AT_ONCE = 4


def processes_in(folder: Path) -> list[str]:
    """The command lines of all processes that work in `folder` or have it on their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            where = (entry / "cwd").readlink()
        except OSError:
            continue
        if str(folder) in words or where.is_relative_to(folder):
            found.append(words)
    return found


@pytest.mark.thorough
def test_runs_four_at_a_time_do_not_meet(tmp_path: Path) -> None:
    """Each has inputs of its own; what must come out is one NumPy expression: x + x."""

    def one(number: int) -> tuple[int, str]:
        folder = filesystem.make_directory(tmp_path / str(number))
        data = np.random.default_rng(number).integers(-(1 << 29), 1 << 29, (3, 5), dtype=np.int32)
        npz.write_npz(folder / "in.npz", {"input0": data})
        npz.write_npz(folder / "want.npz", {"output0": data + data})
        program = "add_u85_segment.pte" if number % 3 == 0 else "add_u55.pte"
        # Every eighth builds a firmware of its own: those must not disturb each other either.
        way = () if number % 8 == 5 else ("--resident",)
        outcome = sdk(
            *("run", GOLDEN_PTE / program, "-o", folder / "out", *way),
            *("--inputs", folder / "in.npz", "--expect", folder / "want.npz"),
            cwd=folder,
        )
        return outcome.code, outcome.err

    with ThreadPoolExecutor(AT_ONCE) as pool:
        outcomes = list(pool.map(one, range(RUNS)))
    assert [code for code, _ in outcomes] == [0] * RUNS, [err for code, err in outcomes if code]
    assert processes_in(tmp_path) == []
    left = {
        path.name for path in tmp_path.rglob("*") if path.name.startswith(".") or path.name.endswith(".part")
    }
    assert not left - {".lock"}
