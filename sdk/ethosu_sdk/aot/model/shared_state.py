"""Buffers that one method of a program writes and another only reads.

torch.export and the Arm backend take a buffer that a method never writes for a constant, and its value when the model
was exported would be in the program for good. So a method that reads such a buffer also returns it as its new value:
ExecuTorch then plans it as state, and writes nothing, because the value is the buffer itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def keep(program: Any, names: Sequence[str]) -> list[str]:
    """Make state of the buffers `names` that the ``ExportedProgram`` reads; which of them it reads."""
    from torch.export.graph_signature import OutputKind, OutputSpec, TensorArgument

    signature = program.graph_signature
    found = [
        (node, signature.inputs_to_buffers[node.name])
        for node in program.graph.find_nodes(op="placeholder")
        if signature.inputs_to_buffers.get(node.name) in names and node.users
    ]
    if not found:
        return []
    output = program.graph.output_node()
    output.args = ((*(node for node, _ in found), *output.args[0]),)
    signature.output_specs[:0] = [
        OutputSpec(OutputKind.BUFFER_MUTATION, TensorArgument(name=node.name), buffer)
        for node, buffer in found
    ]
    program.graph_module.recompile()
    return [buffer for _, buffer in found]
