"""A scratch copy of a tree, and what its tests say to one fault."""

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaigns.mutation import stages
from campaigns.mutation.faults import Fault

_ENDED_WELL = (0, 5)  # pytest's exit codes for no failure and for no test
# Where the tests keep what they compile and build between runs, in trees that can.
_CACHE = "ETHOSU_SDK_TEST_CACHE"


@dataclass(frozen=True)
class Copy:
    """A clone of a tree's last commit, and a folder for what its tests leave."""

    tree: Path
    scratch: Path
    most_failures: int = 3  # of a stage

    @contextlib.contextmanager
    def planted(self, fault: Fault) -> Iterator[None]:
        """While the block runs, the copy has the fault."""
        path = self.tree / fault.file
        text = path.read_text(encoding="utf-8")
        path.write_text(fault.planted(text), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(text, encoding="utf-8")

    def try_fault(self, fault: Fault, before: bool, limit_s: float, *, fresh: bool = False) -> dict[str, Any]:
        """What finds `fault`: the first tier in which a test fails, or with `before` the first candidate.

        `fresh` says of every fault that nothing which was made before may be used. With `before` some faults say so
        themselves: what the tests of that tree keep has no key.
        """
        cache = self.scratch / ("fresh" if fresh or (before and fault.fresh) else "cache")
        if cache.name == "fresh":
            shutil.rmtree(cache, ignore_errors=True)
        with self.planted(fault):
            return self.run(fault.candidates(before), ("",) if before else stages.TIERS, limit_s, cache)

    def run(
        self, candidates: Sequence[str], tiers: Sequence[str], limit_s: float, cache: Path
    ) -> dict[str, Any]:
        """Run tier by tier and candidate by candidate, up to the first in which a test fails."""
        started = time.monotonic()
        known: dict[str, dict[str, int]] = {}
        tests, why = 0, {}
        for tier, candidate in itertools.product(tiers, candidates):
            if tier and candidate in known and not known[candidate].get(tier):
                continue
            left_s = limit_s - (time.monotonic() - started)
            if left_s <= 0:
                why = {"why": "the time was over"}
                break
            path, _, word = candidate.partition(" -k ")
            code, failed, end = self._pytest([path], word, tier, left_s, cache)
            known[candidate] = end.get("tiers", {})
            tests += end.get("tests", 0)
            facts = {"tests": tests, "seconds": round(time.monotonic() - started, 1)}
            if failed:
                return {"found": tier or "yes", "candidate": candidate, "by": failed[:3], **facts}
            if code not in _ENDED_WELL:
                why = {"why": f"pytest ended with {code} without a failing test of {candidate}"}
        return {"found": None, **why, "tests": tests, "seconds": round(time.monotonic() - started, 1)}

    def failures(self, tests: Sequence[str], limit_s: float) -> list[str]:
        """Those of `tests` that do not pass, or what else is wrong."""
        code, failed, end = self._pytest(tests, "", "", limit_s, self.scratch / "cache")
        if failed or (code in _ENDED_WELL and end["tests"] >= len(tests)):
            return failed
        return [f"pytest ended with {code} and ran {end.get('tests', 0)} of {len(tests)} tests"]

    def _pytest(
        self, paths: Sequence[str], word: str, tier: str, limit_s: float, cache: Path
    ) -> tuple[int | None, list[str], dict[str, Any]]:
        """The exit code (None when the time was over), the failing tests, and the report's last line."""
        report = self.scratch / "report.jsonl"
        report.unlink(missing_ok=True)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (self.tree / "sdk", Path(__file__).parent))),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # plugins that other packages bring take half of the start
            stages.WORD: word,
            stages.TIER: tier,
            stages.REPORT: str(report),
            _CACHE: str(cache),
        }
        argv = [str(self.tree / ".venv" / "bin" / "python"), "-m", "pytest", *paths]
        argv += [
            "-q",
            f"--maxfail={self.most_failures}",
            "-p",
            "stages",
            "-p",
            "no:cacheprovider",
            "--hypothesis-seed=0",
        ]
        argv += ["-p", "pytest_timeout", "-p", "_hypothesis_pytestplugin", "-p", "xdist.plugin"]
        argv += [f"--basetemp={self.scratch / 'pytest'}", "-o", "timeout=600"]
        with (self.scratch / "pytest.log").open("w", encoding="utf-8") as log:
            code = _run(argv, self.tree, environment, log, limit_s)
        rows = (
            [json.loads(line) for line in report.read_text("utf-8").splitlines()] if report.exists() else []
        )
        # A fixture that fails says less than a test.
        told = sorted((row for row in rows if "test" in row), key=lambda row: row["when"] != "call")
        failed = [row["test"] + ("" if row["when"] == "call" else f" ({row['when']})") for row in told]
        return code, list(dict.fromkeys(failed)), next((row for row in rows if "tiers" in row), {})


def copy_of(tree: Path, scratch: Path, most_failures: int) -> Copy:
    """A clone of `tree`'s last commit in `scratch`, made unless it is there, with the same environment."""
    clone = scratch / "tree"
    if not clone.is_dir():
        scratch.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "clone", "--quiet", "--shared", str(tree), str(clone)], check=True)
        (clone / ".venv").symlink_to((tree / ".venv").resolve())
    commit = subprocess.check_output(["git", "-C", str(tree), "rev-parse", "HEAD"], text=True).strip()
    for words in (
        ["fetch", "--quiet", str(tree), "HEAD"],
        ["checkout", "--quiet", "--force", "--detach", commit],
    ):
        subprocess.run(["git", "-C", str(clone), *words], check=True)
    return Copy(clone, scratch, most_failures)


def _run(
    argv: Sequence[str], folder: Path, environment: dict[str, str], log: Any, limit_s: float
) -> int | None:
    """The exit code; None when the time was over. All that was started ends with it."""
    process = subprocess.Popen(
        argv,
        cwd=folder,
        env=environment,
        stdout=log,
        stderr=log,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
