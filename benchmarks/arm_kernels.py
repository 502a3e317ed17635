"""Instructions of the firmware's int8 kernels beside those of CMSIS-NN in Arm's prebuilt runner, on QEMU.

    .venv/bin/python benchmarks/arm_kernels.py

The shapes are layers of MLPerf Tiny's networks: DS-CNN, MobileNetV1 0.25 at 96x96, ResNet-8, the autoencoder. Arm's
runner has no marks in its code. Its figure is the difference of a program with three calls and one with a single
call, halved, less that of the same operator on one pixel or number: so without its interpreter and its log.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from rich.console import Console

COMMAND = Path(sys.executable).with_name("ethosu-sdk")
CALLS = (1, 3)
MULTIPLIER, SHIFT = 1518500250, -9  # 0.0014


@dataclass(frozen=True)
class Layer:
    """One layer: images are channels, height, width; `kernel` and `stride` are height, width."""

    network: str
    operator: str
    inputs: tuple[int, ...]
    outputs: int
    kernel: tuple[int, int] = (1, 1)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)

    @property
    def name(self) -> str:
        """The network, and the sizes."""
        sizes = "x".join(map(str, self.inputs))
        return f"{self.network}: {self.operator} {sizes} to {self.outputs}, {self.kernel[0]}x{self.kernel[1]}"

    @property
    def file_name(self) -> str:
        """One for each layer."""
        sizes = (*self.inputs, self.outputs, *self.kernel, *self.stride)
        return "-".join([self.operator, *map(str, sizes)])

    @property
    def macs(self) -> int:
        """Products of the whole layer, those with padding included."""
        if self.operator == "linear":
            return self.inputs[0] * self.outputs
        channels, *sides = self.inputs
        rows = [
            (side + 2 * pad - window) // step + 1
            for side, pad, window, step in zip(sides, self.padding, self.kernel, self.stride, strict=True)
        ]
        depth = channels if self.operator == "conv2d" else 1
        return math.prod(rows) * self.outputs * depth * math.prod(self.kernel)


LAYERS = (
    Layer("DS-CNN", "conv2d", (1, 49, 10), 64, (10, 4), (2, 2), (5, 1)),
    Layer("DS-CNN", "conv2d", (64, 25, 5), 64),
    Layer("DS-CNN", "depthwise_conv2d", (64, 25, 5), 64, (3, 3), (1, 1), (1, 1)),
    Layer("DS-CNN", "linear", (64,), 12),
    Layer("MobileNetV1", "conv2d", (3, 96, 96), 8, (3, 3), (2, 2), (1, 1)),
    Layer("MobileNetV1", "depthwise_conv2d", (8, 48, 48), 8, (3, 3), (1, 1), (1, 1)),
    Layer("MobileNetV1", "depthwise_conv2d", (128, 6, 6), 128, (3, 3), (1, 1), (1, 1)),
    Layer("MobileNetV1", "conv2d", (128, 6, 6), 128),
    Layer("ResNet-8", "conv2d", (3, 32, 32), 16, (3, 3), (1, 1), (1, 1)),
    Layer("ResNet-8", "conv2d", (16, 32, 32), 16, (3, 3), (1, 1), (1, 1)),
    Layer("ResNet-8", "conv2d", (32, 16, 16), 64, (3, 3), (2, 2), (1, 1)),
    Layer("Autoencoder", "linear", (640,), 128),
    Layer("Autoencoder", "linear", (128,), 128),
)
SMALLEST = {
    "conv2d": Layer("", "conv2d", (1, 1, 1), 1),
    "depthwise_conv2d": Layer("", "depthwise_conv2d", (1, 1, 1), 1),
    "linear": Layer("", "linear", (1,), 1),
}


def define_older_schemas(torch: Any) -> Any:
    """The convolutions as Arm's runner has them, without the scratch tensor of ExecuTorch 1.5.1."""
    library = torch.library.Library("cortex_m", "DEF")
    for name, more in (("conv2d", ""), ("depthwise_conv2d", "int depth_multiplier, ")):
        schema = (
            "(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, "
            f"{more}int input_offset, int output_offset, Tensor requantize_multipliers, "
            "Tensor requantize_shifts, int activation_min, int activation_max"
        )
        library.define(f"quantized_{name}{schema}) -> Tensor")
        library.define(f"quantized_{name}.out{schema}, *, Tensor(a!) out) -> Tensor(a!)")
        torch.library.register_fake(f"cortex_m::quantized_{name}", _empty_output(torch, name), lib=library)
    return library


