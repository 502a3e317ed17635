"""Two compilations of one model, run on the host simulator: for the default memory mode, and with all in SRAM."""

from __future__ import annotations

from pathlib import Path

import pytest

from ethosu_sdk.files import locks, writing
from tests.integration.cli import sdk
from tests.integration.compare.runs import MODEL, run_on_host


@pytest.fixture(scope="session")
def made(shared_folder: Path) -> Path:
    """``shared`` and ``sram``: folders of runs without a profile."""
    folder = writing.make_directory(shared_folder / "compare")
    with locks.locked(folder):
        for name, mode in (("shared", "Shared_Sram"), ("sram", "Sram_Only")):
            if not (folder / name / "run.json").is_file():
                words = ("--memory-mode", mode, "--no-check", "-q", "-o", folder / name)
                done = sdk("compile", f"zoo:{MODEL}", *words, cwd=folder)
                assert done.code == 0, done.err
                run_on_host(folder / name)
    return folder
