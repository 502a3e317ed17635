"""With ETHOSU_SDK_NO_SKIPS (continuous integration) a skipped test fails, unless it needs the licensed FVP. A
failure is named at once: a run of many minutes may be ended before its summary."""

import os
from collections.abc import Generator

import pytest
from hypothesis import settings

# No deadlines: a busy machine is not a failure. Continuous integration tries the same examples each time.
settings.register_profile("sdk", deadline=None, derandomize=bool(os.environ.get("ETHOSU_SDK_NO_SKIPS")))
settings.load_profile("sdk")


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
