"""From an exported program to a `.pte`: each step one call into ExecuTorch 1.5.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ethosu_sdk.aot.graph.fx import operator_name
from ethosu_sdk.aot.lowering import cortex_m, left_out
from ethosu_sdk.aot.lowering.exporting import has_branches
from ethosu_sdk.aot.lowering.guarding import LOG_HINT, guarded
from ethosu_sdk.aot.lowering.integer_state import DEQUANTIZE, QUANTIZE
from ethosu_sdk.aot.model import plain_outputs
from ethosu_sdk.aot.model.initial_state import initialising_passes
from ethosu_sdk.aot.repairs import lost_write_backs, narrowed_indices, passes
from ethosu_sdk.aot.repairs.installed import repaired
from ethosu_sdk.errors import UsageError
from ethosu_sdk.targets import Target

Tensors = tuple[Any, ...]

_BRANCHES_HINT = (
    "ExecuTorch lowers branches with weights only for Ethos-U85; --no-delegate keeps every operator on the "
    "CPU"
)
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


def lower(program: Any, spec: Any | None, *, whole: bool = False, etrecord: bool = False) -> Any:
    """The edge program, its delegates compiled by Vela for `spec`; with None, everything stays on the CPU. `whole`
    keeps operators whole that the Cortex-M backend's passes look for. With `etrecord`, ExecuTorch keeps what its
    record of the lowering needs."""
    from executorch.backends.arm.ethosu import EthosUPartitioner
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower

    def attempt(check: Any) -> Any:
        return to_edge_transform_and_lower(
            program,
            partitioner=[] if spec is None else [EthosUPartitioner(spec, additional_checks=[check])],
            compile_config=cortex_m.edge_configuration()
            if whole
            else EdgeCompileConfig(_check_ir_validity=False),
            generate_etrecord=etrecord,
        )

    plain_outputs.flatten(program)
    ethos_u85 = spec is not None and spec.target.startswith("ethos-u85")
    with repaired(spec):
        return guarded(
            "lowering to Ethos-U failed",
            lambda: left_out.lowered(program, attempt, ethos_u85=ethos_u85),
            _BRANCHES_HINT if has_branches(program) else LOG_HINT,
        )


def quantize_io(edge: Any, inputs: Tensors, outputs: Tensors) -> Any:
    """`edge` with its first quantise and last dequantise operators removed: int8 in, int8 out. `inputs` and `outputs`
    are examples; what is int8 already stays. UsageError for an input or output without such an operator."""
    from executorch.exir.passes.quantize_io_pass import QuantizeInputs, QuantizeOutputs

    program = edge.exported_program()
    for index in _not_int8(inputs):
        _check_convertible(f"input {index}", _users(program, index), QUANTIZE)
    results = list(program.graph.output_node().args[0])
    for index in _not_int8(outputs):
        _check_convertible(f"output {index}", [results[index]], DEQUANTIZE)
    return guarded(
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
            f"--io int8 does not fit this model: its {what} is connected {where}, not only with {conversion}",
            "compile it with --io float",
        )


def _not_int8(tensors: Tensors) -> list[int]:
    import torch

    return [index for index, tensor in enumerate(tensors) if tensor.dtype != torch.int8]


def joined(edges: Mapping[str, Any]) -> Any:
    """One edge program of the single methods `edges`, by their names. Scales of int8 inputs and outputs get the
    method's name in front."""
    from executorch.exir import EdgeCompileConfig, EdgeProgramManager

    constants = {
        f"{method}_{name}": value
        for method, edge in edges.items()
        for name, value in (edge._config_methods or {}).items()
    }
    return EdgeProgramManager(
        {name: edge.exported_program() for name, edge in edges.items()},
        constants or None,
        EdgeCompileConfig(_check_ir_validity=False),
    )


def to_executorch(edge: Any) -> Any:
    """The finished program manager: `.buffer` is the `.pte`, delegates stored in line. Several methods share the
    memory of buffers of the same name."""
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.passes import MemoryPlanningPass

    programs = [edge.exported_program(name) for name in sorted(edge.methods)]
    for program in programs:
        lost_write_backs.repair(program)
    added = [
        passes.of_edge("WidenIndicesPass", narrowed_indices.repair),
        *(part for program in programs for part in initialising_passes(program)),
    ]
    config = ExecutorchBackendConfig(
        emit_mutable_buffer_names=True,
        extract_delegate_segments=False,
        passes=added,
        memory_planning_pass=MemoryPlanningPass(share_mutable_buffers=len(programs) > 1),
    )
    return guarded("ExecuTorch could not emit the program", lambda: edge.to_executorch(config=config))


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
                f"--io int8 does not fit this model: {kind} {index} is quantised to values from {low} to {high}",
                "compile it with --io float",
            )
        quantize = torch.ops.quantized_decomposed.quantize_per_tensor.default
        results.append(quantize(tensor, scale, zero_point, low, high, torch.int8))
    return tuple(results)
