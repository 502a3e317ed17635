"""Programs that were quantised before they came here: what tells them from float ones and from unfinished ones."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.graph.fx import operator_name
from ethosu_sdk.errors import InputError

_NAMESPACE = "quantized_decomposed"
# By name, because torch and torchao have classes of their own.
_UNFINISHED_MODULES = frozenset({"ObserverBase", "FakeQuantizeBase"})
_UNFINISHED_OPERATORS = ("aten::fake_quantize", "aten::_fake_quantize", "aten::fused_moving_avg_obs")
_CONVERT_HINT = (
    "finish the quantisation, move_exported_model_to_eval(model) and then convert_pt2e(model), and export what that "
    "returns"
)


def is_observer(module: Any) -> bool:
    """Whether a module observes values, or pretends to quantise them, as a graph does before it is converted."""
    return bool(_UNFINISHED_MODULES & {kind.__name__ for kind in type(module).__mro__})


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
