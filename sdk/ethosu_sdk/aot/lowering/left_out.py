"""Operators on which the Arm backend fails, left on the CPU.

ExecuTorch 1.5.1 decides by tables what it takes, and then fails inside of a pass at some of it. What the pass was
working on came from an operator that the partitioner took: without that one, it is tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ethosu_sdk import plain_text
from ethosu_sdk.aot.graph.fx import is_mutable, operator_name
from ethosu_sdk.aot.graph.lowering_trace import REASON_KEY
from ethosu_sdk.aot.refusals.suspects import suspect

_NAME_KEY = "ethosu_sdk_taken_as"
_MOST = 8


_TRANSPOSED = 6  # the argument of a convolution that says that it is transposed
_WIDE_TRANSPOSED = "Vela has no transposed convolution of 16 bits for Ethos-U55 and Ethos-U65"
_WIDE_STATE = "it reads a state of 64 bits, which changes from inference to inference"


def lowered(program: Any, lower: Callable[[Any], Any], *, ethos_u85: bool) -> Any:
    """What `lower` makes of `program` with a check for the partitioner that leaves out what it fails at.

    What reads an int64 state is left out at once: the partitioner takes every int64 buffer for a constant. So are
    transposed convolutions of int16, but for the Ethos-U85: Vela 5.1.0 refuses them and does not say which it was.
    """
    from torch.fx.passes.operator_support import OperatorSupportBase

    reasons: dict[str, str] = {}
    wide = _wide_state(program)

    class LeftOutCheck(OperatorSupportBase):  # type: ignore[misc]
        """Refuses the operators in question, and marks the others so that they are known again inside of passes."""

        def is_node_supported(self, submodules: Any, node: Any) -> bool:
            del submodules
            node.meta[_NAME_KEY] = node.name
            if any(source.name in wide for source in node.all_input_nodes):
                reasons[node.name] = _WIDE_STATE
            if not ethos_u85 and _is_wide_transposed(node):
                reasons[node.name] = _WIDE_TRANSPOSED
            if node.name in reasons:
                node.meta[REASON_KEY] = reasons[node.name]
            return node.name not in reasons

    failures = 0
    while True:
        try:
            return lower(LeftOutCheck())
        except Exception as error:
            found = suspect(error)
            name = found.meta.get(_NAME_KEY) if found else None
            if name is None or name in reasons or failures == _MOST:
                raise
            failures += 1
            reasons[name] = f"the Arm backend fails on it: {plain_text.error(_first_cause(error))}"


def _is_wide_transposed(node: Any) -> bool:
    """Whether `node` is a transposed convolution that the quantiser gave inputs of int16."""
    import torch

    if operator_name(node) != "aten::convolution" or not node.args[_TRANSPOSED]:
        return False
    (given,) = node.args[0].all_input_nodes[:1] or (node.args[0],)
    return bool(given.meta["val"].dtype == torch.int16)


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


def _first_cause(error: BaseException) -> BaseException:
    while error.__cause__ is not None:
        error = error.__cause__
    return error
