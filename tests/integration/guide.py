"""The commands of a page of docs/guide, run as a reader runs them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests import warm
from tests.integration.cli import sdk
from tests.places import ROOT

_FILE = re.compile(r'^```\w+ title="([\w/]+\.\w+)"\n(.*?)^```$', re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\$ (ethosu-sdk|python) (.*)$", re.MULTILINE)
_TIMEOUT_S = 900


def commands(page: str) -> list[list[str]]:
    """The words of each command on docs/guide/`page`, in their order."""
    return [[program, *shlex.split(rest)] for program, rest in _COMMAND.findall(_text(page))]


def run(page: str, folder: Path, *, count: int) -> None:
    """Write the files of docs/guide/`page` into `folder` and run its commands there, each in a process of its own.

    Each must end with exit code 0. `count` is their number: a command that is not found is not left out silently.
    """
    write_files(page, folder)
    found = commands(page)
    assert len(found) == count
    for program, *words in found:
        execute(program, words, folder)


def write_files(page: str, folder: Path) -> None:
    """Write the files of docs/guide/`page` into `folder`."""
    for name, content in _FILE.findall(_text(page)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def execute(program: str, words: list[str], folder: Path) -> None:
    """Run one command of a page in `folder`."""
    if program == "python":
        warm.python(*words, cwd=folder, timeout_s=_TIMEOUT_S)
        return
    outcome = sdk(*words, cwd=folder, timeout_s=_TIMEOUT_S)
    assert outcome.code == 0, f"{shlex.join(words)}: {outcome.err}"


def _text(page: str) -> str:
    return (ROOT / "docs" / "guide" / page).read_text(encoding="utf-8")
