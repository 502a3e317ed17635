"""Refuses models that cannot become a program for the NPU, before quantisation and lowering: tensors of complex or
half precision types, weights and values that are not numbers, control flow that depends on data, random numbers.
ExecuTorch would carry some of it to the CPU, fail in a late pass, or quantise it to something that means nothing."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ethosu_sdk.base import plain_text
from ethosu_sdk.base.errors import BuildError, InputError, SdkError, UsageError
from ethosu_sdk.compile.graphs import execution, fx
from ethosu_sdk.compile.graphs.source_lines import SourceFinder

Tensors = tuple[Any, ...]

# What operators are told that draw while a model is trained alone: :func:`lowering.refuse_training_mode` refuses
# those.
_SWITCHES = frozenset(("train", "training", "dropout_p"))
_RANDOM_HINT = (
    "neither the NPU nor its runtime generates random numbers: generate the noise outside and pass it to the model "
    "as another input, or use a constant"
)
# What else PyTorch has, such as qint8 and bits8, NumPy and a .pte's runtime lack.
_TYPES = {
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float32", "float64"),
}
_TYPE_HINT = "give float32 or integers of 8 to 64 bits; give a quantised tensor as `x.dequantize()`"
_HALF_HINT = (
    "compile the float32 model: `model.float()`, float32 inputs, no torch.autocast; compile quantises it"
)
_COMPLEX_HINT = (
    "neither the NPU nor its runtime has complex numbers: compute the spectrum outside and pass features to the "
    "model, or use real arithmetic, such as a Conv1d with cosine and sine kernels followed by a sum of squares"
)
_NAN_INPUT_HINT = "give samples from real data"
_NAN_OUTPUT_HINT = (
    "guard the operation, such as with clamp(min=1e-6) before log, sqrt or a division, or give example inputs from "
    "real data"
)
_SCRIPT_HINT = (
    "compile the nn.Module that it was scripted or traced from; net.load_state_dict(script.state_dict()) loads its "
    "weights"
)
_WEIGHTS_HINT = "the training diverged, or the file is damaged: load weights that are all finite"
_BRANCH_HINT = (
    "the NPU's command stream is fixed: compute both sides and choose with torch.where, or write "
    "torch.cond(condition, f, g, (x,)); replace numbers taken from the data (.item(), int(), range()) by constants "
    "or tensor operations; an index that is a buffer or an input needs one dimension: "
    "torch.zeros(1, dtype=torch.int64)"
)
# The names of torch's errors for control flow and shapes that depend on data, and what others say of it.
_DATA_DEPENDENT_ERRORS = (
    "GuardOnDataDependentSymNode",
    "DataDependentOutputException",
    "DynamicOutputShapeException",
)
_DATA_DEPENDENT = ("data-dependent", "data dependent", "Data-dependent", "PendingUnbackedSymbolNotFound")
# A buffer with these names is a divisor or an offset; any other may be a mask, in which infinity has a meaning.
_STATISTICS = ("running_mean", "running_var")


def check_module(module: Any, where: str) -> None:
    """InputError for weights that are of a type that cannot be compiled, or not numbers. `module` may be an
    ExportedProgram."""
    import torch

    if isinstance(module, torch.jit.ScriptModule):
        raise InputError(f"{where} is a TorchScript module, which cannot be exported", _SCRIPT_HINT)
    if isinstance(module, torch.export.ExportedProgram):
        parameters: Iterable[tuple[str, Any]] = module.state_dict.items()
        buffers: Iterable[tuple[str, Any]] = module.constants.items()
    else:
        parameters, buffers = module.named_parameters(), module.named_buffers()
    for what, named in (("parameter", parameters), ("buffer", buffers)):
        tensors = [(name, value) for name, value in named if isinstance(value, torch.Tensor)]
        refused = [(name, dtype) for name, value in tensors if _hint_of_type(dtype := _dtype(value))]
        if refused:
            name, dtype = refused[0]
            more = f", and {len(refused) - 1} more are" if len(refused) > 1 else ""
            raise InputError(f"{what} '{name}' of {where} is {dtype}{more}", _hint_of_type(dtype))
        for name, value in tensors:
            _check_weight_values(name, value, what, where)


def _check_weight_values(name: str, value: Any, what: str, where: str) -> None:
    if not value.is_floating_point() or value.is_meta:
        return
    nans = int(value.isnan().sum())
    infinite = int(value.isinf().sum())
    if nans:
        raise InputError(
            f"{what} '{name}' of {where} holds NaN, {nans:,} of its {value.numel():,} values", _WEIGHTS_HINT
        )
    if infinite and (what == "parameter" or name.endswith(_STATISTICS)):
        raise InputError(
            f"{what} '{name}' of {where} holds infinity, {infinite:,} of its {value.numel():,} values",
            _WEIGHTS_HINT,
        )


def check_types(tensors: Tensors, what: str) -> None:
    """InputError for inputs of a type that cannot be compiled; `what` names them, and their number follows."""
    for index, tensor in enumerate(tensors):
        dtype = _dtype(tensor)
        if hint := _hint_of_type(dtype):
            raise InputError(f"{what} {index} is {dtype}", hint)


def check_values(tensors: Tensors, what: str) -> None:
    """InputError for inputs that are not finite, which no quantised value can stand for."""
    for index, tensor in enumerate(tensors):
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            kind = "NaN" if bool(tensor.isnan().any()) else "infinity"
            bad = int((~tensor.isfinite()).sum())
            raise InputError(
                f"{what} {index} holds {kind}: {bad:,} of its {tensor.numel():,} values are not finite",
                _NAN_INPUT_HINT,
            )


def check_program(program: Any, finder: SourceFinder) -> None:
    """InputError for complex or half precision values on the way, numbers taken out of tensors, random numbers."""
    import torch
    from torch.utils import _pytree

    unknown = (torch.SymInt, torch.SymFloat, torch.SymBool)  # numbers that are known at run time alone
    refused: list[tuple[str, Any]] = []
    for node in fx.all_nodes(program.graph_module):
        _check_random(node, finder)
        values = [v for v in _pytree.tree_leaves(node.meta.get("val")) if isinstance(v, torch.Tensor)]
        refused += [(_dtype(value), node) for value in values if _hint_of_type(_dtype(value))]
        # Inside of a loop's body, a number may be its counter.
        numbers = node.all_input_nodes if values and node.graph is program.graph else ()
        if any(isinstance(source.meta.get("val"), unknown) for source in numbers):
            raise _depends_on_data(finder.place(node.meta) or f"operator {node.target}")
    if refused:
        # torch records no line with the regions of autocast themselves.
        places = [finder.place(node.meta) for _, node in refused if node.meta.get("stack_trace")]
        dtype, first = refused[0]
        place = places[0] if places else "an unknown line"
        raise InputError(
            f"the model computes {dtype} values in {first.target} at {place}", _hint_of_type(dtype)
        )


def _check_random(node: Any, finder: SourceFinder) -> None:
    import torch

    schema = getattr(node.target, "_schema", None)
    if schema is None or torch.Tag.nondeterministic_seeded not in node.target.tags:
        return
    if not _SWITCHES.intersection(argument.name for argument in schema.arguments):
        place = finder.place(node.meta)
        raise InputError(
            f"the model draws random numbers: {schema.name}" + (f" at {place}" if place else ""), _RANDOM_HINT
        )


def check_outputs(outputs: Tensors, program: Any, inputs: Tensors, finder: SourceFinder) -> None:
    """InputError when the model's outputs for the example inputs hold NaN, with the line where that begins."""
    if not any(item.is_floating_point() and bool(item.isnan().any()) for item in outputs):
        return
    found = _first_nan(program, inputs)
    place = finder.place(found) if found is not None else None
    raise InputError(
        "the model gives NaN on the example inputs" + (f", first at {place}" if place else ""),
        _NAN_OUTPUT_HINT,
    )


