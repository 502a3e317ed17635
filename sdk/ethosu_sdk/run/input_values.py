"""The inputs of a run and its expected outputs: their source, and what program and machine cannot take."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.base import npz
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.program.execution_plan import ExecutionPlan, KernelCall, Tensor
from ethosu_sdk.program.feeds import Feed, Steps
from ethosu_sdk.records import result_files
from ethosu_sdk.run import sequences

Array = npt.NDArray[Any]
MOST_BYTES = 1 << 29  # twice the DDR of the boards
_SEED = 0

# Kernels that give the same bits on every machine: conversions, and what only moves data. Floating-point arithmetic
# is not among them: its last bits depend on the compiler and on the order of sums (docs/reference/kernels.md).

EXACT_CONVERSIONS = "quantized_decomposed::"  # what their names begin with
EXACT_MOVES = frozenset(
    f"aten::{name}"
    for name in (
        *("alias_copy", "cat", "clone", "copy", "expand_copy", "permute_copy", "select_copy", "slice_copy"),
        *("split_copy", "squeeze_copy", "stack", "t_copy", "transpose_copy", "unsqueeze_copy", "view_copy"),
    )
) | {"dim_order_ops::_clone_dim_order"}


_FINITE_HINT = (
    "no quantised value can represent it: give real data; a program of `compile --quantize none` accepts it"
)
_NARROW_HINT = (
    "the quantised program casts this input to int32: give values between -2147483648 and 2147483647; a program of "
    "`compile --quantize none` keeps int64"
)


@dataclass(frozen=True)
class Samples:
    """The inputs of every inference, in the model's order and with logical shapes. `stacked` says that the outputs
    get a leading axis of inferences. `is_sequence` says that the inferences are steps of which not all inputs are
    given: the rest is fed, or held."""

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
            return stacked(self.inferences, self.stacked)
        return [rows[0] if len(rows) == 1 else np.stack(rows) for rows in self.steps.given]


def load_samples(
    path: Path | None, model: Path, plan: ExecutionPlan, feeds: Sequence[Feed] = (), steps: int | None = None
) -> Samples:
    """The samples in `path`; else the example inputs beside `model`; else random values with a fixed seed. With
    `feeds`, or a number of `steps`, they are a sequence (:mod:`ethosu_sdk.run.sequences`). Raises InputError when a
    file does not fit the model's inputs or holds values that the program cannot take, or inputs and outputs have a
    type that NumPy lacks. UsageError for feeds that do not fit."""
    tensors = plan.input_tensors()
    _check_types(tensors, "input")
    _check_types(plan.output_tensors(), "output")
    sequences.check_feeds(feeds, plan)
    is_sequence = bool(feeds) or steps is not None
    if path is None and result_files.example_io_path(model, plan.name).is_file():
        path = result_files.example_io_path(model, plan.name)
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
    count = sequences.step_count(rows, feeds, steps) if is_sequence else max(map(len, rows), default=1)
    samples = Samples(Steps(count, rows, tuple(feeds)), source, stacked or is_sequence, is_sequence)
    if path is not None:
        _check_values(str(path), plan, samples.inferences)
    return samples


def _check_values(source: str, plan: ExecutionPlan, inferences: Sequence[tuple[Array, ...]]) -> None:
    """InputError for the first of the `inferences` with a value that the program cannot take; `source` names them.
    That is NaN and infinity where it quantises, whole numbers beyond 32 bits where it casts int64 to int32. A kernel
    would compute something from them without a sign that it is meaningless."""
    tensors = [index for index in plan.inputs if isinstance(plan.values[index], Tensor)]
    for position, index in enumerate(tensors):
        limits = _limits(plan, index)
        if limits is None:
            continue
        for number, inference in enumerate(inferences):
            array = inference[position]
            bad = (array < limits.min) | (array > limits.max) | np.isnan(array)
            if bad.any():
                floating = array.dtype.kind == "f"
                raise InputError(
                    f"{source}: 'input{position}' holds {_first(array, bad)}"
                    + (f" of inference {number}" if len(inferences) > 1 else "")
                    + f" ({int(bad.sum()):,} of its {array.size:,} values), and the program "
                    + ("quantises it" if floating else "takes 32 bits of each"),
                    _FINITE_HINT if floating else _NARROW_HINT,
                )


def _limits(plan: ExecutionPlan, index: int) -> np.finfo[Any] | np.iinfo[Any] | None:
    dtype, users = _dtype(plan, index), list(_users(plan, index))
    if dtype.startswith("float") and any(
        name.startswith(f"{EXACT_CONVERSIONS}quantize") for name, _ in users
    ):
        return np.finfo(dtype)
    if dtype == "int64" and any(
        name == "dim_order_ops::_to_dim_order_copy" and _dtype(plan, to) == "int32" for name, to in users
    ):
        return np.iinfo(np.int32)
    return None


def _users(plan: ExecutionPlan, index: int) -> Iterator[tuple[str, int]]:
    """(operator, value of the result) of each call that takes a value, or what only moves it, as first argument."""
    known = {index}
    for step in plan.instructions:
        if isinstance(step, KernelCall) and step.args and step.args[0] in known:
            name = plan.operators[step.op_index].name
            if name in EXACT_MOVES:
                known.add(step.args[-1])
            yield name, step.args[-1]


def _dtype(plan: ExecutionPlan, index: int) -> str:
    value = plan.values[index]
    return value.dtype if isinstance(value, Tensor) else ""


def _first(array: Array, bad: npt.NDArray[np.bool_]) -> str:
    place = [int(axis) for axis in np.argwhere(bad)[0]]
    value = array[tuple(place)]
    words = str(value)
    if array.dtype.kind == "f":
        words = "NaN" if np.isnan(value) else "infinity"
    return f"{words} at {place}" if place else words


def _check_types(tensors: tuple[Tensor, ...], what: str) -> None:
    for index, tensor in enumerate(tensors):
        if tensor.dtype not in np.sctypeDict:
            raise InputError(
                f"{what} {index} of the program is {tensor.dtype}, a type that an .npz cannot hold",
                "compile the model with float32 inputs and outputs, or whole numbers of 8 to 64 bits",
            )


def _random(index: int, tensor: Tensor) -> Array:
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


def physical_bytes(array: Array, tensor: Tensor) -> bytes:
    """The bytes of `array` as the program keeps them: axes in the tensor's dim_order, outermost first."""
    return np.ascontiguousarray(array.transpose(tensor.dim_order)).tobytes()


