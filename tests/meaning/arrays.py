"""The type of NumPy's arrays, whatever they hold."""

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
