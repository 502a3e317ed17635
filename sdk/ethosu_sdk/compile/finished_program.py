"""Facts about a finished program: inputs, state, layout, calls of the CPU with reasons, and its ETRecord."""

from __future__ import annotations

import importlib.metadata
import platform
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import convert

from ethosu_sdk.base import plain_text
from ethosu_sdk.base.errors import DISK_FULL, BuildError, VerdictError
from ethosu_sdk.base.tools import event_place
from ethosu_sdk.compile.compile_facts import TensorFacts
from ethosu_sdk.compile.graphs.fx import operator_name
from ethosu_sdk.compile.graphs.source_lines import SourceFinder
from ethosu_sdk.compile.rewrite import after_lowering, cortex_m
from ethosu_sdk.compile.rewrite.partitioning import LAYOUT_REASON
from ethosu_sdk.compile.tool_hooks import REASON_KEY
from ethosu_sdk.program import execution_plan, pte
from ethosu_sdk.program.execution_plan import ENTRY, Allocation
from ethosu_sdk.program.pte_schema import NUMPY_TYPES
from ethosu_sdk.records.common import Delegation, Dtype, SourceLine
from ethosu_sdk.records.compile import CpuOperator, LayoutChanges, Site, State

if TYPE_CHECKING:
    from ethosu_sdk.compile.vela_capture import VelaCapture

ETRECORD_SUFFIX = ".etrecord"
_PACKAGES = ("torch", "torchao", "executorch", "ethos-u-vela", "tosa-tools", "numpy")

_DTYPES = {row.name: row.dtype for row in NUMPY_TYPES}
PROGRAM_DTYPES = frozenset(_DTYPES.values())

_PERMUTES = ("cortex_m::transpose", "aten::permute_copy", "channels_last::permute_copy")
_COPIES = ("dim_order_ops::_to_dim_order_copy", "dim_order_ops::_clone_dim_order")
_ORDERS = ((0, 2, 3, 1), (0, 3, 1, 2))

_CONVERSIONS = {
    *after_lowering.EDGE_QUANTIZES,
    *after_lowering.EDGE_DEQUANTIZES,
    "quantized_decomposed::quantize_per_channel",
    "quantized_decomposed::dequantize_per_channel",
}
# The partitioner prints an operator of the edge dialect with its whole schema.
_PRINTED = re.compile(r"<EdgeOpOverload: ([\w.:]+)>: schema = .*?\) -> (?:\(.*?\)|\S+)")
# It prints a set of types in the order of their addresses.
_TYPES = re.compile(r"torch\.\w+(?:, torch\.\w+)+")
# What the partitioner says, and what it means to who wrote the model.
_MEANINGS = tuple(
    (re.compile(pattern), meaning)
    for pattern, meaning in (
        (
            r"Node was not marked as quantized in the Arm backend",
            "it is in float: Arm's quantiser does not know it, or was told to leave it out; see `advise`",
        ),
        (
            r"One or more inputs were not quantized",
            "an input of it is in float: look at the operator before it, which was not quantised",
        ),
        (
            r"One or more outputs were not quantized",
            "its result is in float: look at the operator behind it, which was not quantised",
        ),
        (
            r"Was first node in partition and input (\S+) had fp dtype",
            r"its input \1 is in float, and no operator before it is on the NPU",
        ),
        (
            r"Op is not supported on U55",
            "Ethos-U55 and Ethos-U65 do not have it; Ethos-U85 does: --target ethos-u85-256",
        ),
        (
            r"Casting (from|to) torch\.(\w+) is not supported on U55",
            r"Ethos-U55 and Ethos-U65 cannot convert \1 \2",
        ),
        (
            r"Unsupported stride of (\(.*?\)) for Ethos-U55\..*",
            r"Ethos-U55 and Ethos-U65 have no stride of \1: use (1, 1) or (2, 2)",
        ),
        (
            r"Non-constant int64 input (\S+)",
            r"its input \1 is int64, and the NPU has 32 bits: use int32",
        ),
        (r"Non-constant node with int64 output", "its result is int64, and the NPU has 32 bits: use int32"),
        (
            r"Had torch\.(\w+) input (\S+) that is not supported by TOSA\S*",
            r"its input \2 is \1, which this NPU does not take",
        ),
        (
            r"Had torch\.(\w+) output that is not supported by TOSA\S*",
            r"its result is \1, which this NPU does not give",
        ),
        (
            r"Output dtype torch\.(\w+) is not supported in \S+ for input dtype torch\.(\w+)\..*",
            r"the NPU does not convert \2 to \1",
        ),
        (
            r"Input \S+ has unsupported dtype torch\.(\w+) \(Supports (\w+)\)",
            r"its input is \1, and the NPU takes \2 here",
        ),
        (
            r"Target \S+ is not supported|Not included in BaseTOSASupportList or .*",
            "ExecuTorch's Arm backend does not have it on any NPU",
        ),
        (
            r"(One submodule was|Submodule was) not fully partitioned",
            "an operator inside of a branch of it stays on the CPU",
        ),
    )
)


