"""SARIF 2.1.0: what somebody should look at, with the line of the model it comes from, as code hosts show it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from ethosu_sdk import __version__
from ethosu_sdk.base import plain_text
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.records import common, kinds
from ethosu_sdk.records.build import Build
from ethosu_sdk.records.check import Check
from ethosu_sdk.records.common import SourceLine
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.debug import Debug
from ethosu_sdk.records.inspection import Inspection
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.reporting.convert.conversion_inputs import ConversionInputs

KINDS = (
    kinds.RUN.schema,
    kinds.PROFILE.schema,
    kinds.BUILD.schema,
    kinds.COMPILE.schema,
    kinds.DEBUG.schema,
    kinds.INSPECT.schema,
    kinds.CHECK.schema,
)
LEFT_OUT = (
    "columns of source lines",
    "lines in installed packages, and of what torch recorded none for: the result is at the model's file",
)
_OF_A_PROGRAM = (Run, Profile, Build, Debug)
# Kind of result → what it means, and its level.
_RULES = {
    "verdict": ("A check of the run's verdict failed.", "error"),
    "cpu-operator": ("An operator stays on the CPU instead of the NPU.", "warning"),
    "cpu-boundary": ("A conversion between float and quantised values runs on the CPU.", "note"),
    "hazard": ("The command stream does something too early for hardware.", "warning"),
    "run-note": ("The run, its memory or its program is not quite as the settings ask for.", "warning"),
    "memory-fit": ("The firmware does not do what the memory mode says.", "warning"),
    "accuracy-break": ("The first layer that is further from the model than the threshold.", "warning"),
    "accuracy-drop": ("The layer in which the accuracy falls most.", "note"),
    "pre-flight": ("The program would fail on the board that was named.", "error"),
    "accuracy-advice": ("A layer whose quantisation alone costs much accuracy.", "note"),
}


class _Finding(NamedTuple):
    rule: str
    message: str
    source: SourceLine | None = None


def to_sarif(inputs: ConversionInputs) -> bytes:
    """The findings of `inputs` as a log with one run."""
    found = [row for kind, record in inputs.records.items() for row in _READERS[kind](record, inputs)]
    run = {
        "tool": {
            "driver": {
                "name": "ethosu-sdk",
                "version": __version__,
                "rules": [
                    {
                        "id": name,
                        "shortDescription": {"text": text},
                        "fullDescription": {"text": text},
                        "help": {"text": f"{text} docs/guide/formats.md lists all rules."},
                        "defaultConfiguration": {"level": level},
                    }
                    for name, (text, level) in _RULES.items()
                ],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [_result(row, _model_file(inputs)) for row in found],
        "properties": {
            "records": {kind: path.name for kind, path in inputs.files.items()},
            "leftOut": list(LEFT_OUT),
        },
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return (json.dumps(log, indent=2, allow_nan=False) + "\n").encode()


def _model_file(inputs: ConversionInputs) -> str:
    """The user's file: the one that was compiled, else the program."""
    compiled = inputs.records.get(kinds.COMPILE.schema)
    if isinstance(compiled, Compilation):
        name = re.sub(r"(?<=\.py):\w+$", "", compiled.source)  # of MODEL.py:NAME
        return name if name.endswith((".py", ".pt2")) else compiled.model.file
    model = next((row.model.file for row in inputs.records.values() if isinstance(row, _OF_A_PROGRAM)), None)
    return model or inputs.path.name


def _result(row: _Finding, model_file: str) -> dict[str, Any]:
    source = row.source or SourceLine(module="")
    outside = f", at {common.source_function(source)}" if source.package is not None else ""
    return {
        "ruleId": row.rule,
        "ruleIndex": list(_RULES).index(row.rule),
        "level": _RULES[row.rule][1],
        "message": {"text": row.message + outside},
        "locations": [_location(source, model_file)],
    }


def _location(source: SourceLine, model_file: str) -> dict[str, Any]:
    """Where a result is shown: the user's line, or the model's file. GitHub refuses a log with a result that has no
    ``physicalLocation.artifactLocation.uri`` ("expected at least one location")."""
    path, line = model_file, 1
    if source.file is not None and source.package is None:
        path, line = os.path.join(os.path.dirname(model_file), source.file), source.line or 1
    place = {"artifactLocation": {"uri": _uri(path)}, "region": {"startLine": line}}
    found: dict[str, Any] = {"physicalLocation": place}
    if source.module or source.function:
        names = {"fullyQualifiedName": source.module or source.function, "kind": "member"}
        found["logicalLocations"] = [names]
    return found


