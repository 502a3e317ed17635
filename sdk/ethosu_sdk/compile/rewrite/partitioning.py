"""Operators that stay on the CPU: the Arm backend fails on them, or a delegate cannot give or take their values."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from ethosu_sdk.base import plain_text
from ethosu_sdk.compile.graphs.fx import is_mutable, operator_name
from ethosu_sdk.compile.refused_operators import failing_node
from ethosu_sdk.compile.rewrite import borders
from ethosu_sdk.compile.rewrite.convolutions_and_pooling import MOST_STRIDE
from ethosu_sdk.compile.tool_hooks import REASON_KEY, patched

# ExecuTorch 1.5.1 decides by tables what it takes, and then fails inside of a pass at some of it. What the pass was
# working on came from an operator that the partitioner took: without that one, it is tried again.

LAYOUT_REASON = "change of layout: the NPU has the channels of images last"

_NAME_KEY = "ethosu_sdk_taken_as"
_MOST = 8

_TRANSPOSED = 6  # the argument of a convolution that says that it is transposed


def lower_leaving_out(program: Any, lower: Callable[[Any], Any], *, ethos_u85: bool) -> Any:
    """What `lower` makes of `program` with a check for the partitioner that leaves out what it fails at.

    Some are left out at once: what reads an int64 state, since the partitioner takes every int64 buffer for a
    constant; what Vela 5.1.0 refuses without saying which it was, or computes wrong.
    """
    from torch.fx.passes.operator_support import OperatorSupportBase

    reasons: dict[str, str] = {}
    wide = _wide_state(program)

    class LeftOutCheck(OperatorSupportBase):  # type: ignore[misc]
        """Refuses the operators in question, and marks the others so that they are known again inside of passes."""

        def is_node_supported(self, submodules: Any, node: Any) -> bool:
            del submodules
            node.meta[_NAME_KEY] = node.name
            reason = _known_reason(node, wide, ethos_u85=ethos_u85)
            if reason is not None:
                reasons[node.name] = reason
            if node.name in reasons:
                node.meta[REASON_KEY] = reasons[node.name]
            return node.name not in reasons

    failures = 0
    while True:
        try:
            return lower(LeftOutCheck())
        except Exception as error:
            found = failing_node(error)
            name = found.meta.get(_NAME_KEY) if found else None
            if name is None or name in reasons or failures == _MOST:
                raise
            failures += 1
            cause: BaseException = error
            while cause.__cause__ is not None:
                cause = cause.__cause__
            reasons[name] = f"the Arm backend fails on it: {plain_text.error(cause)}"


def _known_reason(node: Any, wide: set[str], *, ethos_u85: bool) -> str | None:
    """Why `node` is left out before anything failed, where `wide` are states of int64; or None."""
    if borders.crosses_border(node):
        return LAYOUT_REASON
    if ethos_u85 and _is_padded_far(node):
        return "Vela pools wrong values at padding with strides above 3 on Ethos-U85"
    if not ethos_u85 and _is_wide_transposed(node):
        return "Vela has no transposed convolution of 16 bits for Ethos-U55 and Ethos-U65"
    if any(source.name in wide for source in node.all_input_nodes):
        return "it reads a state of 64 bits, which changes from inference to inference"
    return None


def _is_wide_transposed(node: Any) -> bool:
    """Whether `node` is a transposed convolution that the quantiser gave inputs of int16."""
    import torch

    if operator_name(node) != "aten::convolution" or not node.args[_TRANSPOSED]:
        return False
    (given,) = node.args[0].all_input_nodes[:1] or (node.args[0],)
    return bool(given.meta["val"].dtype == torch.int16)


def _is_padded_far(node: Any) -> bool:
    """Whether `node` is a pooling with padding that does not count as values, and with large strides. Vela 5.1.0
    makes an operation for each element of the kernel of these, whose windows may lie in the padding alone."""
    name = operator_name(node)
    if name not in ("aten::avg_pool2d", "aten::max_pool2d", "aten::max_pool2d_with_indices"):
        return False
    kernel, stride, padding, _, counted = (*node.args[1:], *(None,) * 5)[:5]
    counts = name == "aten::avg_pool2d" and counted is not False
    return max(stride or kernel) > MOST_STRIDE and any(padding or ()) and not counts


def _wide_state(program: Any) -> set[str]:
    """The names of the inputs of `program` that are int64 buffers which it writes."""
    import torch

    buffers = program.graph_signature.inputs_to_buffers
    return {
        node.name
        for node in program.graph.nodes
        if node.name in buffers
        and node.meta["val"].dtype == torch.int64
        and any(is_mutable(user) and user.args[0] is node for user in node.users)
    }


def integer_borders_kept() -> AbstractContextManager[None]:
    """While the block runs, delegates of programs that are lowered in this process give and take integers alone.

    ExecuTorch 1.5.1 takes operators back from a delegate whose input is a float from outside, and forgets those whose
    result is one, or an int64. They stay on the CPU too, and with them what then lies between the delegate and its
    conversions.
    """
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
        reason = _border_reason(node, tag)
        if reason is not None:
            del node.meta["delegation_tag"]
            reporter.report_reject(node, reason)
            changed = True
    return changed


def _border_reason(node: Any, tag: str) -> str | None:
    """Why `node` cannot be in the delegate, or None."""
    result = _foreign(node)
    if result and any(user.meta.get("delegation_tag") != tag for user in node.users):
        return f"its result leaves the NPU in a type that a delegate does not give: {result}"
    outside = (
        source
        for source in node.all_input_nodes
        if source.op == "call_function" and source.meta.get("delegation_tag") != tag
    )
    given = next((kind for kind in map(_foreign, outside) if kind), None)
    return (
        f"it takes a value from the CPU in a type that a delegate does not take: {given}" if given else None
    )


def _foreign(node: Any) -> str | None:
    """The type of a node's value when no delegate of integers can give or take it."""
    import torch

    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return None
    foreign = value.dtype.is_floating_point or value.dtype == torch.int64
    return str(value.dtype).removeprefix("torch.") if foreign else None
