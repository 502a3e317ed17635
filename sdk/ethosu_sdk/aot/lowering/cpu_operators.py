"""The operators that a finished program calls on the CPU: how often, why, and from which line of the model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ethosu_sdk import pte
from ethosu_sdk.aot.facts.compilation import CallSite, OperatorCount
from ethosu_sdk.aot.facts.source_line import SourceLine
from ethosu_sdk.aot.graph import program_facts
from ethosu_sdk.aot.graph.lowering_trace import REASON_KEY
from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.aot.lowering import fallback, integer_state

_CONVERSIONS = {
    *integer_state.QUANTIZES,
    *integer_state.DEQUANTIZES,
    "quantized_decomposed::quantize_per_channel",
    "quantized_decomposed::dequantize_per_channel",
}
_CONVERTS = "conversion between float and quantised values"
_WRITE_BACK = "aten::copy_"
_KEEPS = "it writes a new value into a buffer that the program keeps from one inference to the next"
_TRANSPOSE = "cortex_m::transpose"
_LAYOUT = "change of layout: the Cortex-M backend has the channels of images last"
# The partitioner prints an operator of the edge dialect with its whole schema.
_PRINTED = re.compile(r"<EdgeOpOverload: ([\w.:]+)>: schema = .*?\) -> (?:\(.*?\)|\S+)")
# It prints a set of types in the order of their addresses.
_TYPES = re.compile(r"torch\.\w+(?:, torch\.\w+)+")
_UNTOLD = "ExecuTorch's partitioner left it out and gives no reason"


def find(
    manager: Any, finder: SourceFinder, *, without: str, method: str = pte.ENTRY
) -> tuple[OperatorCount, ...]:
    """The operators that a method calls on the CPU, in order of first call. `without` says why nothing is
    delegated; it is empty where the NPU may have everything.

    Calls are joined with the nodes of the program's graph, which come in the same order; a call without a node
    (those inside of a control-flow branch) has no source line.
    """
    nodes, position = _operator_nodes(manager, method), 0
    sites: dict[str, Counter[tuple[str, SourceLine | None, str | None, str | None]]] = {}
    for name, overload in program_facts.kernel_calls(manager, method):
        found_at = _next(nodes, position, (name, overload))
        meta: Mapping[str, Any] = {} if found_at is None else nodes[found_at][1]
        position = position if found_at is None else found_at + 1
        source = finder.find(meta)
        reason = _LAYOUT if name == _TRANSPOSE and source is None else _reason(name, meta, without)
        full = f"{name}.{overload}" if overload else name
        kernels = meta.get(fallback.PORTABLE_KEY), meta.get(fallback.OPERATOR_KEY)
        sites.setdefault(full, Counter())[reason, source, *kernels] += 1
    return tuple(
        OperatorCount(
            name=name,
            calls=found.total(),
            boundary=name.rpartition(".")[0] in _CONVERSIONS,
            sites=tuple(CallSite(calls, *site) for site, calls in found.items()),
        )
        for name, found in sites.items()
    )


def _reason(name: str, meta: Mapping[str, Any], without: str) -> str:
    if without:
        return without
    if name in _CONVERSIONS:
        return _CONVERTS
    if name == _WRITE_BACK:
        return _KEEPS
    return _plain(str(meta.get(REASON_KEY, _UNTOLD)))


def _plain(reason: str) -> str:
    """ExecuTorch's reason with the name of an operator for its schema, and in the same words in every process."""
    ordered = _TYPES.sub(lambda found: ", ".join(sorted(found[0].split(", "))), reason)
    return _PRINTED.sub(r"\1", ordered).strip().rstrip(".")


def _operator_nodes(manager: Any, method: str) -> list[tuple[tuple[str, str], Mapping[str, Any]]]:
    """((name, overload), meta) of each node of a method that calls an operator."""
    graph = manager.exported_program(method).graph
    schemas = ((node, getattr(node.target, "_schema", None)) for node in graph.nodes)
    return [
        ((schema.name, schema.overload_name), node.meta)
        for node, schema in schemas
        if node.op == "call_function" and schema is not None
    ]


def _next(
    nodes: list[tuple[tuple[str, str], Mapping[str, Any]]], start: int, wanted: tuple[str, str]
) -> int | None:
    """The index of the first node from `start` on that calls `wanted`; those passed over became no call."""
    return next((index for index in range(start, len(nodes)) if nodes[index][0] == wanted), None)
