"""The steps of a cell, each in a process of its own (:mod:`ethosu_sdk.proc.forks`): lower, compile, run.

A step fills an existing folder and returns its outcome; its output goes to the log.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ethosu_sdk import aot, cache, errors, plain_text, provenance, schema
from ethosu_sdk.aot.pipeline import stages
from ethosu_sdk.aot.sharing import compiling, lowered_program
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.errors import BuildError, SdkError
from ethosu_sdk.files import opening, writing
from ethosu_sdk.proc.forks import Task
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.results import bundle, locations
from ethosu_sdk.steps.compile import check_record, compile_record
from ethosu_sdk.steps.compile.check import Check
from ethosu_sdk.steps.compile.compile_command import compile_key, files
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.evaluate.evaluate_command import EvaluateOptions, Evaluation
from ethosu_sdk.steps.run import run_command
from ethosu_sdk.steps.run.options import RunOptions
from ethosu_sdk.sweep import rows
from ethosu_sdk.sweep.configuration.systems import DEFAULT
from ethosu_sdk.sweep.reads import Reads
from ethosu_sdk.targets import AnyTarget, Core, Target

Outcome = dict[str, Any]


def prepare() -> None:
    """Import and look up what all steps need."""
    stages.import_tools()
    provenance.git_revision()
    for kind in (kinds.COMPILE, kinds.RUN, kinds.MANIFEST):
        schema.refusal({"schema": kind.schema})


def perform(task: Task) -> Outcome:
    """Do the step of `task` in this process; its outcome, or the error as JSON values."""
    _to_log(Path(task["log"]))
    os.chdir(task["cwd"])
    start = time.monotonic()
    reads = Reads([Path(task["store"])]) if task["step"] == "lower" else None
    outcome = _caught(lambda: _STEPS[task["step"]](task))
    if reads is not None:
        outcome |= _caught(lambda: _written_with(reads, task, outcome))
    return {**outcome, "seconds": round(time.monotonic() - start, 3)}


def _caught(function: Callable[[], Outcome]) -> Outcome:
    """The result of `function`, or the error, which may be no Exception, such as a model's SystemExit."""
    try:
        return function()
    except BaseException as error:
        if not isinstance(error, SdkError):
            sys.excepthook(*sys.exc_info())
        return {"error": _error(error), "again": errors.is_of_the_machine(error)}


def _written_with(reads: Reads, task: Task, outcome: Outcome) -> Outcome:
    """The digests of what a lowering read; they are part of its facts."""
    digests = reads.digests(Path(task["cwd"]))
    if "error" not in outcome:
        lowered_program.write_facts(Path(task["out"]), outcome.pop("output"), digests)
    return {"reads": digests}


def _to_log(log: Path) -> None:
    with opening.appending(log) as stream:
        for number in (1, 2):
            os.dup2(stream.fileno(), number)


def _error(error: BaseException) -> Outcome:
    if errors.is_out_of_memory(error):
        known: SdkError = errors.out_of_memory("a task of the sweep", error)
        return {**known.to_json(), "status": rows.OUT_OF_MEMORY}
    if isinstance(error, SdkError):
        return error.to_json()
    return unexpected(plain_text.error(error))


def unexpected(text: str) -> Outcome:
    """The message for an unexpected exception, ``TYPE: TEXT``."""
    known = BuildError(f"the step failed: {text}", "compile.log holds what was printed")
    return {**known.to_json(), "class": text.partition(":")[0]}


def _target(task: Task) -> AnyTarget:
    row = task["target"]
    return Target(**row) if "npu" in row else Core(**row)


def _options(task: Task) -> CompileOptions:
    target = _target(task)
    return CompileOptions(
        target=target.name,
        system_config=target.system_config if isinstance(target, Target) else None,
        memory_mode=target.memory_mode if isinstance(target, Target) else None,
        quantize=None if task["quantize"] == DEFAULT else task["quantize"],
        trust=task["trust"],
    )


