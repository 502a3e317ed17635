"""SARIF 2.1.0: what somebody should look at, with the line of the model it comes from, as code hosts show it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from ethosu_sdk import __version__, plain_text, redaction
from ethosu_sdk.readers.convert import numbers
from ethosu_sdk.readers.convert.inputs import Inputs
from ethosu_sdk.records import kinds
from ethosu_sdk.records.build import Build
from ethosu_sdk.records.common import SourceLine
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.debug import Debug, Step
from ethosu_sdk.records.printed.inspect import Inspection
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run

KINDS = (
    kinds.RUN.schema,
    kinds.PROFILE.schema,
    kinds.BUILD.schema,
    kinds.COMPILE.schema,
    kinds.DEBUG.schema,
    kinds.INSPECT.schema,
)
LEFT_OUT = (
    "the folder of source lines: records name files below the model's folder or that of installed packages, without "
    "saying which",
    "columns of source lines, and lines of what torch recorded none for",
)
_SCHEMA_URI = "https://json.schemastore.org/sarif-2.1.0.json"
_ERROR, _WARNING, _NOTE = "error", "warning", "note"


@dataclass(frozen=True)
class _Rule:
    """What a kind of result means, and how it is shown where its own level does not say."""

    id: str
    text: str
    level: str


_VERDICT = _Rule("verdict", "A check of the run's verdict failed.", _ERROR)
_OPERATOR = _Rule("cpu-operator", "An operator stays on the CPU instead of the NPU.", _WARNING)
_BOUNDARY = _Rule("cpu-boundary", "A conversion between float and quantised values runs on the CPU.", _NOTE)
_HAZARD = _Rule("hazard", "The command stream does something too early for hardware.", _WARNING)
_FIRMWARE = _Rule(
    "run-note", "The run, its memory or its program is not quite as the settings ask for.", _WARNING
)
_BUILT = _Rule("memory-fit", "The firmware does not do what the memory mode says.", _WARNING)
_BREAK = _Rule(
    "accuracy-break", "The first layer that is further from the model than the threshold.", _WARNING
)
_DROP = _Rule("accuracy-drop", "The layer in which the accuracy falls most.", _NOTE)
_ADVICE = _Rule("accuracy-advice", "A layer whose quantisation alone costs much accuracy.", _NOTE)
_RULES = (_VERDICT, _OPERATOR, _BOUNDARY, _HAZARD, _FIRMWARE, _BUILT, _BREAK, _DROP, _ADVICE)


@dataclass(frozen=True)
class _Finding:
    rule: _Rule
    message: str
    source: SourceLine | None = None


def convert(inputs: Inputs) -> bytes:
    """The findings of `inputs` as a log with one run."""
    found = [row for kind, record in inputs.records.items() for row in _READERS[kind](record, inputs)]
    run = {
        "tool": {
            "driver": {
                "name": "ethosu-sdk",
                "version": __version__,
                "rules": [
                    {
                        "id": rule.id,
                        "shortDescription": {"text": rule.text},
                        "defaultConfiguration": {"level": rule.level},
                    }
                    for rule in _RULES
                ],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(row) for row in found],
        "properties": {
            "records": {kind: path.name for kind, path in inputs.files.items()},
            "leftOut": list(LEFT_OUT),
        },
    }
    log = {"$schema": _SCHEMA_URI, "version": "2.1.0", "runs": [run]}
    return (json.dumps(redaction.value(log), indent=2, allow_nan=False) + "\n").encode()


def _result(row: _Finding) -> dict[str, Any]:
    found = {
        "ruleId": row.rule.id,
        "ruleIndex": _RULES.index(row.rule),
        "level": row.rule.level,
        "message": {"text": row.message},
    }
    location = _location(row.source) if row.source is not None else {}
    return found | ({"locations": [location]} if location else {})


def _location(source: SourceLine) -> dict[str, Any]:
    """Line and module of `source`, as far as they are known."""
    found: dict[str, Any] = {}
    if source.file is not None:
        found["physicalLocation"] = {
            "artifactLocation": {"uri": quote(plain_text.line(source.file))},
            "region": {"startLine": source.line},
        }
    if source.module:
        found["logicalLocations"] = [{"fullyQualifiedName": source.module, "kind": "member"}]
    return found


def _compiled(record: Compilation, _: Inputs) -> Iterator[_Finding]:
    for row in record.cpu_operators:
        for site in row.sites:
            message = f"{row.name} ({site.calls} calls in an inference) is on the CPU: {site.reason}"
            yield _Finding(_BOUNDARY if row.boundary else _OPERATOR, message, site.source)
    for text in record.warnings:
        yield _Finding(_FIRMWARE, text)


def _profiled(record: Profile, inputs: Inputs) -> Iterator[_Finding]:
    """Operators on the CPU, unless the compilation's record is there, which knows more of them."""
    if kinds.COMPILE.schema in inputs.records:
        return
    for row in record.operations:
        if row.runs_on == "CPU":
            reason = row.reason or "why is not known without the record of the compilation"
            message = f"{row.name} ({row.calls} calls in an inference) is on the CPU: {reason}"
            yield _Finding(_OPERATOR, message, row.source)


def _ran(record: Run, _: Inputs) -> Iterator[_Finding]:
    for row in record.verdict.checks:
        if row.status == "fail":
            yield _Finding(_VERDICT, f"{row.name}: {row.detail}")
    for text in record.notes or ():
        yield _Finding(_FIRMWARE, text)


def _built(record: Build, _: Inputs) -> Iterator[_Finding]:
    for text in record.notes:
        yield _Finding(_BUILT, text)


def _inspected(record: Inspection, _: Inputs) -> Iterator[_Finding]:
    """Hazards, each by itself, where `inspect --hazards` looked for them."""
    for method in record.methods:
        for delegate in method.delegates:
            for text in (delegate.vela.hazards or ()) if delegate.vela is not None else ():
                yield _Finding(_HAZARD, f"delegate {delegate.index} of {method.name}: {text}")


def _debugged(record: Debug, _: Inputs) -> Iterator[_Finding]:
    layers = record.layers
    for part in record.comparisons:
        for step, rule in ((part.first_break, _BREAK), (part.largest_drop, _DROP)):
            if step is not None:
                message = f"{step.tensor}, against the {part.against} model: {_sqnr(step)}"
                yield _Finding(rule, message, layers[step.layer].source)
    for row in record.advice:
        layer = layers[row.layer]
        remedy = "give it 16 bits" if row.remedy == "16 bits" else "calibrate it with other samples"
        sqnr = numbers.text(row.sqnr_db, "g")
        message = f"{layer.tensor}: its quantisation alone leaves an SQNR of {sqnr} dB: {remedy}"
        yield _Finding(_ADVICE, message, layer.source)


def _sqnr(step: Step) -> str:
    ratios = (
        (step.input_db, "SQNR of its inputs"),
        (step.output_db, "its own SQNR"),
        (step.drop_db, "drop"),
    )
    parts = [f"{text} {numbers.text(value, 'g')} dB" for value, text in ratios if value is not None]
    return ", ".join(parts) or "nothing of the signal is left"


_READERS: dict[str, Callable[[Any, Inputs], Iterator[_Finding]]] = {
    kinds.RUN.schema: _ran,
    kinds.PROFILE.schema: _profiled,
    kinds.BUILD.schema: _built,
    kinds.COMPILE.schema: _compiled,
    kinds.DEBUG.schema: _debugged,
    kinds.INSPECT.schema: _inspected,
}
