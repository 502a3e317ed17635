"""What the summaries of records are made of: Markdown as GitHub and GitLab show it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ethosu_sdk.base import plain_text
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.records import compile_words, kinds, profile_words, wording
from ethosu_sdk.records.build import Build
from ethosu_sdk.records.bundle import ReadPolicy, read_raw_record
from ethosu_sdk.records.common import Target
from ethosu_sdk.records.compare import Comparison, Comparisons
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.installation import DoctorReport
from ethosu_sdk.records.printed import Error, Verification
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.sequences import Generate
from ethosu_sdk.reporting.compare import compare_command

_SIGNS = {"pass": "✅", "fail": "❌", "error": "❌", "blocked": "❌", "interrupted": "⏹"}
# What means something to Markdown; a record's texts are names of other people's files and models.
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&$])")
# What GitHub or GitLab make a link, a mention, a reference, an image or HTML of, some of it despite a backslash.
_ACTIVE = re.compile(r"""[@!#&<>$~`]|%[\w"]|://|www\.|mailto:|xmpp:""", re.IGNORECASE)
_BARE_BAR = re.compile(r"(?<!\\)\|")
_BACKTICKS = re.compile(r"`+")


def escaped_markdown(value: object) -> str:
    """`value` as a text that Markdown shows as it is, on one line: as code where that alone is certain."""
    words = plain_text.line(" ".join(str(value).split()))
    if not _ACTIVE.search(words):
        return _SPECIAL.sub(r"\\\1", words)
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(words)), default=0))
    padding = " " if "`" in (words[0], words[-1]) else ""
    return f"{fence}{padding}{words}{padding}{fence}"


def _cell(value: object) -> str:
    # A bar parts cells in code, too, unless a backslash precedes it: that one is not shown.
    return _BARE_BAR.sub(r"\\|", escaped_markdown(value))


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """The lines of a table, an empty one first; none without rows."""
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    if not lines:
        return []
    return ["", f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}", *lines]


def title_line(status: str, what: str, name: str) -> str:
    """The heading of a record that is about `name`, with its status as a sign."""
    return f"### {_SIGNS[status]} {what}: {escaped_markdown(name)}"


def target_text(target: Target | None) -> str:
    """What a record's program was compiled for."""
    return "no NPU" if target is None else target.words


_MOST_OPERATORS = 10


def compare_lines(record: Comparisons) -> list[str]:
    """The lines of the summary."""
    names = " → ".join(row.name for row in record.subjects)
    return [
        title_line(record.status, "compare", names),
        *(line for row in record.comparisons for line in _part(record, row)),
        *markdown_table(("failed", "reason"), ((row.name, row.reason) for row in record.failed)),
    ]


def _part(record: Comparisons, comparison: Comparison) -> Iterator[str]:
    yield ""
    yield escaped_markdown(
        f"{compare_command.comparison_title(record, comparison)}: {compare_command.comparison_summary(comparison)}"
    )
    yield from markdown_table(compare_command.DIMENSION_HEADINGS, compare_command.dimension_rows(comparison))
    yield from markdown_table(compare_command.METRIC_HEADINGS, compare_command.metric_rows(comparison))
    rows = compare_command.operator_rows(comparison, _MOST_OPERATORS)
    yield from markdown_table(compare_command.OPERATOR_HEADINGS, rows)


# Of Vela's estimates, those that a reader of a change looks for.
_ESTIMATES = ("total_cycles", "inference_time", "sram_used", "dram_used", "off_chip_flash_used", "macs")


def compile_lines(record: Compilation) -> list[str]:
    """The lines of the summary."""
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
    return [
        title_line(record.status, "compile", model.file),
        *markdown_table(("", ""), facts),
        *markdown_table(("on the CPU", "calls", "reason", "where"), compile_words.cpu_rows(record)),
        *markdown_table(("NPU", "value", "unit", "source"), _estimates(record)),
        *markdown_table(compile_words.ACCURACY_HEADINGS, compile_words.accuracy_rows(record)),
        *markdown_table(("check", "", "detail"), _checks(record)),
        *markdown_table(("warning",), ((warning,) for warning in record.warnings)),
    ]


def _estimates(record: Compilation) -> Iterator[tuple[str, str, str, str]]:
    for delegate in record.delegates:
        for row in delegate.estimates:
            if row.name in _ESTIMATES and row.value:
                name = f"delegate {delegate.index}: {row.name.replace('_', ' ')}"
                value = f"{row.value:,.6g}" if row.unit == "s" else f"{row.value:,.0f}"
                yield name, value, row.unit, row.source


def _checks(record: Compilation) -> Iterator[tuple[str, str, str]]:
    verdict = record.accuracy.verdict if record.accuracy is not None else None
    for row in verdict.checks if verdict is not None else ():
        yield row.name, row.status, row.detail


_MOST_ROWS = 10


