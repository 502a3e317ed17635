"""Several runs beside each other: their figures and their operators, each with the difference to the first run."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ethosu_sdk.records import operation_tree
from ethosu_sdk.reporting.compare import operator_changes
from ethosu_sdk.reporting.compare.speed_verdict import speed_verdict
from ethosu_sdk.reporting.pages import run_rows
from ethosu_sdk.reporting.pages.report_inputs import ReportInputs

# What operators are compared by: the first that all runs have.
_METRICS = {
    "time": "time, modelled",
    "measured": "cycles of the NPU, measured",
    "modelled": "cycles of the NPU, modelled",
    "cpu_cycles": "cycles of the CPU, modelled",
}
_FOLLOWS = ("NPU cycles are", "fidelity", "CPU clock", "NPU clock")  # settings that follow from others
_MOST_CAUSES = 4
_EQUAL, _WENT, _CAME = "equal", "went", "came"
_Key = tuple[str, ...]


@dataclass(frozen=True)
class Operators:
    """The figure that `what` describes, in `unit`, of each operator in each run: by its name, None where a run lacks
    it."""

    what: str
    unit: str
    digits: int
    rows: Mapping[str, Sequence[float | None]]


def compared_runs(all_inputs: Sequence[ReportInputs]) -> dict[str, Any]:
    """What differs between several runs, then their figures and operators, a column each."""
    settings = _table([list(run_rows.setting_rows(inputs)) for inputs in all_inputs])
    figures = _table(
        [[*run_rows.decisive_rows(inputs), *run_rows.count_rows(inputs)] for inputs in all_inputs]
    )
    changed = [row for row in settings if not row["is_equal"]]
    found = operators_of(all_inputs)
    return {
        "labels": [inputs.label for inputs in all_inputs],
        "others": [inputs.label for inputs in all_inputs[1:]],
        "changed": changed,
        "same": [(row["name"], row["cells"][0]) for row in settings if row["is_equal"]],
        "rows": figures,
        "cause": _cause(all_inputs, changed),
        "verdicts": [_verdict(all_inputs[0], other) for other in all_inputs[1:]],
        "next": list(_next_commands(all_inputs)),
        "operators": None if found is None else _operator_table(found),
    }


def _table(columns: Sequence[Sequence[run_rows.FactRow]]) -> list[dict[str, Any]]:
    """Rows with a cell for each run, in the order in which the first run that has one names it."""
    by_name = [{row.name: row for row in column} for column in columns]
    rows = []
    for name in dict.fromkeys(row.name for column in columns for row in column):
        cells = [column.get(name) for column in by_name]
        differences = [_difference(cells[0], other) for other in cells[1:]]
        rows.append(
            {
                "name": name,
                "cells": ["" if cell is None else cell.text for cell in cells],
                "differences": differences,
                "is_equal": all(text == _EQUAL for text in differences),
            }
        )
    return rows


def _cause(all_inputs: Sequence[ReportInputs], changed: Sequence[Mapping[str, Any]]) -> str:
    """What was changed between the runs, which is why their figures differ."""
    words = [
        f"{row['name']} {' → '.join(row['cells'])}"
        for row in changed
        if row["name"] not in _FOLLOWS and all(row["cells"])
    ]
    if words:
        more = f", and {len(words) - _MOST_CAUSES:,} more" if len(words) > _MOST_CAUSES else ""
        return f"What differs: {'; '.join(words[:_MOST_CAUSES])}{more}."
    programs = {inputs.run.model.sha256 for inputs in all_inputs}
    if len(programs) > 1:
        return "The programs differ, and the records name no option that does: compare the models."
    return "Nothing that the records name differs: the same program, settings and simulator."


_BESIDE = {
    "FASTER": "faster than",
    "SLOWER": "slower than",
    "SAME": "as fast as",
    "NOT COMPARABLE": "not comparable in time with",
}


def _verdict(first: ReportInputs, other: ReportInputs) -> dict[str, str]:
    """Whether a run is faster than the first, as a heading, and by what."""
    found = speed_verdict(*([inputs.run, *inputs.records.values()] for inputs in (first, other)))
    title = f"{other.label} is {found.ratio} {_BESIDE[found.word]} {first.label}"
    return {"title": " ".join(title.split()), "figures": found.figures}


def _next_commands(all_inputs: Sequence[ReportInputs]) -> Iterator[tuple[str, str]]:
    folders = [str(inputs.folder) for inputs in all_inputs]
    yield "every figure that differs", shlex.join(["ethosu-sdk", "compare", *folders, "-v"])
    yield (
        f"what to change next, for {all_inputs[-1].label}",
        shlex.join(["ethosu-sdk", "advise", folders[-1]]),
    )


def _difference(first: run_rows.FactRow | None, other: run_rows.FactRow | None) -> str:
    if first is None or other is None:
        return _WENT if other is None else _CAME
    if first.value is None or other.value is None:
        return _EQUAL if first.text == other.text else "differs"
    return change_text(first.value, other.value)


def change_text(before: float, after: float) -> str:
    """By how much a figure changed, in percent where it was not zero."""
    if before == after:
        return _EQUAL
    if not before:
        return "from 0"
    percent = 100 * (after - before) / before
    return f"{percent:+,.1f} %"


def operators_of(all_inputs: Sequence[ReportInputs]) -> Operators | None:
    """The operators of runs that all have a profile, by the first metric that all have."""
    profiles = [inputs.profile for inputs in all_inputs if inputs.profile is not None]
    if len(profiles) < len(all_inputs) or len(profiles) < 2:
        return None
    totals = [operation_tree.tree_totals(profile) for profile in profiles]
    metric = next((name for name in _METRICS if all(total.get(name) for total in totals)), None)
    if metric is None:
        return None
    names: dict[_Key, str] = {}
    key: _Key
    values: defaultdict[_Key, list[float | None]] = defaultdict(lambda: [None] * len(profiles))
    for number, profile in enumerate(profiles):
        keys = operator_changes.operator_keys(profile.operations)
        by_index = {row.index: key for row, key in zip(profile.operations, keys, strict=True)}
        for node in (leaf for root in operation_tree.tree_of(profile) for leaf in root.leaves()):
            if (value := node.own.get(metric)) is None:
                continue
            key, name = ("overhead", node.name), node.name
            if node.entry is not None:
                key = by_index[node.entry.index]
                module, operator = (
                    operation_tree.module_of(node.entry),
                    operation_tree.operator_name(node.entry),
                )
                name = " · ".join(filter(None, (module, operator)))
            names.setdefault(key, name)
            values[key][number] = (values[key][number] or 0) + value
    unit, digits, factor = "cycles", 0, 1.0
    if metric == "time":
        scale = max((operation_tree.scale_of(total) for total in totals), key=lambda scale: -scale.factor)
        unit, digits, factor = scale.unit, scale.digits, scale.factor
    rows = {
        name: [None if value is None else value * factor for value in values[key]]
        for key, name in _unique(names)
    }
    return Operators(_METRICS[metric], unit, digits, rows)


def _unique(names: Mapping[_Key, str]) -> Iterator[tuple[_Key, str]]:
    alike = Counter(names.values())
    seen: Counter[str] = Counter()
    for key, name in names.items():
        seen[name] += 1
        yield key, name if alike[name] == 1 else f"{name} ({seen[name]})"


def _operator_table(found: Operators) -> dict[str, Any]:
    digits = found.digits
    rows = [
        {
            "name": name,
            "cells": ["" if value is None else f"{value:,.{digits}f}" for value in values],
            "differences": [_step(values[0], other, digits) for other in values[1:]],
            "marks": " ".join(
                sorted({_step(values[0], other, digits) for other in values[1:]} & {_WENT, _CAME})
            ),
            "by": max(abs((value or 0) - (values[0] or 0)) for value in values),
        }
        for name, values in found.rows.items()
    ]
    sums = [sum(value or 0 for value in column) for column in zip(*found.rows.values(), strict=True)]
    return {
        "what": f"{found.what}, {found.unit}" if found.unit != "cycles" else found.what,
        "rows": sorted(rows, key=lambda row: -row["by"]),
        "sums": [f"{value:,.{digits}f}" for value in sums],
        "sum_differences": [change_text(sums[0], value) for value in sums[1:]],
    }


def _step(first: float | None, other: float | None, digits: int) -> str:
    if first is None or other is None:
        return _WENT if other is None else _CAME
    return _EQUAL if first == other else f"{other - first:+,.{digits}f} ({change_text(first, other)})"
