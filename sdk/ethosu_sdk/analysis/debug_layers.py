"""The layers of a run: tensors that NPU operations wrote, joined with the TOSA graph and PyTorch's values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.analysis import layer_pairing
from ethosu_sdk.analysis.layer_pairing import MOST_STEPS, Distance, Own, Pair, Pairing
from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import BuildError, InputError
from ethosu_sdk.compile import vela_database
from ethosu_sdk.compile.check_record import source_line
from ethosu_sdk.compile.compile_facts import LayerFacts, LayerValue, WeightLoss
from ethosu_sdk.compile.graphs import tosa_graph
from ethosu_sdk.compile.graphs.tosa_graph import TosaMoves
from ethosu_sdk.compile.vela_database import WrittenTensor
from ethosu_sdk.npu.config import BRICK, round_up, tiles
from ethosu_sdk.npu.memory import Written
from ethosu_sdk.npu.operation import FeatureMap
from ethosu_sdk.records import result_files
from ethosu_sdk.records.bundle import compilation_of
from ethosu_sdk.records.common import SourceLine
from ethosu_sdk.records.compile import Delegate, Operation
from ethosu_sdk.records.debug import Range

Array = NDArray[Any]

MOST_BYTES = 1 << 30  # of all that is kept of a run, and of a file
_CONSTANTS = ("CONST", "CONST_SHAPE")
_MAKE = "compile the model again: ethosu-sdk compile writes these files"
_ELSEWHERE = "an operation wrote outside of the place that Vela's debug database gives for it"
_OTHER_LAYOUT = "an operation wrote it in another layout than Vela's debug database states"
_PARTLY = "operations that the debug database does not name wrote {share:.1%} of it, or nobody"
_MOST_LETTERS = 120  # of a name in a dump: a file's names are others'
_VELAS_OWN = "a tensor of Vela's own: the TOSA graph has none of this name"
_NO_NOTES = "nothing is known of the operation beside its command stream"
_WIDE = "{dtype} values are inner ones: the model quantises none of them"


@dataclass(frozen=True)
class DelegateNotes:
    """What `compile` left of a delegate: its TOSA graph and Vela's debug database.

    `record` is the delegate's entry in the compile record, `written` what Vela's operations write. `shapes` are
    those of the TOSA graph's tensors by name, `inputs` the tensors that each is computed from, constants left out;
    `given` and `results` are the graph's inputs and outputs, and `moves` its operators that only move values."""

    record: Delegate
    written: tuple[WrittenTensor, ...]
    shapes: dict[str, tuple[int, ...]]
    inputs: dict[str, tuple[str, ...]]
    given: tuple[str, ...]
    results: tuple[str, ...]
    moves: TosaMoves


def read_notes(path: Path) -> dict[int, DelegateNotes]:
    """The notes of the program at `path` by its delegates; none where there is no compile record of this program.

    Raises InputError when a file that the record names is missing or damaged.
    """
    file = result_files.compile_record_path(path)
    if not file.is_file():
        return {}
    record = compilation_of(file, filesystem.sha256_file(path))
    rows = () if record is None else record.delegates
    return {row.index: _delegate_notes(path.parent, row) for row in rows}


def _delegate_notes(folder: Path, row: Delegate) -> DelegateNotes:
    if row.files.tosa is None:
        raise InputError("debug needs a model in PyTorch, and this program was made of a .tflite")
    tosa = _content(folder / row.files.tosa)
    xml = _content(folder / row.files.debug)
    try:
        shapes = {name: tensor.shape for name, tensor in tosa_graph.graph_tensors(tosa).items()}
        operators = tosa_graph.read_operators(tosa)
        written = vela_database.read_written_tensors(xml)
        given, moves = tosa_graph.graph_inputs(tosa), TosaMoves(tosa)
        results = tuple(tensor.name for tensor in tosa_graph.graph_outputs(tosa))
    except BuildError as error:
        raise InputError(f"the files of delegate {row.index} in {folder}: {error.message}", _MAKE) from error
    constants = {name for op in operators if op.name in _CONSTANTS for name in op.outputs}
    inputs = {
        output: tuple(name for name in op.inputs if name not in constants)
        for op in operators
        if op.name not in _CONSTANTS
        for output in op.outputs
    }
    return DelegateNotes(row, written, shapes, inputs, given, results, moves)


def _content(path: Path) -> bytes:
    if not path.is_file():
        raise InputError(f"there is no file {path}, which the compile record names", _MAKE)
    content = filesystem.file_content(path, MOST_BYTES)
    if len(content) > MOST_BYTES:
        raise InputError(f"{path} has more than {MOST_BYTES:,} bytes", _MAKE)
    return content


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
        return tuple(dict.fromkeys(part.offset for part in self.parts))


def gather_tensors(recorded: Sequence[Written], known: Sequence[WrittenTensor]) -> list[Gathered]:
    """The tensors of a run in the order in which they were begun; of a loop, as they were left.

    An operation writes a stripe of rows or of channels, a part of a concatenation, or one of the many steps of a
    transpose; a tensor of a cascade lies in a buffer that holds some rows at a time. Vela's debug database tells each
    tensor's place and layout. So every element that is written goes to its place in an image of the whole tensor.

    An operation that the debug database does not name belongs to the next one that it names, as Vela does it: to its
    tensor, or to its `inner` steps, which lie elsewhere. What belongs to nothing is an entry of its own, with an
    empty name.
    """
    named = {offset: tensor for tensor in known for offset in tensor.offsets}
    owners: dict[int, WrittenTensor | None] = {}
    following = None
    for offset in sorted({part.offset for part in recorded}, reverse=True):
        owners[offset] = following = named.get(offset, following)
    groups: dict[object, list[Written]] = {}
    tensors: dict[object, WrittenTensor] = {}
    inner: Counter[object] = Counter()
    for number, part in enumerate(recorded):
        owner = owners[part.offset]
        if owner is None:
            groups[number] = [part]
        elif part.offset in owner.offsets or _is_inside(part, owner):
            groups.setdefault(owner.name, []).append(part)
            tensors[owner.name] = owner
        else:
            inner[owner.name] += 1
    return [_gathered(parts, tensors.get(key), inner[key]) for key, parts in groups.items()]


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
        return self._arranged(self._written)

    def values(self) -> Array:
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