@contextlib.contextmanager
def explained(finder: SourceFinder) -> Iterator[None]:
    """Errors of running and tracing the model, with the user's own line; InputError for what depends on data."""
    try:
        yield
    except (BuildError, InputError) as error:
        if error.__cause__ is None:
            raise
        place = finder.place_of(error.__cause__)
        if _is_data_dependent(error.__cause__):
            raise _depends_on_data(place or f"({plain_text.error(error.__cause__)})") from error
        if place is None:
            raise
        raise type(error)(f"{error.message}, at {place}", error.hint) from error


def _depends_on_data(place: str) -> SdkError:
    return InputError(
        f"the model's control flow or shapes depend on the values of its data, at {place}", _BRANCH_HINT
    )


def _is_data_dependent(error: BaseException) -> bool:
    names = [kind.__name__ for kind in type(error).__mro__]
    if any(name in names for name in _DATA_DEPENDENT_ERRORS):
        return True
    return type(error).__module__.startswith("torch.") and any(word in str(error) for word in _DATA_DEPENDENT)


def _dtype(tensor: Any) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _hint_of_type(dtype: str) -> str:
    if dtype.startswith("complex"):
        return _COMPLEX_HINT
    if dtype.startswith(("float4", "float8", "float16", "bfloat16")):
        return _HALF_HINT
    return "" if dtype in _TYPES else _TYPE_HINT


