"""The processor's cycles of a run: executed blocks times their prices, and what is moved in each part."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import groupby
from typing import TYPE_CHECKING, cast

from msgspec import Struct, structs

from ethosu_sdk.base import tools
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.program import execution_plan, protocol
from ethosu_sdk.program.execution_plan import DelegateCall, ExecutionPlan, KernelCall, List
from ethosu_sdk.records import provenance
from ethosu_sdk.records.common import Core, CpuPart, CpuPartName, Metric, Moved, Unavailable
from ethosu_sdk.records.run import Cpu
from ethosu_sdk.run.execution import metric
from ethosu_sdk.simulate.cpu_cycles import LINE_BYTES, MovedBytes
from ethosu_sdk.simulate.simulation import COUNTED, MODELLED, SimulationResult, Simulator

if TYPE_CHECKING:
    from ethosu_sdk.simulate.block_counts import BlockCounts, Mark
    from ethosu_sdk.simulate.cpu_cycles import Span

_NOT_ASKED = "the run did not count what the CPU executes: --cpu-cycles does"
_NO_MARKS = "this firmware does not show where an inference begins and ends: /cpu/outside has the whole run"
_OTHER_PARTS = "the inference has {} operators, but its parts are those of {}"
_LLVM = ("llvm-mc-19", "llvm-mca-19")
_TOOLS = ("block-counts.so", *_LLVM)
# In the records, and not in an inference. The clock's interrupts depend on the time that the simulator took.
_OUTSIDE = ("start_up", "report", "after")
_LEFT_OUT = ("wait", "clock")
_LAYOUT_COPY = "dim_order_ops::_clone_dim_order"
_NOTHING: Mapping[str, int] = {}


class CopiedBytes(MovedBytes):
    """What a copy moves: nothing where the firmware has laid the values where the copy would put them."""


def cpu_traffic(plan: ExecutionPlan, instruction: int) -> Mapping[str, MovedBytes]:
    """What the instruction with this index moves, by part; nothing for those that move references alone."""
    row = plan.instructions[instruction] if instruction < len(plan.instructions) else None
    if isinstance(row, KernelCall):
        constants, others = _moved_sizes(plan, row.args)
        kind = CopiedBytes if plan.operators[row.op_index].name == _LAYOUT_COPY else MovedBytes
        return {"kernel": kind(constant_bytes=constants, arena_bytes=others)}
    if isinstance(row, DelegateCall) and (vela := plan.delegates[row.delegate_index].vela) is not None:
        inputs = len(vela.inputs)
        return {
            "copy_in": _copied_sizes(_moved_sizes(plan, row.args[:inputs])),
            "copy_out": _copied_sizes(_moved_sizes(plan, row.args[inputs:])),
        }
    return {}


def _copied_sizes(sizes: tuple[int, int]) -> MovedBytes:
    """A constant goes to the arena too; other tensors are read and written there."""
    constants, others = sizes
    return CopiedBytes(constant_bytes=constants, arena_bytes=constants + 2 * others)


def _moved_sizes(plan: ExecutionPlan, values: Iterable[int]) -> tuple[int, int]:
    """Bytes of the constants among the tensors of `values` and of lists in it, and of the others: each once, for an
    output is an argument and a result."""
    found: dict[int, None] = {}
    for index in values:
        value = plan.values[index]
        items = value.items if isinstance(value, List) and "Tensor" in value.kind else ()
        found.update(dict.fromkeys([index, *(int(item) for item in items if int(item) >= 0)]))
    sizes = {True: 0, False: 0}
    for index in found:
        tensor = plan.values[index]
        if isinstance(tensor, execution_plan.Tensor):
            sizes[tensor.is_constant] += tensor.nbytes
    return sizes[True], sizes[False]


class OperatorTime(Struct, frozen=True):
    cycles: Metric
    parts: tuple[CpuPart, ...]


class CpuTime(Struct, frozen=True):
    """The record's `cpu`, what goes to each of its operators, what of it is unavailable, and the tools behind it."""

    part: Cpu
    operators: Sequence[OperatorTime]
    unavailable: Sequence[Unavailable]

    @property
    def tools(self) -> list[Record]:
        if self.part.core is None:
            return []
        return [provenance.tool_entry(name, tools.probe(name).version) for name in _TOOLS]


def no_counts(simulator: Simulator, *, wanted: bool) -> str:
    """Why a run on `simulator` has no cycles of the CPU, and how to get them; empty if it can."""
    if not wanted:
        reason = simulator.figures.no_cpu_cycles
        return reason if simulator.no_block_counts() else f"{reason}; {_NOT_ASKED}"
    reason = simulator.no_block_counts()
    for name in () if reason else _LLVM:
        found = tools.probe(name)
        if found.status != "found":
            return f"{name} is {found.status}: {found.tool.fix}"
    return reason


