"""`ethosu-sdk compare`: two or more runs, figure by figure, by a policy; compare.json: ``compare/1``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace
from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.base import filesystem, json_text
from ethosu_sdk.base.errors import InputError, SdkError, UsageError, VerdictError
from ethosu_sdk.base.filesystem import sha256_bytes
from ethosu_sdk.base.terminal import Ranked, Reporter, escape
from ethosu_sdk.records import bundle, compare, kinds, provenance, result_files, validation
from ethosu_sdk.records.common import Unavailable
from ethosu_sdk.records.compare import (
    Comparison,
    Comparisons,
    DimensionStatus,
    Failed,
    FigureChange,
    MetricChange,
    OperatorChange,
    Status,
)
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.run_facts import MadeProfile
from ethosu_sdk.records.sweep import SweepComparison
from ethosu_sdk.reporting.compare import compared_records, comparison_answer, operator_changes, policies
from ethosu_sdk.reporting.compare.compared_records import ALLOWED_DIMENSIONS, FIDELITY, Subject
from ethosu_sdk.reporting.compare.options import CompareOptions
from ethosu_sdk.reporting.compare.policies import Policy, load_policy

if TYPE_CHECKING:
    from numpy.typing import NDArray


_MOST_REASONS = 8
_COLOURS = {"regression": "red", "improved": "green", "missing": "yellow"}
METRIC_HEADINGS = ("figure", "before", "after", "change", "", "unit", "where")
OPERATOR_HEADINGS = ("operator", "figure", "before", "after", "change", "", "source")
DIMENSION_HEADINGS = ("differs", "before", "after", "")
Profiles = Mapping[Path, MadeProfile]


def read_policy(options: CompareOptions) -> Policy:
    """The policy that `options` name; without a check, all may differ that ever may. InputError or UsageError for one
    that is none."""
    policy = load_policy(options.policy).allowing(options.allow)
    if options.across and options.checks:
        raise UsageError("--across shows figures that no check can judge", "leave --check and --policy out")
    if options.across:
        policy = dataclasses.replace(policy, allow=(*policy.allow, FIDELITY))
    return policy if options.checks else policy.allowing(ALLOWED_DIMENSIONS)


def compare_paths(
    paths: Sequence[Path],
    profiles: Profiles,
    options: CompareOptions,
    failed: Mapping[str, str] | None = None,
) -> Comparisons:
    """The record of a comparison; nothing is written. `profiles` are of the folders of runs that have none.

    InputError for what cannot be read.
    """
    return _make_record(_read_subjects(paths, profiles, options, failed), read_policy(options), failed or {})


def _read_subjects(
    paths: Sequence[Path], profiles: Profiles, options: CompareOptions, failed: Mapping[str, str] | None
) -> list[Subject]:
    if len(paths) + len(failed or ()) < 2:
        raise UsageError("one run cannot be compared", "give two or more: ethosu-sdk compare BEFORE AFTER")
    found = [compared_records.read_subject(path, profiles.get(path), loose=options.loose) for path in paths]
    first = found[0]
    for other in found[1:]:
        if not set(first.records) & set(other.records):
            raise InputError(
                f"{first.path} and {other.path} have no record of the same kind: {', '.join(first.records)} and "
                f"{', '.join(other.records)}",
                "give two folders of runs, or two records of the same kind",
            )
        # What the other folder compiled says nothing of a run.
        runs = [subject for subject in (first, other) if "run" in subject.records]
        if len(runs) == 1 and first.folder is not None and other.folder is not None:
            lacking = other if runs[0] is first else first
            raise InputError(
                f"{lacking.path} holds no run, but {runs[0].path} does",
                "run it; or give two records of the same kind",
            )
    return found


def compare_runs(
    paths: Sequence[Path],
    profiles: Profiles,
    options: CompareOptions,
    out_dir: Path | None,
    reporter: Reporter,
    failed: Mapping[str, str] | None = None,
) -> Comparisons:
    """Compare the runs at `paths` with the first and write the record. `failed` are those that could not be run.

    Raises InputError, after it was written, when two cannot be compared, VerdictError when one failed or, if that is
    checked, is worse.
    """
    policy = read_policy(options)
    subjects = _read_subjects(paths, profiles, options, failed)
    record = _make_record(subjects, policy, failed or {})
    write_comparison(record, kinds.COMPARE.file, "compare", comparison_folder(out_dir))
    if reporter.verbose:
        reporter.show(*compare_tables(record), "")
    reporter.show(comparison_answer.answer_table(record, subjects, checked=options.checks))
    for row in record.provenance.inputs:
        if row.loose:
            reporter.warn(escape(f"loose: {row.file} ({row.role}) is not what its manifest lists"))
    for unmatched in record.policy.unmatched or ():
        reporter.warn(escape(f"the policy's '{unmatched.pattern}' has no effect: {unmatched.reason}"))
    for gap in record.unavailable:
        reporter.warn(escape(f"no rows of operators ({gap.path}): {gap.reason}"))
    reporter.emit(record.to_json())
    _conclude(record, options, _MOST_REASONS if not reporter.verbose else None)
    return record


def comparison_folder(chosen: Path | None) -> Path:
    """Where a comparison goes: the folder that was chosen, or the usual one."""
    return chosen or Path(result_files.BUILD_FOLDER) / "compare"


def write_comparison(record: Comparisons | SweepComparison, name: str, command: str, folder: Path) -> None:
    """Publish `record` in `folder` as what `command` made."""
    filesystem.make_directory(folder)
    with filesystem.locked_folder(folder), bundle.writing_folder(folder, command) as add:
        json_text.write_json(folder / name, record.to_json())
        add(name)


def _conclude(record: Comparisons, options: CompareOptions, most: int | None) -> None:
    """Raise what a comparison ends with, which names at `most` so many figures."""
    blocked = [row for row in record.comparisons if row.status == "blocked"]
    worse = [row for row in record.comparisons if row.status == "fail" and options.checks]
    found = blocked or worse
    lines = [f"{row.before} → {row.after}, {reason}" for row in found for reason in worse_reasons(row)]
    if blocked:
        raise cannot_be_compared("the runs", "run", lines)
    left = len(lines[most:]) if most is not None else 0
    lines = lines[:most] + ([f"and {left:,} more: -v lists them"] if left else [])
    failed = [f"{row.name} could not be run: {row.reason}" for row in record.failed]
    if lines:
        raise worse_than_before([*lines, *failed])
    if failed:
        raise VerdictError("\n".join(failed), recorded=True)


def cannot_be_compared(what: str, verb: str, lines: Sequence[str]) -> InputError:
    """The error, after the record was written, for what differs in more than its figures."""
    return InputError(
        f"{what} cannot be compared:\n" + "\n".join(f"  {line}" for line in lines),
        f"{verb} both with the same settings, or allow the difference: --allow NAME, or `allow` in a policy",
        recorded=True,
    )


def worse_than_before(lines: Sequence[str]) -> VerdictError:
    """The error, after the record was written, for figures that a policy does not tolerate."""
    return VerdictError(
        "worse than before:\n" + "\n".join(f"  {line}" for line in lines),
        "a policy sets what may become worse, and by how much: --policy FILE.toml",
        recorded=True,
    )


def _make_record(subjects: Sequence[Subject], policy: Policy, failed: Mapping[str, str]) -> Comparisons:
    """The record of comparing each of `subjects` but the first with the first. `failed` is what was to be compared
    and is not there, and why."""
    labelled = [(subject_label(number), subject) for number, subject in enumerate(subjects)]
    comparisons = tuple(compare_two(subjects[0], other, policy, label) for label, other in labelled[1:])
    words: set[Status] = {row.status for row in comparisons} | {"fail" if failed else "pass"}
    operators = tuple(
        compare.OperatorRule(
            pattern=row.pattern,
            figure=row.figure,
            better=row.rule.better,
            tolerance=row.rule.tolerance,
            tolerance_percent=row.rule.tolerance_percent,
        )
        for row in policy.operators
    )
    # Patterns that fit nothing: somebody believes in a limit that there is not.
    names = dict.fromkeys(name for row in subjects for name in compared_records.metrics_of(row.records))
    found = (row.records.get("profile") for row in subjects)
    profiles = [profile for profile in found if isinstance(profile, Profile)]
    unmatched = tuple(
        compare.Unmatched(pattern=pattern, reason=reason)
        for pattern, reason in policies.unmatched_patterns(policy, list(names), profiles)
    )
    record = Comparisons(
        status=next(word for word in ("blocked", "fail", "pass") if word in words),
        **provenance.origin([row for label, subject in labelled for row in subject.inputs(label)], []),
        policy=compare.Policy(
            source=policy.source,
            sha256=policy.sha256,
            allow=policy.allow,
            rules=tuple(compare.Rule(pattern=pattern, **asdict(rule)) for pattern, rule in policy.rules),
            operators=operators or None,
            unmatched=unmatched or None,
        ),
        subjects=tuple(
            compare.Subject(
                label=label,
                name=subject.name,
                records=tuple(subject.records),
                model=subject.first.model,
                target=subject.first.target,
            )
            for label, subject in labelled
        ),
        comparisons=comparisons,
        failed=tuple(Failed(name=name, reason=reason) for name, reason in failed.items()),
        unavailable=tuple(
            Unavailable(path=f"/subjects/{number}/{kind}", reason=reason)
            for number, subject in enumerate(subjects)
            for kind, reason in subject.missing.items()
        ),
        host=provenance.this_host(),
    )
    validation.check_record(record.to_json(), "the comparison")
    return record


def subject_label(number: int) -> str:
    """The name of a subject: A, B …, Z, AA …"""
    prefix = subject_label(number // 26 - 1) if number >= 26 else ""
    return prefix + chr(ord("A") + number % 26)


def compare_two(first: Subject, other: Subject, policy: Policy, name: str) -> Comparison:
    """The comparison of `other`, which is called `name`, with the first."""
    shared = [kind for kind in first.records if kind in other.records]
    before = {kind: first.records[kind] for kind in shared}
    after = {kind: other.records[kind] for kind in shared}
    rows = []
    for pair in compared_records.compare_dimensions(before, after):
        status: DimensionStatus = "same"
        if pair.before != pair.after:
            status = "allowed" if pair.name in policy.allow else "blocks"
        reason = pair.never or None if status == "blocks" else None
        sides = {"before": pair.before, "after": pair.after}
        rows.append(compare.Dimension(name=pair.name, status=status, reason=reason, **sides))
    blocked = Comparison(
        before=subject_label(0),
        after=name,
        status="blocked",
        kinds=tuple(shared),
        dimensions=tuple(rows),
        compared=0,
        metrics=(),
        operators=(),
    )
    if any(row.status == "blocks" for row in rows):
        return blocked
    old, new = compared_records.metrics_of(before), compared_records.metrics_of(after)
    changed: list[OperatorChange] = []
    profiles = before.get("profile"), after.get("profile")
    if isinstance(profiles[0], Profile) and isinstance(profiles[1], Profile):
        differing = operator_changes.compare_operators(profiles[0], profiles[1])
        changed = policies.judged_operators(differing, policy)
    allowances = policies.allowances(new, changed, policy)
    found: list[MetricChange] = []
    for row in policies.metric_changes(old, new, policy, allowances):
        detail, operator = "", None
        if row.name.startswith("outputs.") and row.before is not None and row.after is not None:
            detail = output_distance(first, other, row.name)
        if row.status == "regression":  # where the figure is a sum, by the operator that made it grow most
            operator = operator_changes.operator_behind(row.name, changed)
        place = None if operator is None else changed.index(operator)
        found.append(replace(row, operator=place, detail=detail or None))
    statuses = {row.status for row in found} | {part.status for row in changed for part in row.figures}
    return replace(
        blocked,
        status="fail" if "regression" in statuses else "pass",
        compared=len({*old, *new}),
        metrics=tuple(found),
        operators=tuple(changed),
    )


def output_distance(before: Subject, after: Subject, name: str) -> str:
    """How the output behind the figure `name`, ``outputs.N``, differs, in words; nothing where the arrays are not at
    hand."""
    import numpy as np

    index = int(name.rpartition(".")[2])
    old, new = _array(before, index), _array(after, index)
    if old is None or new is None:
        return ""
    if old.shape != new.shape:
        return "the shapes differ"
    with np.errstate(invalid="ignore", over="ignore"):
        wide = [array.astype(np.float64) for array in (old, new)]
        same = (wide[0] == wide[1]) | (np.isnan(wide[0]) & np.isnan(wide[1]))
        gaps = np.abs(wide[1] - wide[0])[~same]
    if not gaps.size:
        return f"all {old.size:,} values are equal"
    finite = gaps[np.isfinite(gaps)]
    most = f", by {finite.max():.6g} at most" if finite.size else ""
    return f"{gaps.size:,} of {old.size:,} values differ{most}"


def _array(subject: Subject, index: int) -> NDArray[Any] | None:
    """An output, if it is the one that the record is about."""
    from ethosu_sdk.base import npz

    record = subject.records.get("run")
    if subject.folder is None or not isinstance(record, Run) or index >= len(record.outputs):
        return None
    row = record.outputs[index]
    try:
        array = npz.read_npz(subject.folder / row.file).get(row.name)
    except SdkError:
        return None
    return array if array is not None and sha256_bytes(array.tobytes()) == row.sha256 else None


def compare_tables(record: Comparisons) -> list[RenderableType]:
    """Each comparison: what differs, figure by figure and operator by operator."""
    parts: list[RenderableType] = []
    for comparison in record.comparisons:
        parts += [*([""] if parts else []), *_comparison(record, comparison)]
    return [*parts, *(f"{escape(row.name)}: {escape(row.reason)}" for row in record.failed)]


def comparison_title(record: Comparisons, comparison: Comparison) -> str:
    """What is compared with what, in a line."""
    names = {row.label: row.name for row in record.subjects}
    before, after = comparison.before, comparison.after
    return f"{before} ({names[before]}) → {after} ({names[after]})"


def _comparison(record: Comparisons, comparison: Comparison) -> Iterator[RenderableType]:
    title, words = comparison_title(record, comparison), comparison_answer.figures_words(comparison)
    yield f"[bold]{escape(title)}[/bold]: {escape(words)}"
    parts = (
        _table(DIMENSION_HEADINGS, dimension_rows(comparison)),
        _table(METRIC_HEADINGS, metric_rows(comparison), has_numbers=True),
        _table(OPERATOR_HEADINGS, operator_rows(comparison), has_numbers=True),
    )
    for table in parts:
        if table.row_count:
            yield from ("", table)


def _worse_operators(comparison: Comparison) -> Iterator[tuple[OperatorChange, FigureChange]]:
    for row in comparison.operators:
        yield from ((row, part) for part in row.figures if part.status == "regression")


def _table(headings: Sequence[str], rows: Iterator[Sequence[str]], *, has_numbers: bool = False) -> Table:
    """A table. With `has_numbers`, what was before and after are figures, and stand on the right."""
    table = Ranked(box=None, pad_edge=False, drop=("where", "source", "unit", "before"))
    for heading in headings:
        is_number = has_numbers and heading in ("before", "after", "change")
        table.add_column(heading, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        coloured = ((cell, _COLOURS.get(cell)) for cell in row)
        table.add_row(*(f"[{name}]{cell}[/{name}]" if name else escape(cell) for cell, name in coloured))
    return table


def dimension_rows(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    """The dimensions in which two runs differ."""
    for row in comparison.dimensions:
        if row.status != "same":
            cells = comparison_answer.without_common(row.before, row.after)
            yield (row.name, *cells, row.status + (f": {row.reason}" if row.reason else ""))


def metric_rows(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    """The figures that differ: what is worse first."""
    order = ("regression", "missing", "improved", "tolerated", "differs")
    for row in sorted(comparison.metrics, key=lambda row: order.index(row.status)):
        sources = " → ".join(filter(None, (row.source_before, row.source)))
        unit = " ".join(filter(None, (row.unit, f"({sources})" if sources else "")))
        where = row.detail or ""
        if row.operator is not None:
            operator = operator_changes.operator_words(comparison.operators[row.operator])
            if row.name.startswith("outputs."):  # its constants may have changed the output
                count = sum(other.constants is not None for other in comparison.operators)
                others = f" at {count} operators, such as" if count > 1 else " at"
                where = f"{where}, other weights or scales{others} {operator}".lstrip(", ")
            else:
                where = operator
        yield row.name, *_change_cells(row), row.status, unit, where


def _change_cells(row: MetricChange | FigureChange) -> tuple[str, str, str]:
    """What was before and after, and the change: in percent, where something was before."""
    if isinstance(row.before, str) and isinstance(row.after, str):
        before, after = comparison_answer.without_common(row.before, row.after)
        return before, after, ""
    change = "" if row.change is None else number_text(row.change, sign="+")
    if row.percent is not None:
        change = f"{row.percent:+,.2f} %"
    return number_text(row.before), number_text(row.after), change


def operator_rows(comparison: Comparison, most: int | None = None) -> Iterator[tuple[str, ...]]:
    """The operators that differ, at `most` so many, a row for each figure."""
    for row in comparison.operators[:most]:
        name = operator_changes.operator_words(row)
        name += f", only {row.only_in}" if row.only_in is not None else ""
        for part in row.figures:
            yield name, part.name, *_change_cells(part), part.status or "", part.source or ""
            name = ""
        if row.constants is not None:
            yield name, "weights, biases, scales", "", "", "", "differ", ""


def number_text(value: float | str | None, sign: str = "") -> str:
    """A figure as text; texts as they are, with short digests; a dash for None."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return comparison_answer.DIGEST.sub(r"\1…", value)
    if isinstance(value, float) and not value.is_integer():
        return f"{value:{sign},.6g}"
    return f"{int(value):{sign},}"


def worse_reasons(comparison: Comparison) -> list[str]:
    """Why a comparison is blocked, or what is worse in it and where, a line each."""
    if comparison.status == "blocked":
        rows = (row for row in dimension_rows(comparison) if not row[3].startswith("allowed"))
        return [
            f"{name}: {before} and {after}{why.removeprefix('blocks')}" for name, before, after, why in rows
        ]
    found = []
    for row in metric_rows(comparison):
        if row[4] == "regression":
            name, before, after, change, _, unit, where = row
            detail = where if name.startswith("outputs.") else where and f"most of it at {where}"
            text = f"{name}: {before} → {after} {unit}".rstrip() + (f", {change}" if change else "")
            found.append(text + (f", {detail}" if detail else ""))
    return found + [_reason(row, part) for row, part in _worse_operators(comparison)]


def _reason(row: OperatorChange, part: FigureChange) -> str:
    source = f" ({part.source})" if part.source is not None else ""
    before, after, change = _change_cells(part)
    values = f"{before} → {after} {part.unit}{source}, {change}"
    tolerated = number_text(part.tolerated or 0)
    return f"{operator_changes.operator_words(row)}: {part.name} {values}, tolerated {tolerated}"
