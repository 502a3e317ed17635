"""The checks before a release, and the lint of its workflow: they pass for a commit that is ready, and name what
another lacks."""

import re
import sys
from pathlib import Path

import pytest

from ethosu_sdk import __version__
from ethosu_sdk.base import proc
from tests.places import ROOT

AUTHOR = ("-c", "user.name=test", "-c", "user.email=test@localhost")


def git(checkout: Path, *words: str) -> None:
    proc.run(["git", *AUTHOR, "-C", str(checkout), *words], timeout_s=60)


def check(checkout: Path, tag: str) -> tuple[int, str]:
    command = [str(checkout / "scripts" / "release"), "check", tag]
    done = proc.run(command, timeout_s=60, check=False)
    return done.returncode, done.output


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A clone whose changelog has the version's section."""
    git(ROOT, "clone", "-q", str(ROOT), str(tmp_path / "clone"))
    checkout = tmp_path / "clone"
    changelog = checkout / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    section = f"## Unreleased\n\n## {__version__} - 2030-01-31\n"
    changelog.write_text(re.sub(r"^## Unreleased\n", section, text, count=1, flags=re.M), encoding="utf-8")
    git(checkout, "commit", "-qam", "Release")
    return checkout


def test_a_commit_that_is_ready_passes(ready: Path) -> None:
    assert check(ready, f"v{__version__}")[0] == 0


def test_what_is_missing_is_named(ready: Path) -> None:
    code, said = check(ready, "v99.0.0")
    assert (code, "the tag is v99.0.0" in said) == (1, True)
    changelog = ready / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    changelog.write_text(
        text.replace("## Unreleased\n", "## Unreleased\n\n- One more.\n", 1), encoding="utf-8"
    )
    assert "still lists something under Unreleased" in check(ready, f"v{__version__}")[1]
    changelog.write_text(text + "\n", encoding="utf-8")
    assert "files that are not committed" in check(ready, f"v{__version__}")[1]
    changelog.write_text(text.replace(f"## {__version__} - ", "## 0.0.1 - "), encoding="utf-8")
    assert f"no section '## {__version__} - YYYY-MM-DD'" in check(ready, f"v{__version__}")[1]


@pytest.mark.parametrize(
    ("pattern", "replacement", "said"),
    [
        ("needs: wheel", "needs: whel", "whel"),
        (r"steps\.names\.outputs\.slim", "steps.name.outputs.slim", 'property "name" is not defined'),
        (r"matrix\.runner", "matrix.runners", 'property "runners" is not defined'),
        (r'image "\$TARGET"', "image $TARGET", "SC2086"),
    ],
)
def test_a_fault_in_the_workflow_is_named(pattern: str, replacement: str, said: str, tmp_path: Path) -> None:
    """As scripts/lint reads it. What a schema cannot say: references between jobs and steps, and the shell."""
    tools = Path(sys.executable).parent
    command = [str(tools / "actionlint"), "-shellcheck", str(tools / "shellcheck")]
    workflow = ROOT / ".github" / "workflows" / "release.yml"
    assert proc.run([*command, str(workflow)], timeout_s=60).output == ""
    faulty, count = re.subn(pattern, replacement, workflow.read_text(encoding="utf-8"), count=1)
    assert count == 1
    (tmp_path / "release.yml").write_text(faulty, encoding="utf-8")
    done = proc.run([*command, str(tmp_path / "release.yml")], timeout_s=60, check=False)
    assert (done.returncode, said in done.output) == (1, True), done.output
