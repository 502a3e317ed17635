"""The answer of `run` and `profile` in a few rows, each figure as the records have it: the verdict and what was
compared, time, what is slowest, memory, quality, what is on the CPU, and what to type next."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.base import plain_text
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import OneOf, Parts, escape
from ethosu_sdk.records import common, operation_tree, run_facts, wording
from ethosu_sdk.records.common import SourceLine
from ethosu_sdk.records.compile import Compilation, Operation as CompiledOperation
from ethosu_sdk.records.operation_tree import Node
from ethosu_sdk.records.profile import Operation, Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.time_line import TimeLine, headline

_APART = "   "
_LABEL = 7  # columns
_BAR = 6  # columns of the largest
_LEAST_SHARE = 0.005
_MOST_NAME = 21
_MOST_FAILURES = 2
_REASONS = ("/time", "/cpu/cycles", "/totals/cpu/cycles")
_NOT_ASKED = (
    "the simulator is functional"  # begins the reason of a run that was not to count what the CPU executes
)


class Row(NamedTuple):
    """A row: `parts` stand in one line where they fit, with the `gap` between them."""

    label: str
    parts: Sequence[str]
    gap: str = " · "


class Subject(NamedTuple):
    """What was run: as it was typed, the words that make `debug` take the same, and the folder of the results."""

    name: str
    again: Sequence[str]
    folder: Path


def run_answer(run: Run, compiled: Compilation | None, subject: Subject) -> Table:
    """The answer of `run`; `compiled` is the record of the program, where there is one."""
    rows = [_head(run, compiled, subject.name)]
    if run.status == "fail":
        rows += [*_failures(run), Row("next", [shlex.join(["ethosu-sdk", "debug", *subject.again])])]
    rows += [
        _time(run),
        *_slowest(run, compiled),
        *_memory(run),
        *_quality(run, compiled),
        _on_cpu(run, compiled),
    ]
    if run.status == "pass":
        rows.append(Row("next", [_command("advise", subject), _command("report", subject)]))
    return _table(rows)


def profile_answer(
    run: Run, profile: Profile, compiled: Compilation | None, subject: Subject, most: int
) -> list[RenderableType]:
    """The answer of `profile`: that of its `run` in two rows, then the `most` rows that take longest."""
    head = [_head(run, compiled, subject.name), *_failures(run), _time(profile)]
    return [
        _table(head),
        _slowest_table(slowest_rows(profile, most)),
        _table([Row("next", [_command("advise", subject)])]),
    ]


def _command(name: str, subject: Subject) -> str:
    return shlex.join(["ethosu-sdk", name, str(subject.folder)])


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    styles = {"PASS": "bold green", "FAIL": "bold red"}
    for row in rows:
        style, label = styles.get(row.label, "dim"), f"{row.label:<{_LABEL}}"
        table.add_row(
            f"[{style}]{label}[/{style}]", Parts([escape(part) for part in row.parts if part], row.gap)
        )
    return table


def _head(run: Run, compiled: Compilation | None, name: str) -> Row:
    failed = sum(row.status == "fail" for row in run.verdict.checks)
    words = [f"{failed} of {counted(len(run.verdict.checks), 'check')} failed"]
    if not failed:
        words = list(_compared(run, compiled))
    return Row(run.status.upper(), [name, _place(run, compiled), *words])


def _place(run: Run, compiled: Compilation | None) -> str:
    core = run.cpu.core or (compiled.core if compiled is not None else None)
    target = run.target.name if run.target is not None else core or "no NPU"
    board = run_facts.board_of_run(run)
    return f"{target} on {'this machine' if board == 'host' else board}"


def _compared(run: Run, compiled: Compilation | None) -> Iterator[str]:
    """What of the outputs was compared with what, and what was not."""
    expected = sum("as expected" in row.name for row in run.verdict.checks)
    if expected:
        yield f"{expected} of {counted(len(run.outputs), 'output')} as expected"
    elif run.reference is not None:
        rows = run.reference.outputs
        steps = (
            f" in {run.reference.steps} of {counted(run.inferences, 'step')}" if run.reference.steps else ""
        )
        equal, elements = sum(row.equal for row in rows), sum(row.elements for row in rows)
        words = f"{equal:,} of {counted(elements, 'output value')}{steps} equal {_model(compiled)}"
        ratios = [row.sqnr_db for row in rows if row.sqnr_db is not None]
        yield words + (f", SQNR {min(ratios):.1f} dB" if equal < elements and ratios else "")
    else:
        reasons = (row.reason for row in run.unavailable if row.path == "/reference")
        yield f"not compared: {next(reasons, 'nothing to compare with')}"
    if run.second_opinion is not None:
        yield "the same on both runtimes"
    if unjudged := wording.unjudged_steps(run):
        yield unjudged


def interpreted(compiled: Compilation | None) -> str:
    """The .tflite in the interpreter whose outputs `compile` keeps, in words; empty for another model."""
    if compiled is None or compiled.options.io != "model":
        return ""
    names = (row.interpreter for row in compiled.check.readings or () if row.reason is None)
    return (
        f"the .tflite in {next(names, 'a reference interpreter')}"  # without a check, the record has no names
    )


def _model(compiled: Compilation | None) -> str:
    """The model whose outputs `compile` keeps: the one that it lowers."""
    if words := interpreted(compiled):
        return words
    if compiled is None or compiled.prequantized or compiled.options.quantize is None:
        return "the model in PyTorch"
    return (
        "the float model" if compiled.options.quantize == "none" else f"the {compiled.options.quantize} model"
    )


def _failures(run: Run) -> Iterator[Row]:
    failed = [row for row in run.verdict.checks if row.status == "fail"]
    for row in failed[:_MOST_FAILURES]:
        yield Row("why", [f"{row.name}: {row.detail}"])
    if len(failed) > _MOST_FAILURES:
        yield Row("", [f"and {len(failed) - _MOST_FAILURES} more: -v"])


def _time(record: Run | Profile) -> Row:
    time = record.time
    if time is None:
        return Row("time", ["unknown", *_cycles(record)])
    total = time.total
    band = (
        total.source
        if total.least_s is None or total.most_s is None
        else (f"{_number(total.least_s)}\N{EN DASH}{_number(total.most_s)}, {total.source}")
    )
    parts = [f"{wording.milliseconds(total.duration_s)} ({band})"]
    for name, seconds, share in (
        ("CPU", time.sums.cpu_s, time.shares.cpu_percent),
        ("NPU", time.sums.npu_s, time.shares.npu_percent),
    ):
        if seconds:
            parts.append(f"{name} {wording.milliseconds(seconds)} {wording.percent_text(share / 100)}")
    if headline(record) is None and record.priced is not None:
        parts.append(record.priced.caveat)
    return Row("time", parts, _APART)


def _number(duration_s: float) -> str:
    return wording.milliseconds(duration_s).removesuffix(" ms")


def _cycles(record: Run | Profile) -> Iterator[str]:
    """Why the time is not known, what gives it, and what is known instead."""
    reasons = [row.reason for row in record.unavailable if row.path in _REASONS]
    is_asked = reasons and not reasons[-1].startswith(_NOT_ASKED)
    yield reasons[-1] if is_asked else "CPU not counted: --system NAME gives the time on a board"
    if isinstance(record, Run):
        npu, cpu = (None if record.npu is None else record.npu.cycles), record.cpu.cycles
    else:
        npu, cpu = next(iter(record.totals.npu.cycles), None), record.totals.cpu.cycles
    found = []
    if npu is not None:
        adapted = isinstance(record, Run) and record.npu is not None and record.npu.memory_timing is not None
        found.append(f"NPU {npu.value:,} cycles")
        if record.priced is not None and record.priced.caveat:
            found[0] += f" {record.priced.caveat}"
        elif record.priced is not None and not adapted:
            hertz = record.priced.system.clock_hz
            found[0] += f", {wording.milliseconds(npu.value / hertz)} at {hertz / 1e6:,g} MHz"
    if cpu is not None:
        found.append(f"CPU {cpu.value:,}" + ("" if found else " cycles"))
    if found:
        sources = dict.fromkeys(row.source for row in (npu, cpu) if row is not None)
        yield f"{', '.join(found)} ({', '.join(sources)})"


def _slowest(run: Run, compiled: Compilation | None) -> Iterator[Row]:
    """The operator that takes longest. A run knows what the CPU takes for each, and of the NPU its jobs: what is in
    them is by Vela's estimate."""
    time = headline(run)
    hertz = time.clocks.npu.hz if time is not None and time.clocks.npu is not None else 1.0
    names = {row.instruction: row.name for row in run.operators if row.kind == "kernel"}
    on_cpu = {number: cost for number, cost in _spent(run, time).items() if number in names}
    number = max(on_cpu, key=lambda row: on_cpu[row], default=None)
    longest = 0.0 if number is None else on_cpu[number]
    cycles, operation = _estimated(compiled)
    job = max((row.npu_cycles.value for row in run.operators if row.npu_cycles is not None), default=0)
    if operation is not None and cycles / hertz > longest:
        name = operation.tosa.operator if operation.tosa is not None else operation.vela.operator
        words = f"{name.lower()} {cycles:,} cycles on the NPU (estimated)"
        yield Row("slowest", [words, _short_place(operation.source)], _APART)
    elif operation is None and job / hertz > longest:
        yield Row("slowest", [f"a job of the NPU, {job:,} cycles: `ethosu-sdk profile` has its operations"])
    elif number is not None:
        cost = f"{longest:,.0f} cycles" if time is None else wording.milliseconds(longest)
        words = f"{wording.short_operator(names[number])} {cost} on the CPU"
        yield Row("slowest", [words, _site(names[number], compiled)], _APART)


