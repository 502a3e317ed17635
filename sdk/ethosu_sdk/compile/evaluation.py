"""`compile --evaluate`: the model in floating point, quantised, and as the `.pte` on the host simulator, compared;
and the `accuracy` of the record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import convert

from ethosu_sdk.base import cache, filesystem, tools
from ethosu_sdk.base.errors import InputError, SimulationError, UsageError, VerdictError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile import compile_facts, evaluation_data
from ethosu_sdk.compile.compile_facts import FLOAT, QUANTISED
from ethosu_sdk.compile.thresholds import (
    COSINE,
    EXECUTED,
    EXPECTED,
    LABELS,
    MAX_ERROR,
    PAIRS,
    SQNR,
    TOP1,
    TOP1_DROP,
    TRUTHS,
    PairResult,
    Threshold,
    parse_threshold,
    threshold_checks,
)
from ethosu_sdk.program import output_comparison
from ethosu_sdk.program.output_comparison import Check, Comparison, predictions
from ethosu_sdk.records import common, kinds, provenance
from ethosu_sdk.records.common import Dtype, Verdict
from ethosu_sdk.records.compile import (
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

# ---- steps.evaluate.evaluate_record
# The `accuracy` of a compilation's record: what `compile --evaluate` found.

_IN_TORCH: dict[ExecutionName, str] = {
    "float": "PyTorch, eager, the model as given",
    "quantised": "PyTorch, eager, the quantised (PT2E) module",
}
_NO_CLASSES = "the output's shape is not one of class scores"


@dataclass(frozen=True)
class Evaluated:
    """A finished evaluation: what it was of, its figures, the thresholds' checks, and words for what executed the
    `.pte`."""

    facts: compile_facts.EvaluationFacts
    data: Path
    results: Sequence[PairResult]
    checks: Sequence[Check]
    executor: str


def extend_with_accuracy(record: Record, evaluated: Evaluated, inputs: Sequence[Record]) -> Record:
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
        "warnings": [*record["warnings"], *evaluation_warnings(evaluated.facts)],
        "unavailable": [
            *record["unavailable"],
            *({"path": f"/accuracy/{path}", "reason": reason} for path, reason in gaps.items()),
        ],
    }


def evaluation_warnings(facts: compile_facts.EvaluationFacts) -> list[str]:
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
            sha256=filesystem.sha256_file(evaluated.data),
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


def _output(index: int, row: compile_facts.EvaluatedOutput) -> Output:
    known = row.quantisation
    return Output(
        index=index,
        shape=row.shape,
        dtype=convert(row.dtype, Dtype),
        quantisation=None
        if known is None
        else Quantisation(dtype=convert(known.dtype, Dtype), scale=known.scale, zero_point=known.zero_point),
    )


def _pair(row: PairResult, output: compile_facts.EvaluatedOutput) -> tuple[Pair, dict[str, str]]:
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


def _top1(found: output_comparison.Top1) -> Top1:
    return Top1(share=found.share, right=found.right, total=found.total, ties=found.ties)


def _histogram(counts: dict[int, int]) -> LsbHistogram:
    beyond = output_comparison.HISTOGRAM_LSB + 1
    return LsbHistogram(
        below=counts.get(-beyond, 0),
        counts=tuple(
            LsbCount(difference=difference, elements=count)
            for difference, count in counts.items()
            if abs(difference) < beyond
        ),
        above=counts.get(beyond, 0),
    )


def raise_if_inaccurate(record: Record, *, recorded: bool) -> None:
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


# ---- steps.evaluate.evaluate_command
# `compile --evaluate`: the model in floating point, quantised, and as the `.pte` on the host simulator, compared.

Array = npt.NDArray[Any]
Execute = Callable[[Sequence[Array]], Sequence[Array]]

_PACKAGE = "executorch"
_EVERY = 50  # samples between two signs of life


@dataclass(frozen=True)
class EvaluateOptions:
    """The `.npz` to evaluate on, and the thresholds."""

    data: Path
    thresholds: tuple[Threshold, ...] = ()


def read_options(data: Path | None, thresholds: Mapping[str, Sequence[str] | None]) -> EvaluateOptions | None:
    """The options of the command line; None when nothing is to be evaluated. UsageError for a limit that is none, or
    that has nothing to be compared with."""
    read = tuple(parse_threshold(name, text) for name, texts in thresholds.items() for text in texts or ())
    if data is None and read:
        raise UsageError(f"{read[0].text} needs an evaluation", "give the samples with --evaluate F.npz")
    return None if data is None else EvaluateOptions(data, read)


def read_floor(texts: Sequence[str] | None) -> float | None:
    """The ``--min-sqnr`` of a compilation without an evaluation, in dB. UsageError unless it is one number."""
    if not texts:
        return None
    read = [parse_threshold("--min-sqnr", text) for text in texts]
    if len(read) > 1 or read[0].pair is not None:
        raise UsageError(
            "without --evaluate, --min-sqnr takes one number: the lowest SQNR of the quantised model "
            "against the float model",
            "--min-sqnr 20, or give samples with --evaluate F.npz",
        )
    return read[0].limit


@dataclass(frozen=True)
class Evaluation:
    """An evaluation that is prepared: the host simulator is built, and `request` goes to the compiler."""

    options: EvaluateOptions
    request: compile_facts.EvaluationRequest
    runner: Path
    reporter: Reporter

    def extend(self, record: Record, output: compile_facts.CompileOutput) -> Record:
        """The record of the compilation with its accuracy. SimulationError when the program does not run."""
        facts = output.evaluation
        if facts is None:
            raise InputError("the compiler wrote no results to evaluate")
        with self.reporter.stage(
            f"executing {counted(facts.samples, 'sample')} on the host simulator"
        ) as step:
            results = measure(facts, self.request.folder, output.pte, self.runner, step)
        version = tools.package_version(_PACKAGE) or "unknown"
        evaluated = Evaluated(
            facts=facts,
            data=self.options.data,
            results=results,
            checks=threshold_checks(self.options.thresholds, results, facts.missing),
            executor=f"ExecuTorch {version}'s runtime on this machine, delegates on the SDK's NPU model",
        )
        inputs = [
            provenance.file_entry("evaluation data", self.options.data),
            provenance.file_entry("host-runner", self.runner),
        ]
        return extend_with_accuracy(record, evaluated, inputs)


@contextmanager
def prepared_evaluation(
    options: EvaluateOptions | None, folder: Path, reporter: Reporter
) -> Iterator[Evaluation | None]:
    """What can fail before the model is compiled, and a folder below `folder` for its outputs; None without options.

    Raises InputError for a file that cannot be meant, ToolError without a compiler for the host simulator.
    """
    if options is None:
        yield None
        return
    # Here and not above: the NPU model comes with it, and most compilations need none.
    from ethosu_sdk.simulate import host_runtime

    _check_truth(options, evaluation_data.evaluation_content(options.data))
    with reporter.stage("building the host runner (the first time only)"):
        runner = host_runtime.build_runner(cache.directory_or_own(host_runtime.CACHE_PART))
    # Not in the system's temporary folder, which may be in memory: the outputs of many samples can be large.
    with filesystem.temporary_directory(".evaluation-", filesystem.make_directory(folder)) as spool:
        request = compile_facts.EvaluationRequest(options.data.resolve(), spool.resolve())
        yield Evaluation(options, request, runner, reporter)


def _check_truth(options: EvaluateOptions, held: evaluation_data.EvaluationContent) -> None:
    """InputError when a threshold needs labels or expected outputs that the file lacks."""
    present = {LABELS: bool(held.labels), EXPECTED: held.outputs > 0}
    for threshold in options.thresholds:
        named = threshold.pair[0] if threshold.pair is not None else None
        by_default = threshold.option.figure == TOP1_DROP or (
            threshold.option.figure == TOP1 and named is None
        )
        if (named in TRUTHS and not present[named]) or (by_default and not any(present.values())):
            what = named or "labels or expected outputs"
            raise InputError(
                f"{threshold.text} needs {what}, but {options.data} has none",
                "add label0 (the right class of each sample) or output0 to the file, or name a pair of executions, "
                "such as float-executed=0.99",
            )


def measure(
    facts: compile_facts.EvaluationFacts,
    folder: Path,
    pte: Path,
    runner: Path,
    step: Callable[[str], None] | None = None,
) -> list[PairResult]:
    """Execute `pte` on the inputs that the compiler left in `folder`, and compare all pairs.

    Raises SimulationError when the program fails; `step` is called with words about the progress.
    """
    from ethosu_sdk.simulate import host_runtime
    from ethosu_sdk.simulate.host_runtime import NpuModel

    results = _empty_results(facts)
    model = NpuModel()
    with host_runtime.open_pte(runner, pte, model) as runtime:
        spool = _Spool(folder, facts, len(runtime.inputs))
        for sample in range(facts.samples):
            if step is not None and sample % _EVERY == 0:
                step(f"{sample} of {facts.samples}")
            inputs = spool.inputs(sample)
            try:
                executed = runtime.run(inputs)
            except InputError as error:  # no file of the user's: nobody else wrote this program
                raise SimulationError(f"the compiled program does not run: {error.message}") from error
            model.calls.clear()
            _add(results, sample, spool.rows(sample, in_float(facts.outputs, executed)), facts)
    return results


def _empty_results(facts: compile_facts.EvaluationFacts) -> list[PairResult]:
    present = {name for name in (FLOAT, QUANTISED) if name not in facts.missing} | {EXECUTED}
    present |= {EXPECTED} if facts.expected else set()
    results = []
    for reference, candidate in PAIRS:
        for index, output in enumerate(facts.outputs):
            top1 = output_comparison.Top1() if output.classes is not None else None
            if reference == LABELS and candidate in present and index in facts.labels:
                results.append(PairResult(reference, candidate, index, None, top1))
            elif reference in present and candidate in present:
                lsb = None if output.quantisation is None else output.quantisation.scale
                results.append(PairResult(reference, candidate, index, Comparison(lsb), top1))
    return results


def _add(
    results: Sequence[PairResult],
    sample: int,
    rows: dict[str, Sequence[Array]],
    facts: compile_facts.EvaluationFacts,
) -> None:
    """Take one sample into every pair; `rows` are the outputs of each execution, and the truths."""
    for row in results:
        reference, candidate = rows[row.reference][row.output], rows[row.candidate][row.output]
        classes = facts.outputs[row.output].classes
        if row.comparison is not None:
            row.comparison.add(sample, reference, candidate)
        if row.top1 is not None and classes is not None:
            wanted = reference if row.comparison is None else predictions(reference.reshape(classes))
            row.top1.add(wanted, candidate.reshape(classes))


def in_float(
    outputs: Sequence[compile_facts.EvaluatedOutput | compile_facts.CheckedOutput], executed: Sequence[Array]
) -> list[Array]:
    """The outputs of the program in the model's own type, whether it gives that or the quantised values."""
    results = []
    for output, array in zip(outputs, executed, strict=True):
        known = output.quantisation
        if array.dtype.name == output.dtype:
            results.append(array)
        elif known is not None and array.dtype.name == known.dtype:
            scale = np.float32(known.scale)
            results.append((array.astype(np.float32) - np.float32(known.zero_point)) * scale)
        else:
            raise InputError(
                f"the program's output is {array.dtype.name}, the model's is {output.dtype}",
                "compile the model with --io float",
            )
    return results


