"""What tests of several commands share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ethosu_sdk.files import locks, writing
from tests.conftest import ZooPte
from tests.integration.cli import sdk
from tests.integration.report.pages import beside_its_record

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium, started once: Playwright cannot be started twice in a process."""
    from tests.integration import browsing  # loads Playwright, which most tests do without

    with browsing.chromium() as found:
        yield found


@pytest.fixture(scope="session")
def run_folder(zoo_pte: ZooPte, shared_folder: Path) -> Path:
    """The folder of a profiled run of digits_cnn, the program and its compile record in it."""
    folder = writing.make_directory(shared_folder / "report" / "digits")
    with locks.locked(folder.parent):
        if not (folder / "profile.json").is_file():
            program = beside_its_record("digits_cnn", zoo_pte, folder)
            done = sdk("profile", program, "-o", folder, "-q", cwd=folder)
            assert done.code == 0, done.err
    return folder
