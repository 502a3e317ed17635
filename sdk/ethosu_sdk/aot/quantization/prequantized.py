"""Recognises programs that are already quantised, and refuses those whose quantisation is unfinished."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.graph.fx import is_observer, operator_name
from ethosu_sdk.errors import InputError

_NAMESPACE = "quantized_decomposed"
_UNFINISHED_OPERATORS = ("aten::fake_quantize", "aten::_fake_quantize", "aten::fused_moving_avg_obs")
_CONVERT_HINT = (
    "finish the quantisation: call move_exported_model_to_eval(model), then convert_pt2e(model), and export the "
    "model that it returns"
)


def is_quantized(graph: Any) -> bool:
    """Whether `graph` is one of torch.fx and holds the quantise and dequantise operators that PT2E puts in."""
    from torch.fx import Graph

    return isinstance(graph, Graph) and any(
        getattr(node.target, "namespace", "") == _NAMESPACE for node in graph.nodes
    )


def refuse_unfinished_module(module: Any, what: str) -> None:
    """InputError when a module still holds the observers or fake quantisation of a training."""
    for name, part in module.named_modules():
        if is_observer(part):
            raise _unfinished(what, f"'{name}' is a {type(part).__name__}")


def refuse_unfinished_program(program: Any, what: str) -> None:
    """The same for an ``ExportedProgram``."""
    for node in program.graph.nodes:
        name = operator_name(node)
        if name.startswith(_UNFINISHED_OPERATORS):
            raise _unfinished(what, f"'{node.name}' calls {name}")


def _unfinished(what: str, evidence: str) -> InputError:
    return InputError(
        f"{what} is prepared for quantisation, but not converted: {evidence}, an observer or fake quantisation",
        _CONVERT_HINT,
    )
