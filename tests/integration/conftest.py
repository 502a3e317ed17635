"""What tests of several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ethosu_sdk.base import filesystem
from tests.conftest import KeptFolder, ZooPte
from tests.integration.cli import sdk_ok
from tests.integration.report.pages import beside_its_record

FinishedRun = Callable[..., Path]

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium, started once: Playwright cannot be started twice in a process."""
    from tests.integration import browsing  # loads Playwright, which most tests do without

    with browsing.chromium() as found:
        yield found


@pytest.fixture(scope="session")
def finished_run(kept_folder: KeptFolder, qemu_plugin: Path) -> FinishedRun:
    """``finished_run(program, *options, command="run")``: the folder of such a run, kept between runs of the tests.

    Others read it too: who changes it makes a copy. The options are texts, and files as paths.
    """

    def ran(program: Path, *options: str | Path, command: str = "run") -> Path:
        def make(folder: Path) -> None:
            sdk_ok(command, program, *options, "-o", folder, "-q", cwd=folder)

        words = [command, *(option.name if isinstance(option, Path) else option for option in options)]
        digest = filesystem.sha256_bytes(" ".join(words).encode())[:8]
        return kept_folder(f"{program.stem}-{digest}", make, program, *words, *options)

    return ran


@pytest.fixture(scope="session")
def run_folder(zoo_pte: ZooPte, kept_folder: KeptFolder, qemu_plugin: Path) -> Path:
    """The folder of a profiled run of digits_cnn, the program and its compile record in it."""

    def make(folder: Path) -> None:
        program = beside_its_record("digits_cnn", zoo_pte, folder)
        sdk_ok("profile", program, "-o", folder, "-q", cwd=folder)

    return kept_folder("digits", make)
