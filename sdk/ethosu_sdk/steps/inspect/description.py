"""What a `.pte` holds, as JSON-able data: the part of `ethosu-sdk inspect` that says nothing about layout."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ethosu_sdk import pte, targets
from ethosu_sdk.results import target_record
from ethosu_sdk.steps.shared import hazards
from ethosu_sdk.vela_blocks import TensorSlot, VelaBlocks

Description = dict[str, Any]

NOTHING_DELEGATED = "the program delegates nothing to an Ethos-U"


@dataclass(frozen=True)
class InspectOptions:
    """What a description holds beside what every one does: the `commands` of the command streams, their `hazards`."""

    commands: bool = False
    hazards: bool = False


NOTHING_MORE = InspectOptions()


def describe(program: pte.Pte, options: InspectOptions = NOTHING_MORE) -> Description:
    """The content of `program`: target, methods, segments. Sizes and offsets are in bytes.

    Values are referred to by their index in `methods[].values`. With `options.commands`, each Ethos-U delegate gets
    its disassembled command stream, with `options.hazards` what that does too early. Raises InputError when the file
    contradicts itself about its target, or when a command does not exist.
    """
    target = program.target()
    return {
        "file": {
            "sha256": program.sha256,
            "bytes": program.size,
            "program_bytes": program.header.program_bytes,
            "extended_header": program.header.extended,
        },
        **target_record.members(target),
        "methods": [_method(plan, options) for plan in program.plans],
        "segments": [asdict(segment) for segment in program.segments],
        "named_data": [{"key": key, "bytes": len(data)} for key, data in program.named_data.items()],
        "unavailable": [] if target is not None else [{"path": "/target", "reason": NOTHING_DELEGATED}],
    }


def _method(plan: pte.ExecutionPlan, options: InspectOptions) -> Description:
    instructions = [
        _instruction(index, row, plan)
        for chain in plan.chains
        for index, row in enumerate(chain.instructions)
    ]
    return {
        "name": plan.name,
        "inputs": list(plan.inputs),
        "outputs": list(plan.outputs),
        "operators": [
            {"name": name, "runs_on": "CPU", "calls": calls}
            for name, calls in plan.called_operators().items()
        ],
        "delegates": _delegates(plan, options),
        "instructions": instructions,
        "memory_plan": _memory_plan(plan),
        "constant_bytes": _constant_bytes(plan),
        "values": _values(plan),
    }


def _instruction(index: int, row: pte.Instruction, plan: pte.ExecutionPlan) -> Description:
    shared = {"index": index, "kind": row.kind}
    if isinstance(row, pte.KernelCall):
        name = plan.operators[row.op_index].full_name
        return {**shared, "runs_on": "CPU", "name": name, "args": list(row.args)}
    if isinstance(row, pte.DelegateCall):
        delegate = plan.delegates[row.delegate_index]
        return {
            **shared,
            "runs_on": "NPU" if delegate.vela is not None else delegate.id,
            "name": delegate.id,
            "delegate": row.delegate_index,
            "args": list(row.args),
        }
    return {**shared, "runs_on": "CPU", **asdict(row)}


def _delegates(plan: pte.ExecutionPlan, options: InspectOptions) -> list[Description]:
    calls = Counter(row.delegate_index for row in plan.instructions if isinstance(row, pte.DelegateCall))
    pieces = {(row.payload_offset, len(row.payload)): row.payload for row in plan.delegates}  # may be shared
    hashes = {key: hashlib.sha256(payload).hexdigest() for key, payload in pieces.items()}
    return [
        {
            **_delegate(index, row, calls[index], hashes[row.payload_offset, len(row.payload)]),
            **({"vela": _vela(row.vela, options)} if row.vela is not None else {}),
        }
        for index, row in enumerate(plan.delegates)
    ]


def _delegate(index: int, row: pte.Delegate, calls: int, sha256: str) -> Description:
    return {
        "index": index,
        "id": row.id,
        "calls": calls,
        "payload_offset": row.payload_offset,
        "payload_bytes": len(row.payload),
        "sha256": sha256,
        "compile_specs": {key: _text(value) for key, value in row.compile_specs.items()},
    }


def _text(value: bytes) -> str:
    """A compile specification as text; bytes that are none as hexadecimal."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return f"0x{value.hex()}"


