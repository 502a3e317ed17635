"""What an evaluation adds to the record of a compilation."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from ethosu_sdk.records.common import (
    Amount,
    Cosine,
    Count,
    Dtype,
    Number,
    Part,
    PositiveAmount,
    PositiveCount,
    Sha256,
    Share,
    Some,
    Text,
    Verdict,
    require,
)

ExecutionName = Literal["float", "quantised", "executed"]
Reference = Literal["float", "quantised", "labels", "expected"]


class EvaluationData(Part):
    file: Text
    sha256: Sha256
    samples: PositiveCount
    labels: tuple[Count, ...]  #: outputs that have labels
    expected: bool  #: the file holds expected outputs
    calibration_overlap: Count | None = None  #: samples that the model was calibrated with


class Execution(Part):
    name: ExecutionName
    by: Text


class MissingExecution(Part):
    name: ExecutionName
    reason: Text


class Quantisation(Part):
    dtype: Dtype
    scale: PositiveAmount
    zero_point: int


class Output(Part):
    index: Count
    shape: tuple[Count, ...]
    dtype: Dtype
    quantisation: Quantisation | None = None  #: value = (stored - zero_point) * scale


class Top1(Part):
    share: Share  #: right / total
    right: Count  #: times that the candidate's largest score is the class of the reference
    total: PositiveCount
    ties: Count  #: times that the candidate's largest score is not the only one; the lowest index counts


class LsbCount(Part):
    difference: Annotated[int, Meta(ge=-16, le=16)]
    elements: PositiveCount


class LsbHistogram(Part):
    below: Count  #: elements that differ by less than -16 steps
    counts: tuple[LsbCount, ...]
    above: Count  #: elements that differ by more than 16 steps


class Pair(Part):
    """Reference r and candidate c at one output, over all samples; what is not known is listed in `unavailable`."""

    reference: Reference
    candidate: ExecutionName
    output: Count
    top1: Top1 | None = None
    elements: Count | None = None
    equal: Count | None = None  #: elements of the same value
    sqnr_db: Number | None = None  #: 10 log10(sum r^2 / sum (c - r)^2)
    cosine: Cosine | None = None
    max_abs_error: Amount | None = None  #: max |c - r|, in the output's unit
    max_abs_error_sample: Count | None = None  #: the first sample that has it
    #: round((c - r) / scale of the output) and how many elements have it
    lsb_histogram: LsbHistogram | None = None

    together: ClassVar[dict[str, Any]] = {
        "dependentRequired": {
            "max_abs_error": ["max_abs_error_sample"],
            "max_abs_error_sample": ["max_abs_error"],
        }
    }

    def __post_init__(self) -> None:
        both = (self.max_abs_error is None) == (self.max_abs_error_sample is None)
        require(both, "the largest error is given without its sample, or the sample without it")


class Accuracy(Part):
    data: EvaluationData
    executions: Some[Execution]
    missing: tuple[MissingExecution, ...]
    outputs: Some[Output]
    pairs: Some[Pair]
    verdict: Verdict | None = None  #: absent without thresholds
