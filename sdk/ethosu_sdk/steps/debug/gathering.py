"""Assemble the tensors from the parts that NPU operations write.

An operation writes a stripe of rows or of channels, a part of a concatenation, or one of the many steps of a
transpose; a tensor of a cascade lies in a buffer that holds some rows at a time. Vela's debug database tells each
tensor's place and layout. So every element that is written goes to its place in an image of the whole tensor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.aot.vela.written_tensors import WrittenTensor
from ethosu_sdk.npu import Written
from ethosu_sdk.npu.geometry import BRICK, round_up, tiles
from ethosu_sdk.npu.operation import FeatureMap

Array = NDArray[Any]

MOST_BYTES = 1 << 30  # of all that is kept of a run
_ELSEWHERE = "an operation wrote outside of the place that Vela's debug database gives for it"
_OTHER_LAYOUT = "an operation wrote it in another layout than Vela's debug database states"
_PARTLY = "operations that the debug database does not name wrote {share:.1%} of it, or nobody"


@dataclass
class Recorder:
    """Keeps what one run of a delegate writes; `left_out` are offsets of operations beyond MOST_BYTES."""

    written: list[Written] = field(default_factory=list)
    left_out: list[int] = field(default_factory=list)
    nbytes: int = 0

    def take(self, written: Written) -> None:
        """Keep a copy of what was written: the executor may go on with its array."""
        if self.nbytes + written.values.nbytes > MOST_BYTES:
            self.left_out.append(written.offset)
            return
        self.nbytes += written.values.nbytes
        self.written.append(Written(written.operation, written.values.copy()))


@dataclass(frozen=True)
class Gathered:
    """A tensor: its `values` (NHWC), or the `reason` why they are not all known. `parts` wrote it, and `inner` counts
    operations that wrote only what these read."""

    name: str
    values: Array | None
    reason: str
    parts: tuple[Written, ...]
    inner: int = 0

    @property
    def offsets(self) -> tuple[int, ...]:
        """Of the NPU operations in the command stream, each once."""
        return tuple(dict.fromkeys(part.offset for part in self.parts))


def gather(recorded: Sequence[Written], known: Sequence[WrittenTensor]) -> list[Gathered]:
    """The tensors of a run in the order in which they were begun; of a loop, as they were left.

    An operation that the debug database does not name belongs to the next one that it names, as Vela does it: to its
    tensor, or to its `inner` steps, which lie elsewhere. What belongs to nothing is an entry of its own, with an
    empty name.
    """
    owners = _owners([part.offset for part in recorded], known)
    groups: dict[object, list[Written]] = {}
    tensors: dict[object, WrittenTensor] = {}
    inner: Counter[object] = Counter()
    for number, (part, owner) in enumerate(zip(recorded, owners, strict=True)):
        if owner is None:
            groups[number] = [part]
        elif part.offset in owner.offsets or _is_inside(part, owner):
            groups.setdefault(owner.name, []).append(part)
            tensors[owner.name] = owner
        else:
            inner[owner.name] += 1
    return [_gathered(parts, tensors.get(key), inner[key]) for key, parts in groups.items()]


def _owners(offsets: Sequence[int], known: Sequence[WrittenTensor]) -> list[WrittenTensor | None]:
    named = {offset: tensor for tensor in known for offset in tensor.offsets}
    found: dict[int, WrittenTensor | None] = {}
    following = None
    for offset in sorted(set(offsets), reverse=True):
        following = named.get(offset, following)
        found[offset] = following
    return [found[offset] for offset in offsets]


def _is_inside(part: Written, owner: WrittenTensor) -> bool:
    if owner.span is None or part.address is None or part.dtype != np.dtype(owner.dtype):
        return False
    return owner.span[0] <= part.address[1] < owner.span[1]


def _gathered(written: Sequence[Written], owner: WrittenTensor | None, inner: int) -> Gathered:
    parts = tuple(written)
    if owner is None:
        return Gathered("", parts[-1].values, "", parts)
    whole = prod(owner.shape)
    alone = len(parts) == 1 and parts[0].values.size == whole and parts[0].dtype == np.dtype(owner.dtype)
    if alone and _is_plain(parts[0], owner):  # whatever its place
        return Gathered(owner.name, parts[0].values.reshape(owner.shape), "", parts, inner)
    if owner.span is None:
        return Gathered(owner.name, None, _ELSEWHERE, parts, inner)
    image = _Image(owner, owner.span)
    reason = next((why for part in parts if (why := image.add(part))), "")
    if not reason and not image.filled.all():
        reason = _PARTLY.format(share=1 - image.filled.mean())
    return Gathered(owner.name, None if reason else image.values(), reason, parts, inner)


def _is_plain(part: Written, owner: WrittenTensor) -> bool:
    """Whether an operation's rows, columns and channels are those of the tensor, one after the other."""
    ofm, (n, h, w, c) = part.feature_map, owner.shape
    if ofm.chain is not None or ofm.bricks:
        return part.shape[1:] == (n * h, w, c)
    size = part.dtype.itemsize
    return (ofm.stride_x, ofm.stride_y) == (part.shape[3] * size, part.shape[2] * part.shape[3] * size)


