"""What `ethosu-sdk sweep` shows on a terminal: the plan, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.console.terminal import Ranked, escape
from ethosu_sdk.plain_text import counted
from ethosu_sdk.records.sweep import Sweep, Verdict
from ethosu_sdk.sweep import page
from ethosu_sdk.sweep.page import overview, settings
from ethosu_sdk.sweep.plan import Plan
from ethosu_sdk.sweep.rows import Row

_MOST_MODELS = 40


def plan_tables(plan: Plan, jobs: int) -> list[Table]:
    """The plan for people."""
    total, left = plan.total(), plan.left()
    numbers = Table(box=None, pad_edge=False)
    for heading in ("", "in all", "to do"):
        numbers.add_column(heading, justify="left" if not heading else "right")
    numbers.add_row("cells", f"{total.cells:,}", f"{left.cells:,}")
    numbers.add_row("lowerings", f"{total.lowerings:,}", f"{left.lowerings:,}")
    numbers.add_row("runs of Vela", f"{total.vela_runs:,}", f"{left.vela_runs:,}")
    numbers.add_row("simulations", f"{total.simulations:,}", f"{left.simulations:,}")
    numbers.add_row("excluded", f"{plan.expanded.excluded:,}", "")
    numbers.add_row("estimate", "", f"{plan.estimated_s(jobs):,.0f} s with {counted(jobs, 'job')}, roughly")
    parts = [numbers]
    if plan.expanded.dropped:
        dropped = Table(title="dropped", box=None, show_header=False, pad_edge=False)
        for reason, count in plan.expanded.dropped.items():
            dropped.add_row(f"{count:,}", escape(reason))
        parts.append(dropped)
    return parts


def result_tables(record: Sweep, found: Sequence[Row], folder: Path) -> list[RenderableType]:
    """The sweep for people: the rows `found` were judged in `record`."""
    head = Table(box=None, show_header=False, pad_edge=False)
    for name, count in record.cells.to_json().items():
        if count:
            head.add_row(name, f"{count:,}")
    head.add_row("page", escape(str(folder / page.FILE_NAME)))
    return [head, "", *_verdict(record.verdict, found)]


def _words(model: Any, line: Any) -> Iterator[str]:
    """A row of the verdict: a `line` of the best cells of `model`, as the page has them."""
    cells = ", ".join(cell["text"] for cell in line["cells"])
    yield from (model["model"], line["kind"], f"{cells} {line['more']}".strip())
    yield from (*line["values"], line["source"], line["why"] or model["reason"])


def _verdict(verdict: Verdict, found: Sequence[Row]) -> list[RenderableType]:
    """The best cells of each model, or why there is none; constraints and goals that judged them."""
    judged = overview.of(verdict, found, settings.of(found))
    goals = judged["goal_titles"]
    shown = [
        list(_words(model, line)) for model in judged["models"][:_MOST_MODELS] for line in model["lines"]
    ]
    reasons = ["why"] if any(row[-1] for row in shown) else []
    table = Ranked(box=None, pad_edge=False, drop=("cycles", *reversed(goals[1:])))
    for heading in ("model", "", "cell", *goals, "cycles", *reasons):
        table.add_column(heading, justify="right" if heading in goals else "left")
    for row in shown:
        table.add_row(*map(escape, row[: len(table.columns)]))
    parts: list[RenderableType] = [table]
    left = len(judged["models"]) - _MOST_MODELS
    if left > 0:
        parts.append(f"and {counted(left, 'more model')}: they are in the record and on the page")
    if judged["constraints"]:
        parts.append(escape(f"constraints: {'; '.join(judged['constraints'])}"))
    return [*parts, *(escape(f"note: {text}") for text in judged["notes"])]
