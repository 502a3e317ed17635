"""The processor's cycles of a run: executed blocks times their prices, and what is moved in each part."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from ethosu_sdk.base import tools
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.program import execution_plan, protocol
from ethosu_sdk.program.execution_plan import DelegateCall, ExecutionPlan, KernelCall, List
from ethosu_sdk.records import provenance
from ethosu_sdk.run.execution import metric
from ethosu_sdk.simulate.cpu_cycles import LINE_BYTES, MovedBytes
from ethosu_sdk.simulate.simulation import COUNTED, MODELLED, SimulationResult, Simulator

if TYPE_CHECKING:
    from ethosu_sdk.simulate.block_counts import BlockCounts, Mark
    from ethosu_sdk.simulate.cpu_cycles import Span


# ---- steps.shared.moved
# What the CPU moves in an inference, by operator and part: tensors of kernels, copies of delegates' tensors.

_TWICE = 2  # a copy reads and writes


def cpu_traffic(plan: ExecutionPlan, instruction: int) -> Mapping[str, MovedBytes]:
    """What the instruction with this index moves, by part; nothing for those that move references alone."""
    row = plan.instructions[instruction] if instruction < len(plan.instructions) else None
    if isinstance(row, KernelCall):
        constants, others = _moved_sizes(plan, row.args)
        return {"kernel": MovedBytes(constant_bytes=constants, arena_bytes=others)}
    if isinstance(row, DelegateCall) and (vela := plan.delegates[row.delegate_index].vela) is not None:
        inputs = len(vela.inputs)
        return {
            "copy_in": _copied_sizes(_moved_sizes(plan, row.args[:inputs])),
            "copy_out": _copied_sizes(_moved_sizes(plan, row.args[inputs:])),
        }
    return {}


def _copied_sizes(sizes: tuple[int, int]) -> MovedBytes:
    """A constant goes to the arena too."""
    constants, others = sizes
    return MovedBytes(constant_bytes=constants, arena_bytes=constants + _TWICE * others)


def _moved_sizes(plan: ExecutionPlan, values: Iterable[int]) -> tuple[int, int]:
    """Bytes of the constants among the tensors of `values`, and of the others. Each is moved once."""
    sizes = {True: 0, False: 0}
    for index in _moved_tensors(plan, values):
        tensor = plan.values[index]
        if isinstance(tensor, execution_plan.Tensor):
            sizes[tensor.is_constant] += tensor.nbytes
    return sizes[True], sizes[False]


def _moved_tensors(plan: ExecutionPlan, values: Iterable[int]) -> Iterable[int]:
    """`values` and what lists among them hold, without repetition: an output is an argument and a result."""
    found: dict[int, None] = {}
    for index in values:
        value = plan.values[index]
        items = value.items if isinstance(value, List) and "Tensor" in value.kind else ()
        found.update(dict.fromkeys([index, *(int(item) for item in items if int(item) >= 0)]))
    return found


# ---- steps.run.cpu_time
# The processor's cycles of a run: executed blocks, which a simulator counted, times their prices.

_PATH = "/cpu/cycles"
_NOT_ASKED = "the run did not count what the CPU executes: --cpu-cycles does"
_NO_MARKS = "this firmware does not show where an inference begins and ends: /cpu/outside has the whole run"
_LOST = "the inference has more parts than are counted"
_OTHER_PARTS = "the inference has {} operators, but its parts are those of {}"
_LLVM = ("llvm-mc-19", "llvm-mca-19")
_TOOLS = ("block-counts.so", *_LLVM)
_WHOLE_RUN = "run"
# In the records, and not in an inference. The clock's interrupts depend on the time that the simulator took.
_OUTSIDE = ("start_up", "report", "after")
_LEFT_OUT = ("wait", "clock")


@dataclass(frozen=True)
class CpuTime:
    """The record's `cpu`, what goes to each of its operators, what of it is unavailable, and the tools behind it."""

    part: Record
    operators: Sequence[Record]
    unavailable: Sequence[Record]

    @property
    def tools(self) -> list[Record]:
        """What counted and priced."""
        return (
            [provenance.tool_entry(name, tools.probe(name).version) for name in _TOOLS] if self.part else []
        )


def no_counts(simulator: Simulator, *, wanted: bool) -> str:
    """Why a run on `simulator` has no cycles of the CPU, and how to get them; empty if it can."""
    if not wanted:
        return (
            f"{simulator.figures.no_cpu_cycles}; {_NOT_ASKED}"
            if not simulator.no_block_counts()
            else (simulator.figures.no_cpu_cycles)
        )
    return simulator.no_block_counts() or _no_prices()


def _no_prices() -> str:
    for name in _LLVM:
        found = tools.probe(name)
        if found.status != "found":
            return f"{name} is {found.status}: {found.tool.fix}"
    return ""


