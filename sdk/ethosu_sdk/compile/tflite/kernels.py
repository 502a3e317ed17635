"""Operators of a `.tflite` that stay on the CPU, as calls of the firmware's kernels. Those that compute with int8
have the arithmetic of CMSIS-NN and TensorFlow Lite Micro; those that move data take any type."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.program import pte_schema, tflite_schema
from ethosu_sdk.program.execution_plan import WORK_ID
from ethosu_sdk.program.pte_builder import ProgramBuilder
from ethosu_sdk.program.tflite import TfliteModel, TfliteOperator, TfliteTensor
from ethosu_sdk.records.compile import State

_DTYPES = {row.dtype: row.number for row in pte_schema.NUMPY_TYPES}
_INT8 = (-128, 127)
_ADD_SHIFT = 20  # TensorFlow Lite's left shift of the operands of int8 sums


@dataclass
class Values:
    """The program's value of each tensor of a network, made when it is first asked for."""

    builder: ProgramBuilder
    network: TfliteModel
    _numbers: dict[int, int] = field(default_factory=dict)
    _handles: dict[int, str] = field(default_factory=dict)  # tensors that stand for a variable, and its name
    _variables: dict[str, tuple[int, TfliteTensor]] = field(default_factory=dict)

    def tensor(self, index: int) -> TfliteTensor:
        return self.network.main.tensors[index]

    def named(self, index: int, name: str) -> int:
        """The value of an input or output, which the program calls `name`."""
        tensor = self.tensor(index)
        if index not in self._numbers and not len(tensor.data):
            self._numbers[index] = self.builder.tensor(self._dtype(tensor), tensor.shape, name=name)
        return self.of(index)

    def of(self, index: int) -> int:
        if index not in self._numbers:
            tensor = self.tensor(index)
            self._numbers[index] = (
                self.builder.constant(tensor.array)
                if len(tensor.data)
                else self.builder.tensor(self._dtype(tensor), tensor.shape)
            )
        return self._numbers[index]

    def give(self, index: int, array: npt.NDArray[Any]) -> None:
        """What is known of a tensor before the program runs."""
        self._numbers[index] = self.builder.constant(array)

    def add_handle(self, index: int, name: str) -> None:
        """The tensor stands for the variable `name`."""
        self._handles[index] = name

    def variable(self, handle: int, like: TfliteTensor) -> int:
        """The value that keeps a variable from one inference to the next, a tensor like `like`."""
        name = self._handles[handle]
        if name not in self._variables:
            state = _initial_values(self.network).get(name, bytes(like.size_bytes))
            if len(state) != like.size_bytes:
                raise _RefusedError(
                    f"the variable '{name}' begins with {len(state)} bytes, not {like.size_bytes}"
                )
            number = self.builder.tensor(self._dtype(like), like.shape, name=name, state=state)
            self._variables[name] = number, like
        number, known = self._variables[name]
        if (known.type, known.shape) != (like.type, like.shape):
            raise _RefusedError(f"the variable '{name}' has several types or shapes")
        return number

    def state(self) -> tuple[State, ...]:
        """What the finished program keeps from one inference to the next."""
        return tuple(
            msgspec.convert(
                {
                    "name": name,
                    "shape": tensor.shape,
                    "dtype": tensor.dtype,
                    "bytes": tensor.size_bytes,
                    "arena": WORK_ID - 1,
                    "offset": self.builder.places[number],
                },
                State,
            )
            for name, (number, tensor) in self._variables.items()
        )

    def _dtype(self, tensor: TfliteTensor) -> str:
        if not tensor.dtype or np.dtype(tensor.dtype).kind not in "iufb":
            raise InputError(
                f"tensor '{tensor.name}' of the model is {tensor.type}, which a program cannot have"
            )
        return tensor.dtype


def _initial_values(network: TfliteModel) -> dict[str, bytes]:
    """What variables begin with: constants that subgraphs assign which are called once."""
    found: dict[str, bytes] = {}
    for call in network.main.operators:
        if call.name != "CALL_ONCE":
            continue
        number = int(call.options.get("init_subgraph_index", 0))
        if not 0 < number < len(network.subgraphs):
            raise _RefusedError(f"CALL_ONCE calls subgraph {number} of {len(network.subgraphs)}")
        graph, handles = network.subgraphs[number], {}
        for row in graph.operators:
            if row.name == "VAR_HANDLE" and row.outputs:
                handles[row.outputs[0]] = _variable_name(row)
            elif row.name == "ASSIGN_VARIABLE" and len(row.inputs) == 2 and row.inputs[0] in handles:
                found[handles[row.inputs[0]]] = bytes(graph.tensors[row.inputs[1]].data)
            else:
                raise _RefusedError(f"the subgraph that is called once computes ({row.name})")
    return found


