"""Records facts that ExecuTorch drops after lowering: why a node was rejected, and which node each TOSA operator was
made from.

ExecuTorch 1.5.1 logs the rejections as a table of text, and writes the origin of TOSA operators into the TOSA
file, or beside it, only with options that change the `.pte`. So two of its functions are wrapped instead.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ethosu_sdk.aot.graph.patching import patched

# The key under which a rejected node carries the reason: ExecuTorch's passes copy a node's `meta`.
REASON_KEY = "ethosu_sdk_rejected_because"


@dataclass
class LoweringTrace:
    """The nodes of the delegate that is being lowered, by the name of the TOSA tensor that they made first."""

    nodes: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def take(self) -> dict[str, Mapping[str, Any]]:
        """The `meta` of each node since the last call, by TOSA tensor."""
        found, self.nodes = self.nodes, {}
        return found


@contextlib.contextmanager
def traced() -> Iterator[LoweringTrace]:
    """While the block runs, nodes that the partitioner rejects are marked and TOSA operators are traced."""
    from executorch.backends.arm.operators.node_visitor import NodeVisitor
    from executorch.backends.arm.tosa import partitioner

    trace = LoweringTrace()
    reporter, serialize = partitioner.WhyNoPartitionReporter, NodeVisitor._serialize_operator

    class MarkingReporter(reporter):  # type: ignore[misc, valid-type]
        """Reports as its base does, and leaves the first reason at the node."""

        def report_reject(self, node: Any, reason: str) -> None:
            super().report_reject(node, reason)
            node.meta.setdefault(REASON_KEY, reason)

    def serialize_operator(
        self: Any, node: Any, tosa_graph: Any, tosa_op: Any, inputs: Any, outputs: Any, attributes: Any = None
    ) -> None:
        trace.nodes[str(outputs[0])] = dict(node.meta)
        serialize(self, node, tosa_graph, tosa_op, inputs, outputs, attributes)

    with (
        patched(partitioner, WhyNoPartitionReporter=MarkingReporter),
        patched(NodeVisitor, _serialize_operator=serialize_operator),
    ):
        yield trace
