"""Tiers and their durations (tests/tiers.py), and what continuous integration asks of a run.

With ETHOSU_SDK_NO_SKIPS a skipped test fails, unless it needs the licensed FVP. A failure is named at once: a run of
many minutes may be ended before its summary.
"""

import os
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import tiers

# No deadlines: a busy machine is not a failure. Continuous integration tries the same examples each time.
settings.register_profile("sdk", deadline=None, derandomize=bool(os.environ.get("ETHOSU_SDK_NO_SKIPS")))
settings.load_profile("sdk")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record-durations",
        type=Path,
        metavar="FILE",
        help="write how long each test took into this JSON file",
    )


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("record_durations")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(tiers.Recorder(path))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if config.option.markexpr == "core" and tiers.holds_none_of_core(collection_path) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tiers.mark(config, items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    forbidden = os.environ.get("ETHOSU_SDK_NO_SKIPS") and item.get_closest_marker("fvp") is None
    if report.skipped and forbidden:
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may be skipped: {report.longrepr}"
    return report


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nFAILED {report.nodeid} ({report.when}, {report.duration:.0f} s)", flush=True)
