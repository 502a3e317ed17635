"""`compile --evaluate`: the model in floating point, quantised, and as the `.pte` on the host simulator, compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk import aot, cache, provenance
from ethosu_sdk.aot.comparison.evaluation import evaluation_data
from ethosu_sdk.aot.facts.evaluation import FLOAT, QUANTISED
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.errors import InputError, SimulationError, UsageError
from ethosu_sdk.evidence.accuracy import Comparison, Top1, predictions
from ethosu_sdk.files import locks, writing
from ethosu_sdk.plain_text import counted
from ethosu_sdk.records import Record
from ethosu_sdk.steps.evaluate import evaluate_record
from ethosu_sdk.steps.evaluate.thresholds import (
    EXECUTED,
    EXPECTED,
    LABELS,
    PAIRS,
    TOP1,
    TOP1_DROP,
    TRUTHS,
    PairResult,
    Threshold,
    judge,
    parse,
)

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
    read = tuple(parse(name, text) for name, texts in thresholds.items() for text in texts or ())
    if data is None and read:
        raise UsageError(f"{read[0].text} needs an evaluation", "give the samples with --evaluate F.npz")
    return None if data is None else EvaluateOptions(data, read)


def read_floor(texts: Sequence[str] | None) -> float | None:
    """The ``--min-sqnr`` of a compilation without an evaluation, in dB. UsageError unless it is one number."""
    if not texts:
        return None
    read = [parse("--min-sqnr", text) for text in texts]
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
    request: aot.EvaluationRequest
    runner: Path
    reporter: Reporter

    def extend(self, record: Record, output: aot.CompileOutput) -> Record:
        """The record of the compilation with its accuracy. SimulationError when the program does not run."""
        facts = output.evaluation
        if facts is None:
            raise InputError("the compiler wrote no results to evaluate")
        with self.reporter.stage(
            f"executing {counted(facts.samples, 'sample')} on the host simulator"
        ) as step:
            results = measure(facts, self.request.folder, output.pte, self.runner, step)
        version = provenance.package_version(_PACKAGE) or "unknown"
        evaluated = evaluate_record.Evaluated(
            facts=facts,
            data=self.options.data,
            results=results,
            checks=judge(self.options.thresholds, results, facts.missing),
            executor=f"ExecuTorch {version}'s runtime on this machine, delegates on the SDK's NPU model",
        )
        inputs = [
            provenance.file_entry("evaluation data", self.options.data),
            provenance.file_entry("host-runner", self.runner),
        ]
        return evaluate_record.extend(record, evaluated, inputs)


@contextmanager
def prepared(
    options: EvaluateOptions | None, folder: Path, reporter: Reporter
) -> Iterator[Evaluation | None]:
    """What can fail before the model is compiled, and a folder below `folder` for its outputs; None without options.

    Raises InputError for a file that cannot be meant, ToolError without a compiler for the host simulator.
    """
    if options is None:
        yield None
        return
    # Here and not above: the NPU model comes with it, and most compilations need none.
    from ethosu_sdk.simulators import host

    _check_truth(options, evaluation_data.content(options.data))
    with reporter.stage("building the host runner (the first time only)"):
        runner = host.build_runner(cache.directory_or_own(host.CACHE_PART))
    # Not in the system's temporary folder, which may be in memory: the outputs of many samples can be large.
    with locks.temporary_directory(".evaluation-", writing.make_directory(folder)) as spool:
        request = aot.EvaluationRequest(options.data.resolve(), spool.resolve())
        yield Evaluation(options, request, runner, reporter)


def _check_truth(options: EvaluateOptions, held: evaluation_data.Content) -> None:
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
    facts: aot.EvaluationFacts,
    folder: Path,
    pte: Path,
    runner: Path,
    step: Callable[[str], None] | None = None,
) -> list[PairResult]:
    """Execute `pte` on the inputs that the compiler left in `folder`, and compare all pairs.

    Raises SimulationError when the program fails; `step` is called with words about the progress.
    """
    from ethosu_sdk.simulators import host
    from ethosu_sdk.simulators.host.npu_model import NpuModel

    results = _empty_results(facts)
    model = NpuModel()
    with host.open_pte(runner, pte, model) as runtime:
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


def _empty_results(facts: aot.EvaluationFacts) -> list[PairResult]:
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
    results: Sequence[PairResult], sample: int, rows: dict[str, Sequence[Array]], facts: aot.EvaluationFacts
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
    outputs: Sequence[aot.EvaluatedOutput | aot.CheckedOutput], executed: Sequence[Array]
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

    def __init__(self, folder: Path, facts: aot.EvaluationFacts, inputs: int) -> None:
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
