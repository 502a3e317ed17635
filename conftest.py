"""With ETHOSU_SDK_NO_SKIPS (continuous integration) a skipped test fails, unless it needs the licensed FVP."""

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
