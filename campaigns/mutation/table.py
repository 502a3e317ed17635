"""campaigns/mutation/README.md: what found each fault, before and after."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from campaigns.mutation.faults import Fault
from campaigns.mutation.stages import TIERS

_TEXT = """# Planted faults

`faults.toml` has {count} small faults of the sources. `scripts/mutation run` plants one at a time in a copy of the
tree, runs the tests that may find it, tier by tier, and notes in which tier the first test fails; `after.json` has
the results. `before.json` has the same of commit `{commit}`, before tests had tiers. `scripts/mutation check` runs
the tests that found faults on the sources without them. Run it by hand when tests move or go: it takes an hour or
two. `scripts/mutation table` writes this page.

"""
_BEFORE_COMMIT = "cb8e9f54"
_LONGEST = 110

Rows = Mapping[str, Mapping[str, Any]]


def page(faults: Mapping[str, Fault], folder: Path) -> str:
    """The page as Markdown."""
    before, after = (_rows(folder / name) for name in ("before.json", "after.json"))
    lines = [_TEXT.format(count=len(faults), commit=_BEFORE_COMMIT)]
    lines += [*_summary(before, after), *_areas(faults, before, after), *_each(faults, before, after)]
    return "".join(lines)


def _rows(path: Path) -> Rows:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _found(rows: Rows) -> set[str]:
    return {name for name, row in rows.items() if row["found"]}


def _summary(before: Rows, after: Rows) -> Iterator[str]:
    known = _found(before)
    yield f"Before: {len(known)} of {len(before)} found."
    if after:
        reached: set[str] = set()
        parts = []
        for tier in TIERS:
            reached |= {name for name in known if after.get(name, {}).get("found") == tier}
            parts.append(f"{tier} {len(reached)} ({len(reached) / max(1, len(known)):.0%})")
        yield f" After, of these: {', with '.join(parts)}."
    yield "\n\n"


def _areas(faults: Mapping[str, Fault], before: Rows, after: Rows) -> Iterator[str]:
    yield f"| area | faults | found before | {' | '.join(TIERS)} | not found |\n|---|--:|--:|--:|--:|--:|--:|\n"
    areas = list(dict.fromkeys(fault.area for fault in faults.values()))
    for area in areas:
        names = [fault.id for fault in faults.values() if fault.area == area]
        cells = [len(names), len(_found(before) & set(names))]
        cells += [sum(after.get(name, {}).get("found") == tier for name in names) for tier in TIERS]
        cells.append(sum(name in after and not after[name]["found"] for name in names))
        yield f"| {area} | {' | '.join(map(str, cells))} |\n"
    yield "\n"


def _each(faults: Mapping[str, Fault], before: Rows, after: Rows) -> Iterator[str]:
    yield "| fault | what it breaks | found before by | tier after | found after by |\n|---|---|---|---|---|\n"
    for name, fault in faults.items():
        tier = after[name]["found"] or "not found" if name in after else ""
        cells = [f"`{name}`", fault.breaks, _test(before, name), tier, _test(after, name)]
        yield " | ".join(["", *(cell.replace("|", "\\|") for cell in cells), ""]).strip() + "\n"


def _test(rows: Rows, name: str) -> str:
    if name not in rows:
        return ""
    if not rows[name]["found"]:
        return "nothing"
    test = rows[name]["by"][0].removeprefix("tests/")
    return f"`{test if len(test) <= _LONGEST else test[:_LONGEST] + '…'}`"
