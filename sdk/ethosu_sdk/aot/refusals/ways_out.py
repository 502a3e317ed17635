"""Workarounds for a failed compilation, tried before they are suggested: one operator in float, or all on the CPU."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ethosu_sdk.aot.facts.compilation import CompileRequest
from ethosu_sdk.aot.quantization import kept_float

Compile = Callable[[CompileRequest], object]
_FLOAT = (
    "keep it in float: `def quantizer(default): default.set_node_target(torch.ops.{}, None); return default` in the "
    "model's file (tried: it compiles)"
)
_CPU = "--no-delegate keeps every operator on the CPU (tried: it compiles)"
_UNQUANTISED = "--quantize none keeps every operator in float on the CPU (tried: it compiles)"


def tried(request: CompileRequest, compile_model: Compile, operator: str | None) -> str | None:
    """The hint for the first workaround with which `compile_model` can compile `request`; None when none works."""
    options = request.options
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ethosu-way-out-")))
        again = replace(
            request, out_dir=folder, evaluation=None, layers=None, check_folder=None, locate=False
        )
        if options.quantize != "none" and operator:
            with kept_float.kept(operator):
                if _works(compile_model, again):
                    return _FLOAT.format(operator)
        if options.delegate and _works(
            compile_model, replace(again, options=replace(options, delegate=False))
        ):
            return _CPU
        free = replace(options, quantize="none", calibration=(), io="float")
        if options.quantize != "none" and _works(compile_model, replace(again, options=free)):
            return _UNQUANTISED
    return None


def _works(compile_model: Compile, request: CompileRequest) -> bool:
    try:
        compile_model(request)
    except Exception:  # any failure means that this workaround does not work
        return False
    return True
