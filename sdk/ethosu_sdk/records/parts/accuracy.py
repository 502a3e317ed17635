"""What an evaluation adds to the record of a compilation: schemas/compile-result.v1.schema.json."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records.common import Dtype, Number, Verdict
from ethosu_sdk.records.kind import Part

ExecutionName = Literal["float", "quantised", "executed"]
Reference = Literal["float", "quantised", "labels", "expected"]


class EvaluationData(Part):
    file: str
    sha256: str
    samples: int
    labels: tuple[int, ...]
    expected: bool
    calibration_overlap: int | None = None


class Execution(Part):
    name: ExecutionName
    by: str


class MissingExecution(Part):
    name: ExecutionName
    reason: str


class Quantisation(Part):
    dtype: Dtype
    scale: Number
    zero_point: int


class Output(Part):
    index: int
    shape: tuple[int, ...]
    dtype: Dtype
    quantisation: Quantisation | None = None


class Top1(Part):
    share: Number
    right: int
    total: int
    ties: int


class LsbCount(Part):
    difference: int
    elements: int


class LsbHistogram(Part):
    below: int
    counts: tuple[LsbCount, ...]
    above: int


class Pair(Part):
    reference: Reference
    candidate: ExecutionName
    output: int
    top1: Top1 | None = None
    elements: int | None = None
    equal: int | None = None
    sqnr_db: Number | None = None
    cosine: Number | None = None
    max_abs_error: Number | None = None
    max_abs_error_sample: int | None = None
    lsb_histogram: LsbHistogram | None = None


class Accuracy(Part):
    data: EvaluationData
    executions: tuple[Execution, ...]
    missing: tuple[MissingExecution, ...]
    outputs: tuple[Output, ...]
    pairs: tuple[Pair, ...]
    verdict: Verdict | None = None
