"""Arrays from files: those of ``--evaluate``, example inputs and calibration samples."""

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from numpy.typing import NDArray

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.compile import evaluation_data
from ethosu_sdk.compile.graphs import tensor_arrays
from tests.tables import each

Array = npt.NDArray[Any]
IMAGE, SCORES, MAP = (
    np.zeros((1, 1, 8, 8), np.float32),
    np.zeros((1, 10), np.float32),
    np.zeros((1, 4, 5, 5), "f4"),
)
IMAGES = np.arange(4 * 64, dtype=np.float32).reshape(4, 1, 8, 8)
LABELS = np.array([3, 0, 9, 9])
SPOILT = np.where(np.arange(4).reshape(4, 1, 1, 1) == 2, np.float32(np.nan), IMAGES)


def opened(path: Path, *outputs: Array) -> tuple[int, dict[int, Any], list[Any], list[Any]]:
    """(number of samples, labels, inputs, expected outputs) of the file at `path`."""
    evaluation_data.evaluation_content(path)
    with evaluation_data.open_data(path, [IMAGE]) as data:
        data.fit_outputs(outputs or [SCORES])
        return data.count, data.labels, list(data.inputs()), list(data.expected())


@pytest.mark.parametrize("name", ["labels", "label0"])
@pytest.mark.parametrize(
    "axis", [False, True]
)  # the samples' axis: that of the model's batch of one, or one more
def test_inputs_labels_and_expected_outputs(tmp_path: Path, name: str, axis: bool) -> None:
    expected = np.linspace(0, 1, 40, dtype=np.float32).reshape(4, 10)
    inputs = IMAGES[:, None] if axis else IMAGES
    np.savez_compressed(
        tmp_path / "f.npz", input0=inputs, output0=expected, **{name: LABELS.astype(np.uint8)}
    )
    count, labels, samples, truths = opened(tmp_path / "f.npz")
    assert count == 4
    np.testing.assert_array_equal(labels[0], LABELS[:, None])
    np.testing.assert_array_equal(np.stack([row[0] for row in samples]), IMAGES[:, None])
    np.testing.assert_array_equal(np.concatenate([row[0] for row in truths]), expected)


def test_one_sample_needs_no_axis_and_labels_need_class_scores(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", input0=IMAGE)
    assert opened(tmp_path / "f.npz")[0] == 1
    np.savez(tmp_path / "f.npz", input0=IMAGES, labels=LABELS)
    with pytest.raises(InputError, match="no class scores"):
        opened(tmp_path / "f.npz", MAP)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "shape": ({"input0": np.zeros((4, 1, 8, 9), np.float32)}, "not a stack of [1, 1, 8, 8]"),
    "rank": ({"input0": np.float32(1)}, "not a stack"),
    "dtype": ({"input0": IMAGES.astype(np.float64)}, "float64, but the model's is float32"),
    "nan": ({"input0": SPOILT}, "NaN or infinite value in sample 2"),
    "objects": ({"input0": np.array([None, {}], dtype=object)}, "not a numeric type"),
    "no samples": ({"input0": IMAGES[:0]}, "no samples"),
    "no inputs": ({"labels": LABELS}, "no inputs"),
    "two inputs": ({"input0": IMAGES, "input1": IMAGES}, "2 inputs, but the model takes 1"),
    "gap": ({"input0": IMAGES, "input2": IMAGES}, "with a gap in the numbers"),
    "unknown name": ({"input0": IMAGES, "label": LABELS}, "'label', which an evaluation does not use"),
    "both names": ({"input0": IMAGES, "labels": LABELS, "label0": LABELS}, "two names for the same array"),
    "number of labels": ({"input0": IMAGES, "labels": LABELS[:3]}, "4 samples need [4]"),
    "one-hot labels": ({"input0": IMAGES, "labels": np.eye(4, 10, dtype=int)}, "4 samples need [4]"),
    "float labels": ({"input0": IMAGES, "labels": LABELS.astype(float)}, "labels must be integers"),
    "label too large": (
        {"input0": IMAGES, "labels": LABELS + 1},
        "class 10 for sample 2, but the classes are 0 to 9",
    ),
    "label too small": ({"input0": IMAGES, "labels": LABELS - 1}, "class -1 for sample 1"),
    "labels of no output": ({"input0": IMAGES, "label1": LABELS}, "labels of output 1"),
    "number of outputs": ({"input0": IMAGES, "output0": SCORES, "output1": SCORES}, "2 expected outputs"),
    "expected shape": ({"input0": IMAGES, "output0": np.zeros((4, 9), np.float32)}, "not a stack of [1, 10]"),
    "expected count": ({"input0": IMAGES, "output0": np.zeros((3, 10), np.float32)}, "input0: 4, output0: 3"),
    "expected nan": (
        {"input0": IMAGES, "output0": np.full((4, 10), np.inf, np.float32)},
        "'output0' has a NaN",
    ),
}


