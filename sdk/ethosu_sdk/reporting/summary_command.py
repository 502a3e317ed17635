"""What the summaries of records are made of: Markdown as GitHub and GitLab show it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ethosu_sdk.base import plain_text
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.records import answers, compile_words, kinds, profile_words, run_facts, wording
from ethosu_sdk.records.build import Build
from ethosu_sdk.records.bundle import ReadPolicy, read_raw_record, records_in
from ethosu_sdk.records.common import Target, Unavailable, VerdictCheck
from ethosu_sdk.records.compare import Comparisons
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.installation import DoctorReport
from ethosu_sdk.records.printed import Error, Verification
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.sequences import Generate
from ethosu_sdk.reporting.compare import compare_command, comparison_answer

_SIGNS = {"pass": "✅", "fail": "❌", "error": "❌", "blocked": "❌", "interrupted": "⏹"}
# What means something to Markdown; a record's texts are names of other people's files and models.
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&$])")
# What GitHub or GitLab make a link, a mention, a reference, an image or HTML of, some of it despite a backslash.
_ACTIVE = re.compile(r"""[@!#&<>$~`]|%[\w"]|://|www\.|mailto:|xmpp:""", re.IGNORECASE)


def summary(paths: Sequence[Path], form: str, reading: ReadPolicy, reporter: Reporter) -> None:
    """Write the summary of the records at `paths` to stdout, one after the other.

    Raises UsageError for an unknown format, InputError for a record that is damaged or of a kind without a summary.
    """
    if form != "markdown":
        raise UsageError(f"unknown format '{form}'", suggestion(form, ("markdown",)))
    given = ((records_in(path, _KINDS) if path.is_dir() else []) or [path] for path in paths)
    found = [read_summarised(path, reading) for row in given for path in row]
    reading.warn(reporter)
    if reporter.as_json:
        for record in found:
            reporter.emit(record)
        return
    # Not through the reporter: this is a file's content, and is not wrapped, coloured or left out.
    try:
        text = "\n".join(markdown(record) for record in found)
        loose = (f"{path} {why}" for path, why in reading.differences.items())
        text += "".join(f"\nloose: {escaped_markdown(words)}\n" for words in loose)
    except OverflowError as error:  # JSON has numbers without end, floats do not
        raise InputError("a number in a record is too large to be shown") from error
    sys.stdout.write(text)


def read_summarised(path: Path, reading: ReadPolicy) -> Record:
    """The record at `path`. InputError when its kind has no summary."""
    record = read_raw_record(path, reading)
    if record["schema"] not in _KINDS:
        raise InputError(
            f"{path} is a {record['schema']}, which has no summary",
            f"there are summaries of {', '.join(_KINDS)}",
        )
    return record


def markdown(record: Record) -> str:
    """A valid record of one of the kinds that have a summary, as GitHub's and GitLab's Markdown."""
    return "\n".join(_KINDS[record["schema"]](kinds.content(record))) + "\n"


def escaped_markdown(value: object) -> str:
    """`value` as a text that Markdown shows as it is, on one line: as code where that alone is certain."""
    words = plain_text.line(" ".join(str(value).split()))
    if not _ACTIVE.search(words):
        return _SPECIAL.sub(r"\\\1", words)
    fence = "`" * (1 + max(map(len, re.findall(r"`+", words)), default=0))
    padding = " " if "`" in (words[0], words[-1]) else ""
    return f"{fence}{padding}{words}{padding}{fence}"


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """The lines of a table, an empty one first; none without rows."""
    # A bar parts cells in code, too, unless a backslash precedes it: that one is not shown.
    cells = ([re.sub(r"(?<!\\)\|", r"\\|", escaped_markdown(value)) for value in row] for row in rows)
    lines = ["| " + " | ".join(row) + " |" for row in cells]
    if not lines:
        return []
    return ["", f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}", *lines]


def _opening(status: str, what: str, name: str, facts: Iterable[tuple[str, object]] = ()) -> list[str]:
    """The heading of a record that is about `name`, with its status as a sign, and a table of facts."""
    return [f"### {_SIGNS[status]} {what}: {escaped_markdown(name)}", *markdown_table(("", ""), facts)]


def _target(target: Target | None) -> tuple[str, str]:
    return "target", "no NPU" if target is None else target.words


def _compare(record: Comparisons) -> list[str]:
    lines = _opening(record.status, "compare", " → ".join(row.name for row in record.subjects))
    for row in record.comparisons:
        title = compare_command.comparison_title(record, row)
        lines += ["", escaped_markdown(f"{title}: {comparison_answer.figures_words(row)}")]
        lines += markdown_table(compare_command.DIMENSION_HEADINGS, compare_command.dimension_rows(row))
        lines += markdown_table(compare_command.METRIC_HEADINGS, compare_command.metric_rows(row))
        lines += markdown_table(compare_command.OPERATOR_HEADINGS, compare_command.operator_rows(row, 10))
    return lines + markdown_table(("failed", "reason"), ((row.name, row.reason) for row in record.failed))


def _compile(record: Compilation) -> list[str]:
    model = record.model
    facts = [
        ("source", record.source),
        ("target", record.target_words),
        ("program", f"{model.file}, {model.bytes:,} bytes, SHA-256 {model.sha256[:16]}…"),
        ("quantised", compile_words.quantised_words(record)),
        ("inputs and outputs", record.options.io),
        ("delegates", len(record.delegates)),
        ("on the CPU", compile_words.cpu_words(record)),
    ]
    # Of Vela's estimates, those that a reader of a change looks for.
    shown = ("total_cycles", "inference_time", "sram_used", "dram_used", "off_chip_flash_used", "macs")
    estimates = (
        (
            f"delegate {delegate.index}: {row.name.replace('_', ' ')}",
            f"{row.value:,.6g}" if row.unit == "s" else f"{row.value:,.0f}",
            row.unit,
            row.source,
        )
        for delegate in record.delegates
        for row in delegate.estimates
        if row.name in shown and row.value
    )
    verdict = record.accuracy.verdict if record.accuracy is not None else None
    return [
        *_opening(record.status, "compile", model.file, facts),
        *markdown_table(("on the CPU", "calls", "reason", "where"), compile_words.cpu_rows(record)),
        *markdown_table(("NPU", "value", "unit", "source"), estimates),
        *markdown_table(compile_words.ACCURACY_HEADINGS, compile_words.accuracy_rows(record)),
        *_checks(verdict.checks if verdict is not None else ()),
        *markdown_table(("warning",), ((warning,) for warning in record.warnings)),
    ]


def _checks(rows: Iterable[VerdictCheck]) -> list[str]:
    return markdown_table(("check", "", "detail"), ((row.name, row.status, row.detail) for row in rows))


def _unknown(rows: Iterable[Unavailable]) -> list[str]:
    return markdown_table(("unknown", "reason"), ((row.path, row.reason) for row in rows))


def _profile(record: Profile) -> list[str]:
    slowest = (
        (row.name, row.cost, wording.percent_text(row.share), row.on, row.places[0])
        for row in answers.slowest_rows(record, 10)
    )
    unit = "bytes per inference"
    memories = (
        (row.memory, row.port, f"{row.read_bytes:,}", f"{row.write_bytes:,}", unit) for row in record.memories
    )
    facts = [_target(record.target), *profile_words.total_rows(record)]
    return [
        *_opening(record.status, "profile", record.model.file, facts),
        *markdown_table(("slowest", "", "share", "on", "where"), slowest),
        *markdown_table(("memory", "AXI port", "read", "written", "unit"), memories),
    ]


def _run(record: Run) -> list[str]:
    facts = [_target(record.target), *wording.run_rows(record)]
    return [
        *_opening(record.status, "run", record.model.file, facts),
        *_checks(record.verdict.checks),
        *_memory(record),
        *_unknown(record.unavailable),
    ]


def _generate(record: Generate) -> list[str]:
    texts = {} if record.text is None else {"prompt": record.text.prompt, "generated": record.text.generated}
    facts = [
        _target(record.target),
        *wording.generate_rows(record),
        *texts.items(),
        ("generated tokens", " ".join(map(str, record.tokens))),
    ]
    return [*_opening(record.status, "generate", record.model.file, facts), *_unknown(record.unavailable)]


def _build(record: Build) -> list[str]:
    elf = record.elf
    facts = [
        _target(record.target),
        ("board", f"{record.board}: {record.board_reason}"),
        ("firmware", f"{elf.file}, {elf.bytes:,} bytes, SHA-256 {elf.sha256[:16]}…"),
        ("kernels on the CPU", ", ".join(row.operator for row in record.kernels) or "none"),
    ]
    return [*_opening(record.status, "build", record.model.file, facts), *_memory(record)]


def _error(record: Error) -> list[str]:
    error = record.error
    facts: list[tuple[str, object]] = [("message", error.message), ("exit code", error.exit_code)]
    facts += [("hint", error.hint)] if error.hint is not None else []
    return _opening(record.status, "failed", error.class_name, facts)


def _memory(record: Run | Build) -> list[str]:
    uses = record.memory.uses if isinstance(record, Run) else None
    totals = record.memory.regions if uses is None else run_facts.memory_totals(uses)
    rows = (
        (row.name, f"{row.used_bytes:,}", "not public" if row.size_bytes is None else f"{row.size_bytes:,}")
        for row in totals
    )
    return markdown_table(("memory", "used bytes", "of"), rows)


def _verify(record: Verification) -> list[str]:
    checks = ((row.name, row.status, row.recorded[:16], (row.found or "")[:16]) for row in record.checks)
    return [
        *_opening(record.status, "verify", record.record.file),
        *markdown_table(("", "", "recorded", "here"), checks),
        *markdown_table(("why",), ((cause,) for cause in record.causes)),
    ]


def _doctor(record: DoctorReport) -> list[str]:
    rows = (
        (row.name, row.status, row.version or "", row.needed_for, row.fix or "")
        for row in record.checks
        if row.required or row.status == "found"
    )
    return [
        *_opening(record.status, "doctor", record.tool.name),
        *markdown_table(("tool", "", "version", "needed for", "fix"), rows),
    ]


_KINDS: dict[str, Callable[[Any], list[str]]] = {
    kinds.COMPILE.schema: _compile,
    kinds.RUN.schema: _run,
    kinds.PROFILE.schema: _profile,
    kinds.COMPARE.schema: _compare,
    kinds.BUILD.schema: _build,
    kinds.GENERATE.schema: _generate,
    kinds.VERIFY.schema: _verify,
    kinds.DOCTOR.schema: _doctor,
    kinds.ERROR.schema: _error,
}
