"""The steps between a module and a `.pte`, each one call into torch, torchao or ExecuTorch 1.5.1."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ethosu_sdk.aot.lowering import left_out
from ethosu_sdk.aot.lowering.operator_names import operator_name
from ethosu_sdk.aot.model import plain_outputs
from ethosu_sdk.aot.model.initial_state import initialising_passes
from ethosu_sdk.aot.model.loading import first_line
from ethosu_sdk.aot.model.source_lines import SourceFinder, last_return
from ethosu_sdk.aot.quantization import kept_float, own_weights, ranges, whole_numbers
from ethosu_sdk.aot.quantization.prequantized_passes import replace_relu6
from ethosu_sdk.aot.repairs import kept_integers
from ethosu_sdk.aot.repairs.installed import repaired
from ethosu_sdk.aot.repairs.wide_indices import widening_pass
from ethosu_sdk.errors import DISK_FULL, BuildError, InputError, SdkError, UsageError
from ethosu_sdk.targets import Target

Tensors = tuple[Any, ...]
Adjust = Callable[[Any, Any], Any]  # Arm's quantiser and the module that it is for → the quantiser to take
_Result = TypeVar("_Result")


_LOG_HINT = "compile.log holds what the tools printed"
_PASS_MANAGER = "An error occurred when running the"
_NOT_CALIBRATED = "must run observer before"  # torchao's warning when it makes up a range
_BRANCHES_HINT = (
    "ExecuTorch lowers branches that hold weights for Ethos-U85 only; --no-delegate leaves all on the CPU"
)
_QUANTIZE = "quantized_decomposed::quantize_per_tensor"
_DEQUANTIZE = "quantized_decomposed::dequantize_per_tensor"
VELA_CONFIG = "Arm/vela.ini"  # the configuration file that comes with Vela


def compile_spec(target: Target, vela_config: str = VELA_CONFIG, vela_flags: Sequence[str] = ()) -> Any:
    """ExecuTorch's description of `target`. It may hold no path of this machine: all of it ends up in the
    `.pte`."""
    from executorch.backends.arm.ethosu import EthosUCompileSpec

    return EthosUCompileSpec(
        target.name,
        system_config=target.system_config,
        memory_mode=target.memory_mode,
        extra_flags=list(vela_flags),
        config_ini=vela_config,
    )


def run_eager(module: Any, inputs: Tensors) -> Tensors:
    """The outputs of `module` as a flat tuple of tensors. InputError when it fails or returns something
    else."""
    from torch.utils import _pytree

    return as_outputs(_pytree.tree_leaves(call(module, inputs)), module)


def call(module: Any, inputs: Tensors) -> Any:
    """What `module` returns for copies of `inputs`, which it may write to. InputError when it fails."""
    import torch

    try:
        with torch.no_grad():
            return module(*(item.clone() for item in inputs))
    except Exception as error:
        shapes = ", ".join(f"{str(item.dtype).removeprefix('torch.')} {tuple(item.shape)}" for item in inputs)
        raise InputError(
            f"the model's forward failed on the example inputs ({shapes}): {first_line(error)}"
        ) from error


def as_outputs(leaves: Sequence[Any], module: Any = None) -> Tensors:
    """The leaves of what `module` returned, as tensors. InputError with the line for something else."""
    import torch

    wrong = [type(item).__name__ for item in leaves if not isinstance(item, torch.Tensor)]
    if wrong or not leaves:
        place = None if module is None else last_return(module)
        raise InputError(
            f"the model's forward returns {f'a value of type {wrong[0]}' if wrong else 'nothing'}"
            + (f" at {place}" if place else "")
            + ": a program has tensors for outputs",
            "return tensors, alone or in tuples, lists and dicts; keep the rest out of forward",
        )
    return tuple(leaves)


def export(module: Any, inputs: Tensors, finder: SourceFinder | None = None) -> Any:
    """An ``ExportedProgram`` of `module`, which may be one already. `finder` names lines in errors."""
    import torch

    program = module
    if not isinstance(module, torch.export.ExportedProgram):
        copies = tuple(item.clone() for item in inputs)
        program = _guarded("torch.export could not trace the model", lambda: _traced(module, copies))
    _check_static(program, finder)
    return program


def _traced(module: Any, inputs: Tensors) -> Any:
    """The exported program of a module.

    Branches need torch's strict mode: the other cannot trace some, and loses the marks by which quantised ones are
    delegated.
    """
    import torch

    try:
        program = torch.export.export(module, inputs)
    except Exception as error:
        try:
            return torch.export.export(module, inputs, strict=True)
        except Exception:
            raise error from None
    return torch.export.export(module, inputs, strict=True) if has_branches(program) else program


def has_branches(program: Any) -> bool:
    """Whether a program holds ``torch.cond`` or ``while_loop``, whose branches are modules of their own."""
    from torch.ops import higher_order

    branching = (higher_order.cond, higher_order.while_loop)
    return any(node.target in branching for node in program.graph.nodes)


def _check_static(program: Any, finder: SourceFinder | None) -> None:
    """InputError when a shape in `program` is not a fixed one: the NPU's command stream holds numbers."""
    import torch
    from torch.utils import _pytree

    for node in program.graph.nodes:
        for value in _pytree.tree_leaves(node.meta.get("val")):
            if isinstance(value, torch.Tensor) and any(isinstance(n, torch.SymInt) for n in value.shape):
                shape = ", ".join(map(str, value.shape))
                place = finder and node.meta.get("stack_trace") and finder.place(node.meta)
                name = str(node.target) if node.op == "call_function" else f"'{node.name}'"
                raise InputError(
                    f"the model has dynamic shapes: that of {name} is [{shape}]"
                    + (f", at {place}" if place else ""),
                    "export it without dynamic_shapes, and without operators whose result's shape depends on data",
                )