class _Image:
    """A tensor's elements in the order of its layout, and which of them were written."""

    def __init__(self, owner: WrittenTensor, span: tuple[int, int]) -> None:
        n, h, w, c = owner.shape
        self._owner = owner
        self._start, self._size = span[0], span[1] - span[0]
        self._rows, self._columns = n * h, w
        self._depth = round_up(c, BRICK) if owner.bricks else c
        self._dtype = np.dtype(owner.dtype)
        self._elements = np.zeros(self._rows * w * self._depth, self._dtype)
        self._written = np.zeros(self._elements.size, np.bool_)
        self._next_rows: dict[int, int] = {}

    @property
    def filled(self) -> Array:
        """Which elements of the tensor were written."""
        return self._arranged(self._written)

    def values(self) -> Array:
        """The tensor, NHWC."""
        return self._arranged(self._elements)

    def add(self, part: Written) -> str:
        """Take what an operation wrote; the reason why that cannot be done, else empty."""
        ofm = part.feature_map
        if ofm.chain is not None or part.dtype != self._dtype or not self._fits(ofm):
            return _OTHER_LAYOUT
        at = self._places(part)
        if at is None or at.min() < 0 or at.max() >= self._elements.size:
            return _ELSEWHERE
        self._elements[at] = part.values[0]
        self._written[at] = True
        return ""

    def _fits(self, ofm: FeatureMap) -> bool:
        if ofm.bricks != self._owner.bricks:
            return False
        brick = self._columns * BRICK * self._dtype.itemsize
        row = self._columns * self._depth * self._dtype.itemsize
        return not ofm.bricks or (
            ofm.stride_y in (row, 0) and (ofm.stride_c == brick or self._depth == BRICK)
        )

    def _places(self, part: Written) -> Array | None:
        """The index of each element."""
        ofm, (_, height, width, depth) = part.feature_map, part.shape
        size = self._dtype.itemsize
        along = BRICK * size if ofm.bricks else ofm.stride_x
        bricks, inside = np.divmod(np.arange(depth, dtype=np.int64), BRICK if ofm.bricks else depth)
        channels = bricks * ofm.stride_c + inside * size
        y, x = np.arange(height, dtype=np.int64)[:, None], np.arange(width, dtype=np.int64)[None, :]
        first = self._unrolled(ofm, height)
        if first is not None:
            cells = first + y * ofm.stride_y + x * along
        else:
            cells = np.zeros((height, width), np.int64)
            for rows, columns, base in tiles(ofm, height, width):
                tile = (y[rows] - rows.start) * ofm.stride_y + (x[:, columns] - columns.start) * along
                cells[rows, columns] = base - self._start + tile
        at: Array = cells[:, :, None] + channels
        return None if (at % size).any() else at // size

    def _unrolled(self, ofm: FeatureMap, height: int) -> int | None:
        """Where an operation's first element would be if the tensor were not in a buffer of fewer rows, which are
        filled again and again from the top; None where it is not."""
        full = self._elements.size * self._dtype.itemsize
        if full <= self._size or ofm.stride_y <= 0:
            return None
        _, inside = divmod(ofm.bases[0] - self._start, ofm.stride_y)
        row = self._next_rows.get(inside, 0)
        self._next_rows[inside] = row + height
        return row * ofm.stride_y + inside

    def _arranged(self, elements: Array) -> Array:
        n, h, w, c = self._owner.shape
        if not self._owner.bricks:
            return elements.reshape(n, h, w, c)
        bricks = elements.reshape(self._rows, self._depth // BRICK, w, BRICK).transpose(0, 2, 1, 3)
        return np.ascontiguousarray(bricks.reshape(self._rows, w, self._depth)[..., :c]).reshape(n, h, w, c)