@dataclass(frozen=True)
class DebuggedLayer:
    """A tensor that the NPU wrote. `name` is the TOSA tensor's, or Vela's, or that of the NPU operation.

    `writers` are the entries of the compile record: several where each writes a part. `pair` is what the model
    computes there, `value` says how it is quantised, `shared` is the value whose scale it has to have; `reason` says
    why there is none. `misplaced` is the moved tensor from which a layer that is off is computed, and which the model
    has in another order.
    """

    index: int
    delegate: int
    name: str
    gathered: Gathered
    values: Array | None
    range: Range | None
    writers: tuple[Operation, ...] = ()
    node: str | None = None
    value: LayerValue | None = None
    pair: Pair | None = None
    shared: LayerValue | None = None
    quantised: Distance | None = None
    float_: Distance | None = None
    own: Own | None = None
    misplaced: str = ""
    reason: str = ""

    @property
    def origin(self) -> Operation | None:
        return self.writers[-1] if self.writers else None

    @property
    def source(self) -> SourceLine | None:
        """The line of the operation that wrote the layer, or that of the model's value."""
        if self.origin is not None and self.origin.source is not None:
            return self.origin.source
        line = None if self.value is None else self.value.source
        return None if line is None else source_line(line)

    @property
    def module(self) -> str | None:
        """The name of the module that the operator of the layer's value is in."""
        return None if self.source is None else self.source.module or None

    @property
    def is_off(self) -> bool:
        """Whether it is more than a step from the quantised model, so that rounding does not explain it."""
        near, value = self.quantised, self.value
        return near is not None and value is not None and near.largest_error >= MOST_STEPS * value.scale

    @property
    def weights(self) -> WeightLoss | None:
        if self.value is None or (self.pair is not None and len(self.pair.sources) > 1):
            return None
        return self.value.weights

    def not_compared(self, reason: str) -> DebuggedLayer:
        """The layer without what the model computes."""
        left_out: dict[str, Any] = dict.fromkeys(("value", "pair", "shared", "quantised", "float_", "own"))
        return replace(self, **left_out, misplaced="", reason=reason)

    @property
    def key(self) -> tuple[int, str]:
        return self.delegate, self.name

    @property
    def dump_name(self) -> str:
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", self.name[:_MOST_LETTERS])
        return f"layer{self.index:03d}_{plain}"


def layers_of_delegate(
    delegate: int,
    first: int,
    gathered: Sequence[Gathered],
    notes: DelegateNotes | None,
    pairing: Pairing | None,
) -> list[DebuggedLayer]:
    """The layers of one delegate, numbered from `first` on."""
    return [_layer(first + number, delegate, row, notes, pairing) for number, row in enumerate(gathered)]


def _layer(
    index: int, delegate: int, gathered: Gathered, notes: DelegateNotes | None, pairing: Pairing | None
) -> DebuggedLayer:
    name = gathered.name or gathered.parts[0].operation.name
    shape = None if notes is None else notes.shapes.get(gathered.name)
    values = gathered.values
    if values is not None and shape is not None and min(shape, default=1) > 0 and prod(shape) == values.size:
        values = values.reshape(shape)
    known = None if values is None else layer_pairing.value_range(values)
    base = DebuggedLayer(index, delegate, name, gathered, values, known)
    if notes is None:
        return replace(base, reason=_NO_NOTES)
    offsets = set(gathered.offsets)
    writers = (row for row in notes.record.operations if offsets.intersection(row.offsets))
    base = replace(base, writers=tuple(writers))
    if shape is None:
        return replace(base, reason=_VELAS_OWN)
    if values is None:
        return replace(base, reason=gathered.reason)
    if pairing is None:
        return base
    base = replace(base, node=pairing.node(name))
    if values.dtype.itemsize > 2:
        return replace(base, reason=_WIDE.format(dtype=values.dtype.name))
    pair, facts = pairing.pair(name, values), pairing.facts
    return replace(base, reason=pair) if isinstance(pair, str) else _compared(base, values, pair, facts)


def _compared(layer: DebuggedLayer, values: Array, pair: Pair, facts: LayerFacts) -> DebuggedLayer:
    value = facts.values[pair.value]
    scale, zero_point = value.scale, value.zero_point
    rows = (pair.of(row) for row in (values, pair.stored))
    ours, eager = (layer_pairing.real_values(row, scale, zero_point) for row in rows)
    found = replace(
        layer,
        node=value.node,
        value=value,
        pair=pair,
        shared=None if value.shared is None else facts.values[value.shared.value],
        quantised=layer_pairing.distance_from(ours, eager, scale),
    )
    if pair.exact is None:
        return found
    exact = pair.of(pair.exact)
    return replace(
        found,
        float_=layer_pairing.distance_from(ours, exact, scale),
        own=layer_pairing.own_quantisation_loss(exact, scale, zero_point, value.dtype),
    )