def profile_lines(record: Profile) -> list[str]:
    """The lines of the summary."""
    rows, _ = profile_words.slowest_operations(record, _MOST_ROWS)
    return [
        title_line(record.status, "profile", record.model.file),
        *markdown_table(
            ("", ""), [("target", target_text(record.target)), *profile_words.total_rows(record)]
        ),
        *markdown_table(
            profile_words.OPERATION_HEADINGS, (tuple(profile_words.operation_cells(row)) for row in rows)
        ),
        *markdown_table(("memory", "AXI port", "read", "written", "unit"), _memories(record)),
    ]


def _memories(record: Profile) -> Iterator[tuple[str, str, str, str, str]]:
    for row in record.memories:
        read, written = f"{row.read_bytes:,}", f"{row.write_bytes:,}"
        yield row.memory, str(row.port), read, written, "bytes per inference"


FORMATS = ("markdown",)
_DIGITS = 16  # of a digest


def summary(paths: Sequence[Path], form: str, reading: ReadPolicy, reporter: Reporter) -> None:
    """Write the summary of the records at `paths` to stdout, one after the other.

    Raises UsageError for an unknown format, InputError for a record that is damaged or of a kind without a summary.
    """
    if form not in FORMATS:
        raise UsageError(f"unknown format '{form}'", suggestion(form, FORMATS))
    found = [_read(path, reading) for path in paths]
    reading.warn(reporter)
    if reporter.as_json:
        for record in found:
            reporter.emit(record)
        return
    # Not through the reporter: this is a file's content, and is not wrapped, coloured or left out.
    try:
        text = "\n".join(markdown(record) for record in found)
        text += "".join(
            f"\nloose: {escaped_markdown(f'{path} {why}')}\n" for path, why in reading.differences.items()
        )
    except OverflowError as error:  # JSON has numbers without end, floats do not
        raise InputError("a number in a record is too large to be shown") from error
    sys.stdout.write(text)


def _read(path: Path, reading: ReadPolicy) -> Record:
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


def _run(record: Run) -> list[str]:
    checks = ((row.name, row.status, row.detail) for row in record.verdict.checks)
    return [
        title_line(record.status, "run", record.model.file),
        *markdown_table(("", ""), [("target", target_text(record.target)), *wording.run_rows(record)]),
        *markdown_table(("check", "", "detail"), checks),
        *_memory(record),
        *markdown_table(("unknown", "reason"), ((row.path, row.reason) for row in record.unavailable)),
    ]


def _generate(record: Generate) -> list[str]:
    texts = {} if record.text is None else {"prompt": record.text.prompt, "generated": record.text.generated}
    facts = [
        ("target", target_text(record.target)),
        *wording.generate_rows(record),
        *texts.items(),
        ("generated tokens", " ".join(map(str, record.tokens))),
    ]
    unknown = ((row.path, row.reason) for row in record.unavailable)
    return [
        title_line(record.status, "generate", record.model.file),
        *markdown_table(("", ""), facts),
        *markdown_table(("unknown", "reason"), unknown),
    ]


def _build(record: Build) -> list[str]:
    elf = record.elf
    facts = [
        ("target", target_text(record.target)),
        ("board", f"{record.board}: {record.board_reason}"),
        ("firmware", f"{elf.file}, {elf.bytes:,} bytes, SHA-256 {elf.sha256[:16]}…"),
        ("kernels on the CPU", ", ".join(row.operator for row in record.kernels) or "none"),
    ]
    return [
        title_line(record.status, "build", record.model.file),
        *markdown_table(("", ""), facts),
        *_memory(record),
    ]


def _error(record: Error) -> list[str]:
    error = record.error
    facts = [("message", error.message), ("exit code", error.exit_code)]
    facts += [("hint", error.hint)] if error.hint is not None else []
    return [title_line(record.status, "failed", error.class_name), *markdown_table(("", ""), facts)]


def _memory(record: Run | Build) -> list[str]:
    rows = ((row.name, f"{row.used_bytes:,}", f"{row.size_bytes:,}") for row in record.memory.regions)
    return markdown_table(("memory", "used bytes", "of"), rows)


def _verify(record: Verification) -> list[str]:
    checks = (
        (row.name, row.status, row.recorded[:_DIGITS], (row.found or "")[:_DIGITS]) for row in record.checks
    )
    return [
        title_line(record.status, "verify", record.record.file),
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
        title_line(record.status, "doctor", record.tool.name),
        *markdown_table(("tool", "", "version", "needed for", "fix"), rows),
    ]


_KINDS: dict[str, Callable[[Any], list[str]]] = {
    kinds.COMPILE.schema: compile_lines,
    kinds.RUN.schema: _run,
    kinds.PROFILE.schema: profile_lines,
    kinds.COMPARE.schema: compare_lines,
    kinds.BUILD.schema: _build,
    kinds.GENERATE.schema: _generate,
    kinds.VERIFY.schema: _verify,
    kinds.DOCTOR.schema: _doctor,
    kinds.ERROR.schema: _error,
}
