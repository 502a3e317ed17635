"""The steps of a cell, each in a process of its own (:mod:`ethosu_sdk.base.forks`): lower, compile, run."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ethosu_sdk.base import cache, errors, filesystem, plain_text, tools
from ethosu_sdk.base.errors import BuildError, SdkError
from ethosu_sdk.base.forks import Task
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.targets import AnyTarget, Core, Target
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile import (
    check_record,
    compile_facts,
    compile_record,
    shared_compiling,
    shared_lowering,
    worker,
)
from ethosu_sdk.compile.compile_command import compile_key, compiled_files
from ethosu_sdk.compile.evaluation import EvaluateOptions, Evaluation
from ethosu_sdk.compile.model_reads import Recorder
from ethosu_sdk.compile.program_check import ProgramCheck
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.records import bundle, kinds, result_files, validation
from ethosu_sdk.run import run_command
from ethosu_sdk.run.options import RunOptions
from ethosu_sdk.sweep import cell_rows
from ethosu_sdk.sweep.sweep_configuration import DEFAULT

Outcome = dict[str, Any]


def prepare() -> None:
    worker.import_tools()
    tools.git_revision()
    for kind in (kinds.COMPILE, kinds.RUN, kinds.MANIFEST):
        validation.first_refusal({"schema": kind.schema})


def perform(task: Task) -> Outcome:
    """Do the step of `task` in this process: it fills an existing folder, and its output goes to the log. Its
    outcome, or the error as JSON values."""
    with filesystem.open_appending(Path(task["log"])) as stream:
        for number in (1, 2):
            os.dup2(stream.fileno(), number)
    os.chdir(task["cwd"])
    start = time.monotonic()
    reads = Recorder(os.environ) if task["step"] == "lower" else None
    outcome = _caught(lambda: _STEPS[task["step"]](task))

    def facts_written(reads: Recorder) -> Outcome:  # digests of what a lowering read are part of its facts
        digests = reads.digests(Path(task["cwd"]))
        if "error" not in outcome:
            shared_lowering.write_facts(Path(task["out"]), outcome.pop("output"), digests)
        return {"reads": digests}

    if reads is not None:
        outcome |= _caught(lambda: facts_written(reads))
    return {**outcome, "seconds": round(time.monotonic() - start, 3)}


def _caught(function: Callable[[], Outcome]) -> Outcome:
    """The result of `function`, or the error, which may be no Exception, such as a model's SystemExit."""
    try:
        return function()
    except BaseException as error:
        if not isinstance(error, SdkError):
            sys.excepthook(*sys.exc_info())
        if errors.is_out_of_memory(error):
            known = errors.out_of_memory("a task of the sweep", error).to_json()
            known["status"] = cell_rows.OUT_OF_MEMORY
        else:
            known = error.to_json() if isinstance(error, SdkError) else unexpected(plain_text.error(error))
        return {"error": known, "again": errors.is_of_the_machine(error)}


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


def unexpected(text: str) -> Outcome:
    """The message for an unexpected exception, ``TYPE: TEXT``."""
    known = BuildError(f"the step failed: {text}", "compile.log holds what was printed")
    return {**known.to_json(), "class": text.partition(":")[0]}


def _request(task: Task, options: CompileOptions, out: Path) -> compile_facts.CompileRequest:
    target = _target(task)
    return compile_facts.CompileRequest(
        task["model"],
        target if isinstance(target, Target) else None,
        out,
        core=target.name if isinstance(target, Core) else None,
        options=options,
        check_folder=out / shared_lowering.CHECK_FOLDER,
        evaluation=_evaluation(task, out),
    )


def _evaluation(task: Task, lowered: Path) -> compile_facts.EvaluationRequest | None:
    """What is asked about accuracy, with the outputs in the folder `lowered`."""
    if task["samples"] is None:
        return None
    folder = lowered / shared_lowering.EVALUATION_FOLDER
    return compile_facts.EvaluationRequest(Path(task["samples"]).resolve(), folder)


def _lower(task: Task) -> Outcome:
    out = Path(task["out"])
    request = _request(task, _options(task), out)
    for name in (shared_lowering.CHECK_FOLDER, shared_lowering.EVALUATION_FOLDER):
        filesystem.make_directory(out / name)
    return {"output": worker.run_stages(replace(request, without_vela=True), print)}


def _compile(task: Task) -> Outcome:
    """The program, with a record as of `compile`. A check that fails is an error, and everything is there."""
    start = time.monotonic()
    out, lowering = Path(task["out"]), shared_lowering.read_lowered(Path(task["lowered"]))
    vela_config = None if task["vela_config"] is None else Path(task["vela_config"])
    options = replace(_options(task), vela_config=vela_config, system=task["system"])
    request = _request(task, options, out)
    with (
        bundle.writing_folder(out, "compile") as add,
        tempfile.TemporaryDirectory(prefix=".check-", dir=out) as spool,
    ):
        output = shared_compiling.compile_lowered(lowering, request, task["vela"])
        for path in lowering.check_folder.iterdir():
            os.symlink(path.resolve(), Path(spool) / path.name)
        key = compile_key(task["model"], options, request.goal)
        record = compile_record.compile_record(request, output, key, time.monotonic() - start)
        check = ProgramCheck(Path(spool), Reporter(quiet=True), locate=False)
        record = _evaluated(task, check.extend(record, request, output), output)
        record["wall_time_s"] = round(time.monotonic() - start, 3)
        path = result_files.compile_record_path(output.pte)
        validation.write_record(path, record, "the compile result")
        add(*compiled_files(output.pte, record))
    check_record.raise_if_failed(record, recorded=True)
    return {}


def _evaluated(task: Task, record: Record, output: compile_facts.CompileOutput) -> Record:
    request = _evaluation(task, Path(task["lowered"]))
    if request is None:
        return record
    from ethosu_sdk.simulate import host_runtime

    runner = host_runtime.build_runner(cache.directory(host_runtime.CACHE_PART))
    options = EvaluateOptions(request.data)
    return Evaluation(options, request, runner, Reporter(quiet=True)).extend(record, output)


def _run(task: Task) -> Outcome:
    out = Path(task["out"])
    (pte,) = out.glob("*.pte")
    options = RunOptions(
        simulator=task["simulator"],
        board=task["board"],
        inputs=None if task["inputs"] == DEFAULT else Path(task["inputs"]),
        timeout_s=task["time_s"] or RunOptions.timeout_s,
        cpu_clock_mhz=task["cpu_clock_mhz"],
    )
    priced, reporter = CompileOptions(system=task["system"]), Reporter(quiet=True).for_step()
    run_command.run(str(pte), priced, options, out, reporter)
    return {}


def link_files(source: Path, folder: Path) -> None:
    """The files of a folder of results in another one, without a copy where the disk allows it."""
    for path in source.iterdir():
        if path.is_file() and not path.name.startswith("."):
            try:
                os.link(path, folder / path.name)
            except OSError:
                filesystem.copy_file(path, folder / path.name)


_STEPS: dict[str, Callable[[Task], Outcome]] = {"lower": _lower, "compile": _compile, "run": _run}