def _spent(run: Run, time: TimeLine | None) -> dict[int, float]:
    """What the CPU takes for an instruction: seconds, or cycles where the time is not known."""
    spent: defaultdict[int, float] = defaultdict(float)
    for row in run.operators if time is None else ():
        if row.cpu_cycles is not None:
            spent[row.instruction] += row.cpu_cycles.value
    for part in time.parts if time is not None else ():
        if part.on == "CPU" and part.operator < len(run.operators):
            spent[run.operators[part.operator].instruction] += part.duration_s
    return spent


def _estimated(compiled: Compilation | None) -> tuple[int, CompiledOperation | None]:
    """The operation that Vela estimates to take most cycles, with them."""
    rows = (row for part in (compiled.delegates if compiled is not None else ()) for row in part.operations)
    found = [(int(figure.value), row) for row in rows for figure in row.estimates if figure.name == "cycles"]
    return max(found, key=lambda row: row[0], default=(0, None))


def _site(name: str, compiled: Compilation | None) -> str:
    """Where the model calls the operator, or first calls it."""
    rows = (row.sites for row in (compiled.cpu_operators if compiled is not None else ()) if row.name == name)
    places = [_short_place(site.source) for site in next(rows, ()) if site.source is not None]
    return f"{'' if len(places) == 1 else 'first at '}{places[0]}" if places else ""


