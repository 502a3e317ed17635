"""`ethosu-sdk compare`: two or more runs, figure by figure, by a policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ethosu_sdk import schema
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.errors import InputError, UsageError, VerdictError
from ethosu_sdk.files import json_text, locks, writing
from ethosu_sdk.readers.compare import compare_record, compare_tables, subjects
from ethosu_sdk.readers.compare.options import CompareOptions
from ethosu_sdk.readers.compare.policy import Policy, load
from ethosu_sdk.readers.compare.subjects import Subject
from ethosu_sdk.records import kinds
from ethosu_sdk.records.compare import Comparisons
from ethosu_sdk.records.sweep.comparison import SweepComparison
from ethosu_sdk.results import bundle, locations
from ethosu_sdk.results.run_facts import MadeProfile

_FOLDER = "compare"  # below the folder of all results
_NONE: Mapping[str, str] = {}
Profiles = Mapping[Path, MadeProfile]


def read_policy(options: CompareOptions) -> Policy:
    """The policy that `options` name. InputError or UsageError for one that is none."""
    return load(options.policy).allowing(options.allow)


def make(
    paths: Sequence[Path], profiles: Profiles, options: CompareOptions, failed: Mapping[str, str] = _NONE
) -> Comparisons:
    """The record of a comparison; nothing is written. `profiles` are of the folders of runs that have none.

    InputError for what cannot be read.
    """
    if len(paths) + len(failed) < 2:
        raise UsageError("one run cannot be compared", "give two or more: ethosu-sdk compare BEFORE AFTER")
    policy = read_policy(options)
    found = [subjects.read(path, profiles.get(path), loose=options.loose) for path in paths]
    for other in found[1:]:
        _check_kinds(found[0], other)
    record = compare_record.make(found, policy, failed)
    schema.check(record.to_json(), "the comparison")
    return record


def _check_kinds(first: Subject, other: Subject) -> None:
    """InputError when two have nothing in common, or one folder alone has a run: what it compiled says nothing of
    that."""
    if not set(first.records) & set(other.records):
        raise InputError(
            f"{first.path} and {other.path} have no record of the same kind: {', '.join(first.records)} and "
            f"{', '.join(other.records)}",
            "give two folders of runs, or two records of the same kind",
        )
    runs = [subject.path for subject in (first, other) if "run" in subject.records]
    if len(runs) == 1 and first.folder is not None and other.folder is not None:
        lacking = other if runs[0] == first.path else first
        raise InputError(
            f"{lacking.path} holds no run, but {runs[0]} does", "run it; or give two records of the same kind"
        )


def compare(
    paths: Sequence[Path],
    profiles: Profiles,
    options: CompareOptions,
    out_dir: Path | None,
    reporter: Reporter,
    failed: Mapping[str, str] = _NONE,
) -> Comparisons:
    """Compare the runs at `paths` with the first and write the record. `failed` are those that could not be run.

    Raises InputError, after it was written, when two cannot be compared, VerdictError when one is worse or failed.
    """
    record = make(paths, profiles, options, failed)
    _finish(record, options, folder_of(out_dir), reporter)
    return record


def folder_of(chosen: Path | None) -> Path:
    """Where a comparison goes: the folder that was chosen, or the usual one."""
    return chosen or Path(locations.BUILD_FOLDER) / _FOLDER


def _finish(record: Comparisons, options: CompareOptions, folder: Path, reporter: Reporter) -> None:
    """Write and show `record`; raise what it says."""
    write(record, kinds.COMPARE.file, "compare", folder)
    reporter.show(*compare_tables.tables(record, options.rows))
    for row in record.provenance.inputs:
        if row.loose:
            reporter.warn(escape(f"loose: {row.file} ({row.role}) is not what its manifest lists"))
    for unmatched in record.policy.unmatched or ():
        reporter.warn(escape(f"the policy's '{unmatched.pattern}' has no effect: {unmatched.reason}"))
    for gap in record.unavailable:
        reporter.warn(escape(f"no rows of operators ({gap.path}): {gap.reason}"))
    reporter.emit(record.to_json())
    conclude(record)


def write(record: Comparisons | SweepComparison, name: str, command: str, folder: Path) -> None:
    """Publish `record` in `folder` as what `command` made."""
    writing.make_directory(folder)
    with locks.locked(folder), bundle.published(folder, command) as add:
        json_text.write_json(folder / name, record.to_json())
        add(name)


def conclude(record: Comparisons) -> None:
    """InputError when something in `record` could not be compared, VerdictError when something is worse."""
    blocked = [row for row in record.comparisons if row.status == compare_record.BLOCKED]
    worse = [row for row in record.comparisons if row.status == compare_record.FAIL]
    lines = [
        f"{row.before} → {row.after}, {reason}"
        for row in (blocked or worse)
        for reason in compare_tables.reasons(row)
    ]
    if blocked:
        raise cannot_be_compared("the runs", "run", lines)
    lines += [f"{row.name} could not be run: {row.reason}" for row in record.failed]
    if lines:
        raise worse_than_before(lines)


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
