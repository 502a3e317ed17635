"""The operators between floating-point and quantised values in a program of ``torch.export``, by name."""

from __future__ import annotations

from typing import Any

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
