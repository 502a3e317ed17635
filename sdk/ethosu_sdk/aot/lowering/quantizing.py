"""From an exported program to its quantised module, by torchao's PT2E and Arm's quantisers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ethosu_sdk.aot.lowering import cortex_m
from ethosu_sdk.aot.lowering.guarding import guarded
from ethosu_sdk.aot.quantization import computed_weights, kept_float, own_weights, ranges, whole_numbers
from ethosu_sdk.aot.quantization.prequantized_passes import replace_relu6
from ethosu_sdk.aot.repairs import quantised_divisions
from ethosu_sdk.errors import InputError

Tensors = tuple[Any, ...]
Adjust = Callable[[Any, Any], Any]  # Arm's quantiser and the module that it is for → the quantiser to take

_NOT_CALIBRATED = "must run observer before"  # torchao's warning when it makes up a range


def quantizer(spec: Any, quantize: str, *, per_channel: bool = True, fine: bool = True) -> Any:
    """Arm's quantiser for `quantize` (``int8``: int8 activations and weights; ``int16``: int16 activations and
    int8 weights); weights get a scale for each channel, or one for the tensor. `fine` is that of
    :func:`ranges.configuration`. Without a `spec`, that of the Cortex-M backend."""
    if spec is None:
        return cortex_m.quantizer()
    from executorch.backends.arm import quantizer as arm

    made = arm.EthosUQuantizer(spec)
    made.set_global(ranges.configuration(quantize, per_channel=per_channel, fine=fine))
    return kept_float.applied(made)


def prepare(
    program: Any, spec: Any, quantize: str, *, per_channel: bool = True, adjust: Adjust | None = None
) -> Any:
    """`program` as a module with the observers of :func:`quantizer`, or of what `adjust` makes of it."""
    from torchao.quantization.pt2e.quantize_pt2e import prepare_pt2e

    # The guards that torch adds to an exported module are calls that PT2E's passes refuse.
    module = program.module(check_guards=False)
    replace_relu6(module)
    whole_numbers.keep_scalars(module)
    own_weights.separate(module)
    if spec is None:
        computed_weights.store(module)
    types, rounded = whole_numbers.output_types(module), whole_numbers.rounded_casts(module)
    chosen = _chosen(quantizer(spec, quantize, per_channel=per_channel), module, adjust)
    with quantised_divisions.repaired():
        prepared = guarded(
            "the model could not be prepared for quantisation", lambda: prepare_pt2e(module, chosen)
        )
    return whole_numbers.restore(whole_numbers.round_again(prepared, rounded), types)


def _chosen(default: Any, module: Any, adjust: Adjust | None) -> Any:
    return default if adjust is None else adjust(default, module)


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
    types = whole_numbers.output_types(module)
    chosen = _chosen(quantizer(spec, quantize, per_channel=per_channel, fine=False), module, adjust)
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
    return whole_numbers.restore(quantized, types)


def convert(prepared: Any) -> Any:
    """The quantised module of a `prepared` one that has seen its calibration samples."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e

    return guarded("the model could not be quantised", lambda: convert_pt2e(prepared))
