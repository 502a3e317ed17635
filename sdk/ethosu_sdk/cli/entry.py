"""The entry point: runs a command, prints its error and ends the process with the error's exit code."""

from __future__ import annotations

import errno
import io
import shlex
import shutil
import sys
import traceback

import typer

from ethosu_sdk.base import errors, filesystem, interrupts, json_text, plain_text
from ethosu_sdk.base.errors import BuildError, InputError, SdkError, SimulationError, ToolError, UsageError
from ethosu_sdk.cli import completion
from ethosu_sdk.cli.app import command_line
from ethosu_sdk.cli.options import Invocation

_DISK = (*errors.DISK_FULL, errno.EROFS, errno.EIO)
_NEXT_HINT = "\nhint: "
# Errors whose message quotes a linker, a firmware or a simulator.
_TOLD_BY_OTHERS = (ToolError.exit_code, BuildError.exit_code, SimulationError.exit_code)


def main() -> None:
    """Run the command of the command line and end the process with its exit code."""
    sys.exit(run())


def run() -> int:
    """Run the command of the command line; its exit code, which is not 0 when output was lost."""
    plain_text.guard_streams()
    code = interrupts.run(_run_app)
    lost = plain_text.stream_failure(sys.stdout)
    if lost is None:
        return code
    _say("error", f"cannot write to standard output: {lost.strerror}")
    return code or BuildError.exit_code


def _run_app() -> int:
    try:
        completion.take_zoo_out()
        outcome = command_line(sys.argv[1:]).main(prog_name=completion.PROGRAM, standalone_mode=False)
        return outcome if isinstance(outcome, int) else 0
    except typer.Abort:
        return interrupts.EXIT_CODE
    except Exception as error:
        return _failed(error, Invocation.of_line(sys.argv[1:]))


def _failed(error: Exception, invocation: Invocation) -> int:
    known = _known(error)
    show = getattr(error, "show", None)
    if known is None and callable(show):  # a click usage error: unknown option, missing argument
        said = io.StringIO()
        show(file=said)
        sys.stderr.write(plain_text.lines(said.getvalue()))
        return UsageError.exit_code
    if invocation.debug:
        sys.stderr.write(plain_text.lines(traceback.format_exc()))
    if known is not None:
        return _report(known, invocation)
    _say("error", f"internal error: {type(error).__name__}: {error}")
    _say("hint", "run again with --debug and report the traceback")
    return SdkError.exit_code


def _known(error: Exception) -> SdkError | None:
    """`error` as an SdkError if the operating system caused it; None for an internal error."""
    if isinstance(error, SdkError):
        return error
    if isinstance(error, MemoryError):
        return errors.out_of_memory(
            f"the command {sys.argv[1] if sys.argv[1:] else completion.PROGRAM}", error
        )
    if isinstance(error, UnicodeEncodeError) and sys.getfilesystemencoding() != "utf-8":
        return InputError(
            f"the name {error.object!r} cannot be written in this locale's encoding, {error.encoding}",
            "set LC_ALL=C.UTF-8",
        )
    return _refused(error) if isinstance(error, OSError) else None


def _refused(error: OSError) -> SdkError | None:
    if isinstance(error, FileNotFoundError) and filesystem.working_folder_is_gone():
        return InputError("the working folder no longer exists", "change to one that does: cd FOLDER")
    if error.filename is None and error.errno not in _DISK:
        return None
    what = f"cannot use {error.filename}" if error.filename is not None else "cannot write"
    if error.errno in _DISK:
        return BuildError(f"{what}: {error.strerror}", "free some space or choose another folder with -o")
    return InputError(f"{what}: {error.strerror}")


def _report(error: SdkError, invocation: Invocation) -> int:
    advice, tries = _advice(error), [_same_command(option) for option in error.remedies]
    _say("error", error.message)
    for text in filter(None, advice.split(_NEXT_HINT)):
        _say("hint", text)
    for command in tries:
        _say("try", command)
    hint = "\n".join(filter(None, (advice, *(f"try: {command}" for command in tries))))
    if invocation.json and not error.recorded:
        from ethosu_sdk.records import kinds, provenance

        sys.stdout.write(
            json_text.dumps(
                {
                    **provenance.opening(kinds.ERROR.schema, "error"),
                    "error": {**error.to_json(), **({"hint": hint} if hint else {})},
                }
            )
        )
    return error.exit_code


def _advice(error: SdkError) -> str:
    """The error's own hint, and what the catalogue knows about the tool's or firmware's message in it."""
    if error.exit_code not in _TOLD_BY_OTHERS:
        return error.hint
    from ethosu_sdk.base import error_catalogue

    known = [row.advice for row in error_catalogue.in_text(error.message.splitlines()) if not row.harmless]
    new = [advice for advice in known[:1] if advice not in error.hint]
    return _NEXT_HINT.join(filter(None, (error.hint, *new)))


def _same_command(option: tuple[str, ...]) -> str:
    """The command line at hand with `option` (a name, and a value if it takes one) in place of its own, if any."""
    name, *value = option
    words: list[str] = []
    skipping = False
    for word in sys.argv[1:]:
        if not skipping and word != name and not word.startswith(f"{name}="):
            words.append(word)
        skipping = not skipping and word == name and bool(value)
    return shlex.join([completion.PROGRAM, *words, *option])


def _say(word: str, text: str) -> None:
    wraps = word != "try" and sys.stderr.isatty()  # a command is copied as it is
    width = shutil.get_terminal_size().columns if wraps else None
    sys.stderr.write(plain_text.message(word, text, width))
