"""From a module to an exported program and to a `.pte`: each step one call into torch or ExecuTorch 1.5.1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.targets import Target
from ethosu_sdk.compile import functionalization, model_state
from ethosu_sdk.compile.graphs import fx
from ethosu_sdk.compile.graphs.fx import operator_name
from ethosu_sdk.compile.graphs.source_lines import SourceFinder
from ethosu_sdk.compile.model_state import initialising_passes
from ethosu_sdk.compile.rewrite import cortex_m, frame, partitioning
from ethosu_sdk.compile.rewrite.after_lowering import EDGE_DEQUANTIZE, EDGE_QUANTIZE
from ethosu_sdk.compile.rewrite.frame import rewrites_installed
from ethosu_sdk.compile.tool_hooks import LOG_HINT, guarded

Tensors = tuple[Any, ...]

VELA_CONFIG = "Arm/vela.ini"  # the configuration file that comes with Vela


def export_program(module: Any, inputs: Tensors, finder: SourceFinder | None = None) -> Any:
    """An ``ExportedProgram`` of `module`, which may be one already. `finder` names lines in errors."""
    import torch

    program = module
    if not isinstance(module, torch.export.ExportedProgram):
        copies = tuple(item.clone() for item in inputs)
        program = guarded("torch.export could not trace the model", lambda: _traced(module, copies))
    _check_static(program, finder)
    return program


def _traced(module: Any, inputs: Tensors) -> Any:
    """The exported program of a module.

    Branches need torch's strict mode: the other cannot trace some, and loses the marks by which quantised ones are
    delegated.
    """
    import torch

    try:
        with model_state.assignments_kept(module):
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


def refuse_training_mode(program: Any, finder: SourceFinder) -> None:
    """InputError when an operator of an ``ExportedProgram``, or of a branch in it, is in training mode: it draws
    random numbers, or changes the model as it runs."""
    for node in fx.all_nodes(program.graph_module):
        schema = getattr(node.target, "_schema", None)
        if schema is not None and _trains(node, schema):
            place = finder.place(node.meta)
            raise InputError(
                f"the model is in training mode: {schema.name}{f' at {place}' if place else ''} draws random numbers "
                "or changes with each run",
                "call model.eval() before torch.export.export, and pass training=self.training to functions of "
                "torch.nn.functional; after quantisation-aware training, call move_exported_model_to_eval(model) "
                "before convert_pt2e(model)",
            )


def _trains(node: Any, schema: Any) -> bool:
    """Whether a call is one of training, by the names that torch's schemas give to the arguments."""
    names = [argument.name for argument in schema.arguments]
    arguments = {argument.name: argument.default_value for argument in schema.arguments}
    arguments |= {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    probability, switch = (
        next((arguments[name] for name in words if name in arguments), None)
        for words in (("p", "dropout", "dropout_p"), ("train", "training"))
    )
    if "dropout_p" in arguments:  # attention has no switch
        return bool(probability)
    if not switch or probability == 0:
        return False
    if probability is not None or "generator" in arguments:  # rrelu draws slopes, and drops nothing
        return True
    # Without running statistics, a normalisation takes those of the batch in either mode.
    return arguments.get("running_mean") is not None


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


def lower_program(
    program: Any, spec: Any | None, *, whole: bool = False, etrecord: bool = False, converts: bool = False
) -> Any:
    """The edge program, its delegates compiled by Vela for `spec`; with None, everything stays on the CPU. `whole`
    keeps operators whole that the Cortex-M backend's passes look for. With `etrecord`, ExecuTorch keeps what its
    record of the lowering needs. If the program `converts` its inputs and outputs from float and to float, it changes
    the layout of images as it does so."""
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

    functionalization.flatten_outputs(program)
    if spec is not None and converts:
        program = frame.rewrite_converted(program, spec.target)
    ethos_u85 = spec is not None and spec.target.startswith("ethos-u85")
    hint = LOG_HINT
    if has_branches(program):
        hint = (
            "ExecuTorch lowers branches with weights only for Ethos-U85; --no-delegate keeps every operator on "
            "the CPU"
        )
    with rewrites_installed(spec):
        return guarded(
            "lowering to Ethos-U failed",
            lambda: partitioning.lower_leaving_out(program, attempt, ethos_u85=ethos_u85),
            hint,
        )


def quantize_io(edge: Any, inputs: Tensors, outputs: Tensors) -> Any:
    """`edge` with its first quantise and last dequantise operators removed: int8 in, int8 out. `inputs` and `outputs`
    are examples; what is int8 already stays. UsageError for an input or output without such an operator."""
    import torch
    from executorch.exir.passes.quantize_io_pass import QuantizeInputs, QuantizeOutputs

    program = edge.exported_program()
    nodes = {node.name: node for node in program.graph.nodes}
    float_inputs, float_outputs = (
        [index for index, tensor in enumerate(tensors) if tensor.dtype != torch.int8]
        for tensors in (inputs, outputs)
    )
    for index in float_inputs:
        users = list(nodes[program.graph_signature.user_inputs[index]].users)
        _check_convertible(f"input {index}", users, EDGE_QUANTIZE)
    results = list(program.graph.output_node().args[0])
    for index in float_outputs:
        _check_convertible(f"output {index}", [results[index]], EDGE_DEQUANTIZE)
    return guarded(
        "the conversions from and to float could not be removed",
        lambda: edge.transform([QuantizeInputs(edge, float_inputs), QuantizeOutputs(edge, float_outputs)]),
    )


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


def join_methods(edges: Mapping[str, Any]) -> Any:
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
        frame.rewrite_for_emission(program)
    config = ExecutorchBackendConfig(
        emit_mutable_buffer_names=True,
        extract_delegate_segments=False,
        passes=[part for program in programs for part in initialising_passes(program)],
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
