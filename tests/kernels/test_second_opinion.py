"""A sample of the kernels' cases on Arm's prebuilt runner and in our firmware; scripts/second-opinion runs all."""

import importlib.metadata
import re
from pathlib import Path

import numpy
import pytest

from campaigns.second_opinion import zoo
from campaigns.second_opinion.__main__ import Compared, compare, run_both
from tests.kernels.cases.programs import groups
from tests.kernels.interpreter.lowered import lowered
from tests.kernels.interpreter.models import Array

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]

STEP = 20  # of all cases, one in so many: every file of kernels, in seconds
LACKING = (
    "sum",
    "amax",
    "amin",
    "any",
    "max",
    "min",
    "prod",
    "arg",
    "var",
    "adaptive",
    "norm",
    "layer",
    "group",
)


def test_a_sample_of_all_kernels_agrees_or_says_why(tmp_path: Path) -> None:
    if not _installed():
        pytest.skip("mlia-ethos-u is not installed: scripts/setup does that")
    every = {
        name: case
        for group in ("elementwise", "reductions", "movement", "layers")
        for name, case in groups()[group].cases.items()
        if not name.startswith(LACKING) and all(numpy.ndim(array) for array in case.inputs)
    }
    sample = dict(list(every.items())[::STEP])
    rows = run_both(lowered(sample), tmp_path)
    assert len(rows) == len(sample) >= 25
    assert [row for row in rows if row.unexplained] == []
    assert sum(row.differing == 0 for row in rows) >= len(rows) * 3 // 4


def _installed() -> bool:
    try:
        importlib.metadata.distribution("mlia-ethos-u")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def row(own: Array, arms: Array, *inputs: Array, name: str = "case") -> Compared:
    return compare(name, [own], [arms], inputs)


def test_a_reason_must_be_in_the_values() -> None:
    """The negative control: what looks like a reason and is none stays unexplained."""
    one = numpy.ones(4, numpy.float32)
    assert row(one, one.copy()).differing == 0
    assert row(one, one * numpy.float32(1 + 1e-6)).reason == "fused"
    assert row(one, one * numpy.float32(1 + 1e-4)).unexplained
    assert row(one, -one).unexplained
    tiny = numpy.full(4, 1e-40, numpy.float32)
    assert row(tiny, tiny * 0).reason == "subnormal"
    assert row(tiny * 0, one * 0.5).unexplained
    assert row(one, one * numpy.float32("nan")).unexplained
    wholes, others = numpy.zeros(3, numpy.int8), numpy.ones(3, numpy.int8)
    assert row(wholes, others, numpy.array([1e30, numpy.inf, numpy.nan], numpy.float32)).reason == "far"
    assert row(wholes, others, numpy.array([1e30, 2.0, numpy.nan], numpy.float32)).unexplained
    beyond = numpy.array([300.0, -129.0, 128.0], numpy.float32)
    assert row(wholes, others, beyond, name="to_int8_from_float32").reason == "undefined"
    assert row(wholes, others, beyond, name="quantize_int8").unexplained
    assert row(
        wholes, others, numpy.array([127.0, 1, 2], numpy.float32), name="to_int8_from_float32"
    ).unexplained
    both = numpy.array([numpy.nan], numpy.float32)
    assert row(both, -both).differing == 0


def test_the_page_of_the_zoo_has_every_model_on_both_boards() -> None:
    """No row may be of a model that differs; a program without an NPU has no runner on Corstone-320."""
    text = zoo.PAGE.read_text(encoding="utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    assert [(row[0].strip("| `"), row[1]) for row in rows] == [*zoo.rows(zoo.MODELS)]
    assert {re.split("[:,]", row[2])[0] for row in rows} == {"equal", "not run"}
    assert sum("calls adapted" in row[2] for row in rows) == len(zoo.ON_CORTEX_M) - 1
    assert [row[0] for row in rows if row[2].startswith("not run")] == ["| `softmax`"]
    assert all("differ" not in row[-1] for row in rows)
