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
    about,
    require,
)

ExecutionName = Literal["float", "quantised", "executed"]
Reference = Literal["float", "quantised", "labels", "expected"]


class EvaluationData(Part):
    file: Text
    sha256: Sha256
    samples: PositiveCount
    labels: Annotated[tuple[Count, ...], about("outputs that have labels")]
    expected: Annotated[bool, about("the file holds expected outputs")]
    calibration_overlap: Annotated[Count | None, about("samples that the model was calibrated with")] = None


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
    quantisation: Annotated[Quantisation | None, about("value = (stored - zero_point) * scale")] = None


class Top1(Part):
    share: Annotated[Share, about("right / total")]
    right: Annotated[Count, about("times that the candidate's largest score is the class of the reference")]
    total: PositiveCount
    ties: Annotated[
        Count, about("times that the candidate's largest score is not the only one; the lowest index counts")
    ]


class LsbCount(Part):
    difference: Annotated[int, Meta(ge=-16, le=16)]
    elements: PositiveCount


class LsbHistogram(Part):
    below: Annotated[Count, about("elements that differ by less than -16 steps")]
    counts: tuple[LsbCount, ...]
    above: Annotated[Count, about("elements that differ by more than 16 steps")]


class Pair(Part):
    """Reference r and candidate c at one output, over all samples; what is not known is listed in `unavailable`."""

    reference: Reference
    candidate: ExecutionName
    output: Count
    top1: Top1 | None = None
    elements: Count | None = None
    equal: Annotated[Count | None, about("elements of the same value")] = None
    sqnr_db: Annotated[Number | None, about("10 log10(sum r^2 / sum (c - r)^2)")] = None
    cosine: Cosine | None = None
    max_abs_error: Annotated[Amount | None, about("max |c - r|, in the output's unit")] = None
    max_abs_error_sample: Annotated[Count | None, about("the first sample that has it")] = None
    lsb_histogram: Annotated[
        LsbHistogram | None, about("round((c - r) / scale of the output) and how many elements have it")
    ] = None

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
    verdict: Annotated[Verdict | None, about("absent without thresholds")] = None