class _Spool:
    """The arrays that the compiler left, read sample by sample."""

    def __init__(self, folder: Path, facts: compile_facts.EvaluationFacts, inputs: int) -> None:
        self._inputs = [_mapped(folder, f"input{index}") for index in range(inputs)]
        names = [name for name in (FLOAT, QUANTISED) if name not in facts.missing]
        names += [EXPECTED] if facts.expected else []
        self._outputs = {
            name: [_mapped(folder, f"{name}{index}") for index in range(len(facts.outputs))] for name in names
        }
        self._labels = {index: _mapped(folder, f"label{index}") for index in facts.labels}
        self._no_labels = np.empty(0, np.int64)
        self._count = len(facts.outputs)

    def inputs(self, sample: int) -> list[Array]:
        """The program's inputs."""
        return [np.asarray(array[sample]) for array in self._inputs]

    def rows(self, sample: int, executed: Sequence[Array]) -> dict[str, Sequence[Array]]:
        """The outputs of each execution and the truths, by name."""
        found: dict[str, Sequence[Array]] = {
            name: [np.asarray(array[sample]) for array in arrays] for name, arrays in self._outputs.items()
        }
        found[EXECUTED] = executed
        found[LABELS] = [
            self._labels[index][sample] if index in self._labels else self._no_labels
            for index in range(self._count)
        ]
        return found


def _mapped(folder: Path, name: str) -> Array:
    array: Array = np.load(folder / f"{name}.npy", mmap_mode="r")
    return array
