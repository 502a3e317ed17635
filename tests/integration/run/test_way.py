"""docs/internals/architecture.md lists the modules that a run enters, in the order in which it enters them."""

import sys
from pathlib import Path

import pytest

from tests import processes, way

pytestmark = [pytest.mark.torch, pytest.mark.toolchain, pytest.mark.qemu]
MODEL = ("zoo:digits_cnn", "--target", "ethos-u55-128", "--simulator", "qemu")


def test_a_run_goes_the_way_that_the_page_has(tmp_path: Path) -> None:
    names = tmp_path / "entered.txt"
    traced = Path(__file__).with_name("traced.py")
    done = processes.run(
        [sys.executable, traced, names, "run", *MODEL, "-o", "out"], cwd=tmp_path, timeout_s=900
    )
    assert done.returncode == 0, done.stderr
    found = way.differences(way.written(), names.read_text(encoding="utf-8").split())
    assert not found, "\n".join(found)


def test_what_differs_is_named() -> None:
    page = way.Way(("cli.entry", "run.job", "run.gone"), frozenset({"run.options"}))
    assert way.differences(page, ["cli.entry", "run.options", "base.errors", "run.job", "run.more"]) == [
        "run.gone is on the way, and the run does not enter it",
        "the run enters run.more, which the page does not name",
    ]
    assert way.differences(page, ["run.job", "run.options", "run.gone", "cli.entry"]) == [
        "the run enters run.job before cli.entry"
    ]
