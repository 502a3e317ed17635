"""docs/getting-started/onboarding.md: every command of it is run, in order, in a copy of the repository, and
prints what it shows.

One command is replaced: `scripts/setup` installs for minutes; the copy gets the environment that runs this test,
which that script has made.
"""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.integration.setup import process
from tests.places import ROOT

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]

PAGE = ROOT / "docs" / "getting-started" / "onboarding.md"
REPLACED = {"scripts/setup": "test -x .venv/bin/ethosu-sdk"}
MARK = "@@command@@"


@dataclass
class Command:
    """One `$` line of the page, and the lines that are shown below it."""

    text: str
    shown: list[str] = field(default_factory=list)


def commands(page: str) -> list[Command]:
    found: list[Command] = []
    for block in re.findall(r"^```console\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Command(line.removeprefix("$ ")))
            else:
                found[-1].shown.append(line)
    return found


def copy_of_the_repository(target: Path) -> Path:
    """The files that git tracks or would, as they are now, and the environment."""
    argv = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        source = ROOT / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)
    (target / ".venv").symlink_to(Path(sys.executable).parents[1])
    return target


def words(text: str) -> str:
    return " ".join(text.split())


def is_shown(line: str, output: str) -> bool:
    """Whether `line`, in which … stands for anything, is a line of `output`; columns may be of another width."""
    pattern = ".*".join(re.escape(words(part)) for part in line.split("…"))
    return any(re.fullmatch(pattern.strip(), words(found)) for found in output.splitlines())


@pytest.mark.thorough
def test_the_page_is_true(tmp_path: Path) -> None:
    page = commands(PAGE.read_text(encoding="utf-8"))
    assert {row.text for row in page} >= REPLACED.keys()
    folder = copy_of_the_repository(tmp_path / "ethosu-sdk")
    script = "set -eu\n" + "".join(f"echo {MARK}\n{REPLACED.get(row.text, row.text)}\n" for row in page)
    # The environment's package is an editable one: the copy's sources must come first.
    environment = {**os.environ, "PYTHONPATH": str(folder / "sdk"), "COLUMNS": "200"}
    code, said = process.run(["bash", "-c", script], cwd=folder, env=environment)
    outputs = said.split(f"{MARK}\n")[1:]
    assert (code, len(outputs)) == (0, len(page)), said
    for command, output in zip(page, outputs, strict=True):
        for line in command.shown:
            assert is_shown(line, output), f"{command.text} does not print {line!r} but\n{output}"


@pytest.mark.parametrize(
    ("line", "output", "expected"),
    [
        ("verdict  pass", "a\nverdict pass \n", True),
        ("verdict pass", "verdict fail", False),
        ("a, …", "a, b", True),
        ("a", "a b", False),
    ],
)
def test_shown_lines_are_compared_by_words(line: str, output: str, expected: bool) -> None:
    assert is_shown(line, output) is expected
