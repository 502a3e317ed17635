"""How near to the oracle a kernel must be: the table ``bounds.toml``, and the comparison."""

import functools
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy

from tests.kernels.interpreter.models import Array
from tests.kernels.interpreter.runner import same_bits

TABLE = Path(__file__).with_name("bounds.toml")


@dataclass(frozen=True)
class Bound:
    """What a float may differ by: units in the last place, or relative and absolute parts. All 0: no bit."""

    ulp: int = 0
    relative: float = 0.0
    absolute: float = 0.0
    why: str = ""

    def __str__(self) -> str:
        if self == EXACT:
            return "exact"
        return f"{self.ulp} ulp" if self.ulp else f"{self.absolute:g} + {self.relative:g}·\\|x\\|"

    def holds(self, found: Array, expected: Array) -> bool:
        """Whether `found` is near enough: NaN where NaN is expected, infinities and signs of zero among them."""
        if same_bits(found, expected):
            return True
        if (
            self == EXACT
            or found.dtype != expected.dtype
            or found.shape != expected.shape
            or found.dtype.kind != "f"
        ):
            return False
        number = numpy.isfinite(expected)
        if not same_bits(found[~number], expected[~number]) or not numpy.isfinite(found[number]).all():
            return False
        left, right = found[number].astype(numpy.float64), expected[number].astype(numpy.float64)
        if self.ulp:
            return bool((abs(left - right) <= self.ulp * abs(numpy.spacing(expected[number]))).all())
        return bool((abs(left - right) <= self.absolute + self.relative * abs(right)).all())


EXACT = Bound()


@functools.cache
def bounds() -> dict[str, Bound]:
    """The table's rows by operator."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["bound"]
    return {name: Bound(**row) for row in rows for name in row.pop("operators")}


def bound_of(case: str) -> Bound:
    """The bound of a case, named ``operator/variant``."""
    return bounds().get(case.partition("/")[0], EXACT)
