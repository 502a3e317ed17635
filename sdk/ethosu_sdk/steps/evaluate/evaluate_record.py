"""The `accuracy` of a compilation's record: what `compile --evaluate` found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk import aot
from ethosu_sdk.aot.facts.evaluation import FLOAT, QUANTISED
from ethosu_sdk.errors import VerdictError
from ethosu_sdk.evidence.accuracy import HISTOGRAM_LSB, Comparison
from ethosu_sdk.evidence.verdict import Check
from ethosu_sdk.files import hashing
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.steps.evaluate.thresholds import COSINE, EXECUTED, MAX_ERROR, SQNR, PairResult

_IN_TORCH = {
    FLOAT: "PyTorch, eager, the model as given",
    QUANTISED: "PyTorch, eager, the quantised (PT2E) module",
}
_NO_CLASSES = "the output's shape is not one of class scores"


@dataclass(frozen=True)
class Evaluated:
    """A finished evaluation: what it was of, its figures, the thresholds' checks, and words for what executed the
    `.pte`."""

    facts: aot.EvaluationFacts
    data: Path
    results: Sequence[PairResult]
    checks: Sequence[Check]
    executor: str


def extend(record: Record, evaluated: Evaluated, inputs: Sequence[Record]) -> Record:
    """`record` with its accuracy, the `inputs` that shaped it, and the warnings that belong to it."""
    accuracy, unavailable = _accuracy(evaluated)
    missed = any(not check.passed for check in evaluated.checks)
    known = record["provenance"]["inputs"]
    added = [row for row in inputs if row not in known]  # the check may have used the host runner too
    provenance = {**record["provenance"], "inputs": [*known, *added]}
    return {
        **record,
        "status": "fail" if missed else record["status"],
        "provenance": provenance,
        "accuracy": accuracy,
        "warnings": [*record["warnings"], *warnings(evaluated.facts)],
        "unavailable": [*record["unavailable"], *unavailable],
    }


def warnings(facts: aot.EvaluationFacts) -> list[str]:
    """Whole sentences about what the figures are worth."""
    overlap = facts.calibration_overlap
    if not overlap:
        return []
    return [
        f"{overlap} of the {facts.samples} evaluation samples are calibration samples too: the quantisation was "
        "fitted to them, and the figures flatter it."
    ]


def _accuracy(evaluated: Evaluated) -> tuple[Record, list[Record]]:
    facts = evaluated.facts
    unavailable: list[Record] = []
    data: Record = {
        "file": evaluated.data.name,
        "sha256": hashing.sha256_file(evaluated.data),
        "samples": facts.samples,
        "labels": list(facts.labels),
        "expected": facts.expected,
    }
    if facts.calibration_overlap is None:
        reason = "the model was not calibrated here"
        unavailable.append({"path": "/accuracy/data/calibration_overlap", "reason": reason})
    else:
        data["calibration_overlap"] = facts.calibration_overlap
    pairs = []
    for number, row in enumerate(evaluated.results):
        pair, gaps = _pair(row, facts.outputs[row.output])
        pairs.append(pair)
        unavailable += [
            {"path": f"/accuracy/pairs/{number}/{name}", "reason": why} for name, why in gaps.items()
        ]
    executions = [{"name": name, "by": by} for name, by in _IN_TORCH.items() if name not in facts.missing]
    accuracy: Record = {
        "data": data,
        "executions": [*executions, {"name": EXECUTED, "by": evaluated.executor}],
        "missing": [{"name": name, "reason": reason} for name, reason in facts.missing.items()],
        "outputs": [_output(index, row) for index, row in enumerate(facts.outputs)],
        "pairs": pairs,
    }
    if evaluated.checks:
        accuracy["verdict"] = _verdict(evaluated.checks)
    return accuracy, unavailable


def _verdict(checks: Sequence[Check]) -> Record:
    return {
        "status": "pass" if all(check.passed for check in checks) else "fail",
        "checks": [
            {"name": check.name, "status": "pass" if check.passed else "fail", "detail": check.detail}
            for check in checks
        ],
    }


def _output(index: int, row: aot.EvaluatedOutput) -> Record:
    known = row.quantisation
    part: Record = {"index": index, "shape": list(row.shape), "dtype": row.dtype}
    if known is not None:
        part["quantisation"] = {"dtype": known.dtype, "scale": known.scale, "zero_point": known.zero_point}
    return part


def _pair(row: PairResult, output: aot.EvaluatedOutput) -> tuple[Record, dict[str, str]]:
    """The pair's object, and the members that it lacks with the reasons."""
    pair: Record = {"reference": row.reference, "candidate": row.candidate, "output": row.output}
    gaps: dict[str, str] = {}
    if row.top1 is None:
        gaps["top1"] = _NO_CLASSES
    elif math.isnan(row.top1.share):
        gaps["top1"] = row.top1.reason
    else:
        counts = {"right": row.top1.right, "total": row.top1.total, "ties": row.top1.ties}
        pair["top1"] = {"share": row.top1.share, **counts}
    if row.comparison is not None:
        members, more = _distances(row.comparison, output)
        pair.update(members)
        gaps.update(more)
    return pair, gaps


def _distances(comparison: Comparison, output: aot.EvaluatedOutput) -> tuple[Record, dict[str, str]]:
    members: dict[str, Any] = {"elements": comparison.elements, "equal": comparison.equal}
    gaps = {}
    for name in (SQNR, COSINE, MAX_ERROR):
        value: float = getattr(comparison, name)
        if math.isfinite(value):
            members[name] = value
        else:
            gaps[name] = comparison.reason(name)
    if MAX_ERROR in members:
        members["max_abs_error_sample"] = comparison.max_error_sample
    if comparison.histogram is None:
        gaps["lsb_histogram"] = output.reason or comparison.reason(MAX_ERROR)
    else:
        members["lsb_histogram"] = _histogram(comparison.histogram)
    return members, gaps


def _histogram(counts: dict[int, int]) -> Record:
    beyond = HISTOGRAM_LSB + 1
    return {
        "below": counts.get(-beyond, 0),
        "counts": [
            {"difference": difference, "elements": count}
            for difference, count in counts.items()
            if abs(difference) < beyond
        ],
        "above": counts.get(beyond, 0),
    }


def check(record: Record, *, recorded: bool) -> None:
    """VerdictError when a threshold is missed; `recorded` says that the record is on stdout."""
    accuracy = kinds.COMPILE.convert(record).accuracy
    verdict = accuracy.verdict if accuracy is not None else None
    missed = [row for row in verdict.checks if row.status == "fail"] if verdict is not None else []
    if missed:
        lines = [f"  {row.name}: {row.detail}" for row in missed]
        raise VerdictError(
            "the accuracy does not meet the thresholds:\n" + "\n".join(lines),
            "compile.json has all figures under accuracy",
            recorded=recorded,
        )
