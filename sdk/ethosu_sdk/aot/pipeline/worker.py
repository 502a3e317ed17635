"""The process that compiles: ``python -m ethosu_sdk.aot.pipeline.worker REQUEST_JSON RESULT_FD``.

torch, torchao, Vela and the user's own file print as they like; this process has only a log to print on. What
the parent must know goes through RESULT_FD as JSON lines: ``{"stage": …}`` as the work goes on, then
``{"output": …}`` or ``{"error": …}``.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from typing import Any

from ethosu_sdk import errors, plain_text
from ethosu_sdk.aot.facts import crossing
from ethosu_sdk.aot.facts.compilation import CompileRequest
from ethosu_sdk.aot.pipeline import stages
from ethosu_sdk.errors import DISK_FULL, BuildError, SdkError, ToolError


def main() -> None:
    """Run the request of the command line and report through the pipe."""
    request = crossing.from_json(CompileRequest, json.loads(sys.argv[1]))
    with os.fdopen(int(sys.argv[2]), "w", encoding="utf-8") as stream:

        def send(message: dict[str, Any]) -> None:
            stream.write(crossing.to_text(message) + "\n")
            stream.flush()

        try:
            output = stages.run(request, lambda stage: send({"stage": stage}))
        except Exception as error:
            send(error_message(error))
            with contextlib.suppress(OSError):  # the log's disk may be what is full
                traceback.print_exc()
        else:
            send({"output": output})


def _as_sdk_error(error: Exception) -> SdkError:
    """The SDK's error for `error`, as the user sees it."""
    if errors.is_out_of_memory(error):
        return errors.out_of_memory(f"compiling the model: {getattr(error, 'message', error)}", MemoryError())
    if isinstance(error, SdkError):
        return error
    if isinstance(error, ImportError):
        return ToolError(
            f"the compiler's packages do not import: {error}", "pip install 'ethosu-sdk[compile]'"
        )
    if isinstance(error, OSError) and error.errno in DISK_FULL:
        where = error.filename or "the compiler's output"
        return BuildError(
            f"cannot write {where}: {error.strerror}", "free some space or choose another folder with -o"
        )
    return BuildError(
        f"compilation failed: {plain_text.error(error)}", "compile.log holds what the tools printed"
    )


def error_message(error: Exception) -> dict[str, Any]:
    """What the parent is told of `error`."""
    known = _as_sdk_error(error)
    return {"error": {"class": type(known).__name__, "message": known.message, "hint": known.hint}}


if __name__ == "__main__":
    main()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(0)  # threads that the user's file started do not keep the process