def program_tensors(manager: Any, method: str) -> dict[str, tuple[TensorFacts, ...]]:
    """``inputs`` and ``outputs`` of a method, read as all below from ExecuTorch's schema objects (exir/schema.py)."""
    plan = _plan(manager, method)
    rows = {"inputs": plan.inputs, "outputs": plan.outputs}
    return {name: tuple(_tensor(plan, index) for index in indices) for name, indices in rows.items()}


def delegation_counts(edge: Any) -> tuple[Delegation, ...]:
    """Where the operators of a lowered program run, as ExecuTorch counts them, by their names."""
    from executorch.devtools.backend_debug import get_delegation_info

    counted = get_delegation_info(edge.exported_program().graph_module).delegation_by_operator
    return tuple(
        Delegation(operator=name, delegated=row.delegated, not_delegated=row.non_delegated)
        for name, row in sorted(counted.items())
        if name != "getitem"  # which takes a tensor out of a tuple, and is no call in the program
    )


def kernel_calls(manager: Any, method: str) -> tuple[tuple[str, str], ...]:
    """(name, overload) of each operator that a method calls on the CPU, in the order of the calls."""
    plan = _plan(manager, method)
    operators = (plan.operators[call.op_index] for call in _calls(plan, "KernelCall"))
    return tuple((operator.name, operator.overload) for operator in operators)


def delegate_payloads(manager: Any, method: str) -> tuple[bytes, ...]:
    """The payload of each delegate of a method, in the plan's order. BuildError when one is not in line."""
    program = manager.executorch_program
    payloads = []
    for delegate in _plan(manager, method).delegates:
        if delegate.processed.location.name != "INLINE":
            raise BuildError(f"the payload of a {delegate.id} delegate is not stored in the program itself")
        payloads.append(bytes(program.backend_delegate_data[delegate.processed.index].data))
    return tuple(payloads)


def delegate_arguments(manager: Any, method: str) -> dict[int, int]:
    """With how many tensors a method calls each delegate, by the delegate's index."""
    calls = _calls(_plan(manager, method), "DelegateCall")
    return {call.delegate_index: len(call.args) for call in calls}


def _calls(plan: Any, kind: str) -> Iterator[Any]:
    for chain in plan.chains:
        for instruction in chain.instructions:
            if type(instruction.instr_args).__name__ == kind:
                yield instruction.instr_args


def package_versions() -> dict[str, str]:
    """Python and every package that shapes the `.pte`, with their installed versions."""
    return {"python": platform.python_version()} | {
        name: importlib.metadata.version(name) for name in _PACKAGES
    }


def _plan(manager: Any, method: str) -> Any:
    return next(plan for plan in manager.executorch_program.execution_plan if plan.name == method)


def _tensor(plan: Any, index: int) -> TensorFacts:
    value = plan.values[index].val
    if type(value).__name__ != "Tensor":
        raise BuildError(f"an input or output of the program is a {type(value).__name__}, not a tensor")
    name = value.scalar_type.name
    if name not in _DTYPES:
        raise BuildError(f"an input or output of the program has the type {name}, which NumPy does not have")
    return TensorFacts(_DTYPES[name], tuple(value.sizes), tuple(value.dim_order))


