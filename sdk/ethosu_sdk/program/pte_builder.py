"""Builds a `.pte` of one method, call by call, without torch or ExecuTorch; plans the memory of its tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk.program import pte_schema, pte_tree
from ethosu_sdk.program.execution_plan import ENTRY, ETHOSU_BACKEND, WORK_ID
from ethosu_sdk.program.pte_tree import Node

_ALIGNMENT = 16
_NUMBERS = {row.dtype: row.number for row in pte_schema.SCALAR_TYPES}
_SEGMENT = pte_schema.ENUMS["DataLocation"]["SEGMENT"]
_LAST = 1 << 30  # behind every instruction


@dataclass
class _Planned:
    """A tensor in planned memory, and the instructions from the first that needs it to the last."""

    value: int
    nbytes: int
    first: int | None = None
    last: int = -1
    state: bytes | None = None


@dataclass
class ProgramBuilder:
    """Values are numbered as they are made; `inputs` and `outputs` are those of the method."""

    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)  # offsets in planned memory, once it is built
    _values: list[Node] = field(default_factory=list)
    _planned: dict[int, _Planned] = field(default_factory=dict)
    _constants: list[bytes] = field(default_factory=list)
    _operators: list[tuple[str, str]] = field(default_factory=list)
    _payloads: list[bytes] = field(default_factory=list)
    _delegates: list[Node] = field(default_factory=list)
    _named: dict[str, bytes] = field(default_factory=dict)
    _instructions: list[Node] = field(default_factory=list)
    _scalars: dict[tuple[str, Any], int] = field(default_factory=dict)

    def tensor(self, dtype: str, shape: Sequence[int], *, name: str = "", state: bytes | None = None) -> int:
        """A tensor in planned memory; with `state`, one that keeps its value, which begins with these bytes."""
        node = _tensor(dtype, shape)
        if name:
            node["extra_tensor_info"] = {"fully_qualified_name": name}
        number = self._value("Tensor", node)
        nbytes = prod(shape) * np.dtype(dtype).itemsize
        self._planned[number] = _Planned(number, nbytes, state=state)
        return number

    def constant(self, array: npt.NDArray[Any]) -> int:
        """A tensor with a value that never changes."""
        self._constants.append(np.ascontiguousarray(array).tobytes())
        node = _tensor(array.dtype.name, array.shape)
        return self._value("Tensor", {**node, "data_buffer_idx": len(self._constants)})

    def number(self, value: int) -> int:
        return self._scalar("Int", "int_val", value)

    def real(self, value: float) -> int:
        return self._scalar("Double", "double_val", value)

    def boolean(self, value: bool) -> int:
        return self._scalar("Bool", "bool_val", value)

    def numbers(self, values: Sequence[int]) -> int:
        """A list of integers, which are values themselves."""
        key = "IntList", tuple(values)
        if key not in self._scalars:
            items = tuple(self.number(value) for value in values)
            self._scalars[key] = self._value("IntList", {"items": items})
        return self._scalars[key]

    def tensors(self, values: Sequence[int]) -> int:
        """A list of tensors."""
        number = self._value("TensorList", {"items": tuple(values)})
        self._scalars["TensorList", number] = number
        return number

    def none(self) -> int:
        return self._scalar("Null", "", None)

    def kernel(self, name: str, arguments: Sequence[int], out: int) -> None:
        """Call the operator `name`, such as ``aten::add.out``, which writes `out`."""
        operator, _, overload = name.partition(".")
        if (operator, overload) not in self._operators:
            self._operators.append((operator, overload))
        index = self._operators.index((operator, overload))
        self._call("KernelCall", {"op_index": index, "args": (*arguments, out, out)})

    def delegate(self, payload: bytes, specs: Mapping[str, str], arguments: Sequence[int]) -> None:
        """Call an Ethos-U with `payload`."""
        self._payloads.append(payload)
        reference = {"location": _SEGMENT, "index": len(self._payloads)}  # behind the segment of constants
        rows = [{"key": key, "value": value.encode()} for key, value in specs.items()]
        self._delegates.append({"id": ETHOSU_BACKEND, "processed": reference, "compile_specs": rows})
        self._call("DelegateCall", {"delegate_index": len(self._delegates) - 1, "args": tuple(arguments)})

    def name_data(self, key: str, content: bytes) -> None:
        """Keep `content` under `key`, for payloads that share it."""
        self._named[key] = content

    def build(self) -> bytes:
        """The file."""
        arena_bytes = self._plan_memory()
        constants, offsets = bytearray(), [0]
        for content in self._constants:
            constants += bytes(-len(constants) % _ALIGNMENT)
            offsets.append(len(constants))
            constants += content
        segments = [bytes(constants), *self._payloads, *self._named.values()]
        named = [
            {"key": key, "segment_index": 1 + len(self._payloads) + number}
            for number, key in enumerate(self._named)
        ]
        states = [row for row in self._planned.values() if row.state is not None]
        starts, state = [0], bytearray()
        for number, row in enumerate(states, 1):
            starts.append(len(state))
            state += row.state or b""
            self._values[row.value]["val"][1]["data_buffer_idx"] = number
        mutable = [{"segment_index": len(segments), "offsets": tuple(starts)}] if states else []
        plan: Node = {
            "name": ENTRY,
            "container_meta_type": {
                "encoded_inp_str": _tree_spec(len(self.inputs), is_input=True),
                "encoded_out_str": _tree_spec(len(self.outputs), is_input=False),
            },
            "values": self._values,
            "inputs": tuple(self.inputs),
            "outputs": tuple(self.outputs),
            "chains": [{"inputs": (), "outputs": (), "instructions": self._instructions}],
            "operators": [{"name": name, "overload": overload} for name, overload in self._operators],
            "delegates": self._delegates,
            "non_const_buffer_sizes": (0, arena_bytes),
        }
        tree: Node = {
            "execution_plan": [plan],
            "constant_buffer": [],
            "backend_delegate_data": [],
            "constant_segment": {"segment_index": 0, "offsets": tuple(offsets)},
            **({"mutable_data_segments": mutable} if mutable else {}),
            **({"named_data": named} if named else {}),
        }
        return pte_tree.make_file(tree, [*segments, *([bytes(state)] if states else [])])

    def _value(self, kind: str, node: Node) -> int:
        self._values.append({"val": (kind, node)})
        return len(self._values) - 1

    def _scalar(self, kind: str, name: str, value: Any) -> int:
        key = kind, value
        if key not in self._scalars:
            self._scalars[key] = self._value(kind, {name: value} if name else {})
        return self._scalars[key]

    def _call(self, kind: str, node: Node) -> None:
        at = len(self._instructions)
        self._instructions.append({"instr_args": (kind, node)})
        for number in node["args"]:
            for part in self._items(number):
                planned = self._planned.get(part)
                if planned is not None:
                    planned.first = at if planned.first is None else planned.first
                    planned.last = at

    def _items(self, number: int) -> tuple[int, ...]:
        kind, node = self._values[number]["val"]
        return node["items"] if kind == "TensorList" else (number,)

    def _plan_memory(self) -> int:
        """Give each tensor the lowest place that is free while it is needed, the largest first; the bytes in all."""
        for number in self.inputs:
            self._planned[number].first = -1
        for number in self.outputs:
            if number in self._planned:
                self._planned[number].last = _LAST
        placed: list[tuple[_Planned, int]] = []
        rows = [row for row in self._planned.values() if row.first is not None or row.state is not None]
        for row in rows:
            if row.state is not None:
                row.first, row.last = -1, _LAST
        for row in sorted(rows, key=lambda row: (-row.nbytes, row.value)):
            offset = 0
            for other, start in sorted(placed, key=lambda pair: pair[1]):
                apart = _first(other) > row.last or other.last < _first(row)
                if not apart and start < offset + max(row.nbytes, 1):
                    offset = max(offset, start + other.nbytes + -other.nbytes % _ALIGNMENT)
            placed.append((row, offset))
            self.places[row.value] = offset
            node = self._values[row.value]["val"][1]
            node["allocation_info"] = {"memory_id": WORK_ID, "memory_offset_low": offset}
        return max((offset + row.nbytes + -row.nbytes % _ALIGNMENT for row, offset in placed), default=0)


def _first(row: _Planned) -> int:
    return -1 if row.first is None else row.first


def _tensor(dtype: str, shape: Sequence[int]) -> Node:
    return {
        "scalar_type": _NUMBERS[dtype],
        "sizes": tuple(int(size) for size in shape),
        "dim_order": bytes(range(len(shape))),
    }


def _tree_spec(count: int, *, is_input: bool) -> str:
    """How inputs or outputs are nested, in the words of torch's pytree: one flat tuple of tensors."""
    leaf = '{"type": null, "context": null, "children_spec": []}'
    leaves = ", ".join([leaf] * count)
    flat = f'{{"type": "builtins.tuple", "context": "null", "children_spec": [{leaves}]}}'
    if not is_input:
        return f"[1, {flat}]"
    none = '{"type": "builtins.dict", "context": "[]", "children_spec": []}'
    return f'[1, {{"type": "builtins.tuple", "context": "null", "children_spec": [{flat}, {none}]}}]'
