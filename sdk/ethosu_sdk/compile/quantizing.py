"""From an exported program to its quantised module: samples, ranges, torchao's PT2E and Arm's quantisers."""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.compile import quantizers
from ethosu_sdk.compile.rewrite import cortex_m, frame, integers
from ethosu_sdk.compile.tool_hooks import guarded

Tensors = tuple[Any, ...]
Adjust = Callable[[Any, Any], Any]  # Arm's quantiser and the module that it is for → the quantiser to take
_NOT_CALIBRATED = "must run observer before"  # torchao's warning when it makes up a range

_BEYOND = 0.5  # of the calibrated range: this far outside of it, samples are of another kind
_WITHIN = 1 / 64  # of the calibrated range: values this small have four steps of int8
_REMEDY = (
    "Give calibration samples like the inputs of the device, with --calibration FILE.npz or 'calibration'"
)

# The least step of activations. Arm's configurations have 2^-16 for int8 and 2^-12 for int16, so that int16 held
# values below 0.06 worse than int8. Finer ones gain nothing above 0.00001, and the ratio of two steps must be less
# than 2^13 behind an int16 convolution (TOSA RESCALE, 16 bits and a shift of at least 2).
_FINEST_STEP = 2.0**-28
# Of a tensor that was zero in every sample nothing is known: it keeps the step that Arm gives int8.
_STEP_OF_ZEROS = 2.0**-16
_LARGEST_BIAS = 2.0**31 - 1
_MARGIN = 1 + 2.0**-20  # scales are float32


def calibration_warnings(inputs: Tensors, calibration: Sequence[Tensors], source: str) -> Iterator[str]:
    """What is wrong with the `calibration` samples, which come from `source`, or with the example `inputs`."""
    if source == "example":
        yield (
            "No calibration data was given, so the model was calibrated on the example inputs alone: its "
            "quantisation ranges are guesses and its accuracy is unknown. Give samples with --calibration "
            "FILE.npz, or define 'calibration' in the model's file."
        )
    for index, example in enumerate(inputs):
        if calibration and example.is_floating_point():
            text = _warning(f"Input {index}", example, [sample[index] for sample in calibration])
            if text:
                yield f"{text} {_REMEDY} in the model's file."


def _warning(name: str, example: Any, samples: Sequence[Any]) -> str:
    low, high = min(float(item.min()) for item in samples), max(float(item.max()) for item in samples)
    held = f"all {len(samples):,} calibration samples" if len(samples) > 1 else "the only calibration sample"
    if low == high == 0:
        return (
            f"{name} is zero in {held}: its range, and that of all that is computed from it, is made up, and other "
            "values are cut off."
        )
    if low == high and len(samples) > 1:
        return f"{name} is {low:.4g} in {held}: values beyond 0 to {low:.4g} are cut off."
    return _distance(name, (low, high), (float(example.min()), float(example.max())))


def _distance(name: str, calibrated: tuple[float, float], given: tuple[float, float]) -> str:
    """How far the example's range is from the calibrated one, which holds zero in any case."""
    low, high = min(calibrated[0], 0.0), max(calibrated[1], 0.0)
    width = high - low
    beyond = max(given[1] - high, low - given[0])
    words = (
        f"{name} was calibrated on {calibrated[0]:.4g} to {calibrated[1]:.4g}, and the example input holds "
        f"{given[0]:.4g} to {given[1]:.4g}"
    )
    if beyond > _BEYOND * width:
        return f"{words}: what lies outside is cut off."
    largest = max(abs(given[0]), abs(given[1]))
    if 0 < largest < _WITHIN * width:
        return f"{words}: that is {largest / width:.2g} of the range, so few of the steps are used."
    return ""


def range_configuration(quantize: str, *, per_channel: bool, fine: bool = True) -> Any:
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


def choose_ranges(prepared: Any) -> None:
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


def share_ranges(prepared: Sequence[Any]) -> None:
    """Let observers at the same place of `prepared`, methods of one module with observers, be one observer: with
    ranges of their own, a prefill would leave other values in a cache than as many steps of a decode.

    A place is the operator that computes a value, by its module and its turn among the same operators there; of an
    input or a buffer it is the operator that takes it. Where two methods have different numbers of an operator in a
    module, its results keep ranges of their own.
    """
    if len(prepared) < 2:
        return
    first: dict[Hashable, Any] = {}
    joined: dict[int, Any] = {}  # by the identity of an observer the one that takes its place
    counts = [
        Counter(_operator(node) for node in module.graph.nodes if node.op == "call_function")
        for module in prepared
    ]
    common = {key for key in counts[0] if all(row[key] == counts[0][key] for row in counts[1:])}
    for module in prepared:
        for key, observer in _places(module, common):
            known = first.setdefault(key, observer)
            one, other = _standing(joined, known), _standing(joined, observer)
            if _alike(known, observer) and one is not other:
                joined[id(other)] = one
    for module in prepared:
        _replace_observers(module, joined)


def _standing(joined: dict[int, Any], observer: Any) -> Any:
    """The observer that stands for `observer`."""
    while id(observer) in joined:
        observer = joined[id(observer)]
    return observer


