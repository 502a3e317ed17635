"""What a model of one operator must give, and what explains a difference.

The reference is LiteRT with its reference kernels; where these and TensorFlow Lite Micro's differ, either is right.
"""

import contextlib
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.conformance import tflite_comparison as comparison
from tests.conformance.tflite_operators import Case

Array = npt.NDArray[Any]


class Expected:
    """Results of the reference kernels for `case`; None of those that do not run it."""

    def __init__(self, case: Case, model: bytes) -> None:
        self._case = case
        self._model = model
        self._lite: list[Array] | None = None
        with contextlib.suppress(RuntimeError, ValueError):
            self._lite = comparison.reference(model, case.inputs)

    @cached_property
    def _micro(self) -> list[Array] | None:
        return comparison.micro_reference(self._model, self._case.inputs, len(self._case.outputs))

    def judge(self, got: list[Array], npu: str, vela: str) -> tuple[str, str]:
        """The outcome of a run on `npu`, and the difference's extent or name."""
        exact = self._sum() if self._case.operator == "SUM" else None
        if any(part is not None and _same(got, part) for part in (self._lite, exact)):
            return "equal", ""
        if self._micro is not None and _same(got, self._micro):
            return ("micro" if self._lite is not None else "equal"), ""
        wanted = self._lite or self._micro
        if wanted is None:
            return "no reference", ""
        return self._explained(got, wanted, npu, vela)

    def _explained(self, got: list[Array], wanted: list[Array], npu: str, vela: str) -> tuple[str, str]:
        if self._is_miscompiled(npu, vela):
            return "compiler", "8-bit elements without a sign are transposed as signed ones"
        if vela < "5" and self._lacks_relu(got, wanted):
            return "compiler", "the stream has no RELU behind an operator that moves elements"
        if self._is_low_point(got, wanted, npu):
            return (
                "named",
                "the logistic function's point at -255/24 in Vela's table for Ethos-U85 is one lower",
            )
        apart = [np.abs(a.astype(np.int64) - b.astype(np.int64)) for a, b in zip(got, wanted, strict=True)]
        count, most = sum(int((part != 0).sum()) for part in apart), max(int(part.max()) for part in apart)
        return "different", f"{count} of {sum(part.size for part in apart)} by at most {most}"

    def _sum(self) -> list[Array]:
        """The sum in real numbers: of both interpreters, one adds integers without their scale at the time."""
        x, out = self._case.model.inputs[0][1], self._case.model.outputs[0][1]
        axes = np.frombuffer(self._case.model.buffers[1], np.int32)
        real = (self._case.inputs[0].astype(np.float64) - x.zero_point[0]).sum(axis=tuple(axes.tolist()))
        limits = np.iinfo(out.dtype)
        steps = np.floor(real * x.scale[0] / out.scale[0] + 0.5) + out.zero_point[0]
        return [np.clip(steps, limits.min, limits.max).astype(out.dtype)]

    def _is_miscompiled(self, npu: str, vela: str) -> bool:
        is_signless = self._case.operator == "TRANSPOSE" and self._case.types == ("uint8",)
        return is_signless and "u85" not in npu and vela >= "5.1"

    def _lacks_relu(self, got: list[Array], wanted: list[Array]) -> bool:
        zeros = [tensor.zero_point[0] for _, tensor in self._case.model.outputs]
        last = self._case.model.operators[-1]
        return last.kind == "RELU" and _same(
            [np.maximum(*row) for row in zip(got, zeros, strict=True)], wanted
        )

    def _is_low_point(self, got: list[Array], wanted: list[Array], npu: str) -> bool:
        if (self._case.operator, self._case.types) != ("LOGISTIC", ("int16",)) or "u85" not in npu:
            return False
        differs = got[0] != wanted[0]
        return bool((got[0][differs] == 0).all() and (wanted[0][differs] == 1).all())


def _same(left: list[Array], right: list[Array]) -> bool:
    return len(left) == len(right) and all(
        np.array_equal(a.reshape(-1), b.reshape(-1)) for a, b in zip(left, right, strict=True)
    )
