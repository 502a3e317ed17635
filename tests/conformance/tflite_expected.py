"""What a model of one operator must give, and what explains a difference.

The reference is LiteRT with its reference kernels; where these and TensorFlow Lite Micro's differ, either is right.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.conformance import tflite_comparison as comparison
from tests.conformance.tflite_operators import Case

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Expected:
    """Results of the reference kernels for `case`; None of those that do not run it."""

    case: Case
    lite: list[Array] | None
    micro: list[Array] | None

    def judge(self, got: list[Array], npu: str, vela: str) -> tuple[str, str]:
        """The outcome of a run on `npu`, and the difference's extent or name."""
        if self.lite is not None and _same(got, self.lite):
            return "equal", ""
        if self.micro is not None and _same(got, self.micro):
            return ("micro" if self.lite is not None else "equal"), ""
        wanted = self.lite or self.micro
        assert wanted is not None
        apart = [np.abs(a.astype(np.int64) - b.astype(np.int64)) for a, b in zip(got, wanted, strict=True)]
        count, most = sum(int((part != 0).sum()) for part in apart), max(int(part.max()) for part in apart)
        return "different", f"{count} of {sum(part.size for part in apart)} by at most {most}"


def _same(left: list[Array], right: list[Array]) -> bool:
    return len(left) == len(right) and all(
        a.size == b.size and np.array_equal(a.reshape(-1), b.reshape(-1)) for a, b in zip(left, right, strict=True)
    )


def expected(case: Case, model: bytes) -> Expected | None:
    """What the reference kernels give; None when none of them runs the model."""
    lite: list[Array] | None = None
    micro: list[Array] | None = None
    try:
        lite = comparison.reference(model, case.inputs)
    except (RuntimeError, ValueError):
        pass
    try:
        micro = comparison.micro_reference(model, case.inputs, len(case.outputs))
    except (RuntimeError, ValueError):
        pass
    return Expected(case, lite, micro) if lite is not None or micro is not None else None
