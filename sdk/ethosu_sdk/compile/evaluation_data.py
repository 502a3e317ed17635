"""The file of ``--evaluate``: inputs with labels, or with expected outputs, checked against the model."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.base import npz
from ethosu_sdk.base.errors import InputError

Array = NDArray[Any]
Shape = tuple[int, ...]

_NAME = re.compile(r"(input|output|label)(0|[1-9][0-9]{0,5})")
_LABELS = "labels"
_MOST_SAMPLES = 1 << 20  # read one at a time: it is their outputs that are kept, on disk
_FORMAT = "it must hold input0, input1, … and may hold label0 (or labels) …, output0 …"


@dataclass(frozen=True)
class EvaluationContent:
    """What a file holds by its headers alone: how many inputs and expected outputs, and which outputs have labels."""

    inputs: int
    outputs: int
    labels: tuple[int, ...]


def evaluation_content(path: Path) -> EvaluationContent:
    """The content of `path`, not yet compared with a model. InputError when it cannot be an evaluation file."""
    with npz.open_rows(path) as reader:
        return _content(reader, path)


def _content(reader: npz.Archive, path: Path) -> EvaluationContent:
    found: dict[str, set[int]] = {"input": set(), "output": set(), "label": set()}
    for name in reader.arrays:
        match = _NAME.fullmatch("label0" if name == _LABELS else name)
        if match is None:
            raise InputError(f"{path} has an array '{name}', which an evaluation does not use", _FORMAT)
        found[match[1]].add(int(match[2]))
    if _LABELS in reader.arrays and "label0" in reader.arrays:
        raise InputError(
            f"{path} holds 'labels' and 'label0', which are two names for the same array", _FORMAT
        )
    for kind in ("input", "output"):
        if found[kind] != set(range(len(found[kind]))):
            listed = ", ".join(f"{kind}{index}" for index in sorted(found[kind]))
            raise InputError(f"{path} holds {listed}, with a gap in the numbers", _FORMAT)
    if not found["input"]:
        raise InputError(f"{path} holds no inputs", _FORMAT)
    return EvaluationContent(len(found["input"]), len(found["output"]), tuple(sorted(found["label"])))


class EvaluationData:
    """An open file that fits a model: `count` samples; `labels`, int64 [count, B], by output."""

    def __init__(self, path: Path, reader: npz.Archive, inputs: Sequence[Array]) -> None:
        self._path = path
        self._reader = reader
        self._held = _content(reader, path)
        self._inputs = [(f"input{index}", example) for index, example in enumerate(inputs)]
        self._outputs: list[tuple[str, Array]] = []
        self.labels: dict[int, NDArray[np.int64]] = {}
        if self._held.inputs != len(inputs):
            raise InputError(f"{path} holds {self._held.inputs} inputs, but the model takes {len(inputs)}")
        self.count = self._agree(self._inputs)

    def fit_outputs(self, outputs: Sequence[Array]) -> None:
        """InputError when labels or expected outputs do not fit these examples of the model's outputs."""
        if self._held.outputs not in (0, len(outputs)):
            raise InputError(
                f"{self._path} holds {self._held.outputs} expected outputs, but the model has {len(outputs)}"
            )
        if self._held.outputs:
            self._outputs = [(f"output{index}", example) for index, example in enumerate(outputs)]
            self._agree([*self._inputs, *self._outputs])
        for index in self._held.labels:
            if index >= len(outputs):
                raise InputError(
                    f"{self._path} holds labels of output {index}, but the number of the model's outputs is "
                    f"{len(outputs)}"
                )
            self.labels[index] = self._labels(index, outputs[index].shape)

    @property
    def expects(self) -> bool:
        return bool(self._outputs)

    def inputs(self) -> Iterator[tuple[Array, ...]]:
        """The inputs of each sample, with the shapes of the examples. InputError at a NaN or infinite value."""
        return self._samples(self._inputs)

    def expected(self) -> Iterator[tuple[Array, ...]]:
        """The expected outputs of each sample, with the shapes of the examples."""
        return self._samples(self._outputs)

    def _samples(self, columns: Sequence[tuple[str, Array]]) -> Iterator[tuple[Array, ...]]:
        with contextlib.ExitStack() as stack:
            streams = [
                stack.enter_context(contextlib.closing(self._column(name, example)))
                for name, example in columns
            ]
            for index, sample in enumerate(zip(*streams, strict=True)):
                for (name, _), array in zip(columns, sample, strict=True):
                    if array.dtype.kind == "f" and not np.isfinite(array).all():
                        raise InputError(
                            f"{self._path}: '{name}' has a NaN or infinite value in sample {index}",
                            "leave such samples out, or repair them",
                        )
                yield sample

    def _column(self, name: str, example: Array) -> Generator[Array, None, None]:
        if self._reader.arrays[name][1] == example.shape:
            yield self._reader.read(name)
            return
        for row in self._reader.rows(name):
            yield row.reshape(example.shape)

    def _agree(self, columns: Sequence[tuple[str, Array]]) -> int:
        counts = {name: self._count(name, example) for name, example in columns}
        if len(set(counts.values())) != 1:
            listed = ", ".join(f"{name}: {count}" for name, count in counts.items())
            raise InputError(f"{self._path} holds different numbers of samples ({listed})")
        count = next(iter(counts.values()))
        if not 0 < count <= _MOST_SAMPLES:
            most = f"{count:,} samples, but at most {_MOST_SAMPLES:,} can be evaluated"
            raise InputError(f"{self._path} holds {most if count else 'no samples'}")
        return count

    def _count(self, name: str, example: Array) -> int:
        dtype, shape = self._reader.arrays[name]
        if dtype.name != example.dtype.name:
            raise InputError(
                f"{self._path}: '{name}' is {dtype.name}, but the model's is {example.dtype.name}",
                f"convert it with NumPy's .astype('{example.dtype.name}'); the SDK never converts values by itself",
            )
        if shape == example.shape:
            return 1
        in_place = example.shape[:1] == (1,) and shape[1:] == example.shape[1:]
        if shape and (shape[1:] == example.shape or (in_place and len(shape) == example.ndim)):
            return shape[0]
        raise InputError(
            f"{self._path}: '{name}' has the shape {list(shape)}, which is not a stack of {list(example.shape)}",
            "stack the samples on a leading axis",
        )

    def _labels(self, output: int, shape: Shape) -> NDArray[np.int64]:
        classes = classification(shape)
        name = f"label{output}" if f"label{output}" in self._reader.arrays else _LABELS
        where = f"{self._path}: '{name}'"
        if classes is None:
            raise InputError(
                f"{where} gives classes, and output {output} of shape {list(shape)} has no class scores",
                "labels need an output of shape [classes] or [batch, classes]; give expected outputs instead",
            )
        batch, number = classes
        dtype, stored = self._reader.arrays[name]
        if dtype.kind not in "iu":
            raise InputError(
                f"{where} is {dtype.name}, but labels must be integers", "give the index of the right class"
            )
        allowed = [(self.count, batch)] + ([(self.count,)] if batch == 1 else [])
        if stored not in allowed:
            raise InputError(
                f"{where} has the shape {list(stored)}, {self.count} samples need {list(allowed[-1])}",
                "give the index of the right class of each sample, one for each input",
            )
        labels = self._reader.read(name).reshape(self.count, batch)
        bad = np.argwhere((labels < 0) | (labels >= number))
        if bad.size:
            sample, place = (int(axis) for axis in bad[0])
            raise InputError(
                f"{where} says class {labels[sample, place]} for sample {sample}, but the classes are 0 to "
                f"{number - 1}"
            )
        return labels.astype(np.int64)


def classification(shape: Shape) -> tuple[int, int] | None:
    """(B, C) of an output that can be one of class scores: [C], [B, C] or [B, C, 1, …] with two classes or more; None
    for any other shape."""
    sizes = list(shape)
    while len(sizes) > 2 and sizes[-1] == 1:
        sizes.pop()
    if len(sizes) == 1:
        sizes.insert(0, 1)
    return (sizes[0], sizes[1]) if len(sizes) == 2 and sizes[1] >= 2 and sizes[0] >= 1 else None


@contextlib.contextmanager
def open_data(path: Path, inputs: Sequence[Array]) -> Iterator[EvaluationData]:
    """The file at `path` for a model with the example `inputs`. InputError when it does not fit them."""
    with npz.open_rows(path) as reader:
        yield EvaluationData(path, reader, inputs)
