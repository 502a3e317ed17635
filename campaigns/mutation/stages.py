"""A pytest plugin: runs the tests with a word in their names and of one tier, and notes what fails.

The environment has the word, the tier (each may be empty) and the file that takes a line for every failure and one at
the end.
"""

import json
import os
import time
from collections import Counter
from pathlib import Path

import pytest

WORD, TIER, REPORT = "MUTATION_WORD", "MUTATION_TIER", "MUTATION_REPORT"
TIERS = ("core", "full", "thorough")
_STARTED = time.monotonic()


def pytest_configure(config: pytest.Config) -> None:
    """Begin the report."""
    config.pluginmanager.register(Stage(os.environ[WORD], os.environ[TIER], Path(os.environ[REPORT])))


class Stage:
    """Chooses the tests; an empty `word` or `tier` takes all."""

    def __init__(self, word: str, tier: str, report: Path) -> None:
        self._word = word
        self._tier = tier
        self._report = report
        self._tests = 0
        self._tiers: Counter[str] = Counter()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out what has another name or tier."""
        kept, others = [], []
        for item in items:
            named = self._word in item.nodeid
            tier = next((tier for tier in TIERS if item.get_closest_marker(tier)), TIERS[-1])
            self._tiers[tier] += named
            (kept if named and self._tier in ("", tier) else others).append(item)
        config.hook.pytest_deselected(items=others)
        items[:] = kept

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure at once: what follows may never end."""
        self._tests += report.when == "call"
        if report.failed:
            self._note({"test": report.nodeid, "when": report.when})

    def pytest_sessionfinish(self) -> None:
        """Note how many tests ran, and how many there are of each tier."""
        self._note({"tests": self._tests, "tiers": self._tiers, "seconds": time.monotonic() - _STARTED})

    def _note(self, row: dict[str, object]) -> None:
        with self._report.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(row)}\n")
