"""Ranges of quantised values, where Arm's own choices lose them: steps that are too coarse for small values, fixed
ranges that clip large ones, biases that do not fit 32 bits."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

# The least step of activations. Arm's configurations have 2^-16 for int8 and 2^-12 for int16, so that int16 held
# values below 0.06 worse than int8. Finer ones gain nothing above 0.00001, and the ratio of two steps must be less
# than 2^13 behind an int16 convolution (TOSA RESCALE, 16 bits and a shift of at least 2).
_FINEST_STEP = 2.0**-28
# Of a tensor that was zero in every sample nothing is known: it keeps the step that Arm gives int8.
_STEP_OF_ZEROS = 2.0**-16
_LARGEST_BIAS = 2.0**31 - 1
_MARGIN = 1 + 2.0**-20  # scales are float32


def configuration(quantize: str, *, per_channel: bool, fine: bool = True) -> Any:
    """Arm's configuration for ``int8`` or ``int16``, with ranges for ``grid_sample``, and for small values if `fine`:
    that needs :func:`fit_biases` later on."""
    from executorch.backends.arm import quantizer as arm

    made = {
        "int8": arm.get_symmetric_quantization_config,
        "int16": arm.get_symmetric_a16w8_quantization_config,
    }[quantize](is_per_channel=per_channel)
    observer, kind = _classes()
    activations = made.input_activation
    if fine:
        activations = replace(activations, observer_or_fake_quant_ctr=observer.with_args(eps=_FINEST_STEP))
    return kind(activations, activations, made.weight, made.bias, made.label)


@functools.cache
def _classes() -> tuple[Any, Any]:
    """The observer and the configuration, whose bases are imported late."""
    import torch
    from executorch.backends.arm.quantizer.quantization_config import TOSAQuantizationConfig
    from torchao.quantization.pt2e import HistogramObserver

    class ActivationObserver(HistogramObserver):  # type: ignore[misc]
        """A histogram, with another least step for what was zero throughout. It looks for its range once: torchao
        asks for it several times, and each time it takes longer than a layer of the network."""

        _found: tuple[Any, Any] | None = None

        def forward(self, values: Any) -> Any:
            self._found = None
            return super().forward(values)

        def calculate_qparams(self) -> tuple[Any, Any]:
            if self._found is None:
                self._found = super().calculate_qparams()
            return self._found

        def _calculate_qparams(self, low: Any, high: Any) -> tuple[Any, Any]:
            scale, zero_point = super()._calculate_qparams(low, high)
            zeros = bool((low == 0).all()) and bool((high == 0).all())
            return (torch.full_like(scale, _STEP_OF_ZEROS) if zeros else scale), zero_point

    class Configuration(TOSAQuantizationConfig):  # type: ignore[misc]
        """Arm's, but for ``grid_sample``: Arm fixes its image and result to -1 … 1, as textures of graphics are. It
        stays in floating point: it runs on the CPU in any case."""

        def get_input_act_qspec(self, node: Any = None, input_node: Any = None) -> Any:
            if node is not None and node.target == torch.ops.aten.grid_sampler.default:
                return None
            return super().get_input_act_qspec(node, input_node)

        def get_output_act_qspec(self, node: Any = None) -> Any:
            if node is not None and node.target == torch.ops.aten.grid_sampler.default:
                return None
            return super().get_output_act_qspec(node)

    return ActivationObserver, Configuration


def choose(prepared: Any) -> None:
    """Have the observers of activations choose their ranges; copies of them know these."""
    observer, _ = _classes()
    for module in prepared.modules():
        if isinstance(module, observer):
            module.calculate_qparams()


def fit_biases(prepared: Any) -> Any:
    """`prepared`, which has seen its samples, with coarser weights for each channel whose bias does not fit 32 bits.

    A bias counts steps of input times weight. Where it is more than 2^31 of them, torchao would cut it off. What such
    a channel's weights add is far less than its bias: their rounding stays below the step of the result.
    """
    import torch
    from torchao.quantization.pt2e import DerivedObserverOrFakeQuantize

    modules = dict(prepared.named_modules())
    for node in prepared.graph.nodes:
        observer = modules.get(node.target) if node.op == "call_module" else None
        if not isinstance(observer, DerivedObserverOrFakeQuantize) or len(observer.obs_or_fqs) != 2:
            continue
        bias = _constant(prepared, node.args[0])
        activation, weight = observer.obs_or_fqs
        if not isinstance(bias, torch.Tensor) or not hasattr(weight, "max_val"):
            continue
        step, _ = activation.calculate_qparams()
        least = bias.abs().double() * _MARGIN / (_LARGEST_BIAS * step.double())
        reach = least * (weight.quant_max - weight.quant_min) / 2
        if weight.max_val.dim() == 0:
            reach = reach.max()
        found, _ = weight.calculate_qparams()
        if bool((found.double() < least).any()):
            weight.max_val.copy_(torch.maximum(weight.max_val, reach.float()))
    return prepared


def _constant(module: Any, node: Any) -> Any:
    """The tensor that a node takes from its module; None for one that is computed."""
    if getattr(node, "op", None) != "get_attr":
        return None
    return functools.reduce(getattr, node.target.split("."), module)
