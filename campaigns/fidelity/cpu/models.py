"""What published rows of CPU cycles ran: networks and single layers, and the runner that can execute each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from ethosu.vela.tflite.Model import Model

from campaigns.fidelity import mlperf_tiny
from campaigns.fidelity.cpu.kits import KITS, Kit
from campaigns.fidelity.tflite import Graph
from ethosu_sdk.simulate.cpu_cycles import MovedBytes

_WHOLE = "whole"
_QUANTIZED_SHAPE = (1, 3, 224, 224)
_ITEM_BYTES = {0: 4, 2: 4, 7: 2, 9: 1}  # by TensorType: float32, int32, int16, int8


@dataclass(frozen=True)
class Program:
    """A model, the runner for it, its inputs, and what each of its layers moves."""

    kit: Kit
    model: bytes
    work: tuple[MovedBytes, ...]
    inputs: bytes = b""


def _conv(side: int, channels: int, depth: int, kernel: int = 1, stride: int = 1) -> Callable[[], Program]:
    def build() -> Program:
        graph = Graph(spread=45.0)
        source = graph.input(1, side, side, channels)
        return _tflite(graph.build(graph.conv(source, depth, (kernel, kernel), (stride, stride))))

    return build


def _depthwise(side: int, channels: int, stride: int = 1) -> Callable[[], Program]:
    def build() -> Program:
        graph = Graph(spread=45.0)
        source = graph.input(1, side, side, channels)
        return _tflite(graph.build(graph.depthwise(source, stride=(stride, stride))))

    return build


def _network(build_model: Callable[[], bytes]) -> Callable[[], Program]:
    return lambda: _tflite(build_model())


def _quantize() -> Program:
    """quantize_per_tensor of ExecuTorch's Cortex-M dialect. Its input and output lie in the arena."""
    import executorch.backends.cortex_m.passes  # noqa: F401 (registers the operator)
    import torch
    from executorch.exir import EdgeCompileConfig, to_edge

    class Quantize(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            done: torch.Tensor = torch.ops.cortex_m.quantize_per_tensor.default(
                x, 0.02, -3, -128, 127, torch.int8
            )
            return done

    values = np.random.default_rng(1).random(_QUANTIZED_SHAPE, np.float32)
    exported = torch.export.export(Quantize().eval(), (torch.from_numpy(values),))
    edge = to_edge(exported, compile_config=EdgeCompileConfig(_check_ir_validity=False))
    program: bytes = edge.to_executorch().buffer
    return Program(KITS["executorch"], program, (MovedBytes(arena_bytes=5 * values.size),), values.tobytes())


_MOBILENET = "mobilenet_v2_224"
PROGRAMS: Mapping[tuple[str, str], Callable[[], Program]] = {
    **{(name, _WHOLE): _network(build) for name, build in mlperf_tiny.NETWORKS.items()},
    (_MOBILENET, "quantize_per_tensor input 1x3x224x224"): _quantize,
    (_MOBILENET, "quantized_conv2d stem 3x3 stride 2 3->32"): _conv(224, 3, 32, 3, 2),
    (_MOBILENET, "quantized_depthwise_conv2d first 3x3 32"): _depthwise(112, 32),
    (_MOBILENET, "quantized_conv2d 1x1 32->16 at 112"): _conv(112, 32, 16),
    (_MOBILENET, "quantized_conv2d 1x1 16->96 at 112"): _conv(112, 16, 96),
    (_MOBILENET, "quantized_depthwise_conv2d 3x3 stride 2 96 at 112"): _depthwise(112, 96, 2),
    (_MOBILENET, "quantized_conv2d 1x1 96->24 at 56"): _conv(56, 96, 24),
    (_MOBILENET, "quantized_conv2d 1x1 24->144 at 56"): _conv(56, 24, 144),
    (_MOBILENET, "quantized_depthwise_conv2d 3x3 144 at 56"): _depthwise(56, 144),
}


def _tflite(model: bytes) -> Program:
    return Program(KITS["tflm"], model, tuple(layers(model)))


def layers(model: bytes) -> list[MovedBytes]:
    """Bytes of each layer's constants, and of its inputs and outputs in the arena."""
    parsed = Model.GetRootAs(model, 0)
    graph = parsed.Subgraphs(0)
    found = []
    for number in range(graph.OperatorsLength()):
        row = graph.Operators(number)
        sizes = {True: 0, False: 0}
        for index in (*row.InputsAsNumpy(), *row.OutputsAsNumpy()):
            tensor = graph.Tensors(int(index))
            sizes[parsed.Buffers(tensor.Buffer()).DataLength() > 0] += _bytes(tensor)
        found.append(MovedBytes(constant_bytes=sizes[True], arena_bytes=sizes[False]))
    return found


def _bytes(tensor: Any) -> int:
    return int(np.prod(tensor.ShapeAsNumpy())) * _ITEM_BYTES[tensor.Type()]