def firmware_marks(symbols: Mapping[str, int]) -> tuple[Mark, ...]:
    from ethosu_sdk.simulate.block_counts import Mark

    return tuple(
        Mark(name, symbols[protocol.MARK_PREFIX + name] & ~1, ends=name == "end")
        for name in protocol.MARKS
        if protocol.MARK_PREFIX + name in symbols
    )


def _without_cycles(reason: str, part: Cpu | None = None) -> CpuTime:
    return CpuTime(part or Cpu(), (), [Unavailable(path="/cpu/cycles", reason=reason)])


def cpu_time_of_run(
    result: SimulationResult, core: str, moved: Sequence[Mapping[str, MovedBytes]], reason: str
) -> CpuTime:
    """The CPU's time in the first inference, whose parts move the data `moved`; nothing if there is a `reason`."""
    counts = result.block_counts
    if counts is None:
        return _without_cycles(reason)
    spans, head = _priced(counts, core)
    if counts.marks_lost:
        return _without_cycles("the inference has more parts than are counted", head)
    by_operator: defaultdict[int, list[Span]] = defaultdict(list)
    for row in spans:
        if row.operator is not None and row.part not in _LEFT_OUT:
            by_operator[row.operator].append(row)
    if by_operator.keys() != set(range(len(moved) + 1)):  # the last one leads to the end
        return _without_cycles(_OTHER_PARTS.format(len(moved), max(by_operator, default=0)), head)
    each = [_moving(by_operator[number], data) for number, data in enumerate((*moved, {}))]
    every = [part for rows in each for part in rows]
    outside = _by_part(_rows([row for row in spans if row.part in _OUTSIDE]))
    cycles = _sum([row.cycles for row in every])
    instructions = _sum([row.instructions for row in every])
    whole = structs.replace(
        head, cycles=cycles, instructions=instructions, parts=_by_part(every), outside=outside
    )
    operators = [OperatorTime(_sum([row.cycles for row in rows]), tuple(rows)) for rows in each[:-1]]
    return CpuTime(whole, operators, ())


def cpu_time_of_other_firmware(result: SimulationResult, core: str, reason: str) -> CpuTime:
    """The CPU's time in the whole run of a firmware without marks; nothing if there is a `reason`."""
    if result.block_counts is None:
        return _without_cycles(reason)
    spans, head = _priced(result.block_counts, core)
    rows = (structs.replace(row, part="run") for row in _rows(spans))
    return _without_cycles(_NO_MARKS, structs.replace(head, outside=tuple(rows)))


def _priced(counts: BlockCounts, core: str) -> tuple[list[Span], Cpu]:
    from ethosu_sdk.simulate import cpu_cycles

    spans = cpu_cycles.spans_of(counts, cpu_cycles.cycles_of(counts.blocks, core))
    lost = counts.unplaced_instructions
    unpriced = metric(lost, "instructions", COUNTED) if lost else None
    return spans, Cpu(core=cast(Core, core), unpriced=unpriced)


def _rows(spans: Sequence[Span]) -> list[CpuPart]:
    return [_row(part, list(group)) for part, group in groupby(spans, lambda row: row.part)]


def _moving(spans: Sequence[Span], data: Mapping[str, MovedBytes]) -> list[CpuPart]:
    """The same of an operator, with what each part moves: the first one of a name the `data`."""
    left, rows = dict(data), []
    for part, group in groupby(spans, lambda row: row.part):
        own = list(group)
        given = left.pop(part, MovedBytes())
        most = LINE_BYTES * sum(row.instructions for row in own)  # an instruction moves a line at most
        if isinstance(given, CopiedBytes) and given.arena_bytes > most:
            given = MovedBytes()
        moved = replace(given, code_bytes=sum(row.code_bytes for row in own))
        rows.append(_row(part, own, {name: min(size, most) for name, size in asdict(moved).items() if size}))
    return rows


def _row(part: str, spans: Sequence[Span], moved: Mapping[str, int] = _NOTHING) -> CpuPart:
    return CpuPart(
        part=cast(CpuPartName, part),
        instructions=metric(sum(row.instructions for row in spans), "instructions", COUNTED),
        cycles=metric(round(sum(row.cycles for row in spans)), "cycles", MODELLED),
        moved=Moved(**moved) if moved else None,
    )


def _sum(figures: Sequence[Metric]) -> Metric:
    return structs.replace(figures[0], value=sum(row.value for row in figures))


def _by_part(rows: Sequence[CpuPart]) -> tuple[CpuPart, ...] | None:
    found: defaultdict[str, list[CpuPart]] = defaultdict(list)
    for row in rows:
        found[row.part].append(row)
    sums = []
    for own in found.values():
        moved: Counter[str] = Counter()
        for row in own:
            moved.update({} if row.moved is None else row.moved.to_json())
        sums.append(
            structs.replace(
                own[0],
                instructions=_sum([row.instructions for row in own]),
                cycles=_sum([row.cycles for row in own]),
                moved=Moved(**moved) if moved else None,
            )
        )
    return tuple(sums) or None
