"""Many compilations in a row, in forks of a process that has everything imported (:mod:`ethosu_sdk.proc.forks`)."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ethosu_sdk.aot.facts import crossing
from ethosu_sdk.aot.facts.compilation import CompileOutput, CompileRequest
from ethosu_sdk.aot.pipeline import compiler
from ethosu_sdk.aot.pipeline.compiler import Compiler, Progress
from ethosu_sdk.errors import BuildError
from ethosu_sdk.files import opening, writing
from ethosu_sdk.proc import forks
from ethosu_sdk.proc.forks import Server, Task

_MODULE = "ethosu_sdk.aot.pipeline.warm"


@contextlib.contextmanager
def warm_compiler(log: Path) -> Iterator[Compiler]:
    """A compiler like :func:`compiler.compile_model` for the time of a ``with`` block, whose start-up counts once.
    `log` takes what the process itself prints."""
    with forks.server(_MODULE, log) as server:

        def compile_warm(request: CompileRequest, progress: Progress | None = None) -> CompileOutput:
            del progress  # a fork tells nothing before it ends
            return _compiled(server, request)

        yield compile_warm


def _compiled(server: Server, request: CompileRequest) -> CompileOutput:
    # Here and not above: the modules of the NPU model come with it.
    from ethosu_sdk.aot.vela.artefacts import LOG_NAME

    compiler.check(request)
    request = replace(request, out_dir=writing.make_directory(request.out_dir).resolve())
    log = request.out_dir / LOG_NAME
    task = {"request": crossing.to_text(request), "log": str(log)}
    answer = server.call(task, request.timeout_s, None)
    if answer.end != forks.DONE:
        raise BuildError(
            f"the compiler process ended without a result ({answer.end}) {answer.detail}".rstrip()
        )
    if "error" in answer.result:
        raise compiler.error_of(answer.result["error"])
    return crossing.from_json(CompileOutput, answer.result["output"])


def prepare() -> None:
    """Import what compilations need."""
    from ethosu_sdk.aot.pipeline import stages

    stages.import_tools()


def perform(task: Task) -> dict[str, Any]:
    """Compile in this process, whose output goes to the log."""
    from ethosu_sdk.aot.pipeline import stages, worker

    with opening.replacing(Path(task["log"])) as stream:
        for number in (1, 2):
            os.dup2(stream.fileno(), number)
    request = crossing.from_json(CompileRequest, json.loads(task["request"]))
    try:
        output = stages.run(request, lambda stage: None)
    except Exception as error:
        return worker.error_message(error)
    return {"output": json.loads(crossing.to_text(output))}
