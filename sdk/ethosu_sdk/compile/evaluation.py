"""`compile --evaluate`: the model in floating point, quantised, and as the `.pte`, compared; the record's
`accuracy`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import convert

from ethosu_sdk.base import cache, filesystem
from ethosu_sdk.base.errors import InputError, SimulationError, UsageError, VerdictError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile import evaluation_data
from ethosu_sdk.compile.check_record import executor_words
from ethosu_sdk.compile.compile_facts import (
    FLOAT,
    QUANTISED,
    CheckedOutput,
    CompileOutput,
    EvaluatedOutput,
    EvaluationFacts,
    EvaluationRequest,
)
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
from ethosu_sdk.program.output_comparison import HISTOGRAM_LSB, Check, Comparison, Top1, predictions
from ethosu_sdk.records import common, compile as record_parts, kinds, provenance
from ethosu_sdk.records.common import Dtype
from ethosu_sdk.records.compile import Accuracy, ExecutionName, LsbCount, LsbHistogram, Pair

Array = npt.NDArray[Any]

_EVERY = 50  # samples between two signs of life
_IN_TORCH: dict[ExecutionName, str] = {
    "float": "PyTorch, eager, the model as given",
    "quantised": "PyTorch, eager, the quantised (PT2E) module",
}


@dataclass(frozen=True)
class EvaluateOptions:
    data: Path
    thresholds: tuple[Threshold, ...] = ()


def read_options(data: Path | None, thresholds: Mapping[str, Sequence[str] | None]) -> EvaluateOptions | None:
    """The options of the command line, or None. UsageError for a wrong limit, or one without anything to compare."""
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


@contextmanager
def prepared_evaluation(
    options: EvaluateOptions | None, folder: Path, reporter: Reporter
) -> Iterator[Evaluation | None]:
    """What can fail before compilation, and a folder for outputs; None without options. InputError or ToolError."""
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
        request = EvaluationRequest(options.data.resolve(), spool.resolve())
        yield Evaluation(options, request, runner, reporter)


def _check_truth(options: EvaluateOptions, held: evaluation_data.EvaluationContent) -> None:
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


@dataclass(frozen=True)
class Evaluation:
    """An evaluation that is prepared: the host simulator is built, and `request` goes to the compiler."""

    options: EvaluateOptions
    request: EvaluationRequest
    runner: Path
    reporter: Reporter

    def extend(self, record: Record, output: CompileOutput) -> Record:
        """The record of the compilation with its accuracy, what shaped that, and its warning. SimulationError when
        the program does not run."""
        facts, data = output.evaluation, self.options.data
        if facts is None:
            raise InputError("the compiler wrote no results to evaluate")
        with self.reporter.stage(
            f"executing {counted(facts.samples, 'sample')} on the host simulator"
        ) as step:
            results = measure(facts, self.request.folder, output.pte, self.runner, step)
        checks = threshold_checks(self.options.thresholds, results, facts.missing)
        found, gaps = _accuracy(facts, data, results, checks)
        missed = any(not check.passed for check in checks)
        entries = [
            provenance.file_entry("evaluation data", data),
            provenance.file_entry("host-runner", self.runner),
        ]
        inputs = record["provenance"]["inputs"]
        added = [row for row in entries if row not in inputs]  # the check may have used the host runner too
        overlap = facts.calibration_overlap
        warning = (
            f"{overlap} of the {facts.samples} evaluation samples are calibration samples too: the quantisation was "
            "fitted to them, and the figures flatter it."
        )
        return {
            **record,
            "status": "fail" if missed else record["status"],
            "provenance": {**record["provenance"], "inputs": [*inputs, *added]},
            "accuracy": found.to_json(),
            "warnings": [*record["warnings"], *([warning] if overlap else [])],
            "unavailable": [
                *record["unavailable"],
                *({"path": f"/accuracy/{path}", "reason": reason} for path, reason in gaps.items()),
            ],
        }


def measure(
    facts: EvaluationFacts, folder: Path, pte: Path, runner: Path, step: Callable[[str], None] | None = None
) -> list[PairResult]:
    """Execute `pte` on the stored inputs and compare all pairs, sample by sample. SimulationError when it fails."""
    from ethosu_sdk.simulate import host_runtime
    from ethosu_sdk.simulate.host_runtime import NpuModel

    def stored(name: str, numbers: Iterable[int]) -> dict[int, Array]:
        return {index: np.load(folder / f"{name}{index}.npy", mmap_mode="r") for index in numbers}

    results = _empty_results(facts)
    names = [name for name in (FLOAT, QUANTISED) if name not in facts.missing]
    names += [EXPECTED] if facts.expected else []
    truths = {name: stored(name, range(len(facts.outputs))) for name in names}
    truths[LABELS] = stored("label", facts.labels)
    model = NpuModel()
    with host_runtime.open_pte(runner, pte, model) as runtime:
        inputs = stored("input", range(len(runtime.inputs)))
        for sample in range(facts.samples):
            if step is not None and sample % _EVERY == 0:
                step(f"{sample} of {facts.samples}")
            try:
                executed = runtime.run([np.asarray(array[sample]) for array in inputs.values()])
            except InputError as error:  # no file of the user's: nobody else wrote this program
                raise SimulationError(f"the compiled program does not run: {error.message}") from error
            model.calls.clear()
            rows = {
                name: {index: np.asarray(array[sample]) for index, array in arrays.items()}
                for name, arrays in truths.items()
            }
            rows[EXECUTED] = dict(enumerate(in_float(facts.outputs, executed)))
            for result in results:
                _add(result, sample, rows, facts.outputs[result.output].classes)
    return results


def _empty_results(facts: EvaluationFacts) -> list[PairResult]:
    present = {name for name in (FLOAT, QUANTISED) if name not in facts.missing} | {EXECUTED}
    present |= {EXPECTED} if facts.expected else set()
    results = []
    for reference, candidate in PAIRS:
        for index, output in enumerate(facts.outputs):
            top1 = Top1() if output.classes is not None else None
            if reference == LABELS and candidate in present and index in facts.labels:
                results.append(PairResult(reference, candidate, index, None, top1))
            elif reference in present and candidate in present:
                lsb = None if output.quantisation is None else output.quantisation.scale
                results.append(PairResult(reference, candidate, index, Comparison(lsb), top1))
    return results


def _add(
    result: PairResult, sample: int, rows: Mapping[str, Mapping[int, Array]], classes: tuple[int, int] | None
) -> None:
    """Take one sample into a pair; `rows` are the outputs of each execution, and the truths."""
    reference, candidate = rows[result.reference][result.output], rows[result.candidate][result.output]
    if result.comparison is not None:
        result.comparison.add(sample, reference, candidate)
    if result.top1 is not None and classes is not None:
        wanted = reference if result.comparison is None else predictions(reference.reshape(classes))
        result.top1.add(wanted, candidate.reshape(classes))


def in_float(outputs: Sequence[EvaluatedOutput | CheckedOutput], executed: Sequence[Array]) -> list[Array]:
    """The outputs of the program in the model's own type, whether it gives that or the quantised values."""
    results = []
    for output, array in zip(outputs, executed, strict=True):
        form = output.quantisation
        if array.dtype.name == output.dtype:
            results.append(array)
        elif form is not None and array.dtype.name == form.dtype:
            stored = array.astype(np.float32) - np.float32(form.zero_point)
            results.append(stored * np.float32(form.scale))
        else:
            raise InputError(
                f"the program's output is {array.dtype.name}, the model's is {output.dtype}",
                "compile the model with --io float",
            )
    return results


