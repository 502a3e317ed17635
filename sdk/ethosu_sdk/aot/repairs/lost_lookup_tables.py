"""Look-up tables that Vela would lose or misplace on Ethos-U55 and Ethos-U65.

Vela 4.5.0 to 5.2.0 makes one operation of a TRANSPOSE of int8 values and the TABLE behind it, and forgets what it is:

- It pads the operation as if the transposed result were read in its own order: with as many columns as are missing
  then, though its window is one element wide. What the NPU makes of windows beyond their input is not documented.
- On Ethos-U55-32 and -64, which have 16 KiB of shared RAM and no part of it set aside for look-up tables, it plans
  the shared RAM as for a TRANSPOSE alone. The table is loaded behind the end of the shared RAM, and accumulators lie
  where it is looked for. Moreover, it takes tables to be there still after a TRANSPOSE or MATMUL. What uses one of
  them again looks into what is left of the accumulators.

A TABLE looks at single values, so it can as well come before the TRANSPOSE. And a CLAMP to all values of the type
before each TABLE of those that have the same table makes Vela load it anew. No value changes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from ethosu_sdk.aot.graph.tosa_nodes import bring_forward, first_transpose, operator

# Targets without banks for tables: reservedEndBanks in Vela's ethos_u55.cpp.
TARGETS = ("ethos-u55-32", "ethos-u55-64")
_FORGOTTEN = ("MATMUL", "TRANSPOSE")


def _tables(graph: Any) -> list[Any]:
    return [node for node in graph.nodes if operator(node) == "TABLE"]


def repair_transposed(graph: Any) -> bool:
    """Move tables of int8 values from behind a TRANSPOSE to before it."""
    import torch

    narrow = [table for table in _tables(graph) if table.args[0].meta["val"].dtype == torch.int8]
    found = [(table, moved) for table in narrow if (moved := first_transpose(table.args[0])) is not None]
    for table, moved in found:
        bring_forward(table, moved)
    return bool(found)


def repair_reused(graph: Any) -> bool:
    """Put a CLAMP before tables that are used again, where something may lie between that Vela does not think of."""
    if not any(operator(node) in _FORGOTTEN for node in graph.nodes):
        return False
    users = defaultdict(list)
    for table in _tables(graph):
        users[table.args[1]].append(table)
    found = [table for alike in users.values() if len(alike) > 1 for table in alike]
    for table in found:
        _separate(graph, table)
    return bool(found)


def _separate(graph: Any, table: Any) -> None:
    import torch
    from executorch.exir.dialects._ops import ops

    value = table.args[0]
    limits = torch.iinfo(value.meta["val"].dtype)
    with graph.inserting_before(table):
        same = graph.call_function(ops.backend.tosa.CLAMP.default, (value, limits.min, limits.max))
    same.meta = dict(value.meta)
    table.replace_input_with(value, same)
