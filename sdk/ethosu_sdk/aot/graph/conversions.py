"""The operators between floating-point and quantised values in a program of ``torch.export``, by name."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.facts.evaluation import Quantisation

NAMESPACE = "quantized_decomposed."
QUANTIZE = f"{NAMESPACE}quantize_per_tensor.default"
DEQUANTIZE = f"{NAMESPACE}dequantize_per_tensor.default"
DEQUANTIZE_CHANNELS = f"{NAMESPACE}dequantize_per_channel.default"


def is_quantize(node: Any) -> bool:
    """Whether `node` quantises a tensor with one scale."""
    return str(node.target) == QUANTIZE


def is_dequantize(node: Any) -> bool:
    """Whether `node` makes floating-point values of a tensor with one scale."""
    return str(node.target) == DEQUANTIZE


def output_quantisation(program: Any, index: int) -> tuple[Quantisation | None, str]:
    """How `program` quantises its output `index`, or why that is not known."""
    name = program.graph_signature.user_outputs[index]
    node = next((node for node in program.graph.nodes if node.name == name), None)
    if node is None or not is_dequantize(node):
        return None, "the program's last operation for this output does not dequantise it with a fixed scale"
    scale, zero_point, _, _, dtype = node.args[1:6]
    return Quantisation(float(scale), int(zero_point), str(dtype).removeprefix("torch.")), ""
