"""What lies where in a delegate's memory, and for how long: read from its command stream.

Bytes that an operation writes are a tenant of the region from then on, until the last operation that reads them. The
stream names no tensors; that writes belong to one is not in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ethosu_sdk import pte
from ethosu_sdk.npu import deadline, program
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.hazards.accesses import Access, accesses
from ethosu_sdk.npu.hazards.ranges import Runs, overlap
from ethosu_sdk.npu.operation import Operation

BEFORE = -1  # the "operation" that brings a delegate's inputs


@dataclass
class Tenant:
    """Bytes of a region: written by operation `first` (at `offset` of the stream), read by `last` at the latest.

    Inputs have no writer, and an output's last reader is whoever takes it: both are named by `role`.
    """

    region: int
    runs: Runs
    first: int
    last: int
    offset: int | None
    role: str = ""

    @property
    def span(self) -> tuple[int, int]:
        """From the first byte up to and without the last; others may lie between its rows."""
        return self.runs.base, self.runs.end


@dataclass(frozen=True)
class Extents:
    """The tenants of a delegate's writable regions, over `operations` operations."""

    tenants: Sequence[Tenant]
    operations: int

    def live_bytes(self, region: int) -> list[int]:
        """Bytes of the tenants that are needed while each operation runs; what two of them share counts once."""
        own = [row for row in self.tenants if row.region == region]
        return [
            _union(row.span for row in own if row.first <= at <= row.last) for at in range(self.operations)
        ]


def read(delegate: pte.Delegate) -> Extents | None:
    """The extents of an Ethos-U delegate; None for a stream whose order of operations depends on data. SdkError when
    it cannot be read."""
    vela = delegate.vela
    if vela is None:
        return None
    config = NpuConfig.from_word(vela.config_word)
    segment = program.described(bytes(vela.command_stream), config)
    if segment.branch is not None:
        return None
    count = len(segment.operations)
    live = [
        Tenant(slot.region, Runs(slot.offset, (), slot.nbytes), BEFORE, BEFORE, None, "input")
        for slot in vela.inputs
    ]
    gone: list[Tenant] = []
    for number, op in enumerate(segment.operations):
        deadline.check()
        live = _step(live, gone, number, op, accesses(op, config))
    for slot in vela.outputs:
        kept = Access(slot.region, False, Runs(slot.offset, (), slot.nbytes))
        for tenant in _met(live, kept):
            tenant.last, tenant.role = count - 1, tenant.role or "output"
    return Extents([*gone, *live], count)


def _step(
    live: list[Tenant], gone: list[Tenant], number: int, op: Operation, touched: Sequence[Access]
) -> list[Tenant]:
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
            live.append(Tenant(access.region, access.runs, number, number, op.offset))
    return live


def _met(live: Iterable[Tenant], access: Access) -> list[Tenant]:
    return [
        tenant
        for tenant in live
        if tenant.region == access.region
        and tenant.runs.base < access.runs.end
        and access.runs.base < tenant.runs.end
        and overlap(tenant.runs, access.runs) is not None
    ]


def _union(spans: Iterable[tuple[int, int]]) -> int:
    size, reached = 0, -1
    for start, end in sorted(spans):
        size += max(0, end - max(start, reached))
        reached = max(reached, end)
    return size
