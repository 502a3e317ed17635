"""What can be said of calibration samples before a model is quantised with them: inputs that are zero or constant in
all of them, or far from the example inputs that the program is judged with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Tensors = tuple[Any, ...]

_BEYOND = 0.5  # of the calibrated range: this far outside of it, samples are of another kind
_WITHIN = 1 / 64  # of the calibrated range: values this small have four steps of int8
_REMEDY = (
    "Give calibration samples like the inputs of the device, with --calibration FILE.npz or 'calibration'"
)


def warnings(inputs: Tensors, calibration: Sequence[Tensors], source: str) -> Iterator[str]:
    """What is wrong with the `calibration` samples, which come from `source`, or with the example `inputs`."""
    if source == "example":
        yield (
            "No calibration data was given, so the model was calibrated on the example inputs alone: its "
            "quantisation ranges are guesses and its accuracy is unknown. Give samples with --calibration "
            "FILE.npz, or define 'calibration' in the model's file."
        )
    for index, example in enumerate(inputs):
        if calibration and example.is_floating_point():
            text = _warning(f"Input {index}", example, [sample[index] for sample in calibration])
            if text:
                yield f"{text} {_REMEDY} in the model's file."


def _warning(name: str, example: Any, samples: Sequence[Any]) -> str:
    low, high = min(float(item.min()) for item in samples), max(float(item.max()) for item in samples)
    held = f"all {len(samples):,} calibration samples" if len(samples) > 1 else "the only calibration sample"
    if low == high == 0:
        return (
            f"{name} is zero in {held}: its range, and that of all that is computed from it, is made up, and other "
            "values are cut off."
        )
    if low == high and len(samples) > 1:
        return f"{name} is {low:.4g} in {held}: values beyond 0 to {low:.4g} are cut off."
    return _distance(name, (low, high), (float(example.min()), float(example.max())))


def _distance(name: str, calibrated: tuple[float, float], given: tuple[float, float]) -> str:
    """How far the example's range is from the calibrated one, which holds zero in any case."""
    low, high = min(calibrated[0], 0.0), max(calibrated[1], 0.0)
    width = high - low
    beyond = max(given[1] - high, low - given[0])
    words = (
        f"{name} was calibrated on {calibrated[0]:.4g} to {calibrated[1]:.4g}, and the example input holds "
        f"{given[0]:.4g} to {given[1]:.4g}"
    )
    if beyond > _BEYOND * width:
        return f"{words}: what lies outside is cut off."
    largest = max(abs(given[0]), abs(given[1]))
    if 0 < largest < _WITHIN * width:
        return f"{words}: that is {largest / width:.2g} of the range, so few of the steps are used."
    return ""
