"""Products in the graph that Vela gets, in the form that it fuses with the scales around them."""

from __future__ import annotations

from typing import Any

from ethosu_sdk.compile.rewrite.graph_passes import tosa_operator


def separate_squares(graph: Any) -> bool:
    """Give each factor of a MUL that squares a value a RESCALE of its own.

    Vela 5.1.0 fuses a MUL of 32 bits with the RESCALEs before and behind it, unless both factors are the result of
    the same RESCALE: a square, as in any normalisation, is then four operations on 32 bits in place of one on 8.
    """
    changed = False
    for node in list(graph.nodes):
        if tosa_operator(node) != "MUL" or node.args[0] is not node.args[1]:
            continue
        factor = node.args[0]
        if tosa_operator(factor) != "RESCALE":
            continue
        with graph.inserting_before(factor):
            twin = graph.node_copy(factor)
        node.update_arg(1, twin)
        changed = True
    return changed