def quantizer(spec: Any, quantize: str, *, per_channel: bool = True, fine: bool = True) -> Any:
    """Arm's quantiser for `quantize` (``int8``: int8 activations and weights; ``int16``: int16 activations and
    int8 weights); weights get a scale for each channel, or one for the tensor. `fine` is that of
    :func:`ranges.configuration`."""
    from executorch.backends.arm import quantizer as arm

    made = arm.EthosUQuantizer(spec)
    made.set_global(ranges.configuration(quantize, per_channel=per_channel, fine=fine))
    return kept_float.applied(made)


def prepare(
    program: Any, spec: Any, quantize: str, *, per_channel: bool = True, adjust: Adjust | None = None
) -> Any:
    """`program` as a module with the observers of :func:`quantizer`, or of what `adjust` makes of it."""
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

    # The guards that torch adds to an exported module are calls that PT2E's passes refuse.
    module = program.module(check_guards=False)
    replace_relu6(module)
    whole_numbers.keep_scalars(module)
    own_weights.separate(module)
    types, rounded = whole_numbers.output_types(module), whole_numbers.rounded_casts(module)
    chosen = _chosen(quantizer(spec, quantize, per_channel=per_channel), module, adjust)
    with kept_integers.whole():
        prepared = _guarded(
            "the model could not be prepared for quantisation", lambda: prepare_pt2e(module, chosen)
        )
    return whole_numbers.restore(whole_numbers.round_again(prepared, rounded), types)


def _chosen(default: Any, module: Any, adjust: Adjust | None) -> Any:
    return default if adjust is None else adjust(default, module)


