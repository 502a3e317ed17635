"""TFLite's operators, compiled by the pinned Vela, on the NPU model: a part of scripts/npu-tflite-conformance."""

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from tests.conformance import tflite_comparison as comparison
from tests.conformance.tflite_campaign import run
from tests.conformance.tflite_operators import OPERATORS, Array
from tests.tables import each
from tests.tflite_files import Model

NPUS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
SEEDS = range(2)
# Where the two reference interpreters do not decide, or Vela leaves it to the CPU.
UNDECIDED = {"cpu", "no reference", "compiler", "named"}


@pytest.fixture(scope="module")
def vela() -> Iterator[comparison.Vela]:
    with comparison.Vela() as one:
        yield one


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_gives_what_the_reference_kernels_give(
    operator: str, vela: comparison.Vela, tmp_path: Path
) -> None:
    rows = list(run(vela, version("ethos-u-vela"), operator, SEEDS, tmp_path))
    assert {row["outcome"] for row in rows} <= {"equal", "micro", *UNDECIDED}, rows
    assert any(row["outcome"] in ("equal", "micro") for row in rows), rows


def every_pair() -> list[Array]:
    """All pairs of 8-bit values."""
    values = np.arange(-128, 128, dtype=np.int8)
    return [part.reshape(1, 256, 256, 1) for part in np.meshgrid(values, values)]


def check(vela: comparison.Vela, model: Model, inputs: list[Array], folder: Path, npu: str) -> None:
    path = model.write(folder / "model.tflite")
    wanted = comparison.reference(path.read_bytes(), inputs)
    made, said = vela.compile(path, npu, folder)
    assert made is not None, said
    names = [name for name, _ in model.inputs]
    got = comparison.modelled(made, dict(zip(names, inputs, strict=True)))
    assert got is not None, said
    assert np.array_equal(got[0], wanted[0])


@each("npu", NPUS)
@each("kind", ["ADD", "SUB"])
@each(("first", "second", "out"), [(0.05, 0.021, 0.06), (1.0, 0.3, 1.0), (0.5, 0.5, 0.3), (0.03, 0.09, 0.5)])
def test_sums_of_all_pairs(
    npu: str, kind: str, first: float, second: float, out: float, vela: comparison.Vela, tmp_path: Path
) -> None:
    """Every pair of 8-bit values: with one rounding less, 215 pairs of the second row differ."""
    model, inputs = Model(), every_pair()
    a = model.input("a", inputs[0].shape, "int8", first, -3)
    b = model.input("b", inputs[1].shape, "int8", second, 7)
    y = model.tensor(inputs[0].shape, "int8", out, 5)
    model.output(model.operator(kind, [a, b], y, fused_activation_function="NONE"), name="y")
    check(vela, model, inputs, tmp_path, npu)


@each("npu", NPUS)
@each("kind", ["LOGISTIC", "TANH"])
@each("scale", [1 / 4096, 1 / 8192, 0.0003, 0.0007])
def test_curves_at_all_places(
    npu: str, kind: str, scale: float, vela: comparison.Vela, tmp_path: Path
) -> None:
    """Every 16-bit value, flat ends included."""
    model = Model()
    values = np.arange(-32768, 32768, dtype=np.int16).reshape(1, 256, 256, 1)
    x = model.input("x", values.shape, "int16", scale)
    y = model.tensor(values.shape, "int16", 1 / 32768)
    model.output(model.operator(kind, [x], y), name="y")
    check(vela, model, [values], tmp_path, npu)


@each("npu", NPUS)
@each("dtype", ["int8", "uint8", "int16"])
def test_softmax_of_rows(npu: str, dtype: str, vela: comparison.Vela, tmp_path: Path) -> None:
    """Fixed-point products of 62 bits; among the rows are some of equal values."""
    model, rng, limits = Model(), np.random.default_rng(7), np.iinfo(dtype)
    values = rng.integers(limits.min, limits.max + 1, (64, 33)).astype(dtype)
    values[:8] = values[:8, :1]
    x = model.input("x", values.shape, dtype, 0.1 if dtype != "int16" else 0.0005)
    scale, zero_point = {"int8": (1 / 256, -128), "uint8": (1 / 256, 0), "int16": (1 / 32768, 0)}[dtype]
    y = model.tensor(values.shape, dtype, scale, zero_point)
    model.output(model.operator("SOFTMAX", [x], y, beta=1.0), name="y")
    check(vela, model, [values], tmp_path, npu)
