"""Reading example inputs and calibration samples from `.npz` files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk.aot.graph import arrays
from ethosu_sdk.errors import InputError

WHERE = Path("given.npz")


def float_zeros(*shape: int) -> NDArray[np.float32]:
    return np.zeros(shape, np.float32)


def test_inputs_come_in_numeric_order(tmp_path: Path) -> None:
    path = tmp_path / "many.npz"
    np.savez(path, **{f"input{index}": np.int32(index) for index in reversed(range(12))})
    assert [int(array) for array in arrays.read_inputs(path)] == list(range(12))


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"input1": float_zeros(1)},
        {"input0": float_zeros(1), "input2": float_zeros(1)},
        {"input0": float_zeros(1), "extra": float_zeros(1)},
        {"input0": np.array([object()])},
    ],
    ids=["empty", "no input0", "gap", "other name", "pickled object"],
)
def test_wrong_content_is_refused(tmp_path: Path, content: dict[str, NDArray[Any]]) -> None:
    path = tmp_path / "wrong.npz"
    np.savez(path, **content)
    with pytest.raises(InputError, match=r"wrong\.npz"):
        arrays.read_inputs(path)


def test_what_a_compilation_wrote_can_be_given_as_inputs(tmp_path: Path) -> None:
    path = tmp_path / "net.io.npz"
    np.savez(path, input0=np.int32(4), output0=np.int32(5), output1=np.int32(6))
    assert [int(array) for array in arrays.read_inputs(path)] == [4]


def test_check_inputs() -> None:
    examples = [float_zeros(1, 3), np.zeros(2, np.int32)]
    arrays.check_inputs(examples, examples, WHERE)
    with pytest.raises(InputError, match="holds 1 inputs, but the model takes 2"):
        arrays.check_inputs(examples[:1], examples, WHERE)
    with pytest.raises(InputError, match=r"input1 .* is int64, but the model takes int32"):
        arrays.check_inputs([examples[0], np.zeros(2, np.int64)], examples, WHERE)
    with pytest.raises(InputError, match=r"input0 .* has shape \(3,\)"):
        arrays.check_inputs([float_zeros(3), examples[1]], examples, WHERE)


@pytest.mark.parametrize(
    ("stack", "example", "count"),
    [
        ((1, 3), (1, 3), 1),
        ((7, 1, 3), (1, 3), 7),
        ((7, 3), (1, 3), 7),
        ((7, 2, 3), (2, 3), 7),
        ((7, 7), (7, 7), 1),
        ((5,), (), 5),
    ],
)
def test_samples_are_unstacked(stack: tuple[int, ...], example: tuple[int, ...], count: int) -> None:
    values = np.arange(np.prod(stack), dtype=np.float32).reshape(stack)
    found = arrays.samples([values], [float_zeros(*example)], WHERE)
    assert len(found) == count
    assert all(sample.shape == example for (sample,) in found)
    np.testing.assert_array_equal(np.concatenate([s.ravel() for (s,) in found]), values.ravel())


@pytest.mark.parametrize("stack", [(7, 2), (3,), (7, 1, 1, 3), (2, 4, 3)])
def test_what_is_no_stack_is_refused(stack: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="not a stack"):
        arrays.samples([float_zeros(*stack)], [float_zeros(1, 3)], WHERE)


def test_inputs_must_have_equally_many_samples() -> None:
    example = float_zeros(1, 3)
    with pytest.raises(InputError, match="different numbers of samples: 4, 5"):
        arrays.samples([float_zeros(4, 3), float_zeros(5, 3)], [example, example], WHERE)
    with pytest.raises(InputError, match="no samples"):
        arrays.samples([float_zeros(0, 3)], [example], WHERE)