def _vela(vela: VelaBlocks, options: InspectOptions) -> Description:
    return {
        "accelerator": targets.accelerator(vela.config_word),
        "config_word": f"{vela.config_word:#010x}",
        "arch_word": f"{vela.arch_word:#010x}",
        "command_stream_bytes": len(vela.command_stream),
        "weight_bytes": len(vela.weights),
        "scratch_bytes": vela.scratch_bytes,
        "inputs": [_slot(slot) for slot in vela.inputs],
        "outputs": [_slot(slot) for slot in vela.outputs],
        "blocks": [asdict(block) for block in vela.blocks],
        **({"commands": _commands(vela)} if options.commands else {}),
        **({"hazards": hazards.sentences(vela)} if options.hazards else {}),
    }


def _commands(vela: VelaBlocks) -> list[Description]:
    """The command stream: byte offsets in it, names as in Arm's register headers, raw values of fields."""
    from ethosu_sdk.npu.stream import decode

    family = targets.family_by_number(vela.config_word >> 28)
    generation = family.generation if family else "u55"
    return [
        {
            "offset": row.offset,
            "name": f"NPU_{row.type.name}",
            "fields": {field.name: field.of(row.bits) for field in row.type.fields},
        }
        for row in decode.commands(vela.command_stream, generation)
    ]


def _slot(slot: TensorSlot) -> Description:
    return {
        "shape": list(slot.shape),
        "element_bytes": slot.element_bytes,
        "bytes": slot.nbytes,
        "region": slot.region,
        "offset": slot.offset,
    }


def _memory_plan(plan: pte.ExecutionPlan) -> list[Description]:
    """The planned buffers, without entry 0, which is not used."""
    tensors = Counter(
        value.allocation.memory_id
        for value in plan.values
        if isinstance(value, pte.Tensor) and value.allocation is not None
    )
    return [
        {"memory_id": memory_id, "bytes": size, "tensors": tensors[memory_id]}
        for memory_id, size in enumerate(plan.non_const_buffer_sizes)
        if memory_id
    ]


def _constant_bytes(plan: pte.ExecutionPlan) -> int:
    """Bytes of the constants that the method refers to, each counted once."""
    constants = {
        value.data_buffer_idx: value.nbytes
        for value in plan.values
        if isinstance(value, pte.Tensor) and value.is_constant and not value.external_name
    }
    return sum(constants.values())


def _values(plan: pte.ExecutionPlan) -> list[Description]:
    # A value that is both is an input that the method hands back.
    roles = dict.fromkeys(plan.outputs, "output") | dict.fromkeys(plan.inputs, "input")
    return [_value(index, value, roles.get(index)) for index, value in enumerate(plan.values)]


def _value(index: int, value: pte.Value, role: str | None) -> Description:
    shared = {"index": index, "kind": value.kind}
    if isinstance(value, pte.Tensor):
        return {**shared, **_tensor(value), "role": role or _inner_role(value)}
    if isinstance(value, pte.List):
        return {**shared, "items": [_number(item) for item in value.items]}
    return {**shared, **({} if value.value is None else {"value": _number(value.value)})}


def _number(value: float | str) -> float | str:
    """`value` itself; what JSON cannot hold (NaN and infinities) as text."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _tensor(tensor: pte.Tensor) -> Description:
    allocation = tensor.allocation
    return {
        "dtype": tensor.dtype,
        "shape": list(tensor.sizes),
        "dim_order": list(tensor.dim_order),
        "dynamism": tensor.dynamism,
        "bytes": tensor.nbytes,
        **({"memory_id": allocation.memory_id, "offset": allocation.offset} if allocation else {}),
        **({"has_data": True} if tensor.data is not None else {}),
        **({"name": tensor.name} if tensor.name else {}),
        **({"external_name": tensor.external_name} if tensor.external_name else {}),
    }


def _inner_role(tensor: pte.Tensor) -> str:
    if tensor.is_constant:
        return "constant"
    return "state" if tensor.data is not None else "intermediate"


def npu_share(method: Mapping[str, Any]) -> tuple[int, int]:
    """(calls that run on the NPU, all operator and delegate calls) of a described method."""
    calls: Sequence[Mapping[str, Any]] = [
        row for row in method["instructions"] if row["kind"] in ("KernelCall", "DelegateCall")
    ]
    return sum(row["runs_on"] == "NPU" for row in calls), len(calls)