def _variable_name(operator: TfliteOperator) -> str:
    name = str(operator.options.get("shared_name", ""))
    return "/".join(part for part in (str(operator.options.get("container", "")), name) if part) or "variable"


# Of these, the first input alone counts: the output's shape is known.
_SHAPED = ("RESHAPE", "SQUEEZE", "EXPAND_DIMS")


def needed_operators(network: TfliteModel) -> list[TfliteOperator]:
    """The operators that lead to an output, in order: some compute no more than a shape that is known."""
    needed, rows = set(network.main.outputs), []
    for row in reversed(network.main.operators):
        if needed & set(row.outputs) or not row.outputs:
            rows.append(row)
            needed |= set(row.inputs[:1] if row.name in _SHAPED else row.inputs)
    return rows[::-1]


class _RefusedError(Exception):
    """Why no kernel does an operator."""


def add_operator(values: Values, operator: TfliteOperator, reason: str) -> None:
    """Call kernels that do what `operator` does. InputError where none does; `reason` is Vela's to leave it."""
    output = values.tensor(operator.outputs[0]).name if operator.outputs else ""
    try:
        if operator.name not in _KERNELS:
            raise _RefusedError("the SDK has no kernel for it on the CPU")
        if operator.name not in _STATE and not (operator.outputs and operator.inputs):
            raise _RefusedError("it has no inputs or no outputs")
        _KERNELS[operator.name](_Call(values, operator))
    except _RefusedError as error:
        words = f" ({reason})" if reason else ""
        raise InputError(
            f"operator {operator.index} ({operator.name}, '{output}') is left to the CPU by Vela{words}, and {error}",
            "replace it in the model by operators that the NPU does, or cut the model before it; "
            "docs/guide/tflite.md lists what runs on the CPU",
        ) from error


@dataclass(frozen=True)
class _Call:
    """An operator with what its kernels ask for. Its methods raise :class:`_RefusedError`."""

    values: Values
    operator: TfliteOperator

    @property
    def build(self) -> ProgramBuilder:
        return self.values.builder

    @property
    def output(self) -> TfliteTensor:
        return self.values.tensor(self.operator.outputs[0])

    @property
    def out(self) -> int:
        return self.values.of(self.operator.outputs[0])

    def has(self, position: int) -> bool:
        return position < len(self.operator.inputs) and self.operator.inputs[position] >= 0

    def tensor(self, position: int) -> TfliteTensor:
        if not self.has(position):
            raise _RefusedError(f"its input {position} is missing")
        return self.values.tensor(self.operator.inputs[position])

    def value(self, position: int) -> int:
        self.tensor(position)
        return self.values.of(self.operator.inputs[position])

    def int8(self, position: int) -> tuple[int, float, int]:
        """Value, scale and zero point of an input, which must be int8 with one scale."""
        tensor = self.tensor(position)
        return self.value(position), *self._form(tensor, f"input {position}")

    def int8_output(self) -> tuple[int, float, int]:
        return self.out, *self._form(self.output, "the output")

    def _form(self, tensor: TfliteTensor, what: str) -> tuple[float, int]:
        form = tensor.quantisation
        if tensor.type != "INT8" or form is None or len(form.scales) != 1 or not form.scales[0]:
            raise _RefusedError(f"its kernel takes int8 with one scale, but {what} is {tensor.type}")
        return form.scales[0], form.zero_points[0]

    def constant(self, position: int) -> npt.NDArray[np.int64]:
        tensor = self.tensor(position)
        if not len(tensor.data) or not tensor.dtype.startswith("int"):
            raise _RefusedError(f"its input {position} is no constant")
        return tensor.array.astype(np.int64).reshape(-1)

    def refuse_other_scale(self, position: int = 0) -> None:
        """Refuse an operator that moves data, but gives the output another meaning."""
        tensor = self.tensor(position)
        if tensor.type != self.output.type or _meaning(tensor) != _meaning(self.output):
            raise _RefusedError("its input and output have different types or scales")

    def clamp(self) -> tuple[int, int]:
        """The range of the output with the fused activation. Only the ones that are ranges."""
        activation = tflite_schema.ACTIVATIONS[self.operator.options.get("fused_activation_function", 0)]
        scale, zero = self._form(self.output, "the output")
        if activation not in _RANGES:
            raise _RefusedError(f"it has the fused activation {activation}")
        low, high = _RANGES[activation]
        bounds = [
            _round(float(bound / np.float32(scale))) + zero for bound in (low, high) if math.isfinite(bound)
        ]
        least = max(_INT8[0], bounds[0]) if math.isfinite(low) else _INT8[0]
        most = min(_INT8[1], bounds[-1]) if math.isfinite(high) else _INT8[1]
        return least, most

    def numbers(self, *rows: int) -> list[int]:
        return [self.build.number(row) for row in rows]

    def temporary(self, shape: Sequence[int], dtype: str = "") -> int:
        return self.build.tensor(dtype or self.output.dtype, shape)


