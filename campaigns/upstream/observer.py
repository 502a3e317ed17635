"""A pytest plugin that writes down what each test came to and whether it started an FVP.

It watches: process starts by Python's audit events, results by pytest's reports. The environment variable
UPSTREAM_RESULTS names the file, of which each line is the JSON of a :class:`campaigns.upstream.report.Result`.
"""

import contextlib
import json
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.compile import acceleration

FVP_PREFIX = "FVP_Corstone"
_MISSING = "Did not find Corstone"  # upstream's marks, when it finds no FVP or no executor_runner

_state = {"simulations": 0}


def _on_audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "subprocess.Popen":
        return
    words = [os.fspath(word) for word in arguments[1] or ()]
    if words and str(words[0]).startswith(FVP_PREFIX) and "--version" not in words:
        _state["simulations"] += 1


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # with pytest-xdist, the process that hands out the tests writes
        config.pluginmanager.register(_Writer())
    sys.addaudithook(_on_audit)
    session = contextlib.ExitStack()
    session.enter_context(acceleration.operators_looked_up_once())
    config.add_cleanup(session.close)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Raise UsageError when upstream thinks that no FVP is there: its tests would be expected to fail."""
    for item in items:
        for mark in item.iter_markers("xfail"):
            if mark.kwargs.get("condition") and _MISSING in str(mark.kwargs.get("reason")):
                raise pytest.UsageError(f"{item.nodeid}: {mark.kwargs['reason']}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    _state["simulations"] = 0
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    report.simulations = _state["simulations"]  # type: ignore[attr-defined] # xdist carries it along
    return report


def _outcome(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return {"passed": "xpassed", "skipped": "xfailed"}[report.outcome]
    return report.outcome


def _reason(report: pytest.TestReport) -> str:
    """Why a test did not pass, in one line; the reason of its mark for one that should fail."""
    marked = getattr(report, "wasxfail", "")
    if report.outcome != "failed":
        skipped = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        return marked or skipped.removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(crash.message if crash else report.longrepr).strip().splitlines()
    telling = [line for line in lines if line.startswith(("E ", "E:", "F ", "F:", "Stderr"))]
    return " | ".join((lines[:1] + telling)[:3])


class _Writer:
    """The part of the plugin that writes."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Append the result."""
        if report.when != "call" and report.outcome == "passed":
            return
        result = {
            "test": report.nodeid,
            "outcome": _outcome(report),
            "simulations": getattr(report, "simulations", 0),
            "reason": _reason(report),
            "seconds": round(report.duration, 2),
        }
        with Path(os.environ["UPSTREAM_RESULTS"]).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(result) + "\n")
