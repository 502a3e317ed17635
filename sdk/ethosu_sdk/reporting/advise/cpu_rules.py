"""Rules about operators on the CPU, and a line for each: why it is there, what it costs, what would replace it."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.compile.program_options import CORTEX_M
from ethosu_sdk.records import common
from ethosu_sdk.records.advice import CpuCall, Evidence, Item
from ethosu_sdk.records.common import Tensor, source_module
from ethosu_sdk.records.compile import Site
from ethosu_sdk.records.profile import Operation
from ethosu_sdk.reporting.advise import advice_facts
from ethosu_sdk.reporting.advise.advice_facts import (
    COMPUTING_OPERATORS,
    CPU_OPERATORS,
    DELEGATES,
    IO_BYTES,
    Advice,
    Facts,
    expected_change,
    figure_evidence,
)
from ethosu_sdk.reporting.advise.replacements import REPLACEMENTS, constraint_of

# It holds for an estimate alone: who tries the change knows its cycles.
NOT_ESTIMATED = (
    "the NPU takes cycles for it, which nothing here estimates, and saves those of a delegate's border"
)
Modules = Mapping[str, str]  # name in the model → class


def replaced_operators(facts: Facts) -> list[Item]:
    """CPU operators between two delegates that come from modules for which there is one that is delegated."""
    placed = [row for row, _ in sited_operations(facts)]
    groups = _groups(placed)
    islands = [
        (modules, rows)
        for place, (runs_on, rows) in enumerate(groups)
        if runs_on == "CPU" and 0 < place < len(groups) - 1 and (modules := _modules(rows))
    ]
    found = []
    for modules in {tuple(sorted(row.items())): row for row, _ in islands}.values():
        own = [rows for others, rows in islands if others == modules]
        rows = list(itertools.chain(*own))
        # What makes constants for the modules, which the program does in front of everything else.
        rows += [
            row
            for row in placed
            if row.runs_on == "CPU" and source_module(row.source) in modules and row not in rows
        ]
        lines = [
            REPLACEMENTS[kind].lines(name, [row for row in rows if source_module(row.source) == name])
            for name, kind in modules.items()
        ]
        known = [row for row in lines if row is not None]
        if len(known) == len(lines):
            code = tuple(itertools.chain(*known))
            found.append(_replacement_advice(facts, modules, rows, len(own), code))
    return found


def _groups(rows: Iterable[Operation]) -> list[tuple[str, tuple[Operation, ...]]]:
    """Operations that follow each other on one processor."""
    return [(key, tuple(part)) for key, part in itertools.groupby(rows, key=lambda row: row.runs_on)]


def sited_operations(facts: Facts) -> Iterator[tuple[Operation, Site | None]]:
    """The profile's rows, each of the CPU's with its place in the model and the reason, where they can be told, and
    with what the record of `compile` has of its call.

    Calls of an operator run in the order in which their places are listed, but those of modules called repeatedly.
    """
    least: dict[str, int] = {}  # calls of an operator of each module
    for row in facts.compiled.cpu_operators:
        for site in row.sites:
            name = source_module(site.source)
            least[name] = min(least.get(name, site.calls), site.calls)
    repeatedly = {name for name, calls in least.items() if calls > 1}
    sites = {
        # Each site as often as it calls; one by one, since a record can state any number.
        row.name: itertools.chain.from_iterable(itertools.repeat(site, site.calls) for site in row.sites)
        for row in facts.compiled.cpu_operators
        if not {source_module(site.source) for site in row.sites} & repeatedly
    }
    for entry in facts.profile.operations:
        found = next(sites.get(entry.name, iter(())), None) if entry.runs_on == "CPU" else None
        if found is None:
            yield entry, None
        else:
            reason, source = entry.reason or found.reason, entry.source or found.source
            yield replace(entry, reason=reason, source=source), found


def _modules(rows: Sequence[Operation]) -> Modules | None:
    """The modules that called the operators of `rows`; None when one of them is not known or has no replacement."""
    found: dict[str, str] = {}
    for source in (row.source for row in rows if not advice_facts.is_conversion(row)):
        kind = source.module_type if source is not None else None
        if kind is None or kind not in REPLACEMENTS or not source_module(source):
            return None
        found[source_module(source)] = kind
    return found


def _replacement_advice(
    facts: Facts, modules: Modules, rows: Sequence[Operation], count: int, lines: tuple[str, ...]
) -> Item:
    kinds = list(dict.fromkeys(modules.values()))
    delegates = len(facts.profile.delegates)
    calls = facts.cpu_calls
    own = sum(row.calls for row in rows)
    names = list(dict.fromkeys(row.name for row in rows if not advice_facts.is_conversion(row)))
    return Advice(
        finding=f"{', '.join(names)} run on the CPU between two delegates; "
        f"{'; '.join(REPLACEMENTS[kind].words for kind in kinds)} is delegated",
        where=", ".join(modules) or None,
        evidence=(
            figure_evidence("delegates", delegates, "delegates"),
            figure_evidence("calls on the CPU there, conversions among them", own, "calls"),
        ),
        code=lines,
        gains=(
            expected_change(
                DELEGATES, delegates, delegates - count, "the delegates on both sides become one"
            ),
            *advice_facts.changes_without(facts, rows),
            expected_change(CPU_OPERATORS, calls, calls - own, "these calls and their conversions fall away"),
        ),
        limits=(
            NOT_ESTIMATED,
            "values are quantised where they were floating point: `ethosu-sdk debug` shows what that costs",
        ),
    )


def quantise(facts: Facts) -> list[Item]:
    """A floating-point program, of which the NPU gets nothing."""
    rows = [row for row in facts.cpu_rows if not advice_facts.is_conversion(row)]
    is_float = any(row.dtype == "float32" for row in facts.compiled.inputs)
    options = facts.compiled.options
    asked = options.quantize == "none" and options.delegate and not facts.compiled.prequantized
    if not asked or facts.compiled.delegates or not is_float or not rows:
        return []
    calls, how = sum(row.calls for row in rows), "if every operator is one that is delegated"
    return [
        Advice(
            finding=f"the program is floating point: all of its {calls} operator calls run on the CPU",
            evidence=(figure_evidence("operators that compute on the CPU", calls, "calls"),),
            command=facts.compiled_again(quantize="int8"),
            gains=(expected_change(COMPUTING_OPERATORS, calls, 0, how),),
            limits=(
                "quantisation needs samples (--calibration F.npz) and costs accuracy: `compile --evaluate` says what",
                "inputs and outputs are converted on the CPU then, unless --io int8 is given",
            ),
        )
    ]


LAYOUT_LIMIT = (
    "the backend has the channels of images last: changes of the layout can come around an operator"
)


def cortex_m_fallback(facts: Facts) -> list[Item]:
    """Calls in floating point, between conversions, for which the Cortex-M backend has an operator."""
    rows = list(sited_operations(facts))
    found = [(row, site.cortex_m) for row, site in rows if site is not None and site.cortex_m]
    places = [place for place, (_, site) in enumerate(rows) if site is not None and site.cortex_m]
    places_around: set[int] = set()
    for place in places:
        for step, kind in ((-1, advice_facts.DEQUANTISE), (1, advice_facts.QUANTISE)):
            at = place + step
            while 0 <= at < len(rows) and rows[at][0].name.endswith(kind):
                places_around.add(at)
                at += step
    around = [rows[at][0] for at in sorted(places_around)]
    if facts.compiled.target is None or not found or not around:
        return []
    replaced = Counter((row.name, name) for row, name in found)
    calls, how = facts.cpu_calls, "the conversions fall away, changes of the layout left out"
    left = calls - sum(row.calls for row in around)
    return [
        Advice(
            finding="; ".join(
                f"{name} ({counted(count, 'call')}) would run as {other} on int8"
                for (name, other), count in replaced.items()
            ),
            evidence=(
                *_costs("these calls in floating point", [row for row, _ in found]),
                *_costs("their conversions", around),
            ),
            command=facts.compiled_again(fallback=CORTEX_M),
            gains=(expected_change(CPU_OPERATORS, calls, left, how),),
            limits=(
                "nothing here estimates the cycles of the int8 kernels and of changes of the layout, which can be "
                "more than those of floating point: `advise --try` counts them",
                LAYOUT_LIMIT,
            ),
        )
    ]


def _costs(what: str, rows: Sequence[Operation]) -> Iterator[Evidence]:
    yield figure_evidence(what, sum(row.calls for row in rows), "calls")
    if cycles := advice_facts.cpu_cycles(rows):
        yield figure_evidence(f"CPU cycles of {what}", cycles, "cycles", "modelled")


def quantised_io(facts: Facts) -> list[Item]:
    """quantize_per_tensor behind each float input of an int8 program, dequantize_per_tensor before each output."""
    compiled = facts.compiled
    if compiled.options.io != "float" or compiled.options.quantize != "int8":
        return []
    borders = [row for row in (*compiled.inputs, *compiled.outputs) if _is_float(row)]
    rows = _conversions_of(facts, compiled.inputs, advice_facts.QUANTISE)
    rows += _conversions_of(facts, compiled.outputs, advice_facts.DEQUANTISE)
    if not borders or len(rows) != len(borders):
        return []
    calls = facts.cpu_calls
    values = sum(math.prod(row.shape) for row in borders)
    return [
        Advice(
            finding=f"{counted(len(rows), 'conversion')} between float and int8 on the CPU in every inference",
            evidence=(figure_evidence("float inputs and outputs", len(borders), "tensors"),),
            command=facts.compiled_again(io="int8"),
            gains=(
                *advice_facts.changes_without(facts, rows),
                expected_change(CPU_OPERATORS, calls, calls - len(rows), "these conversions fall away"),
                expected_change(IO_BYTES, 4 * values, values, "one byte for a value instead of four"),
            ),
            limits=(
                "the application quantises inputs, q = clamp(round(x / scale) + zero_point, -128, 127), and reads "
                "outputs as (q - zero_point) * scale: constant methods (input0_scale, …) have the figures",
                "a sensor or an image that has integers already is where this saves work; elsewhere it moves it",
            ),
        )
    ]


def _conversions_of(facts: Facts, tensors: Sequence[Tensor], name: str) -> list[Operation]:
    rows = [row for row in facts.cpu_rows if row.name.endswith(name)]
    if name == advice_facts.DEQUANTISE:
        rows.reverse()  # outputs are converted last, inputs first
    found = []
    for tensor in filter(_is_float, tensors):
        for row in rows:
            if row.ofm == tensor.shape:
                found.append(row)
                rows.remove(row)
                break
    return found


def _is_float(row: Tensor) -> bool:
    return row.dtype == "float32"


@dataclass
class _CallLine:
    """The calls of one operator at one place, and their share of the conversions and delegate starts around them.
    `is_border`: only conversions are around it, at an input or output of the program."""

    is_border: bool
    rows: list[Operation] = field(default_factory=list)
    border_cycles: float | None = None


class Placed(NamedTuple):
    """A line with the instructions of the program that it stands for."""

    call: CpuCall
    instructions: tuple[int, ...]


def cpu_call_lines(facts: Facts) -> tuple[CpuCall, ...]:
    """A line for each CPU operator and place, what costs most first."""
    return tuple(row.call for row in placed_calls(facts))


def placed_calls(facts: Facts) -> tuple[Placed, ...]:
    """The same lines, each with its instructions."""
    found: dict[tuple[str, str, bool], _CallLine] = {}
    starts = {row.index: row.cpu_cycles for row in facts.profile.delegates}
    groups = _groups(row for row, _ in sited_operations(facts))
    has_npu = facts.compiled.target is not None
    for number, (runs_on, rows) in enumerate(groups):
        if runs_on == "NPU":
            continue
        # ExecuTorch ends a program with calls that write new values into the buffers that it keeps.
        computing = [row for row in rows if not advice_facts.is_conversion(row) and row.name != "aten::copy_"]
        around = [row for row in rows if advice_facts.is_conversion(row)]
        after = groups[number + 1][1][0] if 0 < number < len(groups) - 1 else None
        start = starts.get(after.delegate) if after is not None and after.delegate is not None else None
        border = advice_facts.cpu_cycles(around) + (0 if start is None else int(start.value))
        for row in rows:
            is_border = not computing or not has_npu
            key = (row.name, common.source_place(row.source), is_border)
            line = found.setdefault(key, _CallLine(is_border=is_border))
            line.rows.append(row)
            if row in computing and border and has_npu:
                line.border_cycles = (line.border_cycles or 0) + border / len(computing)
    parts = (
        Placed(_cpu_call(facts, line), tuple(entry.instruction for entry in line.rows))
        for line in found.values()
    )

    def cost(row: Placed) -> tuple[float, float]:
        return (row.call.cycles or 0) + (row.call.border_cycles or 0), row.call.instructions or 0

    return tuple(sorted(parts, key=cost, reverse=True))


def _cpu_call(facts: Facts, line: _CallLine) -> CpuCall:
    first = line.rows[0]
    counted = [int(row.instructions.value) for row in line.rows if row.instructions is not None]
    why, limit, instead, results = _words(facts, line)
    return CpuCall(
        name=first.name,
        calls=sum(row.calls for row in line.rows),
        where=common.source_place(first.source) or None,
        why=why,
        constraint=limit or None,
        instructions=sum(counted) if counted else None,
        cycles=advice_facts.cpu_cycles(line.rows) or None,
        border_cycles=None if line.border_cycles is None else round(line.border_cycles),
        replacement=instead or None,
        results=results or None,
    )


def _words(facts: Facts, line: _CallLine) -> tuple[str, str, str, str]:
    """Why it runs on the CPU, what the NPU takes of it, what replaces it, and what becomes of the results."""
    first = line.rows[0]
    if advice_facts.is_conversion(first):
        if line.is_border:
            why = "conversion between floating point and quantised values"
            return why, "", "--io int8, where the application has integers", "the same"
        return "conversion for an operator on the CPU", "", "falls away with that operator", ""
    why = first.reason or "the NPU does not take it"
    target = facts.compiled.target
    if target is None:
        return why, "", "", ""
    known = constraint_of(first.name, target.npu)
    kind = first.source.module_type if first.source is not None else None
    module = REPLACEMENTS.get(kind or "")
    limit = "" if known is None else f"{target.npu} takes {known.text} ({known.source})"
    instead = module.words if module is not None else "" if known is None else known.instead
    results = known.results if known is not None else "the same" if module is not None else ""
    place = common.source_place(first.source)
    sites = (site for row in facts.compiled.cpu_operators if row.name == first.name for site in row.sites)
    names = (site.cortex_m for site in sites if site.cortex_m and common.source_place(site.source) == place)
    int8 = next((f"{name} on the CPU (--fallback cortex-m)" for name in names), "")
    return why, limit, "; or ".join(filter(None, (instead, int8))), results
