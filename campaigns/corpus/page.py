"""Turns the outcomes of all cells into docs/reference/model-corpus.md.

The page names versions but no date and no machine: the same outcomes give the same page.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from campaigns.corpus.catalogue import ARCHITECTURES
from campaigns.corpus.cells import CAUGHT, DIFFERS, FAILED, RAN, REFUSED, TARGETS, Cell, Outcome
from campaigns.corpus.packages import REQUIREMENTS
from campaigns.corpus.reviews import Review, judge
from campaigns.grid import commits, escaped
from tests.conformance.report import table, versions

Outcomes = Mapping[Cell, Outcome]
_LONGEST = 300  # characters of a message


def cell_text(found: Outcome | None) -> str:
    """What a cell shows."""
    if found is None:
        return "not run"
    if found.verdict == RAN:
        return f"{_db(found.quantisation_db)} → {_db(found.execution_db)}{'' if not found.distance else ' ≈'}"
    words = {
        DIFFERS: "**differs**",
        REFUSED: f"refused ({found.exit_code})",
        CAUGHT: f"caught ({found.exit_code})",
        FAILED: "**failed**",
    }
    return words[found.verdict]


def _db(value: float | None) -> str:
    return "=" if value is None else f"{value:.0f}"


def main_table(outcomes: Outcomes) -> str:
    """A row for each architecture, with one figure for the targets that have the same."""
    rows = []
    for name, entry in ARCHITECTURES.items():
        found = {target: outcomes.get(Cell(name, target)) for target in TARGETS}
        texts: dict[str, list[str]] = {}
        for target, outcome in found.items():
            texts.setdefault(cell_text(outcome), []).append(target)
        shown = next(iter(texts)) if len(texts) == 1 else _by_target(texts)
        rows.append([f"`{name}`", entry.package, entry.task, _on_cpu([*found.values()]), shown])
    return table(("architecture", "package", "task", "on the CPU", "decibels"), rows)


def _by_target(texts: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{text} ({', '.join(targets)})" for text, targets in texts.items())


def _on_cpu(found: Sequence[Outcome | None]) -> str:
    """The operators on the CPU, for the target that has most of them."""
    most = max((row.cpu for row in found if row is not None and row.verdict == RAN), key=len, default=())
    return ", ".join(f"`{name.partition('::')[2].partition('.')[0]}` {calls}" for name, calls in most) or "—"


def refusal_table(outcomes: Outcomes, reviews: tuple[Review, ...]) -> str:
    """Every cell that did not run, with the exit code, the message and the judgement."""
    rows = []
    for cell, found in outcomes.items():
        if found.verdict == RAN:
            continue
        judged = judge(reviews, cell, found) if found.verdict in (REFUSED, CAUGHT) else None
        first = escaped(" ".join(found.message.split()), _LONGEST)
        if found.verdict == DIFFERS:
            first = f"{found.differing} of {found.elements} elements differ, by {found.distance:g} at most"
        verdict = (
            "not reviewed"
            if judged is None
            else f"{'true' if judged.truthful else '**untrue**'}: {judged.why}"
        )
        rows.append([f"`{cell.name}`", cell.target, found.step, str(found.exit_code), first, verdict])
    return (
        table(("architecture", "target", "step", "exit code", "message", "judged"), rows) if rows else "None."
    )


def tally(found: Iterable[Outcome]) -> str:
    """How many cells ran, and what the others are."""
    counts = Counter(row.verdict for row in found)
    rest = [
        f"{counts[verdict]} {verdict}" for verdict in (REFUSED, CAUGHT, DIFFERS, FAILED) if counts[verdict]
    ]
    return ", ".join([f"{counts[RAN]} of {counts.total()} cells ran", *rest])


def equality(outcomes: Outcomes) -> str:
    """How many cells that ran are equal bit for bit on QEMU and host, and why the others may differ."""
    ran = [row for row in outcomes.values() if row.verdict == RAN]
    near = [row for row in ran if row.distance]
    if not near:
        return f"In all {len(ran)} cells that ran, the outputs of QEMU and host are equal bit for bit."
    names = sorted({name for row in near for name in row.allowance})
    return (
        f"In {len(ran) - len(near)} of the {len(ran)} cells that ran, the outputs of QEMU and host are equal bit for "
        f"bit. In the others (≈) they are within the bounds of the float kernels on the way "
        f"({', '.join(f'`{name}`' for name in names)}); the largest difference is "
        f"{max(row.distance for row in near):.2g}."
    )


def page(outcomes: Outcomes, reviews: tuple[Review, ...]) -> str:
    """The whole page."""
    tasks = Counter(entry.task for entry in ARCHITECTURES.values())
    pins = [line.strip() for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines() if "==" in line]
    return _PAGE.format(
        architectures=len(ARCHITECTURES),
        packages=len({entry.package for entry in ARCHITECTURES.values()}),
        tasks=", ".join(f"{task} {count}" for task, count in tasks.most_common()),
        tally=tally(outcomes.values()),
        equality=equality(outcomes),
        table=main_table(outcomes),
        refusals=refusal_table(outcomes, reviews),
        versions=versions(),
        commits=commits(row.commit for row in outcomes.values()),
        pins=", ".join(pins),
    )


_PAGE = """# A corpus of architectures

<!-- Generated by scripts/model-corpus: do not edit. -->

The corpus has small variants of {architectures} networks from {packages} packages that were not written for this
SDK. Each runs on one configuration of each family. The tasks are: {tasks}.

Weights are random. A few forward passes set biases, norms and BatchNorm statistics, so that activations have the
ranges of trained networks. Each cell does what a user does: `compile FILE.py:NAME` (with its check), then `run` on
QEMU and on the host simulator, with samples that calibration has not seen. *Ran* means that all three commands
ended with 0 and that the outputs of both simulators agree. *Caught* means that `compile` executed its program and
rejected it, because the outputs were wrong by more than rounding.

{tally}. {equality}

The figures are decibels of the worst output, on all targets where none is named. *float → quantised* is the cost of
int8. *quantised → executed* is the distance of the program from PyTorch's emulation of it. `=` means that all
elements are equal. `compile`'s check compares the second figure with rounding ([accuracy.md](../guide/accuracy.md)).

{table}

*On the CPU* lists operators and their calls, without conversions, on the target with the most of them.

## What did not run

{refusals}

## Versions

{versions}

Commits of the SDK: {commits}.

The packages are installed without their dependencies into a separate folder: {pins}. They are inputs of a test.
They are not a part of the SDK, are never distributed with it, and have their own licences.

`scripts/model-corpus` runs the cells again. The tests include a sample of them.
"""
