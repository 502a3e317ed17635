"""scripts/test, scripts/ci and .ci/run: what each starts, with doubles of all that they start."""

import os
import re
import shutil
from pathlib import Path

import pytest
import yaml

from tests import processes
from tests.places import ROOT

DOUBLE = '#!/bin/sh\necho "$(basename "$0") $*" >>"{log}"\n[ "$(basename "$0")" != "$FAILS" ]\n'
DOUBLES = ("scripts/setup", "scripts/lint", "scripts/quickstart", "scripts/docs", "scripts/container-test")
PROGRAMS = ("python", "unshare")
JOBS = ["lint", "core", "full", "docs", "images"]
PYTEST = "python -m pytest -n 1 --dist worksteal"
WITH_ALL = "setup --corstone-320 --cpu-cycles"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with nothing but the three, and doubles that note how they are called."""
    for name in ("scripts/test", "scripts/ci", ".ci/run"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in (*DOUBLES, *(f".venv/bin/{name}" for name in PROGRAMS)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(DOUBLE.format(log=tmp_path / "log"), encoding="utf-8")
        path.chmod(0o755)
    return tmp_path


def called(
    tree: Path, command: str, *, fails: str = "", user: int = 0, **environment: str
) -> tuple[int, list[str], str]:
    """The exit code of `command` in `tree`, what it called, and its messages."""
    (tree / ".venv" / "bin" / "id").write_text(f"#!/bin/sh\necho {user}\n", encoding="utf-8")
    (tree / ".venv" / "bin" / "id").chmod(0o755)
    path = f"{tree / '.venv' / 'bin'}:{os.environ['PATH']}"
    env = {"PATH": path, "FAILS": fails, "ETHOSU_SDK_TEST_JOBS": "1", **environment}
    done = processes.run(["sh", "-c", command], cwd=tree, env=env)
    log = tree / "log"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return done.returncode, [line.strip() for line in lines], done.stderr


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("scripts/test", ["setup", f"{PYTEST} -m core"]),
        ("scripts/test --full", ["setup", f"{PYTEST} -m core or full"]),
        (
            "scripts/test --all",
            [WITH_ALL, f"{PYTEST} -m not container", "unshare --mount true", "container-test"],
        ),
        ("scripts/test tests/unit -k uart", ["setup", f"{PYTEST} tests/unit -k uart"]),
        ("scripts/test --durations=3", ["setup", f"{PYTEST} --durations=3"]),
        ("scripts/test --durations", ["setup", f"{PYTEST} --record-durations tests/durations.json -m core"]),
        (
            "scripts/test --full --durations",
            ["setup", f"{PYTEST} --record-durations tests/durations.json -m core or full"],
        ),
        ("scripts/test --help", []),
        ("scripts/ci", []),
        ("scripts/ci lint", ["lint"]),
        ("scripts/ci core", ["quickstart", "setup", f"{PYTEST} -m core"]),
        ("scripts/ci full", [WITH_ALL, "setup", f"{PYTEST} -m full --durations=30"]),
        (
            "scripts/ci full --shard 2/3",
            [
                WITH_ALL,
                "setup",
                f"{PYTEST} -m full --durations=30 --splits 3 --group 2 --durations-path tests/durations.json",
            ],
        ),
        ("scripts/ci docs", ["docs"]),
        ("scripts/ci images", ["container-test --slim"]),
        ("scripts/ci images --both", ["container-test"]),
    ],
)
def test_a_command_starts_what_it_says(tree: Path, command: str, expected: list[str]) -> None:
    assert called(tree, command) == (0, expected, "")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("scripts/test --full --all", "give one tier"),
        ("scripts/test --full tests/unit", "'tests/unit' names tests"),
        ("scripts/test --durations 10", "--durations=N"),
        ("scripts/ci fuller", "there is no job 'fuller'"),
        ("scripts/ci lint now", "there is no job 'lint now'"),
        ("scripts/ci full --shard", "K from 1 to N"),
        ("scripts/ci full --shard 4/3", "K from 1 to N, not '4/3'"),
        ("scripts/ci full --shard 0/3", "K from 1 to N"),
    ],
)
def test_what_is_no_command_is_refused_before_anything_starts(tree: Path, command: str, said: str) -> None:
    code, started, printed = called(tree, command)
    assert (code, started, said in printed) == (2, [], True), printed


def test_a_failure_is_the_exit_code(tree: Path) -> None:
    for command, fails in (
        ("scripts/test", "python"),
        ("scripts/ci core", "quickstart"),
        ("scripts/ci lint", "lint"),
    ):
        assert called(tree, command, fails=fails)[0] == 1, command


def test_images_are_tested_after_tests_that_fail_and_are_left_out_aloud(tree: Path) -> None:
    code, started, _ = called(tree, "scripts/test --all", fails="python")
    assert (code, started[-1]) == (1, "container-test")
    for given, reason in (({"user": 1000}, "needs root"), ({"fails": "unshare"}, "no container engine")):
        (tree / "log").unlink()
        code, started, said = called(tree, "scripts/test --all", **given)  # type: ignore[arg-type]
        assert (code, "container-test" in started, reason in said) == (0, False, True), said


def test_continuous_integration_runs_the_jobs_in_turn_until_one_fails(tree: Path) -> None:
    code, started, said = called(tree, ".ci/run")
    assert (code, re.findall(r"^==> job (\w+)$", said, re.M)) == (0, JOBS), said
    assert [started[0], started[-2]] == ["lint", "container-test --slim"]
    (tree / "log").unlink()
    code, _, said = called(tree, ".ci/run", fails="quickstart")
    assert (code, re.findall(r"^==> job (\w+)$", said, re.M)) == (1, JOBS[:2]), said


def test_continuous_integration_names_the_jobs_that_it_has_no_time_for(tree: Path) -> None:
    code, started, said = called(tree, ".ci/run", ETHOSU_SDK_CI_MINUTES="0")
    assert (code, "lint" in started) == (0, False)
    assert f"Left out: {' '.join(JOBS)}" in said


def test_the_workflows_call_every_job_by_its_name() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    steps = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    assert {word for step in steps for word in re.findall(r"scripts/ci (\w+)", step)} == set(JOBS)
    full = workflow["jobs"]["full"]
    shards = full["strategy"]["matrix"]["shard"]
    assert shards == [f"{number + 1}/{len(shards)}" for number in range(len(shards))]
    weekly = (ROOT / ".github" / "workflows" / "weekly.yml").read_text(encoding="utf-8")
    assert "scripts/test --all" in weekly
