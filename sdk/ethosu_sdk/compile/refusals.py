"""Errors for models that PyTorch runs but the tools cannot compile: the operator, its line, and a workaround that was
tried. The quantiser, Arm's passes and Vela raise what they like, from wherever they are. What they were working on is
in the frames of the exception; what works instead is known of some operators, and is tried for the others."""

from __future__ import annotations

import contextlib
import functools
import re
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ethosu_sdk.base import errors, plain_text, resources
from ethosu_sdk.base.errors import BuildError, InputError, SdkError
from ethosu_sdk.compile import quantizers, refused_operators
from ethosu_sdk.compile.compile_facts import CompileOutput, CompileRequest
from ethosu_sdk.compile.front_ends.model_spec import parse_model_spec
from ethosu_sdk.compile.graphs.source_lines import SourceFinder
from ethosu_sdk.compile.refused_operators import failing_node, failing_nodes
from ethosu_sdk.compile.tool_hooks import LOG_HINT
from ethosu_sdk.compile.vela_capture import VELA_REFUSED
from ethosu_sdk.records.compile import CpuOperator

Compile = Callable[[CompileRequest], object]
_FLOAT = (
    "keep it in float: `def quantizer(default): default.set_node_target(torch.ops.{}, None); return default` in the "
    "model's file (tried: it compiles)"
)
_CPU = "--no-delegate keeps every operator on the CPU (tried: it compiles)"
_UNQUANTISED = "--quantize none keeps every operator in float on the CPU (tried: it compiles)"
_TARGET = re.compile(r"aten\.\w+(\.\w+)?")
_WAY_OUT = (
    "compute it outside the model, or write it with operators of docs/reference/kernels.md; --no-check compiles it "
    "anyway"
)


def kernel_warnings(operators: Sequence[CpuOperator], *, strict: bool) -> tuple[str, ...]:
    """A warning of operators that the firmware has no kernel for. If `strict`, InputError with the line of an
    operator for which ExecuTorch has no kernel either."""
    path = resources.directory("firmware") / "kernels" / "kernels.toml"
    known = {name for table in tomllib.loads(path.read_text(encoding="utf-8")).values() for name in table}
    lacking = [row for row in operators if row.name not in known]
    missing = _without_portable_kernel(lacking) if lacking else []
    if missing and strict:
        raise _kernel_refusal(missing)
    if not lacking:
        return ()
    names = "; ".join(map(_at, lacking))
    where = "" if missing else ": the program runs on the host simulator and on ExecuTorch's own runner"
    return (f"The firmware has no kernel for {names}, and `build` refuses the program{where}.",)


def _kernel_refusal(missing: Sequence[CpuOperator]) -> InputError:
    row = refused_operators.refusal_of(missing[0].name)
    others = f", nor for {', '.join(other.name for other in missing[1:])}" if len(missing) > 1 else ""
    return InputError(
        f"{_at(missing[0])} stays on the CPU, but neither the firmware nor ExecuTorch has a kernel for it{others}"
        + (f": {row.reason}" if row else ""),
        row.way_out if row else _WAY_OUT,
    )


def _without_portable_kernel(operators: Sequence[CpuOperator]) -> list[CpuOperator]:
    """Those that ExecuTorch's own runtime lacks, as its wheel registers them."""
    from executorch.extension.pybindings import portable_lib

    known = frozenset(portable_lib._get_operator_names())
    return [row for row in operators if row.name not in known]


def _at(row: CpuOperator) -> str:
    source = row.sites[0].source if row.sites else None
    return row.name if source is None else f"{row.name} (at {source.words})"


def way_out_of(request: CompileRequest, compile_model: Compile, operator: str | None) -> str | None:
    """The hint for the first workaround with which `compile_model` can compile `request`; None when none works."""
    options = request.options
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ethosu-way-out-")))
        again = replace(
            request, out_dir=folder, evaluation=None, layers=None, check_folder=None, locate=False
        )
        if options.quantize != "none" and operator:
            with quantizers.kept_in_float(operator):
                if _works(compile_model, again):
                    return _FLOAT.format(operator)
        if options.delegate and _works(
            compile_model, replace(again, options=replace(options, delegate=False))
        ):
            return _CPU
        free = replace(options, quantize="none", calibration=(), io="float")
        if options.quantize != "none" and _works(compile_model, replace(again, options=free)):
            return _UNQUANTISED
    return None


def _works(compile_model: Compile, request: CompileRequest) -> bool:
    try:
        compile_model(request)
    except Exception:  # any failure means that this workaround does not work
        return False
    return True


def explain_failure(run: Callable[..., CompileOutput]) -> Callable[..., CompileOutput]:
    """`run`, which compiles a request, with the tools' errors as InputError: operator, line and a way out."""

    @functools.wraps(run)
    def explained(
        request: CompileRequest, progress: Callable[[str], None], *, is_alone: bool = False
    ) -> CompileOutput:
        try:
            return run(request, progress, is_alone=is_alone)
        except Exception as error:
            if not _is_the_models(error, request):
                raise
            raise _refusal(error, request, lambda other: run(other, lambda stage: None)) from error

    return explained


def _is_the_models(error: Exception, request: CompileRequest) -> bool:
    """Whether `error` is about what the model computes, and not about the machine, the command line or the files."""
    if errors.is_out_of_memory(error) or isinstance(error, (OSError, ImportError)):
        return False
    if isinstance(error, SdkError):
        cause = error.__cause__
        options = request.options
        if error.message.startswith(VELA_REFUSED) and (
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
    known = (row for row in failing_nodes(error) if refused_operators.refusal_of(row.operator))
    found = next(known, None) or failing_node(error)
    place = finder.place(found.meta) if found else None
    operator = found.operator if found else None
    target = _TARGET.search(operator) if operator else None
    row = refused_operators.refusal_of(operator) if operator else None
    what = (
        error.message
        if isinstance(error, SdkError)
        else f"lowering the model failed: {plain_text.error(error)}"
    )
    message = f"{operator or 'an operator'} cannot be compiled" + (f", at {place}" if place else "")
    message += f": {row.reason}; {what}" if row else f": {what}"
    if row:
        return InputError(message, row.way_out)
    return InputError(message, way_out_of(request, compile_model, target[0] if target else None) or LOG_HINT)
