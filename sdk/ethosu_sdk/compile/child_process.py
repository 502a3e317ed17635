"""The entry to compilation: checks the request, runs the worker process and returns its result; or one warm process
that forks for each (:mod:`ethosu_sdk.base.forks`); and what lowers and compiles a model on this machine."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ethosu_sdk import __version__
from ethosu_sdk.base import filesystem, forks, proc, resources, tools
from ethosu_sdk.base.errors import BuildError, InputError, SdkError, ToolError, UsageError, VerdictError
from ethosu_sdk.base.forks import Task
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.compile import compile_facts, vela_config
from ethosu_sdk.compile.compile_facts import CompileOutput, CompileRequest
from ethosu_sdk.compile.front_ends import table as front_ends
from ethosu_sdk.compile.front_ends.model_spec import check_model_file, parse_model_spec
from ethosu_sdk.compile.program_options import (
    FALLBACK_CHOICES,
    IO_CHOICES,
    QUANTIZE_CHOICES,
    QUANTIZE_PER_CHOICES,
)
from ethosu_sdk.compile.vela_config import resolve_target

Progress = Callable[[str], None]
Compiler = Callable[[CompileRequest, Progress | None], CompileOutput]

_EXIT_GRACE_S = 60.0
_IDENTITY_PACKAGES = ("torch", "torchao", "executorch", "ethos-u-vela", "tosa-tools", "numpy")
_SOURCE_SUFFIXES = (".py", ".toml", ".cpp", ".hpp", ".h", ".ld", ".cmake", ".txt", ".json")
_WORDS = {"import": "import of PyTorch and ExecuTorch"}  # of stages whose names say too little to people
_ERRORS: dict[str, type[SdkError]] = {
    kind.__name__: kind for kind in (UsageError, InputError, ToolError, BuildError, VerdictError)
}


def compile_model(request: CompileRequest, progress: Progress | None = None) -> CompileOutput:
    """Compile a model for a target in a process of its own. `progress` is called with the words for each of
    ``STAGES`` as that stage begins, and with ``NAME: DETAIL`` as a long one goes on. Everything that the tools print
    goes to ``compile.log`` in the output folder; nothing reaches this process's own output. Raises UsageError,
    InputError, ToolError (a package is missing) or BuildError, also when the worker dies or takes longer than
    ``request.timeout_s``."""
    request, log = _ready(request)
    messages = _Messages(progress or (lambda stage: None))
    reader, writer = os.pipe()
    try:
        words = [compile_facts.to_json(request), str(writer)]
        argv = [sys.executable, "-P", "-m", "ethosu_sdk.compile.worker", *words]
        # A fixed hash seed: torch's passes walk sets, and the `.pte` must not depend on their order.
        env = {**os.environ, "PYTHONHASHSEED": "0"}
        with (
            filesystem.open_replacing(log) as stream,
            proc.spawn(argv, env=env, pass_fds=(writer,), stdout=stream) as process,
        ):
            os.close(writer)
            writer = -1
            if not messages.read(reader, time.monotonic() + request.timeout_s):
                raise BuildError(
                    f"the compiler process did not end within {request.timeout_s:g} s",
                    f"its output is in {log}",
                )
            returncode = process.wait(_EXIT_GRACE_S)
    except subprocess.TimeoutExpired as error:
        raise BuildError("the compiler process reported that it was done but did not exit") from error
    except OSError as error:
        raise BuildError(f"cannot write {log}: {error.strerror}") from error
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)
    return messages.result(returncode, log)


def _ready(request: CompileRequest) -> tuple[CompileRequest, Path]:
    check_request(request)
    # After the check, and not above: the modules of the NPU model come with it, and a refusal need not wait for them.
    from ethosu_sdk.compile.vela_delegates import LOG_NAME

    request = replace(request, out_dir=filesystem.make_directory(request.out_dir).resolve())
    return request, request.out_dir / LOG_NAME


def check_request(request: CompileRequest) -> None:
    """Everything that can be judged without torch. UsageError, InputError or ToolError."""
    target, options = request.target, request.options
    if target is not None:
        resolve_target(target.name, target.system_config, target.memory_mode, options)
    else:
        _check_core(request)
    vela_config.check_flags(options.vela_flags)
    for what, value, choices in (
        ("quantisation", options.quantize, QUANTIZE_CHOICES),
        ("way to scale weights", options.quantize_per, QUANTIZE_PER_CHOICES),
        ("type of inputs and outputs", options.io, IO_CHOICES),
        ("fallback", options.fallback, FALLBACK_CHOICES),
    ):
        if value is not None and value not in choices:
            raise UsageError(f"unknown {what} '{value}'", suggestion(value, choices))
    if options.io == "int8" and options.quantize not in (None, "int8"):
        raise UsageError(
            f"--io int8 cannot be combined with --quantize {options.quantize}", "use --quantize int8"
        )
    spec = parse_model_spec(request.model)
    check_model_file(spec, trust=options.trust)
    for path in (options.inputs, *options.calibration):
        if path is not None and not path.is_file():
            raise InputError(f"there is no file {path}")
    front_ends.check_packages(spec.kind)


def _check_core(request: CompileRequest) -> None:
    resolve_target(request.core, None, None, request.options)
    if request.options.quantize == "int16":
        raise UsageError(f"there is no int16 for {request.core}", "use --quantize int8")
    if request.options.quantize_per == "tensor":
        raise UsageError(
            f"{request.core} has one scale for each channel of a convolution", "leave --quantize-per out"
        )


def _error_of(row: Mapping[str, str]) -> SdkError:
    return _ERRORS.get(row["class"], BuildError)(row["message"], row["hint"])


@dataclass
class _Messages:
    progress: Progress
    output: CompileOutput | None = None
    error: SdkError | None = None

    def read(self, reader: int, deadline: float) -> bool:
        """Read until the worker closes the pipe; False when `deadline` (on time.monotonic) passes before."""
        pending = b""
        with selectors.DefaultSelector() as selector:
            selector.register(reader, selectors.EVENT_READ)
            while True:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    return False
                chunk = os.read(reader, 1 << 16)
                if not chunk:
                    return True
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> None:
        if "stage" in message:
            self.progress(_WORDS.get(message["stage"], message["stage"]))
        elif "output" in message:
            self.output = compile_facts.from_json(CompileOutput, message["output"])
        else:
            self.error = _error_of(message["error"])

    def result(self, returncode: int, log: Path) -> CompileOutput:
        if self.output is not None and returncode == 0:
            return self.output
        if self.error is not None:
            raise self.error
        tail = proc.tail(log.read_text(encoding="utf-8", errors="replace"))
        raise BuildError(f"the compiler process ended {_how(returncode)}\n{tail}", f"its output is in {log}")


_REASONS = {
    "SIGKILL": " (the system does this when memory runs out)",
    "SIGSEGV": " (one of its tools crashed)",
}


def _how(returncode: int) -> str:
    if returncode >= 0:
        return f"with status {returncode}"
    name = signal.Signals(-returncode).name if -returncode in set(signal.Signals) else f"signal {-returncode}"
    return f"by {name}{_REASONS.get(name, '')}"


@contextlib.contextmanager
def warm_compiler(log: Path) -> Iterator[Compiler]:
    """A compiler like :func:`compile_model` for the time of a ``with`` block: it forks a process that has everything
    imported, whose start-up counts once. `log` takes what the process itself prints."""
    with forks.server("ethosu_sdk.compile.child_process", log) as server:

        def compile_warm(request: CompileRequest, progress: Progress | None = None) -> CompileOutput:
            del progress  # a fork tells nothing before it ends
            request, request_log = _ready(request)
            task = {"request": compile_facts.to_json(request), "log": str(request_log)}
            answer = server.call(task, request.timeout_s, None)
            if answer.end != forks.DONE:
                raise BuildError(
                    f"the compiler process ended without a result ({answer.end}) {answer.detail}".rstrip()
                )
            if "error" in answer.result:
                raise _error_of(answer.result["error"])
            return compile_facts.from_json(CompileOutput, answer.result["output"])

        yield compile_warm


def prepare() -> None:
    """Import what compilations need; called by the warm process."""
    from ethosu_sdk.compile import worker

    worker.import_tools()


def perform(task: Task) -> dict[str, Any]:
    """Compile in this process, a fork of the warm one, whose output goes to the log."""
    from ethosu_sdk.compile import worker

    with filesystem.open_replacing(Path(task["log"])) as stream:
        for number in (1, 2):
            os.dup2(stream.fileno(), number)
    request = compile_facts.from_json(CompileRequest, json.loads(task["request"]))
    try:
        output = worker.run_stages(request, lambda stage: None, is_alone=True)
    except Exception as error:
        return worker.error_message(error)
    return {"output": json.loads(compile_facts.to_json(output))}


@functools.cache
def compiler_identity() -> Record:
    """What lowers and compiles a model, by which a result is known: the SDK's version and its sources of that part,
    and the versions of the packages."""
    kernels = resources.directory("firmware") / "kernels"  # what a program may leave to the CPU
    return {
        "sdk": __version__,
        "packages": {name: tools.package_version(name) for name in _IDENTITY_PACKAGES},
        "compile": sources_digest(resources.PACKAGE_ROOT / "compile"),
        "kernels": sources_digest(kernels),
    }


@functools.cache
def sources_digest(folder: Path) -> str:
    """One digest of the sources below `folder`."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in _SOURCE_SUFFIXES and path.is_file())
    digests = {str(path.relative_to(folder)): filesystem.sha256_file(path) for path in paths}
    return filesystem.sha256_bytes(json.dumps(digests, sort_keys=True).encode())
