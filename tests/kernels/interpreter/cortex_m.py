"""Networks lowered for a Cortex-M without an NPU, as ExecuTorch's compiler does for `-t cortex-m55`."""

import importlib
import logging
from dataclasses import dataclass
from typing import Any

import numpy

from tests.kernels.interpreter.models import Array, lowering


@dataclass(frozen=True)
class Network:
    """A program, one input in memory order, and the outputs of the dialect's references for it."""

    program: bytes
    inputs: list[Array]
    expected: list[Array]


def lower_network(name: str) -> Network:
    """A network of ExecuTorch's examples/models/mlperf_tiny, with random weights and statistics."""
    import torch

    torch.manual_seed(0)
    logging.getLogger("executorch").setLevel(logging.ERROR)
    example = _example(name)
    x = torch.randn(example[1].shape).to(memory_format=torch.channels_last)
    with lowering():
        edge = _edge_program(*example)
        expected = edge.exported_program().module(check_guards=False)(x)
        program = bytes(edge.to_executorch().buffer)
    outputs = expected if isinstance(expected, tuple | list) else [expected]
    stored = x.permute(0, 2, 3, 1).contiguous().numpy()
    return Network(program, [stored], [numpy.array(output.detach().numpy()) for output in outputs])


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


def _edge_program(model: Any, x: Any) -> Any:
    import torch
    from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config
    from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
    from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
    from executorch.exir import to_edge
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    prepared = prepare_pt2e(torch.export.export(model, (x,)).module(check_guards=False), CortexMQuantizer())
    for _ in range(3):
        prepared(torch.randn_like(x))
    exported = torch.export.export(convert_pt2e(prepared), (x,))
    edge = to_edge(exported, compile_config=cortex_m_edge_compile_config())
    edge._edge_programs["forward"] = CortexMPassManager(edge.exported_program()).transform()
    return edge