_RANGES = {
    "NONE": (-math.inf, math.inf),
    "RELU": (0.0, math.inf),
    "RELU_N1_TO_1": (-1.0, 1.0),
    "RELU6": (0.0, 6.0),
}


def _meaning(tensor: TfliteTensor) -> object:
    form = tensor.quantisation
    return None if form is None else (form.scales, form.zero_points)


def _round(value: float) -> int:
    """TensorFlow Lite's rounding: halves away from zero."""
    return int(math.copysign(math.floor(abs(value) + 0.5), value))


def quantised_multiplier(real: float) -> tuple[int, int]:
    """Multiplier and shift of `real`: real = multiplier / 2^31 * 2^shift."""
    if not real:
        return 0, 0
    fraction, shift = math.frexp(real)
    multiplier = _round(fraction * (1 << 31))
    if multiplier == 1 << 31:
        multiplier, shift = multiplier >> 1, shift + 1
    return (0, 0) if shift < -31 else (multiplier, min(shift, 31))


def requantised(value: int, multiplier: int, shift: int) -> int:
    """value * multiplier / 2^31 * 2^shift, rounded as the kernels round it."""
    product = ((value << max(shift, 0)) * multiplier + (1 << 30)) >> 31
    right = max(-shift, 0)
    rest = product & ((1 << right) - 1)
    return (product >> right) + int(rest > (((1 << right) - 1) >> 1) + (product < 0))


# Operators that move data.


def _transpose(call: _Call) -> None:
    call.refuse_other_scale()
    order = [int(axis) for axis in call.constant(1)]
    if sorted(order) != list(range(len(call.tensor(0).shape))):
        raise _RefusedError(f"its permutation is {order}")
    call.build.kernel("aten::permute_copy.out", [call.value(0), call.build.numbers(order)], call.out)


def _reshape(call: _Call) -> None:
    call.refuse_other_scale()
    _view(call, call.value(0), call.tensor(0).elements)


def _shape(call: _Call) -> None:
    call.values.give(call.operator.outputs[0], np.array(call.tensor(0).shape, call.output.dtype))


def _view(call: _Call, source: int, elements: int) -> None:
    if elements != call.output.elements:
        raise _RefusedError("its output has another number of elements")
    call.build.kernel("aten::view_copy.out", [source, call.build.numbers(call.output.shape)], call.out)


def _pad(call: _Call) -> None:
    call.refuse_other_scale()
    shape = call.tensor(0).shape
    margins = call.constant(1)
    if margins.size != 2 * len(shape) or margins.min(initial=0) < 0:
        raise _RefusedError("its margins do not fit its input")
    form = call.tensor(0).quantisation
    fill = 0 if form is None else form.zero_points[0]
    if call.has(2):  # PADV2
        content = call.tensor(2)
        if not len(content.data) or content.elements != 1:
            raise _RefusedError("what it pads with is no constant")
        fill = int(content.array.reshape(-1)[0])
    pairs = margins.reshape(-1, 2)[::-1]  # ATen begins with the last axis
    flat = [int(size) for size in pairs.reshape(-1)]
    value = call.build.number(fill)
    call.build.kernel("aten::constant_pad_nd.out", [call.value(0), call.build.numbers(flat), value], call.out)


