"""Unit tests start no processes: what needs one is an integration test."""

import subprocess

import pytest

from ethosu_sdk.base import proc


@pytest.fixture(autouse=True)
def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise AssertionError("a unit test tried to start a process")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    monkeypatch.setattr(proc, "Child", refuse)