def find_state(manager: Any, written: Sequence[str], read: Sequence[str], method: str) -> tuple[State, ...]:
    """The tensors that a method keeps from one inference to the next, in the `.pte` of `manager`. VerdictError for a
    buffer in `written`, those that the model changes in an inference, that the `.pte` does not begin with or does not
    write; or in `read`, which another method writes, that it does not begin with."""
    if not written and not read:
        return ()
    plan = pte.parse(bytes(manager.buffer)).plan(method)
    stored = {
        value.allocation: (index, value)
        for index, value in enumerate(plan.values)
        if isinstance(value, execution_plan.Tensor) and value.data is not None
    }
    # What operators write in place: ``copy_`` at the end of a program.
    changed = {
        call.args[0]
        for call in plan.instructions
        if isinstance(call, execution_plan.KernelCall) and plan.operators[call.op_index].name.endswith("_")
    }
    places, found = _places(manager.exported_program(method)), []
    for name in (*written, *read):
        place = places.get(name) or places.get(_flat(name))
        index, tensor = (-1, None) if place is None else stored.get(place, (-1, None))
        if place is None or tensor is None or (name not in read and index not in changed):
            raise VerdictError(
                f"the program loses the state '{name}', which the model changes during an inference",
                "nothing was written. This is a fault of the compiler; write the buffer with copy_ of a new tensor, "
                "or make the state an input and an output of the model",
            )
        found.append(
            State(
                name=name,
                shape=tensor.sizes,
                dtype=convert(tensor.dtype, Dtype),
                bytes=tensor.nbytes,
                arena=place.memory_id - 1,
                offset=place.offset,
            )
        )
    return tuple(found)


def _flat(name: str) -> str:
    """A buffer's name, whether it is an attribute of a submodule or flat."""
    return name.replace(".", "_")


def _places(program: Any) -> dict[str, Allocation]:
    buffers = program.graph_signature.inputs_to_buffers
    found = {
        buffers[node.name]: Allocation(node.meta["spec"].mem_id, node.meta["spec"].mem_offset)
        for node in program.graph.find_nodes(op="placeholder")
        if node.name in buffers and node.meta["spec"].mem_id is not None
    }
    return {**{_flat(name): place for name, place in found.items()}, **found}


def find_layout_changes(manager: Any, method: str) -> LayoutChanges:
    """How often a method changes the order of an image's axes in memory, between NCHW and NHWC, on the CPU."""
    changed = [
        node.meta["val"]
        for node in manager.exported_program(method).graph.nodes
        if _is_layout_change(operator_name(node), node)
    ]
    written = sum(row.numel() * row.element_size() for row in changed)
    return LayoutChanges(calls=len(changed), bytes=written)


def _is_layout_change(name: str, node: Any) -> bool:
    if name in _PERMUTES:
        sizes = node.args[0].meta["val"].shape
        order = tuple(axis % len(sizes) for axis in node.args[1])
        long = [axis for axis in order if sizes[axis] > 1]
        return order in _ORDERS and long != sorted(long)
    if name in _COPIES:
        orders = [tuple(row.meta["val"].dim_order()) for row in (node.args[0], node)]
        return orders[0] != orders[1] and any(row in _ORDERS for row in orders)
    return False


def find_cpu_operators(
    manager: Any, finder: SourceFinder, *, without: str, method: str
) -> tuple[CpuOperator, ...]:
    """The operators that a method calls on the CPU, in order of first call. `without` says why nothing is delegated;
    it is empty where the NPU may have everything. Calls are joined with the nodes of the program's graph, which come
    in the same order; a call without a node (those inside of a control-flow branch) has no source line."""
    nodes = _operator_nodes(manager, method)
    position = 0
    sites: dict[str, Counter[tuple[str, SourceLine | None, str | None, str | None]]] = {}
    for name, overload in kernel_calls(manager, method):
        # Nodes that are passed over became no call.
        later = (place for place in range(position, len(nodes)) if nodes[place][0] == (name, overload))
        found_at = next(later, None)
        meta: Mapping[str, Any] = {} if found_at is None else nodes[found_at][1]
        position = position if found_at is None else found_at + 1
        source = finder.find(meta)
        reason = without or _reason(name, meta)
        if name == "cortex_m::transpose" and source is None:
            reason = "change of layout: the Cortex-M backend has the channels of images last"
        full = f"{name}.{overload}" if overload else name
        kernels = meta.get(cortex_m.PORTABLE_KEY), meta.get(cortex_m.OPERATOR_KEY)
        sites.setdefault(full, Counter())[reason, source, *kernels] += 1
    return tuple(
        CpuOperator(
            name=name,
            calls=found.total(),
            boundary=name.rpartition(".")[0] in _CONVERSIONS or {row[0] for row in found} == {LAYOUT_REASON},
            sites=tuple(
                Site(calls=calls, reason=reason, source=source, portable=portable, cortex_m=operator)
                for (reason, source, portable, operator), calls in found.items()
            ),
        )
        for name, found in sites.items()
    )