def _concatenation(call: _Call) -> None:
    if call.operator.options.get("fused_activation_function", 0):
        raise _RefusedError("it has a fused activation")
    for position in range(len(call.operator.inputs)):
        call.refuse_other_scale(position)
    rank = len(call.output.shape)
    axis = int(call.operator.options.get("axis", 0))
    if not -rank <= axis < rank:
        raise _RefusedError(f"its axis is {axis}")
    parts = call.build.tensors([call.value(position) for position in range(len(call.operator.inputs))])
    call.build.kernel("aten::cat.out", [parts, call.build.number(axis % rank)], call.out)


def _pack(call: _Call) -> None:
    for position in range(len(call.operator.inputs)):
        call.refuse_other_scale(position)
    rank = len(call.output.shape)
    axis = int(call.operator.options.get("axis", 0)) % max(rank, 1)
    parts = call.build.tensors([call.value(position) for position in range(len(call.operator.inputs))])
    call.build.kernel("aten::stack.out", [parts, call.build.number(axis)], call.out)


def _strided_slice(call: _Call) -> None:
    call.refuse_other_scale()
    shape, options = call.tensor(0).shape, call.operator.options
    if options.get("ellipsis_mask") or options.get("new_axis_mask") or options.get("offset"):
        raise _RefusedError("it has an ellipsis, a new axis or an offset")
    first, last, step = (call.constant(position) for position in (1, 2, 3))
    if not first.size == last.size == step.size <= len(shape) or step.min(initial=1) < 1:
        raise _RefusedError("its steps are not positive, or do not fit its input")
    ranges = []
    for axis, size in enumerate(shape):
        if axis >= first.size:
            ranges.append((0, size, 1))
            continue
        bits = {name: options.get(f"{name}_mask", 0) >> axis & 1 for name in ("begin", "end", "shrink_axis")}
        begin = 0 if bits["begin"] else int(np.clip(first[axis] + size * (first[axis] < 0), 0, size))
        end = size if bits["end"] else int(np.clip(last[axis] + size * (last[axis] < 0), 0, size))
        ranges.append((begin, begin + 1, 1) if bits["shrink_axis"] else (begin, end, int(step[axis])))
    _slices(call, ranges)


def _slice(call: _Call) -> None:
    call.refuse_other_scale()
    shape, first, sizes = call.tensor(0).shape, call.constant(1), call.constant(2)
    if not first.size == sizes.size == len(shape):
        raise _RefusedError("its ranges do not fit its input")
    ends = [
        size if count < 0 else begin + count for size, begin, count in zip(shape, first, sizes, strict=True)
    ]
    _slices(call, [(int(begin), int(end), 1) for begin, end in zip(first, ends, strict=True)])