def quantize_branches(
    program: Any,
    spec: Any,
    quantize: str,
    samples: Sequence[Tensors],
    *,
    per_channel: bool = True,
    adjust: Adjust | None = None,
) -> Any:
    """The quantised module of a `program` with branches, each a module that is quantised for itself.

    InputError when the calibration samples do not reach all of them: the ranges would be made up.
    """
    module = program.module(check_guards=False)
    types = whole_numbers.output_types(module)
    chosen = _chosen(quantizer(spec, quantize, per_channel=per_channel, fine=False), module, adjust)
    if not hasattr(chosen, "_quantize_with_submodules"):
        raise InputError(
            f"a {type(chosen).__name__} does not quantise the branches of torch.cond and while_loop",
            "take Arm's quantiser for this model",
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quantized = _guarded(
            "the model could not be quantised",
            lambda: chosen._quantize_with_submodules(module, list(samples)),
        )
    if any(_NOT_CALIBRATED in str(warning.message) for warning in caught):
        raise InputError(
            "the calibration samples do not reach every branch of the model: nothing is known of the values there",
            "give samples that take each branch of torch.cond and while_loop, with --calibration FILE.npz or "
            "'calibration' in the model's file",
        )
    return whole_numbers.restore(quantized, types)


def convert(prepared: Any) -> Any:
    """The quantised module of a `prepared` one that has seen its calibration samples."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e

    return _guarded("the model could not be quantised", lambda: convert_pt2e(prepared))


def lower(program: Any, spec: Any | None, *, etrecord: bool = False) -> Any:
    """The edge program, its delegates compiled by Vela for `spec`; with None, everything stays on the CPU. With
    `etrecord`, ExecuTorch keeps what its record of the lowering needs."""
    from executorch.backends.arm.ethosu import EthosUPartitioner
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    def attempt(check: Any) -> Any:
        return to_edge_transform_and_lower(
            program,
            partitioner=[] if spec is None else [EthosUPartitioner(spec, additional_checks=[check])],
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
            generate_etrecord=etrecord,
        )

    plain_outputs.flatten(program)
    with repaired(spec):
        return _guarded(
            "lowering to Ethos-U failed",
            lambda: left_out.lowered(program, attempt),
            _BRANCHES_HINT if has_branches(program) else _LOG_HINT,
        )


def quantize_io(edge: Any, inputs: Tensors, outputs: Tensors) -> Any:
    """`edge` with its first quantise and last dequantise operators removed: int8 in, int8 out. `inputs` and `outputs`
    are examples; what is int8 already stays. UsageError for an input or output without such an operator."""
    from executorch.exir.passes.quantize_io_pass import QuantizeInputs, QuantizeOutputs

    program = edge.exported_program()
    for index in _not_int8(inputs):
        _check_convertible(f"input {index}", _users(program, index), _QUANTIZE)
    results = list(program.graph.output_node().args[0])
    for index in _not_int8(outputs):
        _check_convertible(f"output {index}", [results[index]], _DEQUANTIZE)
    return _guarded(
        "the conversions from and to float could not be removed",
        lambda: edge.transform(
            [QuantizeInputs(edge, _not_int8(inputs)), QuantizeOutputs(edge, _not_int8(outputs))]
        ),
    )


def _users(program: Any, index: int) -> list[Any]:
    """The nodes that take an input of an edge program."""
    name = program.graph_signature.user_inputs[index]
    return [user for node in program.graph.nodes if node.name == name for user in node.users]


def _check_convertible(what: str, nodes: Sequence[Any], conversion: str) -> None:
    """UsageError unless `conversion` is the only operation among `nodes`, those that take an input or give an
    output."""
    found = [operator_name(node) or str(node) for node in nodes]
    if found != [conversion]:
        where = f"with {', '.join(found)}" if found else "with nothing"
        raise UsageError(
            f"--io int8 does not fit this model: its {what} is connected {where}, not with {conversion} alone",
            "compile it with --io float",
        )


def _not_int8(tensors: Tensors) -> list[int]:
    import torch

    return [index for index, tensor in enumerate(tensors) if tensor.dtype != torch.int8]


def to_executorch(edge: Any) -> Any:
    """The finished program manager: `.buffer` is the `.pte`, delegates stored in line."""
    from executorch.exir import ExecutorchBackendConfig

    passes = [widening_pass(), *initialising_passes(edge.exported_program())]
    config = ExecutorchBackendConfig(extract_delegate_segments=False, passes=passes)
    return _guarded("ExecuTorch could not emit the program", lambda: edge.to_executorch(config=config))


def quantized_io_values(edge: Any, kind: str, tensors: Sequence[Any]) -> Tensors:
    """Float `tensors` as the int8 values that the program takes (`kind` ``input``) or gives (``output``)."""
    import torch

    constants = edge._config_methods
    results = []
    for index, tensor in enumerate(tensors):
        if tensor.dtype == torch.int8:
            results.append(tensor)
            continue
        scale, zero_point, low, high = (
            constants[f"{kind}{index}_{key}"] for key in ("scale", "zp", "quant_min", "quant_max")
        )
        if low < -128 or high > 127:
            raise UsageError(
                f"--io int8 does not fit this model: {kind} {index} has the values {low} to {high}",
                "compile it with --io float",
            )
        quantize = torch.ops.quantized_decomposed.quantize_per_tensor.default
        results.append(quantize(tensor, scale, zero_point, low, high, torch.int8))
    return tuple(results)


def _guarded(what: str, action: Callable[[], _Result], hint: str = _LOG_HINT) -> _Result:
    """The result of `action`; anything it raises becomes a BuildError with `hint`. Vela ends with SystemExit."""
    try:
        return action()
    except SdkError:
        raise
    except OSError as error:
        if error.errno in DISK_FULL:
            raise
        raise BuildError(f"{what}: {first_line(error)}", hint) from error
    except (Exception, SystemExit) as error:
        raise BuildError(f"{what}: {first_line(_cause(error))}", hint) from error


def _cause(error: BaseException) -> BaseException:
    """What failed inside of one of ExecuTorch's passes: their manager's own error lists the names of all passes."""
    while str(error).startswith(_PASS_MANAGER) and error.__cause__ is not None:
        error = error.__cause__
    return error
