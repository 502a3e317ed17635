"""Passes each OFM to an observer when it is written: the only view into a delegate while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ethosu_sdk.npu.arrays import Array
from ethosu_sdk.npu.operation import BlockOp, FeatureMap


@dataclass(frozen=True)
class Written:
    """The OFM of an operation that has just been stored.

    `values` has the shape (1, height, width, depth) as it is in memory, behind the output stage; it is the executor's
    own array, to be read or copied and not to be changed.
    """

    operation: BlockOp
    values: Array

    @property
    def feature_map(self) -> FeatureMap:
        """Where it lies, and how."""
        return self.operation.ofm

    @property
    def offset(self) -> int:
        """The operation's byte offset in the command stream."""
        return self.operation.offset

    @property
    def shape(self) -> tuple[int, ...]:
        """NHWC. The NPU knows no batches: they are rows, or operations of their own."""
        return tuple(self.values.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the elements."""
        return self.values.dtype

    @property
    def zero_point(self) -> int:
        """The stream's. Its scale is not in the stream, which holds quotients of scales alone."""
        return self.operation.ofm.zero_point

    @property
    def address(self) -> tuple[int, int] | None:
        """(region, byte address in it) of the first element; None in a chaining buffer of Ethos-U85."""
        ofm = self.operation.ofm
        return None if ofm.chain is not None else (ofm.region, ofm.bases[0])


Observer = Callable[[Written], None]