def _reason(name: str, meta: Mapping[str, Any]) -> str:
    """Why the NPU does not do it, in the same words in every process: operators by name, types in order."""
    if name in _CONVERSIONS:
        return "conversion between float and quantised values"
    if name == "aten::copy_":
        return "it writes a new value into a buffer that the program keeps from one inference to the next"
    reason = str(meta.get(REASON_KEY, "ExecuTorch's partitioner left it out and gives no reason"))
    ordered = _TYPES.sub(lambda found: ", ".join(sorted(found[0].split(", "))), reason)
    words = _PRINTED.sub(r"\1", ordered).strip().rstrip(".")
    known = ((found, meaning) for pattern, meaning in _MEANINGS if (found := pattern.fullmatch(words)))
    return next((found.expand(meaning) for found, meaning in known), words)


def _operator_nodes(manager: Any, method: str) -> list[tuple[tuple[str, str], Mapping[str, Any]]]:
    graph = manager.exported_program(method).graph
    schemas = ((node, getattr(node.target, "_schema", None)) for node in graph.nodes)
    return [
        ((schema.name, schema.overload_name), node.meta)
        for node, schema in schemas
        if node.op == "call_function" and schema is not None
    ]


def write_etrecord(path: Path, manager: Any, captures: Sequence[VelaCapture]) -> None:
    """Write the ETRecord of the program `manager`, which was lowered with one, and its Vela runs: by it, ExecuTorch's
    Inspector maps events to the model's lines. BuildError when ExecuTorch cannot write it. ExecuTorch 1.5.1 knows
    nothing of what happens in a delegate for Ethos-U. Which node each TOSA operator was made from is traced
    (:mod:`ethosu_sdk.compile.tool_hooks`): that is filled in."""
    from ethosu_sdk.compile import vela_capture

    delegates = [
        captures[turn] for turn in vela_capture.run_turns(delegate_payloads(manager, ENTRY), captures)
    ]
    try:
        record = manager.get_etrecord()
        # The graph before it is lowered holds all weights once more, and is of use for values alone, not for times.
        record.exported_program = record.export_graph_id = None
        record._delegate_map = {ENTRY: _completed(record._delegate_map[ENTRY], manager, delegates)}
        record.save(path)
    except OSError as error:
        if error.errno in DISK_FULL:
            raise
        raise BuildError(f"the ETRecord cannot be written: {error.strerror}") from error
    except Exception as error:
        raise BuildError(
            f"ExecuTorch could not write the ETRecord: {plain_text.error(error)}",
            "compile without --etrecord",
        ) from error


def _completed(
    calls: Mapping[int, Mapping[str, Any]], manager: Any, delegates: Sequence[VelaCapture]
) -> dict[int, dict[str, Any]]:
    """What ExecuTorch says of each call of a delegate, by its instruction, with the debug handle of the node behind
    each TOSA operator of the delegate."""
    instructions = _plan(manager, ENTRY).chains[0].instructions
    found = {}
    for number, row in calls.items():
        capture = delegates[instructions[number].instr_args.delegate_index]
        handles = {
            event_place(tensor): [meta["debug_handle"]]
            for tensor, meta in capture.nodes.items()
            if "debug_handle" in meta
        }
        found[number] = {**row, "delegate_map": handles}
    return found
