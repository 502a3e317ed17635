"""Upstream's tests on our launchers: a sample passes, and a wrong output does not."""

import json
import stat
import sys
from pathlib import Path

import pytest

from campaigns.upstream import __main__ as upstream, environment, report
from campaigns.upstream.report import Result
from ethosu_sdk.base.errors import SdkError, UsageError

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]
U55 = "FVP_Corstone_SSE-300_Ethos-U55"

# A double of a simulator that computes something else: it runs the launcher and damages a byte of the output.
DAMAGING = """#!/bin/sh
"{launcher}" "$@" || exit
for word in "$@"; do
  case $word in *semihosting-cwd=*)
    exec "{python}" -c 'import sys
with open(sys.argv[1], "r+b") as file:
    content = bytearray(file.read())
    content[3] ^= 64
    file.seek(0)
    file.write(content)' "${{word#*=}}/out-0.bin" ;;
  esac
done
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("upstream")


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(slice(2), id="two"),
        pytest.param(slice(2, None), id="the others", marks=pytest.mark.thorough),
    ],
)
def test_the_sample_passes_on_the_launchers(part: slice, folder: Path) -> None:
    tests = upstream.sample()[part]
    results = upstream.run_session(tests, folder / "sample.jsonl", environment.make(folder), jobs=1)
    assert len(results) == len(tests)
    assert all(result.simulations == 1 for result in results), report.summary(results)
    assert {result.outcome for result in results} == {"passed"}, report.summary(results)


def test_a_wrong_output_fails(folder: Path) -> None:
    found = dict(environment.make(folder))
    damaging = folder / "damaging" / U55
    damaging.parent.mkdir()
    damaging.write_text(DAMAGING.format(launcher=folder / "launchers" / U55, python=sys.executable))
    damaging.chmod(damaging.stat().st_mode | stat.S_IXUSR)
    found["PATH"] = f"{damaging.parent}:{found['PATH']}"
    (result,) = upstream.run_session(upstream.sample()[:1], folder / "damaged.jsonl", found, jobs=1)
    assert (result.outcome, result.simulations) == ("failed", 1)
    assert "does not match" in result.reason


def test_a_missing_simulator_ends_the_session(folder: Path) -> None:
    # Upstream would mark its tests as expected failures, and all would be well.
    found = {"PATH": "/usr/bin:/bin", "EXECUTORCH_ROOT": str(folder)}
    with pytest.raises(SdkError, match="pytest ended with status"):
        upstream.run_session(upstream.sample()[:1], folder / "none.jsonl", found, jobs=1)
    assert not (folder / "none.jsonl").exists()


def results(*rows: tuple[str, int]) -> list[Result]:
    return [
        Result(f"t{number}", outcome, simulations, "", 0.0)
        for number, (outcome, simulations) in enumerate(rows)
    ]


def test_only_what_the_simulator_decides_counts() -> None:
    rows = [("passed", 1)] * 97 + [("failed", 0), ("failed", 1), ("passed", 2)]
    rows += [("passed", 0), ("skipped", 0), ("xfailed", 1), ("xpassed", 1)]
    assert report.percent(results(*rows)) == 98.0
    assert report.percent(results(("failed", 0), *rows)) < report.REQUIRED_PERCENT
    assert report.percent(results(("passed", 0), ("skipped", 0))) == 0.0  # nothing ran: no success


def test_a_test_that_fails_twice_counts_once(tmp_path: Path) -> None:
    row = {"test": "a", "simulations": 1, "reason": "", "seconds": 1.0}
    lines = [json.dumps(row | {"outcome": outcome}) for outcome in ("passed", "failed")]
    file = tmp_path / "results.jsonl"
    file.write_text("\n".join(lines))
    assert [result.outcome for result in report.read(file)] == ["failed"]


def test_an_unknown_file_of_tests_gets_a_suggestion() -> None:
    assert [path.name for path in upstream.files_of("add,test_conv2d.py")] == [
        "test_add.py",
        "test_conv2d.py",
    ]
    with pytest.raises(UsageError) as caught:
        upstream.files_of("conv2")
    assert "conv2d" in caught.value.hint
