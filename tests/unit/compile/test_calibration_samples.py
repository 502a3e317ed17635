"""What is said of calibration samples: zeros, constants, and ranges far from the example inputs."""

from typing import Any

import pytest

from ethosu_sdk.compile import quantizing
from tests.tables import each

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

RAMP = torch.linspace(-1, 1, 32).view(1, 32)


@each(
    ("example", "samples", "words"),
    [
        (RAMP, [0 * RAMP, 0 * RAMP], "Input 1 is zero in all 2 calibration samples: "),
        (RAMP, [0 * RAMP], "Input 1 is zero in the only calibration sample: "),
        (
            RAMP,
            [0 * RAMP + 3, 0 * RAMP + 3],
            "Input 1 is 3 in all 2 calibration samples: values beyond 0 to 3 are",
        ),
        (
            RAMP * 4,
            [RAMP, RAMP * 0.5],
            "Input 1 was calibrated on -1 to 1, and the example input holds -4 to 4: what lies outside is cut off.",
        ),
        (RAMP + 100, [RAMP, RAMP], "calibrated on -1 to 1, and the example input holds 99 to 101: what lies"),
        (
            RAMP * 0.01,
            [RAMP, RAMP],
            "calibrated on -1 to 1, and the example input holds -0.01 to 0.01: that is 0.005 of the range",
        ),
    ],
)
def test_what_is_said(example: Any, samples: list[Any], words: str) -> None:
    (found,) = quantizing.calibration_warnings((RAMP, example), [(RAMP, item) for item in samples], "model")
    assert words in found
    assert "Give calibration samples like the inputs of the device" in found


@each(
    ("example", "samples"),
    [
        (RAMP, [RAMP * 0.6, RAMP * 0.5]),  # a fifth of the range outside on either side: samples differ
        (RAMP, [RAMP * 30]),
        (RAMP * 0, [RAMP, RAMP]),  # a state that begins with zeros
        (RAMP + 2, [RAMP + 2, RAMP * 0.5 + 2]),
        (torch.ones(()), [torch.ones(())]),
        (torch.arange(4) * 100, [torch.arange(4) * 0]),  # whole numbers are not quantised
    ],
)
def test_nothing_is_said(example: Any, samples: list[Any]) -> None:
    assert not list(quantizing.calibration_warnings((example,), [(item,) for item in samples], "model"))
    assert not list(quantizing.calibration_warnings((example,), [], "none"))