def crcs(arrays: Iterable[Array], tensors: Sequence[Tensor]) -> tuple[str, ...]:
    """The CRC-32 of the bytes of each array as the program keeps them: what the firmware says of an output."""
    pairs = zip(arrays, tensors, strict=True)
    return tuple(f"{zlib.crc32(physical_bytes(array, tensor)):08x}" for array, tensor in pairs)


def as_kept(samples: Samples, plan: ExecutionPlan) -> Steps:
    """The steps of `samples` with the bytes of each array as the program keeps them, under its logical shape."""
    given = tuple(
        tuple(np.frombuffer(physical_bytes(row, tensor), row.dtype).reshape(row.shape) for row in rows)
        for rows, tensor in zip(samples.steps.given, plan.input_tensors(), strict=True)
    )
    return replace(samples.steps, given=given)


def logical_array(array: Array, tensor: Tensor) -> Array:
    """The way back from :func:`physical_bytes`: `array`, as it came from memory, with its logical shape."""
    stored = array.reshape([tensor.sizes[axis] for axis in tensor.dim_order])
    return stored.transpose(np.argsort(tensor.dim_order))


def load_expected(path: Path, plan: ExecutionPlan, samples: Samples) -> list[Array]:
    """The expected outputs in `path`, stacked like the samples. InputError when they do not fit the model."""
    loaded = npz.read_samples(path, "output", plan.output_tensors())
    if len(loaded.samples) != samples.count or loaded.stacked != samples.stacked:
        raise InputError(
            f"{path} holds outputs of {counted(len(loaded.samples), 'inference')}, but the run has {samples.count}",
            "give as many expected outputs as inputs, with or without the leading axis in both",
        )
    return stacked(loaded.samples, samples.stacked)


def stacked(inferences: tuple[tuple[Array, ...], ...], stacked: bool) -> list[Array]:
    """One array per input or output; with `stacked`, one leading axis of inferences."""
    if not stacked:
        return list(inferences[0])
    return [np.stack(column) for column in zip(*inferences, strict=True)]


def check_program_memory(plan: ExecutionPlan) -> None:
    """Refuse, with InputError, a program whose memory no board has several times over."""
    parts = {
        "planned memory": sum(plan.non_const_buffer_sizes),
        "scratch memory of delegates": sum(row.vela.scratch_bytes for row in plan.delegates if row.vela),
        "inputs": sum(row.nbytes for row in plan.input_tensors()),
        "outputs": sum(row.nbytes for row in plan.output_tensors()),
    }
    name, largest = max(parts.items(), key=lambda part: part[1])
    if largest > MOST_BYTES:
        raise InputError(
            f"the program needs {largest:,} bytes of {name}; the limit is {MOST_BYTES:,}",
            "the boards have 268,435,456 bytes of DDR: use a smaller model or input",
        )


def check_outputs_memory(plan: ExecutionPlan, samples: Samples) -> None:
    """Refuse, with InputError, more inferences than there is room for their outputs."""
    each = sum(row.nbytes for row in plan.output_tensors())
    if each * samples.count > MOST_BYTES:
        raise InputError(
            f"{samples.count:,} inferences give {each * samples.count:,} bytes of outputs; the limit is "
            f"{MOST_BYTES:,}",
            f"give {max(1, MOST_BYTES // each):,} inferences at a time",
        )