def _request(task: Task, options: CompileOptions, out: Path) -> aot.CompileRequest:
    target = _target(task)
    return aot.CompileRequest(
        task["model"],
        target if isinstance(target, Target) else None,
        out,
        core=target.name if isinstance(target, Core) else None,
        options=options,
        check_folder=out / lowered_program.CHECK_FOLDER,
        evaluation=_evaluation(task, out),
    )


def _evaluation(task: Task, lowered: Path) -> aot.EvaluationRequest | None:
    """What is asked about accuracy, with the outputs in the folder `lowered`."""
    if task["samples"] is None:
        return None
    return aot.EvaluationRequest(Path(task["samples"]).resolve(), lowered / lowered_program.EVALUATION_FOLDER)


def _lower(task: Task) -> Outcome:
    out = Path(task["out"])
    request = _request(task, _options(task), out)
    for name in (lowered_program.CHECK_FOLDER, lowered_program.EVALUATION_FOLDER):
        writing.make_directory(out / name)
    return {"output": stages.run(replace(request, without_vela=True), print)}


def _compile(task: Task) -> Outcome:
    """The program, with a record as of `compile`. A check that fails is an error, and everything is there."""
    start = time.monotonic()
    out, lowering = Path(task["out"]), lowered_program.read(Path(task["lowered"]))
    options = _options(task)
    if task["vela_config"] is not None:
        options = replace(options, vela_config=Path(task["vela_config"]))
    options = replace(options, system=task["system"])
    request = _request(task, options, out)
    with (
        bundle.published(out, "compile") as add,
        tempfile.TemporaryDirectory(prefix=".check-", dir=out) as spool,
    ):
        output = compiling.compile_lowered(lowering, request, task["vela"])
        for path in lowering.check_folder.iterdir():
            os.symlink(path.resolve(), Path(spool) / path.name)
        key = compile_key(task["model"], options, request.goal)
        record = compile_record.make(request, output, key, time.monotonic() - start)
        check = Check(Path(spool), Reporter(quiet=True), locate=False)
        record = _evaluated(task, check.extend(record, request, output), output)
        record["wall_time_s"] = round(time.monotonic() - start, 3)
        compile_record.write(locations.compile_record(output.pte), record)
        add(*files(output.pte, record))
    check_record.raise_if_failed(record, recorded=True)
    return {}


def _evaluated(task: Task, record: Record, output: aot.CompileOutput) -> Record:
    """`record` with its accuracy, where that is asked for."""
    request = _evaluation(task, Path(task["lowered"]))
    if request is None:
        return record
    from ethosu_sdk.simulators import host

    runner = host.build_runner(cache.directory(host.CACHE_PART))
    options = EvaluateOptions(request.data)
    return Evaluation(options, request, runner, Reporter(quiet=True)).extend(record, output)


def _run(task: Task) -> Outcome:
    out = Path(task["out"])
    (pte,) = out.glob("*.pte")
    given = task["inputs"]
    options = RunOptions(
        simulator=task["simulator"],
        board=task["board"],
        inputs=None if given == DEFAULT else Path(given),
        timeout_s=task["time_s"] or RunOptions.timeout_s,
        cpu_clock_mhz=task["cpu_clock_mhz"],
    )
    run_command.run(
        str(pte), CompileOptions(system=task["system"]), options, out, Reporter(quiet=True).for_step()
    )
    return {}


def link_files(source: Path, folder: Path) -> None:
    """The files of a folder of results in another one, without a copy where the disk allows it."""
    for path in source.iterdir():
        if path.is_file() and not path.name.startswith("."):
            try:
                os.link(path, folder / path.name)
            except OSError:
                writing.copy_file(path, folder / path.name)


_STEPS: dict[str, Callable[[Task], Outcome]] = {"lower": _lower, "compile": _compile, "run": _run}
