"""Networks lowered for a Cortex-M without an NPU, as ExecuTorch's compiler does for `-t cortex-m55`."""

import importlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from tests.kernels.interpreter.models import Array, exact_integer_convolutions, lowering


@dataclass(frozen=True)
class Network:
    """A program, its inputs in memory order, and the outputs of the dialect's references for them.

    `operators` has for each output the operators of the edge program that it depends on.
    """

    program: bytes
    inputs: list[Array]
    expected: list[Array]
    operators: list[frozenset[str]]


def lower_network(name: str) -> Network:
    """A network of ExecuTorch's examples/models/mlperf_tiny, with random weights and statistics."""
    import torch

    torch.manual_seed(0)
    model, example = _example(name)
    # An input without a tie in ResNet-8's average pool, which Arm's runner rounds otherwise than the references.
    x = torch.randn(example.shape).to(memory_format=torch.channels_last)
    samples = [(torch.randn_like(x),) for _ in range(3)]
    return lower(model, samples, (x,))


def lower(
    model: Any, samples: Sequence[tuple[Any, ...]], inputs: tuple[Any, ...], quantizer: Any = None
) -> Network:
    """The model, quantised by what it makes of `samples`, and what the references make of `inputs`.

    `quantizer` is ExecuTorch's for Cortex-M, unless it is given.
    """
    logging.getLogger("executorch").setLevel(logging.ERROR)
    with lowering():
        edge = _edge_program(model, samples, quantizer)
        operators = _operators_behind_outputs(edge.exported_program())
        stored = [_in_memory_order(tensor) for tensor in inputs]
        with exact_integer_convolutions():
            outputs = edge.exported_program().module(check_guards=False)(*inputs)
        program = bytes(edge.to_executorch().buffer)
    many = outputs if isinstance(outputs, tuple | list) else [outputs]
    expected = [numpy.array(output.detach().numpy(), order="C") for output in many]
    return Network(program, stored, expected, operators)


def _operators_behind_outputs(program: Any) -> list[frozenset[str]]:
    behind: dict[str, frozenset[str]] = {}
    for node in program.graph.nodes:
        # Python's own functions have no dot: getitem, and alloc of scratch memory.
        own = {name for name in [getattr(node.target, "__name__", "")] if "." in name}
        behind[node.name] = frozenset(own).union(*(behind[source.name] for source in node.all_input_nodes))
    return [behind[name] for name in program.graph_signature.user_outputs]


def _in_memory_order(tensor: Any) -> Array:
    return numpy.array(tensor.permute(tensor.dim_order()).contiguous().numpy())


def _example(name: str) -> tuple[Any, Any]:
    import torch

    module = importlib.import_module(f"executorch.examples.models.mlperf_tiny.{name}")
    own = [value for value in vars(module).values() if getattr(value, "__module__", "") == module.__name__]
    wrapper = next(value for value in own if hasattr(value, "get_eager_model"))()
    model = wrapper.get_eager_model().eval().to(memory_format=torch.channels_last)
    for layer in model.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.running_mean.normal_(0, 0.1)
            layer.running_var.uniform_(0.5, 1.5)
    return model, wrapper.get_example_inputs()[0].to(memory_format=torch.channels_last)


def _edge_program(model: Any, samples: Sequence[tuple[Any, ...]], quantizer: Any) -> Any:
    import torch
    from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config
    from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
    from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
    from executorch.exir import to_edge
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    example = tuple(tensor.clone() for tensor in samples[0])
    module = torch.export.export(model, example).module(check_guards=False)
    prepared = prepare_pt2e(module, quantizer or CortexMQuantizer())
    for sample in samples:
        prepared(*(tensor.clone() for tensor in sample))
    exported = torch.export.export(convert_pt2e(prepared), example)
    edge = to_edge(exported, compile_config=cortex_m_edge_compile_config())
    edge._edge_programs["forward"] = CortexMPassManager(edge.exported_program()).transform()
    return edge