def _empty_output(torch: Any, name: str) -> Callable[..., Any]:
    def function(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, *rest: Any) -> Any:
        outputs = weight.shape[0 if name == "conv2d" else 3]
        sides = [(x.shape[2 + i] + 2 * padding[i] - weight.shape[1 + i]) // stride[i] + 1 for i in (0, 1)]
        shape = (x.shape[0], outputs, *sides)
        return torch.empty(shape, dtype=torch.int8, device=x.device).to(memory_format=torch.channels_last)

    return function


def make_call(torch: Any, layer: Layer, *, older: bool) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of an output offset and of the layer's tensors, and those tensors."""
    random = numpy.random.default_rng(0)

    def numbers(*shape: int) -> Any:
        return torch.from_numpy(random.integers(-128, 128, shape, dtype=numpy.int8))

    bias = torch.zeros(layer.outputs, dtype=torch.int32)
    operator = getattr(torch.ops.cortex_m, f"quantized_{layer.operator}")
    if layer.operator == "linear":

        def call_linear(offset: int, x: Any, weight: Any, bias: Any) -> Any:
            return operator(x, weight, None, bias, 13, 0, offset, [MULTIPLIER], [SHIFT], 127, -128)

        return call_linear, (numbers(1, layer.inputs[0]), numbers(layer.outputs, layer.inputs[0]), bias)
    is_depthwise = layer.operator == "depthwise_conv2d"
    window = (list(layer.stride), list(layer.padding), [1, 1], *([1] if is_depthwise else []))

    def call(offset: int, x: Any, weight: Any, bias: Any, *rest: Any) -> Any:
        return operator(x, weight, bias, *window, 13, offset, *rest[:2], -128, 127, *rest[2:])

    x = numbers(1, *layer.inputs).to(memory_format=torch.channels_last)
    channels = (1, layer.outputs) if is_depthwise else (layer.outputs, layer.inputs[0])
    weight = numbers(channels[0], *layer.kernel, channels[1])
    scales = [torch.full((layer.outputs,), number, dtype=torch.int32) for number in (MULTIPLIER, SHIFT)]
    scratch = () if older else (torch.zeros(1, dtype=torch.uint8),)
    return call, (x, weight, bias, *scales, *scratch)


def write_program(torch: Any, path: Path, layers: Sequence[Layer], calls: int, *, older: bool) -> None:
    """A program that calls each layer so many times on the same inputs, and a file with those beside it."""
    from executorch.exir import EdgeCompileConfig, to_edge

    made = [make_call(torch, layer, older=older) for layer in layers]

    class Calls(torch.nn.Module):  # type: ignore[misc]
        def forward(self, *inputs: Any) -> Any:
            outputs = []
            for call, own in made:
                outputs += [call(i, *inputs[: len(own)]) for i in range(calls)]
                inputs = inputs[len(own) :]
            return tuple(outputs)

    inputs = tuple(tensor for _, own in made for tensor in own)
    edge = to_edge(
        torch.export.export(Calls(), inputs), compile_config=EdgeCompileConfig(_check_ir_validity=False)
    )
    path.write_bytes(edge.to_executorch().buffer)
    numpy.savez(path.with_suffix(".npz"), **{f"input{i}": x.numpy() for i, x in enumerate(inputs)})


def write_programs(folder: Path, *, older: bool) -> None:
    """The programs of one set of schemas: for Arm's runner each layer alone, and all for the firmware."""
    import torch

    library = define_older_schemas(torch) if older else None  # the operators live as long as it does
    if library is None:
        import executorch.backends.cortex_m.passes  # noqa: F401 (registers the operators)

        write_program(torch, folder / "own.pte", LAYERS, 1, older=False)
    for layer in (*LAYERS, *SMALLEST.values()):
        for calls in CALLS if older == (layer.operator != "linear") else ():
            write_program(torch, folder / f"{layer.file_name}-{calls}.pte", [layer], calls, older=older)


def run(folder: Path, name: str, *options: str) -> dict[str, Any]:
    """The record of a run."""
    arguments = (f"{name}.pte", "--inputs", f"{name}.npz", "--cpu-cycles", "-q", "-o", name, *options)
    subprocess.run([COMMAND, "run", *arguments], check=True, cwd=folder)
    record: dict[str, Any] = json.loads((folder / name / "run.json").read_text(encoding="utf-8"))
    return record


def count_on_arms(folder: Path, layer: Layer) -> float:
    """Instructions of one more call on Arm's runner."""
    wholes = []
    for calls in CALLS:
        record = run(folder, f"{layer.file_name}-{calls}", "--runtime", "executorch")
        wholes.append(sum(part["instructions"]["value"] for part in record["cpu"]["outside"]))
    return float(wholes[1] - wholes[0]) / (CALLS[1] - CALLS[0])


def count_own(folder: Path) -> list[int]:
    """Instructions of the kernel of each layer in the firmware."""
    return [
        sum(part["instructions"]["value"] for part in operator["cpu_parts"] if part["part"] == "kernel")
        for operator in run(folder, "own")["operators"]
    ]


def compare(console: Console) -> None:
    """Measure, and print each layer when it is done."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for schemas in ("newer", "older"):
            subprocess.run(
                [sys.executable, __file__, schemas, scratch], check=True, stderr=subprocess.DEVNULL
            )
        overhead = {name: count_on_arms(folder, layer) for name, layer in SMALLEST.items()}
        console.print("Instructions per product: Arm's, own, own to Arm's")
        for layer, own in zip(LAYERS, count_own(folder), strict=True):
            arm = count_on_arms(folder, layer) - overhead[layer.operator]
            console.print(f"{arm / layer.macs:8.3f}{own / layer.macs:8.3f}{own / arm:7.2f}  {layer.name}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write_programs(Path(sys.argv[2]), older=sys.argv[1] == "older")
    else:
        compare(Console(width=120))