def _slices(call: _Call, ranges: Sequence[tuple[int, int, int]]) -> None:
    """One axis after the other; the last call gives the output its shape."""
    shape, source = list(call.tensor(0).shape), call.value(0)
    for axis, (begin, end, step) in enumerate(ranges):
        if not 0 <= begin < end <= call.tensor(0).shape[axis]:
            raise _RefusedError(
                f"it takes {begin} to {end} of axis {axis}, which has {call.tensor(0).shape[axis]}"
            )
        if (begin, end, step) == (0, shape[axis], 1):
            continue
        shape[axis] = -(-(end - begin) // step)
        made = call.temporary(shape)
        arguments = call.numbers(axis, begin, end, step)
        call.build.kernel("aten::slice_copy.Tensor_out", [source, *arguments], made)
        source = made
    _view(call, source, prod(shape))


# State: a variable is read and assigned as a whole.


def _var_handle(call: _Call) -> None:
    call.values.add_handle(call.operator.outputs[0], _variable_name(call.operator))


def _read_variable(call: _Call) -> None:
    variable = call.values.variable(call.operator.inputs[0], call.output)
    _view(call, variable, call.output.elements)  # a copy: the variable may be assigned before this is used


def _assign_variable(call: _Call) -> None:
    tensor = call.tensor(1)
    variable = call.values.variable(call.operator.inputs[0], tensor)
    call.build.kernel("aten::view_copy.out", [call.value(1), call.build.numbers(tensor.shape)], variable)


def _nothing(call: _Call) -> None:
    """What a subgraph that is called once assigns is in the file of the program."""


# Operators that compute.


def _fully_connected(call: _Call) -> None:
    value, scale, zero = call.int8(0)
    weights, (out, out_scale, out_zero) = call.tensor(1), call.int8_output()
    if weights.type != "INT8" or len(weights.shape) != 2 or weights.quantisation is None:
        raise _RefusedError(f"its weights are {weights.type} {list(weights.shape)}")
    units, terms = weights.shape
    if (
        not terms
        or call.tensor(0).elements % terms
        or call.output.elements * terms != call.tensor(0).elements * units
    ):
        raise _RefusedError("its weights do not fit its input and output")
    rows, least_most = call.tensor(0).elements // terms, call.clamp()
    weight_zero = weights.quantisation.zero_points[0]
    if len(weights.data) and any(weights.quantisation.zero_points):
        raise _RefusedError("its weights have a zero point")
    form = weights.quantisation.scales
    scales = [
        quantised_multiplier(scale * row / out_scale) for row in form * (units if len(form) == 1 else 1)
    ]
    if len(scales) != units:
        raise _RefusedError("its weights have scales for another axis")
    given, made = call.temporary((rows, terms)), call.temporary((rows, units))
    call.build.kernel("aten::view_copy.out", [value, call.build.numbers((rows, terms))], given)
    if len(weights.data):
        image, result = call.temporary((1, 1, rows, terms)), call.temporary((1, 1, rows, units))
        call.build.kernel("aten::view_copy.out", [value, call.build.numbers((1, 1, rows, terms))], image)
        kernel = call.build.constant(weights.array.reshape(units, 1, 1, terms))
        _convolution(call, image, kernel, (zero, out_zero), scales, least_most, result)
        made = result
    elif call.has(2):
        raise _RefusedError("its weights are computed, and it has a bias")
    else:
        multiplier, shift = (call.build.numbers([row]) for row in scales[0])
        arguments = [
            given,
            call.value(1),
            call.build.none(),
            call.build.none(),
            *call.numbers(-zero, -weight_zero, out_zero),
        ]
        limits = call.numbers(least_most[1], least_most[0])
        call.build.kernel("cortex_m::quantized_linear.out", [*arguments, multiplier, shift, *limits], made)
    call.build.kernel("aten::view_copy.out", [made, call.build.numbers(call.output.shape)], out)


def _convolution(
    call: _Call,
    image: int,
    kernel: int,
    zeros: tuple[int, int],
    scales: Sequence[tuple[int, int]],
    limits: tuple[int, int],
    out: int,
) -> None:
    """A convolution of 1 x 1, whose output channels have scales of their own."""
    bias = call.build.none()
    if call.has(2):
        if call.tensor(2).type != "INT32" or call.tensor(2).elements != len(scales):
            raise _RefusedError(f"its bias is {call.tensor(2).type} {list(call.tensor(2).shape)}")
        bias = call.value(2)
    multipliers, shifts = (
        call.build.constant(np.array([row[part] for row in scales], np.int32)) for part in (0, 1)
    )
    pairs = [call.build.numbers(pair) for pair in ((1, 1), (0, 0), (1, 1))]
    offsets = call.numbers(-zeros[0], zeros[1])
    scratch = call.temporary((1,))
    arguments = [image, kernel, bias, *pairs, *offsets, multipliers, shifts, *call.numbers(*limits), scratch]
    call.build.kernel("cortex_m::quantized_conv2d_nhwc.out", arguments, out)


def _batch_matmul(call: _Call) -> None:
    left, left_scale, left_zero = call.int8(0)
    right, right_scale, right_zero = call.int8(1)
    out, out_scale, out_zero = call.int8_output()
    shapes = [list(call.tensor(position).shape) for position in (0, 1)]
    if len(shapes[0]) != len(shapes[1]) or len(shapes[0]) < 2 or shapes[0][:-2] != shapes[1][:-2]:
        raise _RefusedError(f"its operands are {shapes[0]} and {shapes[1]}")
    swapped = (bool(call.operator.options.get("adj_x")), not call.operator.options.get("adj_y"))
    operands = []
    for value, shape, swap in zip((left, right), shapes, swapped, strict=True):
        flat = [prod(shape[:-2]), *shape[-2:]]
        plain = call.temporary(flat)
        call.build.kernel("aten::view_copy.out", [value, call.build.numbers(flat)], plain)
        if swap:
            turned = call.temporary([flat[0], flat[2], flat[1]])
            call.build.kernel("aten::permute_copy.out", [plain, call.build.numbers((0, 2, 1))], turned)
            plain, flat = turned, [flat[0], flat[2], flat[1]]
        operands.append((plain, flat))
    (first, a), (second, b) = operands
    if a[2] != b[2] or call.output.elements != a[0] * a[1] * b[1]:
        raise _RefusedError(f"its operands are {shapes[0]} and {shapes[1]}")
    made = call.temporary((a[0], a[1], b[1]))
    scale = call.numbers(*quantised_multiplier(left_scale * right_scale / out_scale))
    offset = call.numbers(-left_zero, -right_zero, out_zero)
    arguments = [first, offset[0], second, offset[1], offset[2], *scale, call.temporary((1,))]
    call.build.kernel("cortex_m::quantized_batch_matmul.out", arguments, made)
    call.build.kernel("aten::view_copy.out", [made, call.build.numbers(call.output.shape)], out)


def _mul(call: _Call) -> None:
    (left, left_scale, left_zero), (right, right_scale, right_zero) = call.int8(0), call.int8(1)
    out, out_scale, out_zero = call.int8_output()
    scale = call.numbers(*quantised_multiplier(left_scale * right_scale / out_scale))
    zeros = call.numbers(left_zero, right_zero, out_zero)
    limits = call.clamp()
    made = out if limits == _INT8 else call.temporary(call.output.shape)
    call.build.kernel(
        "cortex_m::quantized_mul.out", [left, zeros[0], right, zeros[1], zeros[2], *scale], made
    )
    if made != out:
        call.build.kernel("aten::clamp.out", [made, *call.numbers(*limits)], out)


def _add(call: _Call, sign: int = 1) -> None:
    (left, left_scale, left_zero), (right, right_scale, right_zero) = call.int8(0), call.int8(1)
    out, out_scale, out_zero = call.int8_output()
    twice = 2 * max(left_scale, right_scale)
    scales = (left_scale / twice, right_scale / twice, twice / ((1 << _ADD_SHIFT) * out_scale))
    first, second, third = (quantised_multiplier(scale) for scale in scales)
    a, b, c = call.numbers(*first), call.numbers(sign * second[0], second[1]), call.numbers(*third)
    zeros = call.numbers(left_zero, right_zero, out_zero)
    arguments = [left, zeros[0], *a, right, zeros[1], *b, zeros[2], *c, *call.numbers(*call.clamp())]
    call.build.kernel("cortex_m::quantized_add.out", arguments, out)


def _softmax(call: _Call) -> None:
    value, scale, zero = call.int8(0)
    out, out_scale, out_zero = call.int8_output()
    if out_zero != _INT8[0] or not math.isclose(out_scale, 1 / 256, rel_tol=1e-3):
        raise _RefusedError("its output has another scale than 1/256")
    real = float(call.operator.options.get("beta", 1.0)) * scale * (1 << 26)
    multiplier, shift = quantised_multiplier(min(real, (1 << 31) - 1.0))
    arguments = call.numbers(len(call.output.shape) - 1, zero, out_zero, multiplier, shift, -128)
    call.build.kernel("cortex_m::softmax.out", [value, *arguments], out)


def _looked_up(
    function: Callable[[_Call, npt.NDArray[np.float64]], npt.NDArray[np.float64]],
) -> Callable[[_Call], None]:
    """The kernel of an operator of one int8 input: a table of what `function` makes of each real value."""

    def add(call: _Call) -> None:
        value, scale, zero = call.int8(0)
        out, out_scale, out_zero = call.int8_output()
        real = (np.arange(-128, 128) - zero) * scale
        with np.errstate(all="ignore"):
            made = function(call, real) / out_scale
        stored = [
            _INT8[0] if math.isnan(row) else _round(float(np.clip(row, -1e6, 1e6))) + out_zero for row in made
        ]
        _look_up(call, value, np.clip(stored, *_INT8), out)

    return add


def _look_up(call: _Call, value: int, table: npt.ArrayLike, out: int) -> None:
    content = call.build.constant(np.asarray(table).astype(np.int8))
    call.build.kernel("cortex_m::quantized_activation.out", [value, content], out)


def _quantize(call: _Call) -> None:
    source, form = call.tensor(0), call.output.quantisation
    if source.type == "INT8" and call.output.type == "INT8":
        value, scale, zero = call.int8(0)
        out, out_scale, out_zero = call.int8_output()
        by = quantised_multiplier(scale / out_scale)
        table = [requantised(row - zero, *by) + out_zero for row in range(-128, 128)]
        _look_up(call, value, np.clip(table, *_INT8), out)
        return
    if source.type != "FLOAT32" or form is None or len(form.scales) != 1 or call.output.dtype not in _DTYPES:
        raise _RefusedError(f"its kernel does not convert {source.type} to {call.output.type}")
    limits = np.iinfo(call.output.dtype)
    numbers = call.numbers(form.zero_points[0], int(limits.min), int(limits.max), _DTYPES[call.output.dtype])
    arguments = [call.value(0), call.build.real(form.scales[0]), *numbers]
    call.build.kernel("quantized_decomposed::quantize_per_tensor.out", arguments, call.out)


def _dequantize(call: _Call) -> None:
    source, form = call.tensor(0), call.tensor(0).quantisation
    if (
        form is None
        or len(form.scales) != 1
        or call.output.type != "FLOAT32"
        or source.dtype[:3] not in ("int", "uin")
    ):
        raise _RefusedError(f"its kernel does not convert {source.type} to {call.output.type}")
    limits = np.iinfo(source.dtype)
    numbers = call.numbers(form.zero_points[0], int(limits.min), int(limits.max), _DTYPES[source.dtype])
    arguments = [
        call.value(0),
        call.build.real(form.scales[0]),
        *numbers,
        call.build.number(_DTYPES["float32"]),
    ]
    call.build.kernel("quantized_decomposed::dequantize_per_tensor.out", arguments, call.out)


_STATE = ("VAR_HANDLE", "ASSIGN_VARIABLE", "CALL_ONCE")
_KERNELS: dict[str, Callable[[_Call], None]] = {
    "CALL_ONCE": _nothing,
    "VAR_HANDLE": _var_handle,
    "READ_VARIABLE": _read_variable,
    "ASSIGN_VARIABLE": _assign_variable,
    "TRANSPOSE": _transpose,
    "SHAPE": _shape,
    "RESHAPE": _reshape,
    "SQUEEZE": _reshape,
    "EXPAND_DIMS": _reshape,
    "PAD": _pad,
    "PADV2": _pad,
    "CONCATENATION": _concatenation,
    "PACK": _pack,
    "STRIDED_SLICE": _strided_slice,
    "SLICE": _slice,
    "FULLY_CONNECTED": _fully_connected,
    "BATCH_MATMUL": _batch_matmul,
    "MUL": _mul,
    "ADD": _add,
    "SUB": lambda call: _add(call, -1),
    "SOFTMAX": _softmax,
    "QUANTIZE": _quantize,
    "DEQUANTIZE": _dequantize,
    "LOGISTIC": _looked_up(lambda call, x: 1 / (1 + np.exp(-x))),
    "TANH": _looked_up(lambda call, x: np.tanh(x)),
    "EXP": _looked_up(lambda call, x: np.exp(x)),
    "RELU": _looked_up(lambda call, x: np.maximum(x, 0)),
    "RELU6": _looked_up(lambda call, x: np.clip(x, 0, 6)),
    "LEAKY_RELU": _looked_up(lambda call, x: np.where(x < 0, x * call.operator.options.get("alpha", 0.0), x)),
    "ELU": _looked_up(lambda call, x: np.where(x < 0, np.expm1(x), x)),
    "HARD_SWISH": _looked_up(lambda call, x: x * np.clip(x + 3, 0, 6) / 6),
}
ON_CPU = tuple(sorted(_KERNELS))
# Tables of real values, rounded once, where TensorFlow Lite computes in other steps.
_REAL = ("LOGISTIC", "TANH", "EXP", "RELU", "RELU6", "LEAKY_RELU", "ELU", "HARD_SWISH")
# What may have floats: it moves them.
MOVES = (
    "READ_VARIABLE",
    "VAR_HANDLE",
    *_SHAPED,
    "TRANSPOSE",
    "CONCATENATION",
    "SLICE",
    "STRIDED_SLICE",
    "PACK",
    "PAD",
)


def real_values(model: TfliteModel, network: TfliteModel) -> dict[int, str]:
    """The tensors of `model`, by index and name, that are computed as real values and rounded once: sums on the NPU,
    and what the CPU looks up in `network`, which Vela made of it."""
    looked_up = {
        network.main.tensors[row.outputs[0]].name
        for row in network.main.operators
        if row.name in _REAL and row.outputs
    }
    made = ((row.name, model.main.tensors[row.outputs[0]]) for row in model.main.operators if row.outputs)
    return {tensor.index: tensor.name for kind, tensor in made if kind == "SUM" or tensor.name in looked_up}
