"""The interpreters that a `.tflite` is judged by: what they compute, against integers in Python, and what they say of
files that they cannot run."""

from collections.abc import Callable
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk.base import tools
from ethosu_sdk.compile.tflite import reference
from ethosu_sdk.compile.tflite.reference import Reading, readings
from tests.tflite_files import Model

Array = NDArray[Any]

INPUT, WEIGHTS, OUTPUT = 0.0625, 0.0078125, float(np.float32(0.04))
UNITS, DEPTH = 4096, 8


def dense() -> tuple[Model, Array]:
    """A FULLY_CONNECTED layer whose sums are all whole numbers in a row, and these sums for an input of zeros."""
    model = Model()
    sums = np.arange(UNITS, dtype=np.int32) * 7 - UNITS * 3
    x = model.input("x", (1, DEPTH), "int8", INPUT)
    weights = model.constant(np.ones((UNITS, DEPTH), np.int8), WEIGHTS)
    bias = model.constant(sums, INPUT * WEIGHTS)
    y = model.operator("FULLY_CONNECTED", [x, weights, bias], model.tensor((1, UNITS), "int8", OUTPUT))
    model.output(y)
    return model, sums


def rounded_twice(value: int) -> int:
    """As gemmlowp: by a multiplier of 31 bits, to nearest after these, and again after the rest of the shift."""
    real, shift = INPUT * WEIGHTS / OUTPUT, 0
    while real < 0.5:
        real, shift = real * 2, shift + 1
    product = abs(value) * round(real * 2**31)
    nudge = 1 << 30 if value >= 0 else (1 << 30) - 1
    high = (product + nudge) >> 31
    low = (high + (1 << (shift - 1))) >> shift
    return low if value >= 0 else -low


def rounded_once(value: int) -> int:
    """The real product to the nearest integer, ties away from zero."""
    magnitude = floor(abs(value) * Fraction(INPUT) * Fraction(WEIGHTS) / Fraction(OUTPUT) + Fraction(1, 2))
    return magnitude if value >= 0 else -magnitude


def by_name(rows: tuple[Reading, ...]) -> dict[str, Reading]:
    return {row.facts.interpreter.split()[0] + ("*" if row.facts.rounding else ""): row for row in rows}


def test_a_dense_layer_rounds_once_in_litert_and_twice_in_tflite_micro(tmp_path: Path) -> None:
    model, sums = dense()
    path = model.write(tmp_path / "dense.tflite")
    found = by_name(readings(path, [[np.zeros((1, DEPTH), np.int8)]]))

    def expected(rounded: Callable[[int], int]) -> list[int]:
        return [min(max(rounded(int(value)), -128), 127) for value in sums]

    assert expected(rounded_once) != expected(rounded_twice)
    assert found["LiteRT"].outputs[0][0].ravel().tolist() == expected(rounded_once)
    assert found["LiteRT*"].outputs[0][0].ravel().tolist() == expected(rounded_twice)
    if tools.package_version("tflite-micro"):  # not on arm64
        assert found["tflite-micro"].outputs[0][0].ravel().tolist() == expected(rounded_twice)


def state() -> Model:
    """An SVDF, which remembers its last inputs in a variable tensor."""
    model, random = Model(), np.random.default_rng(0)
    filters, depth, memory = 8, 16, 6
    x = model.input("x", (1, depth), "int8", 0.05, 3)
    inputs = [
        x,
        model.constant(random.integers(-127, 128, (filters, depth)).astype(np.int8), 0.01),
        model.constant(random.integers(-3000, 3000, (filters, memory)).astype(np.int16), 0.0001),
        model.constant(random.integers(-100, 100, filters).astype(np.int32), 1e-7),
        model.variable((1, filters * memory), "int16", 0.001),
    ]
    y = model.tensor((1, filters), "int8", 0.02, -128)
    model.output(model.operator("SVDF", inputs, y, rank=1, fused_activation_function="RELU"))
    return model


def test_state_is_kept_from_sample_to_sample(tmp_path: Path) -> None:
    sample = [np.random.default_rng(1).integers(-128, 128, (1, 16)).astype(np.int8)]
    rows = readings(state().write(tmp_path / "state.tflite"), [sample, sample, sample])
    known = [row for row in rows if row.outputs]
    assert known, rows
    for row in known:
        first, second, third = (outputs[0].tolist() for outputs in row.outputs)
        assert first != second != third
    assert all(reference.same(row.outputs, known[0].outputs) for row in known)


def test_what_an_interpreter_refuses_or_lacks_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model()
    x = model.input("x", (1, 4), "uint8", 0.1, 128)
    model.output(model.operator("LOGISTIC", [x], model.tensor((1, 4), "uint8", 1 / 256)))
    path = model.write(tmp_path / "old.tflite")
    sample = [np.array([[0, 1, 128, 255]], np.uint8)]
    found = by_name(readings(path, [sample]))
    assert found["LiteRT"].outputs[0][0].tolist() == [[0, 0, 128, 255]]
    if tools.package_version("tflite-micro"):
        assert found["tflite-micro"].facts.reason.startswith("it does not run the model: ")
    monkeypatch.setattr(tools, "package_version", lambda name: None)
    reasons = [row.facts.reason for row in readings(path, [sample])]
    assert reasons == [
        "tflite-micro is not installed: pip install tflite-micro",
        "ai-edge-litert is not installed: pip install 'ethosu-sdk[tflite]'",
    ]


def test_a_file_that_kills_an_interpreter_costs_a_sentence(tmp_path: Path) -> None:
    model, _ = dense()
    model.operators[0].inputs[1] = 70_000  # a tensor that the file does not have
    path = model.write(tmp_path / "hostile.tflite")
    for row in readings(path, [[np.zeros((1, DEPTH), np.int8)]]):
        assert not row.outputs
        assert row.facts.reason.startswith(
            ("it crashed (SIG", "it does not run the model: ", "it ended with ")
        )
        assert "\n" not in row.facts.reason


def test_an_interpreter_that_does_not_end_costs_a_sentence(tmp_path: Path) -> None:
    model, _ = dense()
    path = model.write(tmp_path / "dense.tflite")
    rows = readings(path, [[np.zeros((1, DEPTH), np.int8)]], timeout_s=0.01)
    assert rows[-1].facts.reason == "it did not end within 0.01 s"