def _short_place(source: SourceLine | None) -> str:
    """Such as ``kws.py:21 (body.11)``."""
    line = PurePath(common.source_text(source)).name
    module = common.source_module(source)
    return f"{line} ({module})" if line and module else line or module


def _memory(run: Run) -> Iterator[Row]:
    """What the program takes of the memories of its board; the harness and the firmware's own data are no part."""
    rows = [row for row in run_facts.memory_of_board(run) if row.role not in ("harness", "firmware")]
    found = []
    for name in dict.fromkeys(row.memory for row in rows):
        own = [row for row in rows if row.memory == name]
        sums = {
            kind: sum(row.used_bytes for row in own if (row.role == "code") == bool(kind))
            for kind in ("", "code ")
        }
        words = " + ".join(f"{kind}{wording.size_text(size)}" for kind, size in sums.items() if size)
        size_bytes = own[0].size_bytes
        of = f"of {wording.size_text(size_bytes)}" if size_bytes is not None else "(size not public)"
        found.append(f"{name} {words} {of}")
    known = {row.fits for row in rows}
    if found:
        words = "does not fit: " if False in known else "fits: " if None not in known else ""
        found[0] = words + found[0]
        yield Row("memory", found)


def _quality(run: Run, compiled: Compilation | None) -> Iterator[Row]:
    """How far the quantised model is from the float one: on labels where they were given, else as SQNR."""
    if compiled is None or compiled.model.entry != run.model.entry:
        yield Row("quality", ["unknown: no record of the compilation is beside the program"])
        return
    accuracy, chain = compiled.accuracy, compiled.chain
    if accuracy is not None:
        name, count = f" of {accuracy.data.file}", accuracy.data.samples
        labels = {row.candidate: row.top1 for row in accuracy.pairs if row.reference == "labels"}
        words = ", ".join(f"{who} {row.share:.2%}" for who, row in labels.items() if row is not None)
        if words:
            yield Row("quality", [f"right answers: {words}", f"{counted(count, 'sample')}{name}"])
            return
        outputs = [
            row.sqnr_db for row in accuracy.pairs if (row.reference, row.candidate) == ("float", "executed")
        ]
    else:
        name, count = "", len(chain.samples) if chain is not None else 0
        links = chain.links if chain is not None else ()
        outputs = [part.sqnr_db for row in links if row.link == "quantised" for part in row.outputs or ()]
    if not outputs:
        is_given = compiled.prequantized or compiled.options.quantize == "none"
        yield Row(
            "quality", ["not quantised here" if is_given else "unknown: not compared with the float model"]
        )
        return
    ratios = [row for row in outputs if row is not None]
    figure = f"{min(ratios):.1f} dB to float" if ratios else "equal to float"
    yield Row(
        "quality", [f"{figure}, {counted(count, 'sample')}{name}", "(labels: compile --evaluate)"], _APART
    )


