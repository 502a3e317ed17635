"""The `accuracy` of a compilation's record: what `compile --evaluate` found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import convert

from ethosu_sdk import aot
from ethosu_sdk.errors import VerdictError
from ethosu_sdk.evidence import accuracy
from ethosu_sdk.evidence.verdict import Check
from ethosu_sdk.files import hashing
from ethosu_sdk.records import Record, common, kinds
from ethosu_sdk.records.common import Dtype, Verdict
from ethosu_sdk.records.parts.accuracy import (
    Accuracy,
    EvaluationData,
    Execution,
    ExecutionName,
    LsbCount,
    LsbHistogram,
    MissingExecution,
    Output,
    Pair,
    Quantisation,
    Reference,
    Top1,
)
from ethosu_sdk.steps.evaluate.thresholds import COSINE, MAX_ERROR, SQNR, PairResult

_IN_TORCH: dict[ExecutionName, str] = {
    "float": "PyTorch, eager, the model as given",
    "quantised": "PyTorch, eager, the quantised (PT2E) module",
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
    found, gaps = _accuracy(evaluated)
    missed = any(not check.passed for check in evaluated.checks)
    known = record["provenance"]["inputs"]
    added = [row for row in inputs if row not in known]  # the check may have used the host runner too
    provenance = {**record["provenance"], "inputs": [*known, *added]}
    return {
        **record,
        "status": "fail" if missed else record["status"],
        "provenance": provenance,
        "accuracy": found.to_json(),
        "warnings": [*record["warnings"], *warnings(evaluated.facts)],
        "unavailable": [
            *record["unavailable"],
            *({"path": f"/accuracy/{path}", "reason": reason} for path, reason in gaps.items()),
        ],
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


def _accuracy(evaluated: Evaluated) -> tuple[Accuracy, dict[str, str]]:
    """The member `accuracy`, and the paths below it that it lacks with the reasons."""
    facts = evaluated.facts
    pairs = [_pair(row, facts.outputs[row.output]) for row in evaluated.results]
    gaps = {
        f"pairs/{number}/{name}": why for number, (_, gaps) in enumerate(pairs) for name, why in gaps.items()
    }
    if facts.calibration_overlap is None:
        gaps = {"data/calibration_overlap": "the model was not calibrated here", **gaps}
    executions = [Execution(name=name, by=by) for name, by in _IN_TORCH.items() if name not in facts.missing]
    found = Accuracy(
        data=EvaluationData(
            file=evaluated.data.name,
            sha256=hashing.sha256_file(evaluated.data),
            samples=facts.samples,
            labels=facts.labels,
            expected=facts.expected,
            calibration_overlap=facts.calibration_overlap,
        ),
        executions=(*executions, Execution(name="executed", by=evaluated.executor)),
        missing=tuple(
            MissingExecution(name=convert(name, ExecutionName), reason=reason)
            for name, reason in facts.missing.items()
        ),
        outputs=tuple(_output(index, row) for index, row in enumerate(facts.outputs)),
        pairs=tuple(pair for pair, _ in pairs),
        verdict=_verdict(evaluated.checks) if evaluated.checks else None,
    )
    return found, gaps


def _verdict(checks: Sequence[Check]) -> Verdict:
    return Verdict(
        status="pass" if all(row.passed for row in checks) else "fail",
        checks=tuple(
            common.VerdictCheck(name=row.name, status="pass" if row.passed else "fail", detail=row.detail)
            for row in checks
        ),
    )


def _output(index: int, row: aot.EvaluatedOutput) -> Output:
    known = row.quantisation
    return Output(
        index=index,
        shape=row.shape,
        dtype=convert(row.dtype, Dtype),
        quantisation=None
        if known is None
        else Quantisation(dtype=convert(known.dtype, Dtype), scale=known.scale, zero_point=known.zero_point),
    )


def _pair(row: PairResult, output: aot.EvaluatedOutput) -> tuple[Pair, dict[str, str]]:
    """The pair, and the members that it lacks with the reasons."""
    found, gaps = row.comparison, dict[str, str]()
    if row.top1 is None:
        gaps["top1"] = _NO_CLASSES
    elif math.isnan(row.top1.share):
        gaps["top1"] = row.top1.reason
    if found is not None:
        names = (SQNR, COSINE, MAX_ERROR)
        gaps |= {name: found.reason(name) for name in names if not math.isfinite(getattr(found, name))}
        if found.histogram is None:
            gaps["lsb_histogram"] = output.reason or found.reason(MAX_ERROR)
    return Pair(
        reference=convert(row.reference, Reference),
        candidate=convert(row.candidate, ExecutionName),
        output=row.output,
        top1=None if row.top1 is None or "top1" in gaps else _top1(row.top1),
        elements=None if found is None else found.elements,
        equal=None if found is None else found.equal,
        sqnr_db=None if found is None or SQNR in gaps else found.sqnr_db,
        cosine=None if found is None or COSINE in gaps else found.cosine,
        max_abs_error=None if found is None or MAX_ERROR in gaps else found.max_abs_error,
        max_abs_error_sample=None if found is None or MAX_ERROR in gaps else found.max_error_sample,
        lsb_histogram=None if found is None or found.histogram is None else _histogram(found.histogram),
    ), gaps


def _top1(found: accuracy.Top1) -> Top1:
    return Top1(share=found.share, right=found.right, total=found.total, ties=found.ties)


def _histogram(counts: dict[int, int]) -> LsbHistogram:
    beyond = accuracy.HISTOGRAM_LSB + 1
    return LsbHistogram(
        below=counts.get(-beyond, 0),
        counts=tuple(
            LsbCount(difference=difference, elements=count)
            for difference, count in counts.items()
            if abs(difference) < beyond
        ),
        above=counts.get(beyond, 0),
    )


def check(record: Record, *, recorded: bool) -> None:
    """VerdictError when a threshold is missed; `recorded` says that the record is on stdout."""
    found = kinds.COMPILE.convert(record).accuracy
    verdict = found.verdict if found is not None else None
    missed = [row for row in verdict.checks if row.status == "fail"] if verdict is not None else []
    if missed:
        lines = [f"  {row.name}: {row.detail}" for row in missed]
        raise VerdictError(
            "the accuracy does not meet the thresholds:\n" + "\n".join(lines),
            "compile.json has all figures under accuracy",
            recorded=recorded,
        )
