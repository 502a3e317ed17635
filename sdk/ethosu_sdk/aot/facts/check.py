"""What the compiler process writes for the check of its result: frozen data, passed between processes as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.aot.facts.evaluation import Quantisation
from ethosu_sdk.aot.facts.source_line import SourceLine
from ethosu_sdk.pte import ENTRY


@dataclass(frozen=True)
class CheckedOutput:
    """One output: dtype in PyTorch; how the program quantises it (None: not with one fixed scale). `exact` says that
    only integers lead to it, so that nothing is rounded on the way."""

    dtype: str
    quantisation: Quantisation | None
    exact: bool


@dataclass(frozen=True)
class CheckFacts:
    """A method's folder (:func:`method_folder`) holds arrays by the names of :func:`sample_array`, for `samples` in a
    row: ``input``, in the program's own types; ``reference``, the outputs in PyTorch of the program that was lowered;
    ``trialT_``, those with every value rounded another way (:mod:`ethosu_sdk.aot.comparison.check.rounding`). The
    first sample, the example inputs, has all `trials`.

    `stateful` says that the model changes tensors of its own in an inference; then all samples have all trials. With
    `ties_up` there are ``ties_upN.npy`` too: the outputs with the NPU's rounding
    (:mod:`ethosu_sdk.aot.comparison.ties_up`). With `dialect` there is ``dialect`` for every sample: the outputs of
    the lowered program by the references in Python that ExecuTorch registers beside its ``cortex_m::`` operators.
    """

    outputs: tuple[CheckedOutput, ...]
    trials: int
    stateful: bool
    ties_up: bool = False
    samples: int = 1
    dialect: bool = False


def method_folder(folder: Path, method: str) -> Path:
    """The part of the check's `folder` that is a method's: all of it for ``forward``."""
    return folder if method == ENTRY else folder / f"method-{method}"


def sample_array(kind: str, sample: int, index: int) -> str:
    """The file of an input or output of a sample in the check's folder."""
    return f"sample{sample}-{kind}{index}.npy"


def delegate_array(payload_sha256: str, kind: str, index: int) -> str:
    """The file of a delegate's call in the check's folder; `kind` is ``input`` or ``output``, in the payload's
    order."""
    return f"{payload_sha256[:16]}-{kind}{index}.npy"


@dataclass(frozen=True)
class StartFacts:
    """Where a wrong program starts to be wrong, in words and by name. Without `certain`, it is where the fault is
    first seen. `operator` is PyTorch's, `tosa_operator` and `tosa_tensor` are of the delegate's TOSA graph."""

    text: str
    certain: bool
    operator: str | None
    tosa_operator: str
    tosa_tensor: str
    source: SourceLine | None