@each("case", BAD)
def test_a_file_that_does_not_fit_is_refused_in_one_sentence(tmp_path: Path, case: str) -> None:
    arrays, words = BAD[case]
    np.savez(tmp_path / "f.npz", **arrays)
    with pytest.raises(InputError) as caught:
        opened(tmp_path / "f.npz")
    assert words in caught.value.message
    assert "\n" not in caught.value.message


def test_a_damaged_file_is_refused_where_the_damage_shows(tmp_path: Path) -> None:
    path = tmp_path / "f.npz"
    np.savez(path, input0=IMAGES)
    data = bytearray(path.read_bytes())
    at = bytes(data).index(IMAGES.tobytes())
    data[at + IMAGES.nbytes - 1] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="not a valid"):
        opened(path)


def test_samples_are_read_one_at_a_time(tmp_path: Path) -> None:
    images = np.zeros((200, 1, 128, 128), np.float32)
    np.savez_compressed(tmp_path / "f.npz", input0=images)
    tracemalloc.start()
    try:
        with evaluation_data.open_data(tmp_path / "f.npz", [images[:1]]) as data:
            assert sum(1 for _ in data.inputs()) == len(images)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < images.nbytes / 4


@each(
    ("shape", "classes"),
    [
        ((1, 10), (1, 10)),
        ((10,), (1, 10)),
        ((8, 10), (8, 10)),
        ((1, 10, 1, 1), (1, 10)),
        ((1, 1), None),
        ((1, 1, 1, 1), None),
        ((), None),
        ((1, 4, 5, 5), None),
        ((0, 3), None),
    ],
)
def test_which_outputs_can_be_class_scores(shape: tuple[int, ...], classes: tuple[int, int] | None) -> None:
    assert evaluation_data.classification(shape) == classes


# --- Reading example inputs and calibration samples from `.npz` files.

WHERE = Path("given.npz")


def float_zeros(*shape: int) -> NDArray[np.float32]:
    return np.zeros(shape, np.float32)


def test_inputs_come_in_numeric_order_without_the_outputs_beside_them(tmp_path: Path) -> None:
    path = tmp_path / "many.npz"
    np.savez(path, **{f"input{index}": np.int32(index) for index in reversed(range(12))})
    assert [int(array) for array in tensor_arrays.read_inputs(path)] == list(range(12))
    path = tmp_path / "net.io.npz"
    np.savez(path, input0=np.int32(4), output0=np.int32(5), output1=np.int32(6))
    assert [int(array) for array in tensor_arrays.read_inputs(path)] == [4]


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
        tensor_arrays.read_inputs(path)


def test_inputs_are_those_of_the_model_and_equally_many() -> None:
    examples = [float_zeros(1, 3), np.zeros(2, np.int32)]
    tensor_arrays.check_inputs(examples, examples, WHERE)
    with pytest.raises(InputError, match="holds 1 inputs, but the model takes 2"):
        tensor_arrays.check_inputs(examples[:1], examples, WHERE)
    with pytest.raises(InputError, match=r"input1 .* is int64, but the model takes int32"):
        tensor_arrays.check_inputs([examples[0], np.zeros(2, np.int64)], examples, WHERE)
    with pytest.raises(InputError, match=r"input0 .* has shape \(3,\)"):
        tensor_arrays.check_inputs([float_zeros(3), examples[1]], examples, WHERE)
    example = float_zeros(1, 3)
    with pytest.raises(InputError, match="different numbers of samples: 4, 5"):
        tensor_arrays.calibration_samples([float_zeros(4, 3), float_zeros(5, 3)], [example, example], WHERE)
    with pytest.raises(InputError, match="no samples"):
        tensor_arrays.calibration_samples([float_zeros(0, 3)], [example], WHERE)


@each(
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
    found = tensor_arrays.calibration_samples([values], [float_zeros(*example)], WHERE)
    assert len(found) == count
    assert all(sample.shape == example for (sample,) in found)
    np.testing.assert_array_equal(np.concatenate([s.ravel() for (s,) in found]), values.ravel())


@pytest.mark.parametrize("stack", [(7, 2), (3,), (7, 1, 1, 3), (2, 4, 3)])
def test_what_is_no_stack_is_refused(stack: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="not a stack"):
        tensor_arrays.calibration_samples([float_zeros(*stack)], [float_zeros(1, 3)], WHERE)
