"""Place and lifetime of data in a delegate's memory, read from its command stream.

Bytes that an operation writes live in the region from then on, until the last operation that reads them. The stream
names no tensors; that writes belong to one is not in it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ethosu_sdk import pte
from ethosu_sdk.errors import SdkError
from ethosu_sdk.npu import deadline
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.hazards.accesses import Access, accesses
from ethosu_sdk.npu.hazards.ranges import Runs, overlap
from ethosu_sdk.npu.operation import Operation
from ethosu_sdk.npu.program import described
from ethosu_sdk.results.run_facts import Lifetime, Lifetimes
from ethosu_sdk.vela_blocks import VelaBlocks

_BEFORE = -1  # the "operation" that brings a delegate's inputs
_TIMEOUT_S = 60.0


@dataclass
class _Tenant:
    """A lifetime that has not ended yet."""

    region: int
    runs: Runs
    first: int
    last: int
    offset: int | None
    role: str = ""

    def ended(self) -> Lifetime:
        return Lifetime(
            self.region, self.runs.base, self.runs.end, self.first, self.last, self.offset, self.role
        )


def of(program: pte.Pte) -> tuple[Lifetimes | None, str]:
    """The lifetimes in the delegate of `program` with the largest arena, and why they are not known."""
    delegates = program.plan().delegates
    known = {index: row.vela for index, row in enumerate(delegates) if row.vela is not None}
    if not known:
        return None, "the program has no delegate of an Ethos-U"
    index, vela = max(known.items(), key=lambda row: row[1].scratch_bytes)
    try:
        with deadline.until(time.monotonic() + _TIMEOUT_S):
            found = _read(vela)
    except SdkError as error:
        return None, error.message
    if found is None:
        return None, "which operations run depends on data"
    return Lifetimes(index, len(delegates), vela.scratch_bytes, *found), ""


def _read(vela: VelaBlocks) -> tuple[Sequence[Lifetime], int] | None:
    """The lifetimes in an Ethos-U's delegate over how many operations; None for a stream whose order of operations
    depends on data. SdkError when it cannot be read."""
    config = NpuConfig.from_word(vela.config_word)
    segment = described(bytes(vela.command_stream), config)
    if segment.branch is not None:
        return None
    count = len(segment.operations)
    live = [
        _Tenant(slot.region, Runs(slot.offset, (), slot.nbytes), _BEFORE, _BEFORE, None, "input")
        for slot in vela.inputs
    ]
    gone: list[_Tenant] = []
    for number, op in enumerate(segment.operations):
        deadline.check()
        live = _step(live, gone, number, op, accesses(op, config))
    for slot in vela.outputs:
        kept = Access(slot.region, False, Runs(slot.offset, (), slot.nbytes))
        for tenant in _met(live, kept):
            tenant.last, tenant.role = count - 1, tenant.role or "output"
    return [tenant.ended() for tenant in (*gone, *live)], count


def _step(
    live: list[_Tenant], gone: list[_Tenant], number: int, op: Operation, touched: Sequence[Access]
) -> list[_Tenant]:
    """The tenants after operation `number`; what it overwrites goes to `gone`."""
    for access in touched:
        if not access.writes:
            for tenant in _met(live, access):
                tenant.last = number
    for access in touched:
        if access.writes and access.region is not None:
            over = {id(tenant) for tenant in _met(live, access)}
            gone += [tenant for tenant in live if id(tenant) in over]
            live = [tenant for tenant in live if id(tenant) not in over]
            live.append(_Tenant(access.region, access.runs, number, number, op.offset))
    return live


def _met(live: Iterable[_Tenant], access: Access) -> list[_Tenant]:
    return [
        tenant
        for tenant in live
        if tenant.region == access.region
        and tenant.runs.base < access.runs.end
        and access.runs.base < tenant.runs.end
        and overlap(tenant.runs, access.runs) is not None
    ]