def _accuracy(
    facts: EvaluationFacts, data: Path, results: Sequence[PairResult], checks: Sequence[Check]
) -> tuple[Accuracy, dict[str, str]]:
    pairs = [_pair(row, facts.outputs[row.output]) for row in results]
    gaps = {
        f"pairs/{number}/{name}": why for number, (_, gaps) in enumerate(pairs) for name, why in gaps.items()
    }
    if facts.calibration_overlap is None:
        gaps = {"data/calibration_overlap": "the model was not calibrated here", **gaps}
    executors = {name: by for name, by in _IN_TORCH.items() if name not in facts.missing}
    found = Accuracy(
        data=record_parts.EvaluationData(
            file=data.name,
            sha256=filesystem.sha256_file(data),
            samples=facts.samples,
            labels=facts.labels,
            expected=facts.expected,
            calibration_overlap=facts.calibration_overlap,
        ),
        executions=tuple(
            record_parts.Execution(name=name, by=by)
            for name, by in {**executors, "executed": executor_words()}.items()
        ),
        missing=tuple(
            record_parts.MissingExecution(name=convert(name, ExecutionName), reason=reason)
            for name, reason in facts.missing.items()
        ),
        outputs=tuple(_output(index, row) for index, row in enumerate(facts.outputs)),
        pairs=tuple(pair for pair, _ in pairs),
        verdict=_verdict(checks) if checks else None,
    )
    return found, gaps


def _verdict(checks: Sequence[Check]) -> common.Verdict:
    return common.Verdict(
        status="pass" if all(row.passed for row in checks) else "fail",
        checks=tuple(
            common.VerdictCheck(name=row.name, status="pass" if row.passed else "fail", detail=row.detail)
            for row in checks
        ),
    )


def _output(index: int, row: EvaluatedOutput) -> record_parts.Output:
    form = row.quantisation
    return record_parts.Output(
        index=index,
        shape=row.shape,
        dtype=convert(row.dtype, Dtype),
        quantisation=None
        if form is None
        else record_parts.Quantisation(
            dtype=convert(form.dtype, Dtype), scale=form.scale, zero_point=form.zero_point
        ),
    )


def _pair(row: PairResult, output: EvaluatedOutput) -> tuple[Pair, dict[str, str]]:
    found, top1, gaps = row.comparison, row.top1, dict[str, str]()
    if top1 is None:
        gaps["top1"] = "the output's shape is not one of class scores"
    elif math.isnan(top1.share):
        gaps["top1"], top1 = top1.reason, None
    pair = Pair(
        reference=convert(row.reference, record_parts.Reference),
        candidate=convert(row.candidate, ExecutionName),
        output=row.output,
        top1=None
        if top1 is None
        else record_parts.Top1(share=top1.share, right=top1.right, total=top1.total, ties=top1.ties),
    )
    if found is None:
        return pair, gaps
    figures = {name: getattr(found, name) for name in (SQNR, COSINE, MAX_ERROR)}
    gaps |= {name: found.reason(name) for name, value in figures.items() if not math.isfinite(value)}
    if found.histogram is None:
        gaps["lsb_histogram"] = output.reason or found.reason(MAX_ERROR)
    figures = {name: value for name, value in figures.items() if name not in gaps}
    if MAX_ERROR in figures:
        figures["max_abs_error_sample"] = found.max_error_sample
    return msgspec.structs.replace(
        pair,
        elements=found.elements,
        equal=found.equal,
        **figures,
        lsb_histogram=None if found.histogram is None else _histogram(found.histogram),
    ), gaps


def _histogram(counts: dict[int, int]) -> LsbHistogram:
    beyond = HISTOGRAM_LSB + 1
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
