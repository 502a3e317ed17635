"""Values that a delegate would return in a different type than the program expects.

A delegate of integers gives int8, int16, int32 or bool. ExecuTorch 1.5.1 takes operators back from it whose input is
a float from outside, and forgets those whose result is one: a `pad` or `unsqueeze` before an operator on the CPU, as
`Conv2d(padding="same")` with an even kernel has it. The delegate then gives integers where the program reads floats.
Constants of int64 come out as int32 in the same way, when what compares them stays on the CPU (`one_hot`).

So such operators stay on the CPU too, and with them what then lies between the delegate and its conversions.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ethosu_sdk.aot.graph.patching import patched

_REASON = "its result leaves the NPU in a type that a delegate does not give: {}"
_GIVEN = "it takes a value from the CPU in a type that a delegate does not take: {}"


def repaired() -> AbstractContextManager[None]:
    """While the block runs, delegates of programs that are lowered in this process give and take integers alone."""
    from executorch.backends.arm.tosa.partitioner import TOSAPartitioner

    inherited = TOSAPartitioner._detag_boundary_nodes

    def detag(self: Any, module: Any, tag: str, reporter: Any, detag_first_fp_node: bool = True) -> None:
        inherited(self, module, tag, reporter, detag_first_fp_node)
        if detag_first_fp_node:
            while _detag_crossings(module.graph, tag, reporter):
                inherited(self, module, tag, reporter, detag_first_fp_node)

    return patched(TOSAPartitioner, _detag_boundary_nodes=detag)


def _detag_crossings(graph: Any, tag: str, reporter: Any) -> bool:
    """Take the nodes of `tag` back that hand a float or an int64 over its border; whether there were any."""
    changed = False
    for node in reversed(list(graph.nodes)):
        if node.meta.get("delegation_tag") != tag or node.op != "call_function":
            continue
        reason = _reason(node, tag)
        if reason is not None:
            del node.meta["delegation_tag"]
            reporter.report_reject(node, reason)
            changed = True
    return changed


def _reason(node: Any, tag: str) -> str | None:
    """Why `node` cannot be in the delegate, or None."""
    result = _foreign(node)
    if result and any(user.meta.get("delegation_tag") != tag for user in node.users):
        return _REASON.format(result)
    outside = (
        source
        for source in node.all_input_nodes
        if source.op == "call_function" and source.meta.get("delegation_tag") != tag
    )
    given = next((kind for kind in map(_foreign, outside) if kind), None)
    return _GIVEN.format(given) if given else None


def _foreign(node: Any) -> str | None:
    """The type of a node's value when no delegate of integers can give or take it."""
    import torch

    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return None
    foreign = value.dtype.is_floating_point or value.dtype == torch.int64
    return str(value.dtype).removeprefix("torch.") if foreign else None