def _alike(one: Any, other: Any) -> bool:
    """Whether two observers of activations may be one: they quantise to the same values, by one scale."""
    import torch

    members = ("dtype", "quant_min", "quant_max", "qscheme")
    return (
        type(one) is type(other)
        and getattr(one, "qscheme", None) in (torch.per_tensor_affine, torch.per_tensor_symmetric)
        and all(getattr(one, name) == getattr(other, name) for name in members)
    )


def _replace_observers(module: Any, joined: dict[int, Any]) -> None:
    from torchao.quantization.pt2e import DerivedObserverOrFakeQuantize

    modules = dict(module.named_modules(remove_duplicate=False))
    for target in {node.target for node in module.graph.nodes if node.op == "call_module"}:
        observer = modules[target]
        if isinstance(observer, DerivedObserverOrFakeQuantize):
            observer.obs_or_fqs = [_standing(joined, row) for row in observer.obs_or_fqs]
        parent, _, name = target.rpartition(".")
        setattr(modules[parent], name, _standing(joined, observer))


def _places(module: Any, common: set[Hashable]) -> Iterator[tuple[Hashable, Any]]:
    """Each observer of `module` with the places that it is at."""
    modules = dict(module.named_modules(remove_duplicate=False))
    turns: Counter[Hashable] = Counter()
    place_of: dict[Any, tuple[Hashable, int]] = {}
    for node in module.graph.nodes:
        if node.op == "call_function":
            key = _operator(node)
            place_of[node] = (key, turns[key])
            turns[key] += 1
    for node in module.graph.nodes:
        if node.op != "call_module" or not node.all_input_nodes:
            continue
        source = node.all_input_nodes[0]
        observer = modules[node.target]
        if source in place_of:
            key, turn = place_of[source]
            if key in common:
                yield ("result", key, turn), observer
            continue
        for user in node.users:
            key, turn = place_of.get(user, (None, 0))
            if key in common:
                yield ("argument", key, turn, user.all_input_nodes.index(node)), observer


def _operator(node: Any) -> Hashable:
    """An operator with the module that calls it."""
    stack = node.meta.get("nn_module_stack") or {}
    path = [row[0] for row in stack.values()][-1:] if isinstance(stack, dict) else []
    return (path[0] if path else "", str(node.target))


def quantizer_for(spec: Any, quantize: str, *, per_channel: bool = True, fine: bool = True) -> Any:
    """Arm's quantiser for `quantize` (``int8``: int8 activations and weights; ``int16``: int16 activations and
    int8 weights); weights get a scale for each channel, or one for the tensor. `fine` is that of
    :func:`range_configuration`. Without a `spec`, that of the Cortex-M backend."""
    if spec is None:
        return cortex_m.cortex_m_quantizer()
    from executorch.backends.arm import quantizer as arm

    made = arm.EthosUQuantizer(spec)
    made.set_global(range_configuration(quantize, per_channel=per_channel, fine=fine))
    return quantizers.with_kept_float(made)


def prepare_module(
    program: Any, spec: Any, quantize: str, *, per_channel: bool = True, adjust: Adjust | None = None
) -> Any:
    """`program` as a module with the observers of :func:`quantizer_for`, or of what `adjust` makes of it."""
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

    def observe(module: Any) -> Any:
        quantizer = quantizer_for(spec, quantize, per_channel=per_channel)
        chosen = quantizer if adjust is None else adjust(quantizer, module)
        return guarded(
            "the model could not be prepared for quantisation", lambda: prepare_pt2e(module, chosen)
        )

    # The guards that torch adds to an exported module are calls that PT2E's passes refuse.
    return frame.rewrite_for_observers(program.module(check_guards=False), spec, observe)


def quantize_branches(
    program: Any,
    spec: Any,
    quantize: str,
    samples: Sequence[Tensors],
    *,
    per_channel: bool = True,
    adjust: Adjust | None = None,
) -> Any:
    """The quantised module of a `program` with branches, each a module that is quantised for itself.

    InputError when the calibration samples do not reach all of them: the ranges would be made up.
    """
    module = program.module(check_guards=False)
    restore = integers.restore_int64(module)
    quantizer = quantizer_for(spec, quantize, per_channel=per_channel, fine=False)
    chosen = quantizer if adjust is None else adjust(quantizer, module)
    if not hasattr(chosen, "_quantize_with_submodules"):
        raise InputError(
            f"a {type(chosen).__name__} does not quantise the branches of torch.cond and while_loop",
            "use Arm's quantiser for this model",
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quantized = guarded(
            "the model could not be quantised",
            lambda: chosen._quantize_with_submodules(module, list(samples)),
        )
    if any(_NOT_CALIBRATED in str(warning.message) for warning in caught):
        raise InputError(
            "the calibration samples do not reach every branch of the model: the other branches have no values to "
            "calibrate with",
            "give samples that enter every branch of torch.cond and while_loop, with --calibration FILE.npz or "
            "'calibration' in the model's file",
        )
    return restore(quantized)


def convert_module(prepared: Any) -> Any:
    """The quantised module of a `prepared` one that has seen its calibration samples."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e

    return guarded("the model could not be quantised", lambda: convert_pt2e(prepared))