def _first_nan(program: Any, inputs: Tensors) -> Mapping[str, Any] | None:
    """The `meta` of the first node of `program` that makes NaN of `inputs`."""
    found: list[Mapping[str, Any]] = []

    def note(node: Any, result: Any) -> None:
        floats = (leaf for leaf in execution.tensors_of(result) if leaf.is_floating_point())
        if not found and any(bool(leaf.isnan().any()) for leaf in floats):
            found.append(dict(node.meta))

    with contextlib.suppress(Exception):
        execution.run_graph(program.module(check_guards=False), inputs, note=note)
    return found[0] if found else None


# How large a recurrent network becomes: ExecuTorch unrolls GRU, LSTM and RNN, each step a set of operators.
#
# An Ethos-U has no loop, so a sequence of T steps is T copies in the command stream; the time of every pass
# of the compiler grows with their number.

LIMIT_VARIABLE = "ETHOSU_SDK_MAX_UNROLLED_OPERATORS"
_LIMIT = 4000
WORTH_A_WARNING = 800
_UNROLLING_HINT = (
    "process fewer steps in one inference and pass the state as an input and an output of the model, or use "
    "convolutions over time (a TCN) instead; if time does not matter, {} raises the limit"
)
# How many operators ExecuTorch 1.5.1's passes make of a step. Of a GRU: 2 linear, 7 slices and selects, 10
# element-wise, 1 unsqueeze.
_SEQUENCES = {"aten::gru": 20, "aten::lstm": 18, "aten::rnn_tanh": 6, "aten::rnn_relu": 6}
# The cells that a loop of the user's own calls step by step.
_CELLS = {"aten::gru_cell": 18, "aten::lstm_cell": 16, "aten::rnn_tanh_cell": 4, "aten::rnn_relu_cell": 4}


def unrolling_warning(program: Any, finder: SourceFinder) -> str | None:
    """A warning for a program whose recurrent layers make it large, or None. InputError beyond the limit."""
    rows = list(_recurrent(program))
    steps, operators = sum(row[0] for row in rows), sum(row[1] for row in rows)
    if operators <= WORTH_A_WARNING:
        return None
    place = finder.place(max(rows, key=lambda row: row[1])[2])
    what = (
        f"recurrent layers{f' (at {place})' if place else ''} unroll: {steps:,} steps become about "
        f"{operators:,} operators"
    )
    limit = _unrolling_limit()
    if operators > limit:
        raise InputError(
            f"the model's {what}, but the limit is {limit:,}", _UNROLLING_HINT.format(LIMIT_VARIABLE)
        )
    return f"The {what}, which takes long to compile. Fewer steps in one inference, with the state passed on, do not."


def _recurrent(program: Any) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    """(steps, operators, meta) of each recurrent node."""
    for node in program.graph.nodes:
        schema: Any = getattr(node.target, "_schema", None)
        name = getattr(schema, "name", "")
        if name in _CELLS:
            yield 1, _CELLS[name], node.meta
        elif name in _SEQUENCES and schema.overload_name == "input":
            layers, bidirectional, batch_first = node.args[4], node.args[7], node.args[8]
            shape = node.args[0].meta["val"].shape
            steps = int(shape[1 if batch_first else 0]) * int(layers) * (2 if bidirectional else 1)
            yield steps, steps * _SEQUENCES[name], node.meta


def _unrolling_limit() -> int:
    text = os.environ.get(LIMIT_VARIABLE)
    if text is None:
        return _LIMIT
    if not text.isdecimal():
        raise UsageError(
            f"{LIMIT_VARIABLE} is '{text}', not a number", "give it a number of operators, or unset it"
        )
    return int(text)
