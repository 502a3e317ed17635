"""The type of NumPy's arrays, whatever they hold."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

Array = npt.NDArray[Any]