def firmware_marks(symbols: Mapping[str, int]) -> tuple[Mark, ...]:
    """The marks of a firmware with `symbols`: name → address."""
    from ethosu_sdk.simulate.block_counts import Mark

    return tuple(
        Mark(name, symbols[protocol.MARK_PREFIX + name] & ~1, ends=name == "end")
        for name in protocol.MARKS
        if protocol.MARK_PREFIX + name in symbols
    )


def no_cpu_time(reason: str) -> CpuTime:
    """Nothing, and why."""
    return CpuTime({}, (), [{"path": _PATH, "reason": reason}])


def cpu_time_of_run(
    result: SimulationResult, core: str, moved: Sequence[Mapping[str, MovedBytes]], reason: str
) -> CpuTime:
    """The CPU's time in the first inference; nothing if there is a `reason`.

    `moved` has the data that each part of each operator moves, in the order of execution.
    """
    counts = result.block_counts
    if counts is None:
        return no_cpu_time(reason)
    operators = len(moved)
    spans, head = _priced(counts, core)
    if counts.marks_lost:
        return CpuTime(head, (), [{"path": _PATH, "reason": _LOST}])
    by_operator: defaultdict[int, list[Span]] = defaultdict(list)
    for row in spans:
        if row.operator is not None and row.part not in _LEFT_OUT:
            by_operator[row.operator].append(row)
    if by_operator.keys() != set(range(operators + 1)):  # the last one leads to the end
        found = max(by_operator, default=0)
        return CpuTime(head, (), [{"path": _PATH, "reason": _OTHER_PARTS.format(operators, found)}])
    each = [_moving(by_operator[number], data) for number, data in enumerate((*moved, {}))]
    every = [part for rows in each for part in rows]
    whole = {
        **head,
        "cycles": _sum(every, "cycles"),
        "instructions": _sum(every, "instructions"),
        "parts": _by_part(every),
        "outside": _by_part(_rows([row for row in spans if row.part in _OUTSIDE])),
    }
    return CpuTime(whole, [{"cpu_cycles": _sum(rows, "cycles"), "cpu_parts": rows} for rows in each[:-1]], ())


def cpu_time_of_other_firmware(result: SimulationResult, core: str, reason: str) -> CpuTime:
    """The CPU's time in the whole run of a firmware without marks; nothing if there is a `reason`."""
    if result.block_counts is None:
        return no_cpu_time(reason)
    spans, head = _priced(result.block_counts, core)
    rows = [{**row, "part": _WHOLE_RUN} for row in _rows(spans)]
    return CpuTime({**head, "outside": rows}, (), [{"path": _PATH, "reason": _NO_MARKS}])


def _priced(counts: BlockCounts, core: str) -> tuple[list[Span], Record]:
    from ethosu_sdk.simulate import cpu_cycles

    spans = cpu_cycles.spans_of(counts, cpu_cycles.cycles_of(counts.blocks, core))
    lost = counts.unplaced_instructions
    return spans, {"core": core, **({"unpriced": metric(lost, "instructions", COUNTED)} if lost else {})}


def _rows(spans: Sequence[Span]) -> list[Record]:
    """The parts in the order of time; those of the same name one after another are one."""
    return [_row(part, list(group)) for part, group in groupby(spans, lambda row: row.part)]


def _moving(spans: Sequence[Span], data: Mapping[str, MovedBytes]) -> list[Record]:
    """The same of an operator, with what each part moves: the first one of a name the `data`."""
    left, rows = dict(data), []
    for part, group in groupby(spans, lambda row: row.part):
        own = list(group)
        moved = replace(left.pop(part, MovedBytes()), code_bytes=sum(row.code_bytes for row in own))
        most = LINE_BYTES * sum(row.instructions for row in own)  # an instruction moves a line at most
        sizes = {name: min(size, most) for name, size in asdict(moved).items() if size}
        rows.append({**_row(part, own), **({"moved": sizes} if sizes else {})})
    return rows


def _row(part: str, spans: Sequence[Span]) -> Record:
    return {
        "part": part,
        "instructions": metric(sum(row.instructions for row in spans), "instructions", COUNTED),
        "cycles": metric(round(sum(row.cycles for row in spans)), "cycles", MODELLED),
    }


def _sum(rows: Sequence[Record], key: str) -> Record:
    source = COUNTED if key == "instructions" else MODELLED
    return metric(sum(row[key]["value"] for row in rows), key, source)


def _by_part(rows: Sequence[Record]) -> list[Record]:
    """The sums of the parts of the same name."""
    found: defaultdict[str, list[Record]] = defaultdict(list)
    for row in rows:
        found[row["part"]].append(row)
    return [
        {
            "part": name,
            "instructions": _sum(own, "instructions"),
            "cycles": _sum(own, "cycles"),
            **({"moved": moved} if (moved := _all_moved(own)) else {}),
        }
        for name, own in found.items()
    ]


def _all_moved(rows: Sequence[Record]) -> Record:
    found: Counter[str] = Counter()
    for row in rows:
        found.update(row.get("moved", {}))
    return dict(found)
