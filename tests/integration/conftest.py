"""What tests of several commands share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium, started once: Playwright cannot be started twice in a process."""
    from tests.integration import browsing  # loads Playwright, which most tests do without

    with browsing.chromium() as found:
        yield found
