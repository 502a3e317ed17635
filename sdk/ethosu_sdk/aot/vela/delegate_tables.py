"""Checks that Vela loads each look-up table to where it is used, and that nothing overwrites it before.

Vela 4.5.0 to 5.2.0 can lose one on Ethos-U55-32 and -64 without a word
(:mod:`ethosu_sdk.aot.repairs.lost_lookup_tables` avoids the known ways):
the operation would look into what other operations left there.
"""

from __future__ import annotations

from ethosu_sdk import vela_blocks
from ethosu_sdk.aot.facts.compilation import DelegateFacts, OperationFacts
from ethosu_sdk.aot.vela.delegate_outputs import place
from ethosu_sdk.errors import InputError
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.hazards import tables

_HINT = (
    "apply the activation before the axes are permuted, or compile for a target that reserves memory for tables, "
    "such as ethos-u55-128; --no-delegate keeps every operator on the CPU"
)


def check(delegate: DelegateFacts, payload: bytes) -> None:
    """InputError that names the operation's place in the model when it would not find its look-up table."""
    blocks = vela_blocks.parse(payload)
    config = NpuConfig.from_word(blocks.config_word)
    found = tables.lost(bytes(blocks.command_stream), config)
    if not found:
        return
    operation = _at(delegate, found[0].offset)
    where = (
        "" if operation is None else f". It is that of the {_name(operation)}, {_place(delegate, operation)}"
    )
    raise InputError(
        f"Vela loses a look-up table of delegate {delegate.index}, and results on {config.npu}-{config.macs} would "
        f"be wrong: {found[0].describe()}{where}",
        _HINT,
    )


def _at(delegate: DelegateFacts, offset: int) -> OperationFacts | None:
    """The operation that the command at byte `offset` is a part of: Vela gives the end of each one."""
    behind = [row for row in delegate.operations if row.offsets and max(row.offsets) >= offset]
    return min(behind, key=lambda row: max(row.offsets), default=None)


def _place(delegate: DelegateFacts, operation: OperationFacts) -> str:
    """Where the operation comes from. ExecuTorch 1.5.1 notes no origin for a TABLE: then, what runs next to it."""
    rows = delegate.operations
    at = rows.index(operation)
    known = [index for index, row in enumerate(rows) if row.source is not None]
    if operation.source is not None or not known:
        return place(operation.source)
    nearest = rows[min(known, key=lambda index: abs(index - at))]
    return f"near the {_name(nearest)}, {place(nearest.source)}"


def _name(operation: OperationFacts) -> str:
    return (
        f"{operation.tosa_operator or operation.operator} '{operation.name or operation.tosa_tensor or ''}'"
    )
