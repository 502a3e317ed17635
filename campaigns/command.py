"""`ethosu-sdk` in a fork of this process.

A fresh process imports torch, ExecuTorch and a model's packages for each command, which takes longer than many a
lowering. Here they are imported once; each command still has a process of its own, with the arguments, streams and
exit code that it has on a command line.
"""

import contextlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.cli import main
from ethosu_sdk.compile import child_process, compile_command, compile_facts, worker
from ethosu_sdk.compile.compile_facts import CompileOutput, CompileRequest
from ethosu_sdk.compile.vela_delegates import LOG_NAME
from ethosu_sdk.compile.worker import _as_sdk_error

_CRASHED = 70  # as no exit code of the SDK
_POLL_S = 0.1


@dataclass(frozen=True)
class Done:
    """How a command ended: its exit code, None when it was stopped; what it printed on stdout and stderr."""

    code: int | None
    out: str
    err: str


def sdk(arguments: Sequence[str | Path], folder: Path, limit_s: float) -> Done:
    """Run `ethosu-sdk` with `arguments`; its streams go to files in `folder`."""
    return forked(lambda: in_this_process([str(argument) for argument in arguments]), folder, limit_s)


def forked(work: Callable[[], None], folder: Path, limit_s: float) -> Done:
    """Do `work` in a fork, as a process group that ends with it."""
    out, err = folder / "stdout.txt", folder / "stderr.txt"
    child = os.fork()
    if child == 0:
        _redirected(work, out, err)
    status = _wait(child, time.monotonic() + limit_s)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what it may have left running
    code = None if status is None else os.waitstatus_to_exitcode(status)
    return Done(code, out.read_text(errors="replace"), err.read_text(errors="replace"))


def _redirected(work: Callable[[], None], out: Path, err: Path) -> None:
    """The child's life: it does not return."""
    code = _CRASHED
    try:
        os.setsid()
        for path, descriptor in ((out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), descriptor)
        work()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _wait(child: int, deadline: float) -> int | None:
    """The status of the child; None when it had to be stopped."""
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        time.sleep(_POLL_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def in_this_process(arguments: list[str]) -> None:
    """The command with its arguments; it ends with SystemExit."""
    child_process.compile_model = _compile_here
    taken = compile_command.compile_model.__kwdefaults__  # at the module's import
    assert "compiler" in taken
    taken["compiler"] = _compile_here
    sys.argv = ["ethosu-sdk", *arguments]
    main()


def _compile_here(request: CompileRequest, progress: Callable[[str], None] | None = None) -> CompileOutput:
    """What the compiler's process does, in this one: the log gets what is printed, an error becomes the user's."""
    request.out_dir.mkdir(parents=True, exist_ok=True)
    kept = [os.dup(1), os.dup(2)]
    with (request.out_dir / LOG_NAME).open("wb") as log:
        for descriptor in (1, 2):
            os.dup2(log.fileno(), descriptor)
        try:
            output = worker.run_stages(request, progress or (lambda stage: None))
            return compile_facts.from_json(CompileOutput, json.loads(compile_facts.to_json(output)))
        except Exception as error:
            traceback.print_exc()
            raise _as_sdk_error(error) from None
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            for copy, descriptor in zip(kept, (1, 2), strict=True):
                os.dup2(copy, descriptor)
                os.close(copy)
