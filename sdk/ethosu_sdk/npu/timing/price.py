"""What operations cost: each priced from its descriptor alone, and when it ends beside the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ethosu_sdk.npu import deadline
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import BlockOp, DmaOp, Operation, Wait
from ethosu_sdk.npu.timing import units
from ethosu_sdk.npu.timing.constants import COMMAND_TRIPS
from ethosu_sdk.npu.timing.fitted import BANDS
from ethosu_sdk.npu.timing.pipeline import Stages, chained, copied
from ethosu_sdk.npu.timing.schedule import Schedule
from ethosu_sdk.npu.timing.stalls import Stalls
from ethosu_sdk.npu.timing.system_config import SystemConfig, default_for
from ethosu_sdk.npu.timing.traffic import Transfer, transfers


@dataclass(frozen=True)
class Priced:
    """One operation's price: its stages, its multiply-accumulates, what it moves, when it has ended, and for what the
    MAC unit waits in it.

    `elapsed` are the cycles from the first command until it and all operations before it have ended. Operations that
    go on with another's results through a chaining buffer have no stages of their own.
    """

    stages: Stages
    macs: int
    transfers: tuple[Transfer, ...]
    elapsed: int
    stalls: Stalls


def price(
    operations: Sequence[Operation],
    config: NpuConfig,
    system: SystemConfig | None = None,
    waits: Sequence[Wait] = (),
) -> tuple[Priced, ...]:
    """The price of each of a stream's `operations`; `system` None stands for the family's default."""
    system = system or default_for(config.npu)
    schedule = Schedule(config)
    moved = []
    for op in operations:
        deadline.check()
        moved.append(transfers(op, config))
    chains = _chains(operations)
    upcoming = list(reversed(waits))
    found = []
    for index, op in enumerate(operations):
        deadline.check()
        while upcoming and upcoming[-1].before <= index:
            wait = upcoming.pop()
            holds = schedule.wait_for_transfers if wait.name == "OP_DMA_WAIT" else schedule.wait_for_kernels
            holds(wait.at_most)
        stages, held = Stages(0, 0, 0), Stalls()
        if isinstance(op, DmaOp):
            stages = copied(op, moved[index], config, system)
            elapsed = schedule.transfer(stages)
        elif index in chains:
            members = chains[index]
            rows = [row for member in members for row in moved[member]]
            followers = [
                part for part in (operations[member] for member in members[1:]) if isinstance(part, BlockOp)
            ]
            stages = chained(op, rows, config, system, followers)
            elapsed, held = schedule.kernel(stages, op.blockdep)
        count = units.macs(op) if isinstance(op, BlockOp) else 0
        found.append(Priced(stages, count, moved[index], elapsed, held))
    return tuple(found)


def started(system: SystemConfig) -> int:
    """Cycles until the first command of a stream is decoded."""
    return COMMAND_TRIPS * system.command_stream.read_latency_cycles


def band(npu: str, macs: int | None = None) -> str:
    """How far modelled cycles of a configuration were from those of published runs, of networks left out of the fit.

    `npu` is a family such as ``ethos-u55``; without `macs`, or where no run of that size was published, it is the
    family's.
    """
    sizes = BANDS[npu]
    if macs is None:
        return f"±{sizes[0]} % on published runs of this family"
    if macs not in sizes:
        return f"±{sizes[0]} % on published runs of this family; none of {macs} MACs per cycle was compared"
    return f"±{sizes[macs]} % on published runs of {npu}-{macs}"


def error(npu: str, macs: int | None = None) -> float:
    """The same band as a share: 0.09 stands for 9 %."""
    sizes = BANDS[npu]
    return sizes.get(macs or 0, sizes[0]) / 100


def _chains(operations: Sequence[Operation]) -> dict[int, list[int]]:
    """The numbers of the operations of each chain, by that of its first; most operations are chains of one."""
    found: dict[int, list[int]] = {}
    head, before = 0, None
    for index, op in enumerate(operations):
        if isinstance(op, DmaOp):
            continue
        if before is not None and before.ofm.chain is not None:
            found[head].append(index)
        else:
            head, found[index] = index, [index]
        before = op
    return found
