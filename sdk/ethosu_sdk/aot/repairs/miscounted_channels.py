"""Weights that Vela would encode for another number of channels.

For Ethos-U85, Vela 5.1.0 makes one NPU operation of a layer with weights, a TRANSPOSE behind it and a CLAMP or TABLE
behind that. Where the last of them makes a part of a larger tensor, an input of a CONCAT or the middle of a PAD,
Vela takes the last axis of the transposed part for the layer's channels. The weights are then encoded for too few
channels, or for too many: with what lies behind them in Vela's memory. The operation computes something else, or
the NPU runs out of weights.

An activation looks at single values, so it can as well come before the TRANSPOSE. Then Vela makes the TRANSPOSE an
operation of its own, and the weights are whole. No value changes.
"""

from __future__ import annotations

from typing import Any

from ethosu_sdk.aot.graph.tosa_nodes import bring_forward, operator


def repair(graph: Any) -> bool:
    """Move activations that make a part of a tensor from behind a TRANSPOSE to before it."""
    from executorch.backends.arm.tosa.specification import get_context_spec

    # Ethos-U55 and Ethos-U65 transpose in operations of their own.
    nodes = [] if get_context_spec().is_U55_subset else list(graph.nodes)
    return sum(_hoist(node) for node in nodes) > 0


def _hoist(activation: Any) -> bool:
    """Let `activation` read what the TRANSPOSE before it reads; False when it is not an affected one."""
    if operator(activation) not in ("CLAMP", "TABLE") or not _makes_part(activation):
        return False
    moved = _transposed(activation.args[0])
    if moved is None:
        return False
    bring_forward(activation, moved)
    return True


def _makes_part(node: Any) -> bool:
    """Whether the values of `node` become a part of a larger tensor."""
    return any(
        operator(user) in ("CONCAT", "PAD")
        or (operator(user) in ("IDENTITY", "RESHAPE") and _makes_part(user))
        for user in node.users
    )


def _transposed(node: Any) -> Any | None:
    """The first of the operators that bring values to `node` in another order, or None: only those that nothing else
    reads, and that move the channels, are part of the layer's operation."""
    found = None
    while len(node.users) == 1:
        if operator(node) == "TRANSPOSE":
            found = node if node.args[1][-1] != len(node.args[1]) - 1 else found
        elif operator(node) not in ("IDENTITY", "RESHAPE"):
            break
        node = node.args[0]
    return found
