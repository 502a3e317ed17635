"""Place and lifetime of data in a delegate's memory, read from its command stream.

Bytes that an operation writes live in the region from then on, until the last operation that reads them. The stream
names no tensors; that writes belong to one is not in it. Who reads what another wrote is the flow of data.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ethosu_sdk import pte
from ethosu_sdk.errors import SdkError
from ethosu_sdk.npu import deadline
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.hazards.accesses import Access, accesses
from ethosu_sdk.npu.hazards.ranges import Runs, overlap
from ethosu_sdk.npu.operation import Operation
from ethosu_sdk.npu.program import described
from ethosu_sdk.results.run_facts import Flow, Lifetime, Lifetimes
from ethosu_sdk.vela_blocks import VelaBlocks

_BEFORE = -1  # the "operation" that brings a delegate's inputs
_TIMEOUT_S = 60.0
_MOST_READS = 200_000  # of one operation what another wrote: more make no graph that anybody reads


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


@dataclass(frozen=True)
class Delegates:
    """The lifetimes in the delegate with the largest arena, or why they are not known; the flow of each delegate of
    which it is known, by number."""

    lifetimes: Lifetimes | None
    reason: str = ""
    flows: Mapping[int, Flow] = field(default_factory=dict)


def of(program: pte.Pte) -> Delegates:
    """What the command streams of the delegates of `program` say."""
    delegates = program.plan().delegates
    known = {index: row.vela for index, row in enumerate(delegates) if row.vela is not None}
    if not known:
        return Delegates(None, "the program has no delegate of an Ethos-U")
    largest, vela = max(known.items(), key=lambda row: row[1].scratch_bytes)
    found: dict[int, _Read | None] = {}
    try:
        with deadline.until(time.monotonic() + _TIMEOUT_S):
            for index in sorted(known, key=lambda index: index != largest):
                found[index] = _read(known[index])
    except SdkError as error:
        if largest not in found:
            return Delegates(None, error.message)
    flows = {index: row.flow for index, row in found.items() if row is not None and row.flow is not None}
    first = found[largest]
    if first is None:
        return Delegates(None, "which operations run depends on data", flows)
    rows, count = first.rows, first.operations
    return Delegates(Lifetimes(largest, len(delegates), vela.scratch_bytes, rows, count), "", flows)


@dataclass(frozen=True)
class _Read:
    rows: Sequence[Lifetime]
    operations: int
    flow: Flow | None  # of streams that read too often it is not known


def _read(vela: VelaBlocks) -> _Read | None:
    """What an Ethos-U's delegate does; None for a stream whose order of operations depends on data. SdkError when it
    cannot be read."""
    config = NpuConfig.from_word(vela.config_word)
    segment = described(bytes(vela.command_stream), config)
    if segment.branch is not None:
        return None
    count = len(segment.operations)
    inputs = [
        _Tenant(slot.region, Runs(slot.offset, (), slot.nbytes), _BEFORE, _BEFORE, None, "input")
        for slot in vela.inputs
    ]
    live, gone = list(inputs), list[_Tenant]()
    reads: list[tuple[_Tenant, int]] = []
    for number, op in enumerate(segment.operations):
        deadline.check()
        touched = accesses(op, config)
        if len(reads) < _MOST_READS:
            reads += ((tenant, number) for row in touched if not row.writes for tenant in _met(live, row))
        live = _step(live, gone, number, op, touched)
    outputs = []
    for slot in vela.outputs:
        kept = Access(slot.region, False, Runs(slot.offset, (), slot.nbytes))
        writers = _met(live, kept)
        outputs.append(tuple(sorted(tenant.first for tenant in writers if tenant.first != _BEFORE)))
        for tenant in writers:
            tenant.last, tenant.role = count - 1, tenant.role or "output"
    ended = [tenant.ended() for tenant in (*gone, *live)]
    return _Read(ended, count, _flow(inputs, reads, outputs) if len(reads) < _MOST_READS else None)


def _flow(
    inputs: Sequence[_Tenant], reads: Sequence[tuple[_Tenant, int]], outputs: Sequence[Sequence[int]]
) -> Flow:
    edges = {(tenant.first, reader) for tenant, reader in reads if tenant.first != _BEFORE}
    slots = {id(tenant): number for number, tenant in enumerate(inputs)}
    readers: list[set[int]] = [set() for _ in inputs]
    for tenant, reader in reads:
        if id(tenant) in slots:
            readers[slots[id(tenant)]].add(reader)
    return Flow(tuple(sorted(edges)), tuple(tuple(sorted(row)) for row in readers), tuple(outputs))


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
