"""JUnit XML: each check of a verdict, each figure of a comparison a test case, as CI servers list them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from ethosu_sdk.records import kinds
from ethosu_sdk.records.common import VerdictCheck
from ethosu_sdk.records.compare import Comparisons, FigureChange, MetricChange, OperatorRule, Rule
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.printed import Verification
from ethosu_sdk.records.run import Run
from ethosu_sdk.reporting.compare import operator_changes
from ethosu_sdk.reporting.convert.conversion_inputs import ConversionInputs

Judged = Run | Compilation | Comparisons | Verification
KINDS = (kinds.RUN.schema, kinds.COMPILE.schema, kinds.COMPARE.schema, kinds.VERIFY.schema)
LEFT_OUT = ("outputs, counters, memory and operators: JUnit knows cases that pass or fail, and no figures",)
# What XML 1.0 cannot hold, not even as a character reference.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class _Case:
    name: str
    detail: str = ""
    failed: bool = False
    skipped: bool = False


def to_junit(inputs: ConversionInputs) -> bytes:
    """The verdicts of `inputs` as a `testsuites` document."""
    root = ElementTree.Element("testsuites")
    for kind, record in inputs.records.items():
        assert isinstance(record, Judged)
        cases = list(_CASES[kind](record))
        name = kind.partition("/")[0]
        attributes = {
            "name": _clean(f"{name} {_about(record)}"),
            "tests": str(len(cases)),
            "failures": str(sum(case.failed for case in cases)),
            "errors": "0",
            "skipped": str(sum(case.skipped for case in cases)),
            "timestamp": record.created[:19],  # in UTC: the format's grammar knows no time zone
        }
        if not isinstance(record, Comparisons):  # that of the whole command: a case has none of its own
            attributes["time"] = f"{record.wall_time_s:.3f}"
        suite = ElementTree.SubElement(root, "testsuite", attributes)
        _properties(suite, record)
        for case in cases:
            _add(suite, f"{name}.{_about(record)}", case)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _about(record: Judged) -> str:
    if isinstance(record, Comparisons):
        return " → ".join(row.name for row in record.subjects)
    return record.record.file if isinstance(record, Verification) else record.model.file


def _properties(suite: ElementTree.Element, record: Judged) -> None:
    facts = {
        "ethosu-sdk": record.tool.version,
        "schema": kinds.schema(record),
        "status": record.status,
    }
    if isinstance(record, Run | Compilation) and record.target is not None:
        facts |= record.target.to_json()
    if isinstance(record, Run):
        facts |= {"board": record.board, "simulator": record.simulator.name}
    if isinstance(record, Comparisons):  # what it tolerates
        policy = record.policy
        facts |= {"policy": policy.source, "policy: may differ": ", ".join(policy.allow) or "nothing"}
        facts |= {f"policy: {rule.pattern}": _rule(rule) for rule in policy.rules}
        facts |= {f"policy: {row.figure} of {row.pattern}": _rule(row) for row in policy.operators or ()}
    rows = ElementTree.SubElement(suite, "properties")
    for key, value in facts.items():
        ElementTree.SubElement(rows, "property", {"name": key, "value": _clean(value)})


def _rule(rule: Rule | OperatorRule) -> str:
    percent = rule.tolerance_percent
    parts = (
        ("better", rule.better),
        ("tolerance", None if rule.tolerance is None else f"{rule.tolerance:g}"),
        ("tolerance", None if percent is None else f"{percent:g} %"),
        ("missing", rule.missing if isinstance(rule, Rule) else None),
    )
    return ", ".join(f"{name}: {value}" for name, value in parts if value is not None)


def _add(suite: ElementTree.Element, classname: str, case: _Case) -> None:
    attributes = {"name": _clean(case.name), "classname": _clean(classname)}
    element = ElementTree.SubElement(suite, "testcase", attributes)
    if case.failed:
        message = {"message": _clean(case.detail), "type": "verdict"}
        ElementTree.SubElement(element, "failure", message).text = _clean(case.detail)
    elif case.skipped:
        ElementTree.SubElement(element, "skipped", {"message": _clean(case.detail)})
    elif case.detail:
        ElementTree.SubElement(element, "system-out").text = _clean(case.detail)


def _clean(value: object) -> str:
    """`value` without what XML cannot hold, and without secrets of addresses."""
    return _NOT_XML.sub("\ufffd", str(value))


def _checks(rows: Iterable[VerdictCheck], before: str = "") -> Iterator[_Case]:
    for row in rows:
        yield _Case(f"{before}{row.name}", row.detail, row.status == "fail")


def _compile(record: Compilation) -> Iterator[_Case]:
    """The check of the program and the thresholds of --evaluate; the compilation itself where there is neither."""
    for row in record.check.outputs or ():
        name = f"output {row.index} is the model's, as far as rounding explains"
        yield _Case(name, row.detail, row.status == "fail")
    if record.accuracy is not None and record.accuracy.verdict is not None:
        yield from _checks(record.accuracy.verdict.checks, "accuracy: ")
    yield _Case("compiled", f"the record's status is {record.status}", record.status == "fail")


def _compare(record: Comparisons) -> Iterator[_Case]:
    for row in record.comparisons:
        names = f"{row.before} → {row.after}: "
        for part in row.dimensions:
            yield _Case(f"{names}same {part.name}", f"{part.before} → {part.after}", part.status == "blocks")
        for metric in row.metrics:
            yield _metric(names, metric, metric.detail or "")
        for operator in row.operators:
            where = f"{names}{operator_changes.operator_words(operator)}: "
            yield from (_metric(where, figure) for figure in operator.figures if figure.status is not None)
        detail = f"{row.compared} figures compared, {len(row.metrics)} differ: {row.status}"
        yield _Case(f"{names}verdict", detail, row.status != "pass")
    for failed in record.failed:
        yield _Case(failed.name, failed.reason, failed=True)


def _metric(names: str, row: MetricChange | FigureChange, detail: str = "") -> _Case:
    before, after = ("absent" if value is None else value for value in (row.before, row.after))
    source = f" ({row.source})" if row.source is not None else ""
    allowed = f", {row.tolerated:g} tolerated" if row.tolerated is not None else ""
    better = f", better: {row.better}" if row.better is not None else ""
    words = f"{row.status}{source}{better}{allowed}"
    text = " ".join(filter(None, (f"{before} → {after}", row.unit, words, detail)))
    unjudged = row.status in ("differs", "missing")
    return _Case(f"{names}{row.name}", text.strip(), row.status == "regression", unjudged)


def _verify(record: Verification) -> Iterator[_Case]:
    for row in record.checks:
        detail = f"recorded {row.recorded}, here {row.found if row.found is not None else 'unknown'}"
        yield _Case(row.name, detail, row.status == "differs", row.status == "unknown")


_CASES: dict[str, Callable[[Any], Iterator[_Case]]] = {
    kinds.RUN.schema: lambda record: _checks(record.verdict.checks),
    kinds.COMPILE.schema: _compile,
    kinds.COMPARE.schema: _compare,
    kinds.VERIFY.schema: _verify,
}