def _uri(path: str) -> str:
    """Relative to the folder that the command runs in, which GitHub takes for the repository's root; absolute for a
    file outside of it."""
    here = Path.cwd()
    whole = Path(os.path.normpath(here / plain_text.line(path)))
    return quote(whole.relative_to(here).as_posix()) if whole.is_relative_to(here) else whole.as_uri()


def _compiled(record: Compilation, _: ConversionInputs) -> Iterator[_Finding]:
    for row in record.cpu_operators:
        for site in row.sites:
            calls = counted(site.calls, "call")
            message = f"{row.name} ({calls} in an inference) is on the CPU: {site.reason}"
            yield _Finding("cpu-boundary" if row.boundary else "cpu-operator", message, site.source)
    for text in record.warnings:
        yield _Finding("run-note", text)


def _profiled(record: Profile, inputs: ConversionInputs) -> Iterator[_Finding]:
    """Operators on the CPU, unless the compilation's record is there, which knows more of them."""
    if kinds.COMPILE.schema in inputs.records:
        return
    for row in record.operations:
        if row.runs_on == "CPU":
            reason = row.reason or "why is not known without the record of the compilation"
            message = f"{row.name} ({counted(row.calls, 'call')} in an inference) is on the CPU: {reason}"
            yield _Finding("cpu-operator", message, row.source)


def _ran(record: Run, _: ConversionInputs) -> Iterator[_Finding]:
    for row in record.verdict.checks:
        if row.status == "fail":
            yield _Finding("verdict", f"{row.name}: {row.detail}")
    for text in record.notes or ():
        yield _Finding("run-note", text)


def _inspected(record: Inspection, _: ConversionInputs) -> Iterator[_Finding]:
    for method in record.methods:
        for delegate in method.delegates:
            for text in (delegate.vela.hazards or ()) if delegate.vela is not None else ():
                yield _Finding("hazard", f"delegate {delegate.index} of {method.name}: {text}")


def _debugged(record: Debug, _: ConversionInputs) -> Iterator[_Finding]:
    layers = record.layers
    for part in record.comparisons:
        for step, rule in ((part.first_break, "accuracy-break"), (part.largest_drop, "accuracy-drop")):
            if step is not None:
                ratios = (
                    (step.input_db, "SQNR of its inputs"),
                    (step.output_db, "its own SQNR"),
                    (step.drop_db, "drop"),
                )
                known = ", ".join(f"{text} {value:g} dB" for value, text in ratios if value is not None)
                known = known or "nothing of the signal is left"
                message = f"{step.tensor}, against the {part.against} model: {known}"
                yield _Finding(rule, message, layers[step.layer].source)
    for row in record.advice:
        layer = layers[row.layer]
        remedy = {
            "16 bits": "give it 16 bits",
            "calibration": "calibrate it with other samples",
            "weights": "train it with quantisation, or split off the outliers of its weights",
        }[row.remedy]
        sqnr = f"its quantisation alone leaves an SQNR of {row.sqnr_db:g} dB"
        message = f"{layer.tensor}: {sqnr}: {remedy}"
        yield _Finding("accuracy-advice", message, layer.source)


def _checked(record: Check, _: ConversionInputs) -> Iterator[_Finding]:
    for row in record.checks:
        if row.status == "fail":
            message = (
                f"{row.name}: {row.detail}. {record.board.name} would show: {row.shown}. Do: {row.way_out}"
            )
            yield _Finding("pre-flight", message)


def sarif_of_check(record: Check, model: Path) -> bytes:
    """What fails of the program at `model` as a log with one run."""
    return to_sarif(ConversionInputs(model, {kinds.CHECK.schema: record}, {}))


_READERS: dict[str, Callable[[Any, ConversionInputs], Iterator[_Finding]]] = {
    kinds.RUN.schema: _ran,
    kinds.PROFILE.schema: _profiled,
    kinds.BUILD.schema: lambda record, _: (_Finding("memory-fit", text) for text in record.notes),
    kinds.COMPILE.schema: _compiled,
    kinds.DEBUG.schema: _debugged,
    kinds.INSPECT.schema: _inspected,
    kinds.CHECK.schema: _checked,
}
