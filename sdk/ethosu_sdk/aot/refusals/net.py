"""Turns failures of the tools on a model that PyTorch runs into an error that names the operator.

The quantiser, Arm's passes and Vela raise what they like, from wherever they are. What they were working on is in the
frames of the exception; what works instead is known of some operators, and is tried for the others.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from ethosu_sdk import errors, plain_text
from ethosu_sdk.aot.facts.compilation import CompileOutput, CompileRequest
from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.aot.model.spec import parse_model_spec
from ethosu_sdk.aot.refusals import rows, ways_out
from ethosu_sdk.aot.refusals.suspects import Suspect, suspect, suspects
from ethosu_sdk.aot.refusals.ways_out import Compile
from ethosu_sdk.aot.vela.capture import REFUSED
from ethosu_sdk.errors import BuildError, InputError, SdkError

_TARGET = re.compile(r"aten\.\w+(\.\w+)?")


def explaining(run: Callable[..., CompileOutput]) -> Callable[..., CompileOutput]:
    """`run`, which compiles a request, with the tools' errors as InputError: operator, line and a way out."""

    @functools.wraps(run)
    def explained(request: CompileRequest, progress: Callable[[str], None]) -> CompileOutput:
        try:
            return run(request, progress)
        except Exception as error:
            if not _is_the_models(error, request):
                raise
            raise _refusal(error, request, lambda other: run(other, _silent)) from error

    return explained


def _silent(_stage: str) -> None:
    """Progress of a try: not shown."""


def _is_the_models(error: Exception, request: CompileRequest) -> bool:
    """Whether `error` is about what the model computes, and not about the machine, the command line or the files."""
    if errors.is_out_of_memory(error) or isinstance(error, (OSError, ImportError)):
        return False
    if isinstance(error, SdkError):
        cause = error.__cause__
        options = request.options
        if error.message.startswith(REFUSED) and (
            options.system or options.vela_config or options.vela_flags
        ):
            return False
        return (
            isinstance(error, BuildError) and isinstance(cause, Exception) and not isinstance(cause, OSError)
        )
    return True


def _refusal(error: Exception, request: CompileRequest, compile_model: Compile) -> InputError:
    path = parse_model_spec(request.model).path
    finder = SourceFinder(None if path is None else path.resolve().parent)
    known = (row for row in suspects(error) if rows.refusal_of(row.operator))
    found = next(known, None) or suspect(error)
    place = finder.place(found.meta) if found else None
    operator = found.operator if found else None
    row = rows.refusal_of(operator) if operator else None
    what = (
        error.message
        if isinstance(error, SdkError)
        else f"lowering the model failed: {plain_text.error(error)}"
    )
    message = f"{operator or 'an operator'} cannot be compiled" + (f", at {place}" if place else "")
    message += f": {row.reason}; {what}" if row else f": {what}"
    if row:
        return InputError(message, row.way_out)
    return InputError(
        message,
        ways_out.tried(request, compile_model, _aten(found)) or "compile.log holds what the tools printed",
    )


def _aten(found: Suspect | None) -> str | None:
    match = _TARGET.search(found.operator) if found else None
    return match[0] if match else None
