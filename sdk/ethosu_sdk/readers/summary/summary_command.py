"""`ethosu-sdk summary`: a record as Markdown, for the summary of a CI job or a comment on a change."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.readers.summary import (
    compare as summary_compare,
    compile as summary_compile,
    profile as summary_profile,
)
from ethosu_sdk.readers.summary.markdown import escaped, table, target_text, title
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.records.build import Build
from ethosu_sdk.records.printed.doctor import DoctorReport
from ethosu_sdk.records.printed.error import Error
from ethosu_sdk.records.printed.verify import Verification
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.sequences.generate import Generate
from ethosu_sdk.results.reading import Reading, read
from ethosu_sdk.tables import generate_rows, times
from ethosu_sdk.targets import suggestion

FORMATS = ("markdown",)
_DIGITS = 16  # of a digest


def summary(paths: Sequence[Path], form: str, reading: Reading, reporter: Reporter) -> None:
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
        text += "".join(f"\nloose: {escaped(f'{path} {why}')}\n" for path, why in reading.differences.items())
    except OverflowError as error:  # JSON has numbers without end, floats do not
        raise InputError("a number in a record is too large to be shown") from error
    sys.stdout.write(text)


def _read(path: Path, reading: Reading) -> Record:
    record = read(path, reading)
    if record["schema"] not in _KINDS:
        raise InputError(
            f"{path} is a {record['schema']}, which has no summary",
            f"there are summaries of {', '.join(_KINDS)}",
        )
    return record


def markdown(record: Record) -> str:
    """A valid record of one of the kinds that have a summary, as GitHub's and GitLab's Markdown."""
    return "\n".join(_KINDS[record["schema"]](kinds.content(record))) + "\n"


def _runtimes(record: Run) -> list[tuple[str, str]]:
    """What interpreted the program, and what else did."""
    opinion = record.second_opinion
    rows = {"runtime": record.runtime, "second opinion": opinion.runtime if opinion is not None else None}
    return [(name, f"{row.name} {row.version}") for name, row in rows.items() if row is not None]


def _run(record: Run) -> list[str]:
    simulator = record.simulator
    facts = [
        ("target", target_text(record.target)),
        ("ran on", f"{record.board}, {simulator.name} {simulator.version}"),
        *_runtimes(record),
        ("why there", record.board_reason),
        ("fidelity", simulator.fidelity),
        ("inferences", record.inferences),
        *times.rows(record),
    ]
    facts += [
        (row.name, f"{row.dtype} {list(row.shape)}, SHA-256 {row.sha256[:16]}…") for row in record.outputs
    ]
    checks = ((row.name, row.status, row.detail) for row in record.verdict.checks)
    return [
        title(record.status, "run", record.model.file),
        *table(("", ""), facts),
        *table(("check", "", "detail"), checks),
        *table(("NPU", "value", "unit", "source"), _npu(record)),
        *_memory(record),
        *table(("unknown", "reason"), ((row.path, row.reason) for row in record.unavailable)),
    ]


def _npu(record: Run) -> Iterable[Sequence[object]]:
    npu = record.npu
    if npu is None:
        return
    if npu.cycles is not None:
        caveat = "" if record.priced is None else record.priced.caveat
        source = f"{npu.cycles.source}, {caveat}" if caveat else npu.cycles.source
        yield "cycles", f"{npu.cycles.value:,}", npu.cycles.unit, source
    for row in npu.counters:
        yield row.event, f"{row.value:,}", row.unit, row.source


def _generate(record: Generate) -> list[str]:
    texts = {} if record.text is None else {"prompt": record.text.prompt, "generated": record.text.generated}
    facts = [
        ("target", target_text(record.target)),
        *generate_rows.rows(record),
        *texts.items(),
        ("generated tokens", " ".join(map(str, record.tokens))),
    ]
    unknown = ((row.path, row.reason) for row in record.unavailable)
    return [
        title(record.status, "generate", record.model.file),
        *table(("", ""), facts),
        *table(("unknown", "reason"), unknown),
    ]


def _build(record: Build) -> list[str]:
    elf = record.elf
    facts = [
        ("target", target_text(record.target)),
        ("board", f"{record.board}: {record.board_reason}"),
        ("firmware", f"{elf.file}, {elf.bytes:,} bytes, SHA-256 {elf.sha256[:16]}…"),
        ("kernels on the CPU", ", ".join(row.operator for row in record.kernels) or "none"),
    ]
    return [title(record.status, "build", record.model.file), *table(("", ""), facts), *_memory(record)]


def _error(record: Error) -> list[str]:
    error = record.error
    facts = [("message", error.message), ("exit code", error.exit_code)]
    facts += [("hint", error.hint)] if error.hint is not None else []
    return [title(record.status, "failed", error.class_name), *table(("", ""), facts)]


def _memory(record: Run | Build) -> list[str]:
    rows = ((row.name, f"{row.used_bytes:,}", f"{row.size_bytes:,}") for row in record.memory.regions)
    return table(("memory", "used bytes", "of"), rows)


def _verify(record: Verification) -> list[str]:
    checks = (
        (row.name, row.status, row.recorded[:_DIGITS], (row.found or "")[:_DIGITS]) for row in record.checks
    )
    return [
        title(record.status, "verify", record.record.file),
        *table(("", "", "recorded", "here"), checks),
        *table(("why",), ((cause,) for cause in record.causes)),
    ]


def _doctor(record: DoctorReport) -> list[str]:
    rows = (
        (row.name, row.status, row.version or "", row.needed_for, row.fix or "")
        for row in record.checks
        if row.required or row.status == "found"
    )
    return [
        title(record.status, "doctor", record.tool.name),
        *table(("tool", "", "version", "needed for", "fix"), rows),
    ]


_KINDS: dict[str, Callable[[Any], list[str]]] = {
    kinds.COMPILE.schema: summary_compile.lines,
    kinds.RUN.schema: _run,
    kinds.PROFILE.schema: summary_profile.lines,
    kinds.COMPARE.schema: summary_compare.lines,
    kinds.BUILD.schema: _build,
    kinds.GENERATE.schema: _generate,
    kinds.VERIFY.schema: _verify,
    kinds.DOCTOR.schema: _doctor,
    kinds.ERROR.schema: _error,
}
