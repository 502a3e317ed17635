"""What `compare` says in a few lines: which run is faster, and what went, came and changed."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich.table import Table

from ethosu_sdk.base.plain_text import counted, cut
from ethosu_sdk.base.terminal import escape
from ethosu_sdk.records import wording
from ethosu_sdk.records.compare import Comparison, Comparisons, Dimension
from ethosu_sdk.records.compile import Compilation, LinkOutput, Pair
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.time_line import headline
from ethosu_sdk.reporting.compare import compared_records, operator_changes
from ethosu_sdk.reporting.compare.compared_records import NamedMetric, Subject
from ethosu_sdk.reporting.compare.speed_verdict import milliseconds_texts, percent_text, speed_verdict

Rows = Iterator[tuple[str, str]]
_COLOURS = {"FASTER": "green", "SLOWER": "red", "NOT COMPARABLE": "yellow", "FAILED": "red"}
_LEAST_CHANGE = 0.01  # of the inference: less is not told
_IN_MILLISECONDS = 1e-4  # seconds, from which on a time is told in them
_MOST_RUNS = 10  # that have a line each
DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
_LONGEST = 40  # name of an operator
_LINE = 70  # behind the first column of a terminal of 80
# What lies in memory, and its figure, the first that both have: of the run, of its compilation without a board.
_SIZES = (
    (
        ("SRAM", "memory.regions.SRAM"),
        ("arena", "memory.pools.scratch"),
        ("arena", "compile.0.scratch_bytes"),
    ),
    (("program", "model.bytes"), ("program", "compile.pte_bytes")),
)
_WORDS = {"regression": "worse", "improved": "better", "missing": "in one alone"}


def answer_table(record: Comparisons, subjects: Sequence[Subject], *, checked: bool) -> Table:
    """The answer: of two runs what became different, of several a line each. `subjects` are those of the record; its
    status is told where that was `checked`."""
    table = Table(box=None, show_header=False, pad_edge=False)
    rows = [*_rows(record, subjects), *_failed(record)]
    rows += [("check", f"{record.status}, by the policy: {record.policy.source}")] if checked else []
    for name, text in [*rows, ("next", _next(record, subjects))]:
        colour = _COLOURS.get(name, "bold" if name.isupper() else "")
        table.add_row(f"[{colour}]{escape(name)}[/]" if colour else escape(name), escape(text))
    return table


def _failed(record: Comparisons) -> Rows:
    for row in record.failed:
        yield "FAILED", f"{row.name}  {cut(' '.join(row.reason.split()), 2 * _LINE)}"


def _rows(record: Comparisons, subjects: Sequence[Subject]) -> Rows:
    first, *others = subjects
    pairs = list(zip(record.comparisons, others, strict=True))
    if len(pairs) == 1:
        yield from _answer(first, others[0], record.comparisons[0])
        return
    yield "beside", first.name
    for comparison, other in pairs[:_MOST_RUNS]:
        rows = dict(_answer(first, other, comparison))
        word = next(iter(rows))
        outputs = f"; outputs {rows['outputs']}" if "outputs" in rows else ""
        yield word, f"{other.name}  {rows[word]}{outputs}"
    if len(pairs) > _MOST_RUNS:
        yield "", f"and {counted(len(pairs) - _MOST_RUNS, 'more run')}: -v shows all"


def _next(record: Comparisons, subjects: Sequence[Subject]) -> str:
    paths = " ".join(shlex.quote(str(row.path)) for row in subjects)
    if record.status == "blocked":
        return f"ethosu-sdk compare {paths} -v"
    runs = all(row.folder is not None and "run" in row.records for row in subjects)
    return f"ethosu-sdk report {paths}" if runs and len(subjects) > 1 else f"ethosu-sdk compare {paths} -v"


def _answer(first: Subject, other: Subject, comparison: Comparison) -> Rows:
    blocking = [row for row in comparison.dimensions if row.status == "blocks"]
    if blocking:
        yield "NOT COMPARABLE", "; ".join(map(_blocks, blocking))
        return
    shared = [kind for kind in first.records if kind in other.records]
    records = [[side.records[kind] for kind in shared] for side in (first, other)]
    verdict = speed_verdict(*records)
    yield verdict.word, verdict.words
    targets = {
        f" · {row.npu}-{row.macs}" for side in (first, other) if (row := side.first.target) is not None
    }
    names = [
        side.name + (" (failed)" if _is_failed(side.records.get("run")) else "") for side in (first, other)
    ]
    yield "runs", f"{' → '.join(names)}{targets.pop() if len(targets) == 1 else ''}"
    sides = [{kind: side.records[kind] for kind in shared} for side in (first, other)]
    before, after = (compared_records.metrics_of(side) for side in sides)
    yield from _parts(before, after)
    yield from _operators(first.records.get("profile"), other.records.get("profile"))
    yield from _memory(before, after)
    yield from _quality(first.records.get("compile"), other.records.get("compile"))
    yield from _outputs(first, other, comparison)
    settings = [
        _setting(row) for row in comparison.dimensions if row.status == "allowed" and row.name != "model"
    ]
    if settings:
        yield "settings", _on_a_line(settings)
    words = figures_words(comparison)
    yield "figures", f"{words} (-v)" if comparison.metrics else words


def _is_failed(run: object) -> bool:
    return isinstance(run, Run) and run.verdict.status == "fail"


def _blocks(row: Dimension) -> str:
    why = f" ({row.reason})" if row.reason is not None else ""
    return f"{_setting(row)}{why}"


def _setting(row: Dimension) -> str:
    """A setting that differs: both sides without what they have in common, or its name where they are long."""
    text = f"{row.name} {' → '.join(without_common(row.before, row.after))}"
    return row.name if "…" in text or len(text) > _LINE else text


def without_common(before: str, after: str) -> list[str]:
    """Two lists in words, each without what the other has as well, and with short digests."""
    parts = [text.split(", ") for text in (before, after)]
    common = {*parts[0]} & {*parts[1]}
    own = (
        ", ".join(word.removeprefix("SHA-256 ") for word in words if word not in common) for words in parts
    )
    return [DIGEST.sub(r"\1…", words or "nothing more") for words in own]


def _change(before: float, after: float) -> str:
    values = list(dict.fromkeys(wording.number_texts(before, after)))
    percent = percent_text(before, after) if before != after else ""
    return f"{' → '.join(values)} bytes" + (f" ({percent})" if percent else "")


def _both(
    name: str, before: Mapping[str, NamedMetric], after: Mapping[str, NamedMetric]
) -> tuple[float, float] | None:
    values = [side[name].value if name in side else None for side in (before, after)]
    old, new = values
    return (old, new) if isinstance(old, int | float) and isinstance(new, int | float) else None


def _parts(before: Mapping[str, NamedMetric], after: Mapping[str, NamedMetric]) -> Rows:
    found = []
    if (npu := _both("time.npu_ms", before, after)) is not None and any(npu):
        found.append(f"NPU {' → '.join(dict.fromkeys(milliseconds_texts(*npu)))} ms")
    if (cpu := _both("time.cpu_ms", before, after)) is not None:
        found.append(f"CPU {' → '.join(dict.fromkeys(milliseconds_texts(*cpu)))} ms")
    if (calls := _both("cpu.operators", before, after)) is not None:
        found.append(f"CPU operators {' → '.join(dict.fromkeys(wording.number_texts(*calls)))}")
    if found:
        yield "of it", " · ".join(found)


def _operators(before: object, after: object) -> Rows:
    """What only one of two profiles has, and what takes longer or shorter; the largest first."""
    if not isinstance(before, Profile) or not isinstance(after, Profile):
        return
    timed = headline(before) is not None and headline(after) is not None
    old, new = (operator_changes.operator_costs(profile, timed=timed) for profile in (before, after))
    least = _LEAST_CHANGE * min(sum(cost for _, cost in side.values()) for side in (old, new))
    steps = [(new[key][0], new[key][1] - old[key][1]) for key in new if key in old]
    for word, rows in (
        ("went", [row for key, row in old.items() if key not in new]),
        ("came", [row for key, row in new.items() if key not in old]),
        ("changed", [row for row in steps if abs(row[1]) > least]),
    ):
        alike: dict[str, list[float]] = {}
        for name, cost in rows:
            alike.setdefault(name, []).append(cost)
        ranked = sorted(alike.items(), key=lambda row: -abs(sum(row[1])))
        sign = "+" if word == "changed" else ""
        found = [
            f"{f'{len(costs):,} ' if len(costs) > 1 else ''}{cut(name, _LONGEST)} "
            f"{_cost(sum(costs), sign, timed=timed)}"
            for name, costs in ranked
        ]
        if found:
            yield word, _on_a_line(found)


def _on_a_line(parts: Sequence[str]) -> str:
    """As many of `parts` as a line takes, one at least, and how many more there are."""
    for count in range(len(parts), 0, -1):
        more = [f"{len(parts) - count:,} more"] if count < len(parts) else []
        text = ", ".join([*parts[:count], *more])
        if len(text) <= _LINE:
            break
    return text


def _cost(value: float, sign: str, *, timed: bool) -> str:
    text = f"{abs(value):,.0f} cycles"
    if timed:
        is_long = abs(value) >= _IN_MILLISECONDS
        text = wording.milliseconds(abs(value)) if is_long else f"{abs(value) * 1e6:,.1f} µs"
    return f"{wording.MINUS if value < 0 else sign}{text}"


def _memory(before: Mapping[str, NamedMetric], after: Mapping[str, NamedMetric]) -> Rows:
    found = []
    for names in _SIZES:
        known = ((what, _both(name, before, after)) for what, name in names)
        found += [f"{what} {_change(*values)}" for what, values in known if values is not None][:1]
    if found:
        yield "memory", " · ".join(found)


def _quality(before: object, after: object) -> Rows:
    """The labelled accuracy of both programs, or else how far their quantised models are from floating point."""
    if not isinstance(before, Compilation) or not isinstance(after, Compilation):
        return
    for read in (_accuracy, _distance):
        old, new = read(before), read(after)
        if old and new:
            words = [old, new] if old != new else [new]
            yield "quality", " → ".join([*(row.partition(" ")[0] for row in words[:-1]), words[-1]])
            return


def _accuracy(record: Compilation) -> str:
    pairs: Sequence[Pair] = () if record.accuracy is None else record.accuracy.pairs
    shares = [
        row.top1.share
        for row in pairs
        if row.top1 is not None and (row.reference, row.candidate) == ("labels", "executed")
    ]
    return f"{100 * min(shares):.1f} % top-1" if shares else ""


def _distance(record: Compilation) -> str:
    pairs = () if record.accuracy is None else record.accuracy.pairs
    links = () if record.chain is None else record.chain.links
    rows: list[Pair | LinkOutput] = [
        row for row in pairs if (row.reference, row.candidate) == ("float", "executed")
    ]
    rows = rows or [row for link in links if link.link == "quantised" for row in link.outputs or ()]
    ratios = [row.sqnr_db for row in rows if row.sqnr_db is not None]
    if rows and all(row.equal == row.elements for row in rows):
        return "equal to float"
    return f"{min(ratios):.1f} dB to float" if ratios else ""


def _outputs(first: Subject, other: Subject, comparison: Comparison) -> Rows:
    runs = [side.records.get("run") for side in (first, other)]
    if not all(isinstance(run, Run) and run.outputs for run in runs):
        return
    rows = [row for row in comparison.metrics if row.name.startswith("outputs.")]
    has_other_inputs = any(row.name == "inputs" and row.status == "allowed" for row in comparison.dimensions)
    words = "equal, bit for bit"
    if rows:
        words = rows[0].detail or "they differ"
        words += f" ({rows[0].name.replace('s.', '')} of {len(rows)})" if len(rows) > 1 else ""
    if has_other_inputs:
        words = "of other inputs: not compared"
    beside = [
        text for side, run in zip((first, other), runs, strict=True) if (text := _beside_model(side, run))
    ]
    yield "outputs", "; ".join((words, *dict.fromkeys(beside)))


def _beside_model(subject: Subject, run: object) -> str:
    """How many elements are not those of the model that the program was compiled from; empty where all are."""
    rows = run.reference.outputs if isinstance(run, Run) and run.reference is not None else ()
    wrong = sum(row.elements - row.equal for row in rows)
    return f"{wrong:,} of {subject.name}'s differ from its quantised model's" if wrong else ""


def figures_words(comparison: Comparison) -> str:
    """How many figures were compared, and what they say."""
    counts = Counter(_WORDS.get(row.status, "different") for row in comparison.metrics)
    told = [f"{count:,} {word}" for word, count in sorted(counts.items(), reverse=True)]
    return f"{comparison.compared:,} compared: {', '.join(told) or 'no difference'}"
