"""What goes into a run and what should come out: samples, their source, and expected outputs."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk import npz, pte
from ethosu_sdk.errors import InputError
from ethosu_sdk.feeds import Feed
from ethosu_sdk.feeds.stepping import Steps
from ethosu_sdk.plain_text import counted
from ethosu_sdk.results import locations
from ethosu_sdk.steps.run import input_values
from ethosu_sdk.steps.run.sequences import fitting

Array = npt.NDArray[Any]
_SEED = 0


@dataclass(frozen=True)
class Samples:
    """The inputs of every inference, in the model's order and with logical shapes.

    `stacked` says that the outputs get a leading axis of inferences. `is_sequence` says that the inferences are steps
    of which not all inputs are given: the rest is fed, or held.
    """

    steps: Steps
    source: str
    stacked: bool
    is_sequence: bool = False

    @property
    def count(self) -> int:
        """The number of inferences; of a sequence that a feed can stop, the most."""
        return self.steps.count

    @functools.cached_property
    def inferences(self) -> tuple[tuple[Array, ...], ...]:
        """The inputs of each inference; a fed one has the last value that is given."""
        return tuple(map(self.steps.rows, range(self.count)))

    def going_on(self, steps: int) -> Samples:
        """These, as the ones that follow so many `steps`."""
        return replace(self, steps=replace(self.steps, first_step=steps)) if steps else self

    def given(self) -> list[Array]:
        """What is given of each input: one array, or all rows with a leading axis."""
        if not self.is_sequence:
            return stack(self.inferences, self.stacked)
        return [rows[0] if len(rows) == 1 else np.stack(rows) for rows in self.steps.given]


def load(
    path: Path | None,
    model: Path,
    plan: pte.ExecutionPlan,
    feeds: Sequence[Feed] = (),
    steps: int | None = None,
) -> Samples:
    """The samples in `path`; else the example inputs beside `model`; else random values with a fixed seed.

    With `feeds`, or a number of `steps`, they are a sequence (:mod:`ethosu_sdk.steps.run.sequences.fitting`). Raises
    InputError when a file does not fit the model's inputs or holds values that the program cannot take, or inputs and
    outputs have a type that NumPy lacks. UsageError for feeds that do not fit.
    """
    tensors = plan.input_tensors()
    _check_types(tensors, "input")
    _check_types(plan.output_tensors(), "output")
    fitting.check(feeds, plan)
    is_sequence = bool(feeds) or steps is not None
    if path is None and locations.example_io(model, plan.name).is_file():
        path = locations.example_io(model, plan.name)
        source = f"example inputs, {path.name}"
    elif path is None:
        source = f"random values with seed {_SEED}"
    else:
        source = path.name
    rows: tuple[tuple[Array, ...], ...]
    if path is None:
        rows = tuple((_random(index, tensor),) for index, tensor in enumerate(tensors))
        stacked = False
    elif is_sequence:
        rows, stacked = npz.read_rows(path, "input", tensors), True
    else:
        loaded = npz.read_samples(path, "input", tensors)
        rows, stacked = tuple(zip(*loaded.samples, strict=True)), loaded.stacked
    count = fitting.count(rows, feeds, steps) if is_sequence else max(map(len, rows), default=1)
    samples = Samples(Steps(count, rows, tuple(feeds)), source, stacked or is_sequence, is_sequence)
    if path is not None:
        input_values.check(str(path), plan, samples.inferences)
    return samples


def _check_types(tensors: tuple[pte.Tensor, ...], what: str) -> None:
    """InputError for a tensor of a type that NumPy, and so an .npz, has no name for."""
    for index, tensor in enumerate(tensors):
        if tensor.dtype not in np.sctypeDict:
            raise InputError(
                f"{what} {index} of the program is {tensor.dtype}, a type that an .npz cannot hold",
                "compile the model with float32 inputs and outputs, or whole numbers of 8 to 64 bits",
            )


def _random(index: int, tensor: pte.Tensor) -> Array:
    """Values over the whole range of an integer type, or normally distributed; the same in every run."""
    seed = zlib.crc32(f"{_SEED} {index} {tensor.dtype} {tensor.sizes}".encode())
    generator = np.random.default_rng(seed)
    dtype = np.dtype(tensor.dtype)
    if dtype.kind == "b":
        return generator.integers(0, 2, tensor.sizes).astype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return generator.integers(limits.min, limits.max, tensor.sizes, dtype=dtype, endpoint=True)
    return generator.standard_normal(tensor.sizes).astype(dtype)


def physical_bytes(array: Array, tensor: pte.Tensor) -> bytes:
    """The bytes of `array` as the program keeps them: axes in the tensor's dim_order, outermost first."""
    return np.ascontiguousarray(array.transpose(tensor.dim_order)).tobytes()


def crcs(arrays: Iterable[Array], tensors: Sequence[pte.Tensor]) -> tuple[str, ...]:
    """The CRC-32 of the bytes of each array as the program keeps them: what the firmware says of an output."""
    pairs = zip(arrays, tensors, strict=True)
    return tuple(f"{zlib.crc32(physical_bytes(array, tensor)):08x}" for array, tensor in pairs)


def as_kept(samples: Samples, plan: pte.ExecutionPlan) -> Steps:
    """The steps of `samples` with the bytes of each array as the program keeps them, under its logical shape."""
    given = tuple(
        tuple(np.frombuffer(physical_bytes(row, tensor), row.dtype).reshape(row.shape) for row in rows)
        for rows, tensor in zip(samples.steps.given, plan.input_tensors(), strict=True)
    )
    return replace(samples.steps, given=given)


def logical(array: Array, tensor: pte.Tensor) -> Array:
    """The way back from :func:`physical_bytes`: `array`, as it came from memory, with its logical shape."""
    stored = array.reshape([tensor.sizes[axis] for axis in tensor.dim_order])
    return stored.transpose(np.argsort(tensor.dim_order))


def load_expected(path: Path, plan: pte.ExecutionPlan, samples: Samples) -> list[Array]:
    """The expected outputs in `path`, stacked like the samples. InputError when they do not fit the model."""
    loaded = npz.read_samples(path, "output", plan.output_tensors())
    if len(loaded.samples) != samples.count or loaded.stacked != samples.stacked:
        raise InputError(
            f"{path} holds outputs of {counted(len(loaded.samples), 'inference')}, but the run has {samples.count}",
            "give as many expected outputs as inputs, with or without the leading axis in both",
        )
    return stack(loaded.samples, samples.stacked)


def stack(inferences: tuple[tuple[Array, ...], ...], stacked: bool) -> list[Array]:
    """One array per input or output; with `stacked`, one leading axis of inferences."""
    if not stacked:
        return list(inferences[0])
    return [np.stack(column) for column in zip(*inferences, strict=True)]
