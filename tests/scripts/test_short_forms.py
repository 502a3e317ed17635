"""Every script and every benchmark starts and does its work, in a form of seconds that leaves the checkout as it is.

What another test or a job of scripts/ci runs anyway is in ELSEWHERE.
"""

import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests import processes
from tests.places import GOLDEN_PTE, ROOT

_TIMEOUT_S = 900
GENERATED = ("docs/reference", "docs/guide/notebooks", "docs/images", "tests/golden", "sdk")


@dataclass(frozen=True)
class Short:
    """The words after the program's name ({folder} is an empty folder), and what it must print."""

    words: str
    printed: str


BENCHMARKS = {
    "against_stock": Short("--short --out {folder}", "Geometric mean of 1 ratios"),
    "arm_kernels": Short("--short", "DS-CNN: linear, 64 to 12"),
    "compile_times": Short("--short", "the programs are identical"),
    "evaluate_digits": Short("--short", "compile --evaluate"),
    "firmware_size": Short("--short", "npu driver"),
    "first_minutes": Short("--short", "run of a ready .pte"),
    "kernels": Short("--short", "dim_order_ops::_clone_dim_order.out"),
    "npu_model": Short("--short", "second"),
    "run_times": Short("--short", "run --cpu-cycles"),
    "sweep_times": Short("--short", "1 cells (1 pass)"),
}
SHARED = {"compile_models", "stopwatch"}  # modules that benchmarks import
# What would take minutes is asked for its options or its list: the tests of its code do its work in small.
SCRIPTS = {
    "attack": Short("--minutes 0 --seed 1 --only logs --findings {folder}", " cases, 0 findings"),
    "ci": Short("", "images [--both]"),
    "fidelity": Short("--help", "--versions"),
    "fit-timing": Short("--help", "--write"),
    "lock": Short("check", ""),
    "make-golden-pte": Short("--folder {folder} softmax", "softmax.pte:"),
    "meaning": Short("--list", "(state: a buffer"),
    "mutation": Short("list", "npu-round-by-one-bit"),
    "model-corpus": Short("--dry --only tcn_causal", "tcn_causal"),
    "notebooks": Short("--help", "first-model"),
    "npu-conformance": Short(
        "--page {folder}/page.md -k rescale_int8_int8_single_round_31-ethos-u55-128", " passed in"
    ),
    "npu-tflite-conformance": Short("--help", "--vela"),
    "npu-fuzz": Short("20 1 --models rescale_int8_int8_single_round_31", "every sample ended"),
    "second-opinion": Short("--groups numbers --models ,", "numbers: "),
    "upstream-tests": Short("--help", "--sample"),
    "zoo-matrix": Short("--help", "--memory-modes"),
}
ELSEWHERE = {  # script: the file that runs it
    "build-qemu": "tests/integration/qemu/corstone_320/test_build.py",
    "build-qemu-plugin": "scripts/setup",
    "container-test": "scripts/ci",
    "digits_demo.py": "scripts/quickstart",
    "docs": "scripts/ci",
    "docs_gallery.py": "scripts/docs",
    "docs_pages.py": "mkdocs.yml",
    "licences": "tests/integration/setup/test_sbom.py",
    "lint": "scripts/ci",
    "make-doctor-sample": "tests/integration/setup/test_doctor.py",
    "quickstart": "scripts/ci",
    "release": "tests/integration/setup/test_release.py",
    "schemas": "tests/contract/test_record_classes.py",
    "setup": "scripts/test",
    "test": "scripts/ci",
}


def test_no_script_and_no_benchmark_is_forgotten() -> None:
    scripts = {path.name for path in (ROOT / "scripts").iterdir() if path.is_file() and path.suffix != ".txt"}
    assert scripts == SCRIPTS.keys() | ELSEWHERE.keys()
    assert not SCRIPTS.keys() & ELSEWHERE.keys()
    assert {path.stem for path in (ROOT / "benchmarks").glob("*.py")} == BENCHMARKS.keys() | SHARED
    for name, runner in ELSEWHERE.items():
        assert name in (ROOT / runner).read_text(encoding="utf-8"), f"{runner} does not run {name}"


def changed_pages() -> str:
    """What differs from the last commit where full runs write."""
    status = ["git", "--no-optional-locks", "status", "--porcelain", "--", *GENERATED]
    return processes.run(status, cwd=ROOT, check=True).stdout


def run(argv: list[str | Path], short: Short, folder: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    before = changed_pages()
    words = shlex.split(short.words.format(folder=folder))
    # The environment is the one that runs the tests.
    environment = {"ETHOSU_SDK_NO_SETUP": "1", "ETHOSU_SDK_TEST_JOBS": "1", "COLUMNS": "160"}
    done = processes.run([*argv, *words], cwd=cwd, env=environment, timeout_s=_TIMEOUT_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert short.printed in done.stdout, done.stdout + done.stderr
    assert changed_pages() == before
    return done


@pytest.mark.parametrize("name", BENCHMARKS)
@pytest.mark.torch
@pytest.mark.qemu
@pytest.mark.toolchain
def test_a_benchmark_runs_in_its_short_form(name: str, tmp_path: Path) -> None:
    run([sys.executable, ROOT / "benchmarks" / f"{name}.py"], BENCHMARKS[name], tmp_path, tmp_path)


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.torch
@pytest.mark.qemu
@pytest.mark.toolchain
def test_a_script_runs_in_its_short_form(name: str, tmp_path: Path) -> None:
    program = ROOT / "scripts" / name
    python = [sys.executable] if "python" in program.read_text(encoding="utf-8").splitlines()[0] else []
    run([*python, program], SCRIPTS[name], tmp_path, ROOT)
    made = sorted(tmp_path.glob("*.pte"))
    assert all(path.read_bytes() == (GOLDEN_PTE / path.name).read_bytes() for path in made)
