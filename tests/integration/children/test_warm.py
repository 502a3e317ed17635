"""What tests start as forks and what they keep: a fork is what a process is, and what is kept is what was made."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests import kept, warm
from tests.integration.cli import sdk
from tests.places import GOLDEN_PTE


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("explain",),
        ("inspect", GOLDEN_PTE / "add_u55.pte", "--commands"),
        ("inspect", "none.pte"),
        ("inspekt",),
        ("summary", "."),
        (),
    ],
    ids=lambda words: " ".join(map(str, words[:1])),
)
def test_a_command_in_a_fork_says_what_one_in_a_process_says(
    words: tuple[str | Path, ...], tmp_path: Path
) -> None:
    assert warm.can_run(os.environ)
    first, again = (sdk(*words, cwd=tmp_path) for _ in range(2))
    assert first == again == sdk(*words, cwd=tmp_path, fresh=True)


def test_a_fork_has_its_own_environment_and_leaves_nothing(tmp_path: Path) -> None:
    assert sdk("explain", cwd=tmp_path, env={"COLUMNS": "50"}) != sdk("explain", cwd=tmp_path)
    assert not warm.can_run({**os.environ, "LC_ALL": "C"})
    code = "import os, sys; print(os.getcwd(), sys.argv[1], sys.stdin.read(), os.getppid()); os.environ['X'] = 'y'"
    for _ in range(2):
        done = warm.python(
            "-c", f"import os; assert 'X' not in os.environ; {code}", "word", cwd=tmp_path, given="in"
        )
        assert done.stdout.split()[:3] == [str(tmp_path), "word", "in"]


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("raise SystemExit('no')", 1, "no"),
        ("1 / 0", 1, "ZeroDivisionError"),
        ("raise SystemExit(3)", 3, ""),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
    ],
)
def test_how_a_fork_ends_is_told(code: str, status: int, said: str, tmp_path: Path) -> None:
    request = {"folder": tmp_path, "environment": dict(os.environ), "argv": ["-c", code]}
    done = warm.asked("compilers", request, 60)
    assert (done.returncode, said in done.stderr) == (status, True)


def test_a_fork_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    code = "import os, time; open('pid', 'w').write(str(os.getpid())); time.sleep(60)"
    with pytest.raises(subprocess.TimeoutExpired):
        warm.python("-c", code, cwd=tmp_path, timeout_s=20)
    process = Path("/proc") / (tmp_path / "pid").read_text()
    deadline = time.monotonic() + 10
    while process.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_what_was_made_is_found_again_and_what_changed_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(kept.VARIABLE, str(tmp_path / "cache"))
    made = []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "facts.json").write_text(f'{{"place": "{folder}/x"}}')

    first, second, other = (tmp_path / name / "place" for name in ("a", "b", "c"))
    for folder in (first, second, other):
        folder.parent.mkdir()
    assert kept.folder(first, make, "text") == first
    (first / "facts.json").write_text("changed by a test")
    assert (kept.folder(second, make, "text") / "facts.json").read_text() == f'{{"place": "{second}/x"}}'
    kept.folder(other, make, "another text")
    assert made == [first, other]
    for entry in (tmp_path / "cache" / "made" / "place").iterdir():
        os.utime(entry, (0, 0))
    (old, _) = sorted((tmp_path / "cache" / "made" / "place").glob("*/place"))
    os.utime(old, (0, 0))
    kept.drop_unused()
    assert not old.exists()
    assert len(list((tmp_path / "cache" / "made" / "place").iterdir())) == 1
