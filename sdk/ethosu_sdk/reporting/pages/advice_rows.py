"""Advice on a page: what changes got that were tried, what the rules estimate, and the operators on the CPU."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from ethosu_sdk.records import trials, wording
from ethosu_sdk.records.advice import Advice, CpuCall, Figure, Item, Judge, MetricName, Trial, Tried
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.debug import Debug
from ethosu_sdk.records.time_line import TimeLine, headline
from ethosu_sdk.reporting.advise import advice_facts, advise_command, cpu_rules
from ethosu_sdk.reporting.advise.advice_rules import AdviceVerdict, judge_facts
from ethosu_sdk.reporting.advise.cpu_rules import Placed
from ethosu_sdk.reporting.advise.replacements import OPERATOR_CHANGES
from ethosu_sdk.reporting.pages.report_inputs import ADVICE, PROFILE, ReportInputs


def rows_of_pairs(pairs: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, text in pairs:
        if rows and name in ("do", "write") and rows[-1]["name"] == name:
            rows[-1]["text"] += f"\n{text}"
        else:
            rows.append({"name": name, "text": text, "is_code": name in ("do", "write")})
    return rows


def timed_calls(placed: Sequence[Placed], time: TimeLine | None) -> dict[str, Any]:
    """The same with the time that the time line has for the kernels of each row, waits for memory included; what
    takes longest first. Cycles are without those waits."""
    kernels: defaultdict[int, float] = defaultdict(float)
    for part in time.parts if time is not None else ():
        if part.what == "kernel":
            kernels[part.operator] += part.duration_s
    spent = [sum(kernels.get(number, 0.0) for number in set(row.instructions)) for row in placed]
    if time is None or not all(spent):
        return cpu_call_rows([row.call for row in placed], time)
    found = cpu_call_rows([row.call for row in placed], None)
    for row, duration_s in zip(found["rows"], spent, strict=True):
        row["time"] = wording.milliseconds(duration_s)
    order = sorted(range(len(spent)), key=lambda number: -spent[number])
    return {**found, "rows": [found["rows"][number] for number in order], "has_waits": time.waits is not None}


def cpu_call_rows(rows: Sequence[CpuCall], time: TimeLine | None) -> dict[str, Any]:
    """A row for each operator and place, what costs most first; cycles with their time where the clock is known, else
    counted instructions; `what` is empty where neither is known."""
    has_cycles = any(row.cycles is not None for row in rows)
    is_counted = any(row.instructions is not None for row in rows)
    return {
        "what": "cycles, modelled" if has_cycles else "instructions, counted" if is_counted else "",
        "has_waits": False,
        "has_borders": any(row.border_cycles for row in rows),
        "rows": [_cpu_row(row, time, has_cycles=has_cycles) for row in rows],
    }


def _cpu_row(row: CpuCall, time: TimeLine | None, *, has_cycles: bool) -> dict[str, Any]:
    cost = row.cycles if has_cycles else row.instructions
    return {
        "name": wording.short_operator(row.name),
        "full_name": row.name,
        "calls": row.calls if row.calls > 1 else None,
        "where": row.where or "",
        "cost": cost,
        "time": _time(cost, time) if has_cycles else "",
        "border": row.border_cycles or None,
        "border_time": _time(row.border_cycles, time),
        "why": row.why,
        "constraint": row.constraint or "",
        "replacement": row.replacement or "",
        "results": row.results or "",
    }


def _time(cycles: int | None, time: TimeLine | None) -> str:
    return "" if not cycles or time is None else wording.milliseconds(cycles / time.clocks.cpu.hz)


_JUDGED: dict[Judge, MetricName] = {
    "fit": "NPU cycles",
    "time of an inference": "time of an inference",
    "NPU and CPU cycles": "total cycles",
    "NPU cycles": "NPU cycles",
}


def tried_view(tried: Tried) -> dict[str, Any]:
    """The table of all trials, those that help with their lines, and how they were judged."""
    simulator = {"qemu": "QEMU", "host": "the host simulator", "fvp": "Arm's FVP"}[tried.simulator]
    judged = _JUDGED[tried.judged_by]
    title = "inference" if judged == "time of an inference" else f"{judged}, modelled"
    columns: list[MetricName] = [judged, "SRAM", "flash"]
    figures = [figure for row in tried.trials for figure in row.figures if figure.before is not None]
    known = {figure.metric: figure.before for figure in figures}
    ratios = (row.outputs.sqnr_before_db for row in tried.trials if row.outputs is not None)
    ratio = next(ratios, None)
    trials_that_help = (row for row in tried.trials if advise_command.trial_helps(row))
    helpful = [(advise_command.trial_title(row, tried), row) for row in trials_that_help]
    values = (_value(name, known.get(name)) for name in columns)
    return {
        "head": f"Each change was compiled and run on {simulator}, and is judged by "
        f"{advise_command.JUDGES[tried.judged_by]}. The best one is first.",
        "columns": ["difference", title, "SRAM, bytes", "flash, bytes", "outputs, SQNR to float"],
        "words": "SQNR to float is the signal-to-noise ratio of the outputs beside those of the floating-point "
        "model. Outputs are equal where no element differs from those of the program as it is, close where at most "
        f"{trials.CLOSE_DB:g} dB is lost, lossy where more is lost or the change computes something else "
        f"by design, and broken where more is lost and less than {trials.BROKEN_DB:g} dB are left.",
        "before": ["", *values, "" if ratio is None else f"{ratio:.1f} dB"],  # the program as it is
        "rows": [_trial_row(row, tried, columns) for row in tried.trials],
        "left": tried.left,
        "details": [
            {"title": title, "rows": rows_of_pairs(advise_command.trial_pairs(row))} for title, row in helpful
        ],
    }


def best_change(tried: Tried) -> dict[str, str] | None:
    """The change that helps most, for the first figures of the page; None where none helps."""
    row = next((row for row in tried.trials if advise_command.trial_helps(row)), None)
    if row is None:
        return None
    is_fit = tried.judged_by == "fit"
    text = ("it fits" if row.fits else "") if is_fit else _difference(row.gain)
    figures = {figure.metric: figure for figure in row.figures}
    metric: MetricName = "SRAM" if is_fit else _JUDGED[tried.judged_by]
    values = f"{_step(figures[metric])}: " if metric in figures else ""
    outputs = f"; outputs {row.outputs.state}" if row.outputs is not None else ""
    sram, more = figures.get("SRAM"), ""
    if metric != "SRAM" and sram is not None and sram.before and sram.after > sram.before:
        more = f"; {_step(sram)} ({100 * (sram.after / sram.before - 1):+.1f} %)"
    return {
        "name": "best change that was tried",
        "text": text or advise_command.STATES[row.state],
        "note": f"{values}{row.change}{outputs}{more}",
        "part": "advice",
    }


def _step(row: Figure) -> str:
    unit = "" if row.metric == "time of an inference" else f" {row.unit}"
    return f"{row.metric} {_value(row.metric, row.before)} → {_value(row.metric, row.after)}{unit}"


def _trial_row(row: Trial, tried: Tried, columns: Sequence[MetricName]) -> dict[str, Any]:
    known = {figure.metric: figure.after for figure in row.figures}
    result = advise_command.STATES[row.state]
    if row.fits is False:
        result = "does not fit"
    elif tried.judged_by == "fit" and row.fits and row.state != "broken":
        result = "fits"
    outputs = ""
    if row.outputs is not None:
        ratio = row.outputs.sqnr_after_db
        outputs = row.outputs.state + ("" if ratio is None else f", {ratio:.1f} dB")
    return {
        "change": row.change,
        "note": row.name,
        "helps": advise_command.trial_helps(row),
        "result": result,
        "reason": "" if row.fits is False else " ".join((row.reason or "").split()),
        "cells": [_difference(row.gain), *(_value(name, known.get(name)) for name in columns), outputs],
    }


def _difference(gain: float | None) -> str:
    return "" if gain is None else f"{round(-100 * gain, 1) + 0.0:+.1f} %"


def _value(name: MetricName, value: float | None) -> str:
    if value is None:
        return ""
    return wording.milliseconds(value / 1e3) if name == "time of an inference" else f"{value:,.0f}"


def advice_view(inputs: ReportInputs) -> dict[str, Any]:
    """What was tried, each estimate as a title and rows, operators on the CPU, and the silent rules, why they are;
    `reason` says why there is nothing."""
    record = inputs.record(Advice)
    done = None if record is None else record.tried
    found, reason = _facts(inputs)
    time = headline(inputs.profile) if inputs.profile is not None else None
    calls = record.cpu if record is not None else None
    placed: Sequence[cpu_rules.Placed] = ()
    if found is not None:
        verdict = judge_facts(found)
        placed = cpu_rules.placed_calls(found) if found.compilation is not None else ()
    elif record is not None:
        verdict, reason = AdviceVerdict(record.advice, record.silent), ""
    else:
        verdict = AdviceVerdict((), ())
    untried = (row for row in verdict.advice if not advise_command.was_tried(row, done))
    titled = ((advise_command.advice_title(row), advise_command.advice_pairs(row)) for row in untried)
    return {
        "reason": reason,
        "tried": None if done is None else tried_view(done),
        "untried": inputs.missing.get(ADVICE, "") if done is None else "",
        "unadvised": "" if found is None else unadvised(found, verdict.advice, done),
        "advice": [{"title": title, "rows": rows_of_pairs(pairs)} for title, pairs in titled],
        "cpu": timed_calls(placed, time) if placed else cpu_call_rows(calls, time) if calls else None,
        "silent": [(row.rule, row.reason) for row in verdict.silent],
    }


def _facts(inputs: ReportInputs) -> tuple[advice_facts.Facts | None, str]:
    profile, program = inputs.profile, inputs.facts.program
    if inputs.program is None or profile is None:
        reason = inputs.missing.get("program") or inputs.missing.get(PROFILE, "there is no profile")
        return None, reason
    if program is None:
        return None, inputs.facts.program_reason
    compiled, debug = inputs.record(Compilation), inputs.record(Debug)
    return advice_facts.facts_of(program, profile, compiled, debug, inputs.missing), ""


def unadvised(found: advice_facts.Facts, advice: Sequence[Item], done: Tried | None = None) -> str:
    """The operator that takes the CPU longest, where that is a good part of the time, no advice is about it, and
    nothing of what was tried helps it."""
    time = headline(found.profile)
    if time is None or time.largest.duration_s < 0.1 * time.total.duration_s:
        return ""
    name = time.largest.name
    rows = [row for row in found.cpu_rows if row.name == name]
    changes = {row.name for row in OPERATOR_CHANGES.get(name, ())}
    helpful = [row for row in (done.trials if done is not None else ()) if advise_command.trial_helps(row)]
    tried_parts = {part for row in helpful for part in row.parts}
    # An advice is about the operator if it names it, or is about the conversions that it is.
    rules = ("quantised-io", "quantise") if rows and advice_facts.is_conversion(rows[0]) else ()
    is_advised = any(name in item.finding or item.rule in rules for item in advice)
    if not rows or is_advised or changes & tried_parts:
        return ""
    hint = "Nothing that was tried replaces it."
    if done is None:
        hint = "`ethosu-sdk advise MODEL --try` compiles and runs what could replace it."
    return (
        f"{wording.short_operator(name)} takes {wording.milliseconds(time.largest.duration_s)} of "
        f"{wording.milliseconds(time.total.duration_s)} on the CPU{wording.calls_of_largest(time)}, and no rule has "
        f"advice on it. {_why(found, name)}{hint}"
    )


def _why(found: advice_facts.Facts, name: str) -> str:
    """The first reason that is known for why calls of `name` are not delegated."""
    if found.compilation is None:
        return ""
    line = next((row for row in cpu_rules.cpu_call_lines(found) if row.name == name), None)
    if line is None:
        return ""
    instead = f" A replacement: {line.replacement}." if line.replacement is not None else ""
    return f"It is not delegated: {line.why.rstrip('.')}.{instead} "