def _on_cpu(run: Run, compiled: Compilation | None) -> Row:
    """Calls on the CPU, and those that an option of `compile` would take away or make faster."""
    if compiled is None or compiled.model.entry != run.model.entry:
        calls = sum(row.kind == "kernel" for row in run.operators)
        return Row("CPU", [counted(calls, "operator")])
    rows = compiled.cpu_operators
    words = counted(sum(row.calls for row in rows), "operator")
    converting = sum(row.calls for row in rows if row.boundary)
    faster = sum(site.calls for row in rows for site in row.sites if site.cortex_m is not None)
    if converting and compiled.options.io == "float":
        words += f", {converting} of them avoidable (--io int8)"
    return Row("CPU", [words, f"{faster} faster with --fallback cortex-m" if faster else ""])


class Slow(NamedTuple):
    """A row of a profile; `cost` is text, of which it is the `share`, and `places` say where, the shortest last."""

    name: str
    cost: str
    share: float
    on: str
    places: Sequence[str]


def slowest_rows(profile: Profile, most: int) -> list[Slow]:
    """The `most` rows that cost most, one for a module; none where neither cycles nor instructions were counted."""
    found = [(_cost(node), node) for node in _calls(operation_tree.tree_of(profile))]
    found.sort(key=lambda row: -row[0])
    whole, timed = sum(cost for cost, _ in found), headline(profile) is not None
    rows = []
    for cost, node in found[:most] if whole else ():
        entries = [leaf.entry for leaf in sorted(node.leaves(), key=_cost) if leaf.entry is not None]
        name, places = _named(node, entries[-1] if entries else None)
        text = wording.milliseconds(cost / 1e3) if timed else f"{round(cost):,} cycles"
        on = "/".join(sorted({row.runs_on for row in entries}))
        rows.append(Slow(name, text, cost / whole, on, places))
    return [row for row in rows if row.share >= _LEAST_SHARE]


def _slowest_table(rows: Sequence[Slow]) -> Table:
    if not rows:
        return _table([Row("slowest", ["unknown: neither cycles nor instructions were counted"])])
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("label", "name", "cost", "share", "bar", "on", "place"):
        table.add_column(name, justify="right" if name in ("cost", "share") else "left")
    for number, row in enumerate(rows):
        table.add_row(
            "" if number else "[dim]slowest[/dim]",
            escape(plain_text.cut(row.name, _MOST_NAME)),
            row.cost,
            wording.percent_text(row.share),
            "█" * max(1, round(_BAR * row.share / rows[0].share)),
            row.on,
            OneOf([escape(place) for place in row.places]),
        )
    return table


def _calls(nodes: Sequence[Node]) -> Iterator[Node]:
    """The nodes that stand for one module, or for an operator that belongs to none."""
    for node in nodes:
        if node.kind != "module" or all(
            operation_tree.module_of(leaf.entry) == node.name for leaf in node.leaves()
        ):
            yield node
        else:
            yield from _calls(node.children)


def _cost(node: Node) -> float:
    """Milliseconds; where the time is not known, cycles: one of the CPU, or else an instruction, counts as one of the
    NPU."""
    figures = node.figures()
    if "time" in figures:
        return figures["time"]
    return figures.get("modelled", 0.0) + figures.get("cpu_cycles", figures.get("instructions", 0.0))


def _named(node: Node, dearest: Operation | None) -> tuple[str, Sequence[str]]:
    """The type of the module, else the operator; and where that is, the shortest last."""
    if dearest is None:
        name, _, what = node.name.partition(": ")
        return name, [what]
    source = dearest.source
    kind = source.module_type if source is not None and node.kind == "module" else None
    name = kind or (node.name.lower() if node.name.isupper() else node.name)
    return name, [_short_place(source), PurePath(common.source_text(source)).name]
