"""The steps between a module and a `.pte`, each one call into torch, torchao or ExecuTorch 1.5.1."""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ethosu_sdk.aot.model_loading import as_inputs, first_line
from ethosu_sdk.errors import BuildError, InputError, SdkError, UsageError
from ethosu_sdk.targets import Target

Tensors = tuple[Any, ...]
_Result = TypeVar("_Result")


DISK_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
_LOG_HINT = "compile.log holds what the tools printed"
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
    import torch
    from torch.utils import _pytree

    try:
        with torch.no_grad():
            result = module(*inputs)
    except Exception as error:
        shapes = ", ".join(f"{str(item.dtype).removeprefix('torch.')} {tuple(item.shape)}" for item in inputs)
        raise InputError(
            f"the model's forward failed on the example inputs ({shapes}): {first_line(error)}"
        ) from error
    return as_inputs(tuple(_pytree.tree_leaves(result)), "what the model's forward returns")


def export(module: Any, inputs: Tensors) -> Any:
    """An ``ExportedProgram`` of `module`, which may be one already."""
    import torch

    program = module
    if not isinstance(module, torch.export.ExportedProgram):
        program = _guarded(
            "torch.export could not trace the model", lambda: torch.export.export(module, inputs)
        )
    _check_static(program)
    return program


def _check_static(program: Any) -> None:
    """InputError when a shape in `program` is not a fixed one: the NPU's command stream holds numbers."""
    import torch
    from torch.utils import _pytree

    for node in program.graph.nodes:
        for value in _pytree.tree_leaves(node.meta.get("val")):
            if isinstance(value, torch.Tensor) and any(isinstance(n, torch.SymInt) for n in value.shape):
                shape = ", ".join(map(str, value.shape))
                raise InputError(
                    f"the model has dynamic shapes: that of '{node.name}' is [{shape}]",
                    "export it without dynamic_shapes, and without operators whose result's shape depends on data",
                )


def prepare(program: Any, spec: Any, quantize: str, *, per_channel: bool = True) -> Any:
    """`program` as a module with observers for `quantize` (``int8``: int8 activations and weights; ``int16``:
    int16 activations and int8 weights); weights get a scale for each channel, or one for the tensor."""
    from executorch.backends.arm import quantizer as arm
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

    configurations = {
        "int8": arm.get_symmetric_quantization_config,
        "int16": arm.get_symmetric_a16w8_quantization_config,
    }
    quantizer = arm.EthosUQuantizer(spec)
    quantizer.set_global(configurations[quantize](is_per_channel=per_channel))
    # The guards that torch adds to an exported module are calls that PT2E's passes refuse.
    module = program.module(check_guards=False)
    return _guarded(
        "the model could not be prepared for quantisation", lambda: prepare_pt2e(module, quantizer)
    )


def convert(prepared: Any) -> Any:
    """The quantised module of a `prepared` one that has seen its calibration samples."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e

    return _guarded("the model could not be quantised", lambda: convert_pt2e(prepared))


def lower(program: Any, spec: Any | None) -> Any:
    """The edge program, its delegates compiled by Vela for `spec`; with None, everything stays on the CPU."""
    from executorch.backends.arm.ethosu import EthosUPartitioner
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    partitioners = [] if spec is None else [EthosUPartitioner(spec)]
    return _guarded(
        "lowering to Ethos-U failed",
        lambda: to_edge_transform_and_lower(
            program, partitioner=partitioners, compile_config=EdgeCompileConfig(_check_ir_validity=False)
        ),
    )


def quantize_io(edge: Any, inputs: int, outputs: int) -> Any:
    """`edge` with its first quantise and last dequantise operators removed: int8 in, int8 out."""
    from executorch.exir.passes.quantize_io_pass import QuantizeInputs, QuantizeOutputs

    try:
        return edge.transform(
            [QuantizeInputs(edge, list(range(inputs))), QuantizeOutputs(edge, list(range(outputs)))]
        )
    except (ValueError, AssertionError) as error:
        raise UsageError(
            f"--io int8 does not fit this model: {first_line(error)}", "compile it with --io float"
        ) from error


def to_executorch(edge: Any) -> Any:
    """The finished program manager: `.buffer` is the `.pte`, delegates stored in line."""
    from executorch.exir import ExecutorchBackendConfig

    config = ExecutorchBackendConfig(extract_delegate_segments=False)
    return _guarded("ExecuTorch could not emit the program", lambda: edge.to_executorch(config=config))


def quantized_io_values(edge: Any, kind: str, tensors: Sequence[Any]) -> Tensors:
    """Float `tensors` as the int8 values that the program takes (`kind` ``input``) or gives (``output``)."""
    import torch

    constants = edge._config_methods
    results = []
    for index, tensor in enumerate(tensors):
        scale, zero_point, low, high = (
            constants[f"{kind}{index}_{key}"] for key in ("scale", "zp", "quant_min", "quant_max")
        )
        quantize = torch.ops.quantized_decomposed.quantize_per_tensor.default
        results.append(quantize(tensor, scale, zero_point, low, high, torch.int8))
    return tuple(results)


def _guarded(what: str, action: Callable[[], _Result]) -> _Result:
    """The result of `action`; anything it raises becomes a BuildError. Vela ends with SystemExit."""
    try:
        return action()
    except SdkError:
        raise
    except OSError as error:
        if error.errno in DISK_FULL:
            raise
        raise BuildError(f"{what}: {first_line(error)}", _LOG_HINT) from error
    except (Exception, SystemExit) as error:
        raise BuildError(f"{what}: {first_line(error)}", _LOG_HINT) from error
