"""`ethosu-sdk summary`: a record as Markdown, for the summary of a CI job or a comment on a change."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ethosu_sdk import plain_text, records, schema
from ethosu_sdk.commands.reporter import Reporter
from ethosu_sdk.errors import InputError, UsageError
from ethosu_sdk.records import Record
from ethosu_sdk.targets import suggestion

FORMATS = ("markdown",)

_SIGNS = {"pass": "✅", "fail": "❌", "error": "❌"}
# What means something to Markdown; a record's texts are names of other people's files and models.
_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~&$])")
# What GitHub or GitLab make a link, a mention, a reference, an image or HTML of, some of it despite a backslash.
_ACTIVE = re.compile(r"""[@!#&<>$~`]|%[\w"]|://|www\.|mailto:|xmpp:""", re.IGNORECASE)
_BARE_BAR = re.compile(r"(?<!\\)\|")
_BACKTICKS = re.compile(r"`+")


def summary(paths: Sequence[Path], form: str, reporter: Reporter) -> None:
    """Write the summary of the records at `paths` to stdout, one after the other.

    Raises UsageError for an unknown format, InputError for a record that is damaged or of a kind without a summary.
    """
    if form not in FORMATS:
        raise UsageError(f"unknown format '{form}'", suggestion(form, FORMATS))
    found = [_read(path) for path in paths]
    if reporter.as_json:
        for record in found:
            reporter.emit(record)
        return
    # Not through the reporter: this is a file's content, and is not wrapped, coloured or left out.
    sys.stdout.write("\n".join(markdown(record) for record in found))


def _read(path: Path) -> Record:
    record = records.read_json(path)
    schema.check(record, str(path))
    if record["schema"] not in _KINDS:
        raise InputError(f"{path} is a {record['schema']}", f"there are summaries of {', '.join(_KINDS)}")
    return record


def markdown(record: Record) -> str:
    """A valid record of one of the kinds that have a summary, as GitHub's and GitLab's Markdown."""
    return "\n".join(_KINDS[record["schema"]](record)) + "\n"


def text(value: object) -> str:
    """`value` as a text that Markdown shows as it is, on one line: as code where that alone is certain."""
    words = plain_text.line(" ".join(str(value).split()))
    if not _ACTIVE.search(words):
        return _SPECIAL.sub(r"\\\1", words)
    fence = "`" * (1 + max(map(len, _BACKTICKS.findall(words)), default=0))
    padding = " " if "`" in (words[0], words[-1]) else ""
    return f"{fence}{padding}{words}{padding}{fence}"


def _cell(value: object) -> str:
    # A bar parts cells in code, too, unless a backslash precedes it: that one is not shown.
    return _BARE_BAR.sub(r"\\|", text(value))


def _table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    if not lines:
        return []
    return ["", f"| {' | '.join(headings)} |", f"|{'---|' * len(headings)}", *lines]


def _run(record: Record) -> list[str]:
    simulator = record["simulator"]
    target = record.get("target")
    facts = [
        (
            "target",
            f"{target['npu']}-{target['macs']}, {target['system_config']}, {target['memory_mode']}"
            if target
            else "no NPU",
        ),
        ("ran on", f"{record['board']}, {simulator['name']} {simulator['version']}"),
        ("fidelity", simulator["fidelity"]),
        ("inferences", record["inferences"]),
    ]
    facts += [
        (row["name"], f"{row['dtype']} {row['shape']}, SHA-256 {row['sha256'][:16]}…")
        for row in record["outputs"]
    ]
    checks = ((row["name"], row["status"], row["detail"]) for row in record["verdict"]["checks"])
    return [
        _title(record, "run", record["model"]["file"]),
        *_table(("", ""), facts),
        *_table(("check", "", "detail"), checks),
        *_table(("NPU", "value", "unit", "source"), _npu(record.get("npu", {}))),
        *_memory(record),
        *_table(("not known", "reason"), ((row["path"], row["reason"]) for row in record["unavailable"])),
    ]


def _npu(npu: Record) -> Iterable[Sequence[object]]:
    if "cycles" in npu:
        yield "cycles", f"{npu['cycles']['value']:,}", npu["cycles"]["unit"], npu["cycles"]["source"]
    for row in npu.get("counters", ()):
        yield row["event"], f"{row['value']:,}", row["unit"], row["source"]


def _build(record: Record) -> list[str]:
    elf = record["elf"]
    facts = [
        ("board", record["board"]),
        ("firmware", f"{elf['file']}, {elf['bytes']:,} bytes, SHA-256 {elf['sha256'][:16]}…"),
        ("kernels on the CPU", ", ".join(row["operator"] for row in record["kernels"]) or "none"),
    ]
    return [_title(record, "build", record["model"]["file"]), *_table(("", ""), facts), *_memory(record)]


def _error(record: Record) -> list[str]:
    error = record["error"]
    facts = [("message", error["message"]), ("exit code", error["exit_code"])]
    facts += [("hint", error["hint"])] if "hint" in error else []
    return [_title(record, "failed", error["class"]), *_table(("", ""), facts)]


def _title(record: Record, what: str, name: str) -> str:
    return f"### {_SIGNS[record['status']]} {what}: {text(name)}"


def _memory(record: Record) -> list[str]:
    rows = (
        (row["name"], f"{row['used_bytes']:,}", f"{row['size_bytes']:,}")
        for row in record["memory"]["regions"]
    )
    return _table(("memory", "used bytes", "of"), rows)


_KINDS: dict[str, Callable[[Record], list[str]]] = {
    "run-result/1": _run,
    "build-result/1": _build,
    "error/1": _error,
}
