"""What a rewrite for speed has to keep, and what it has to reach: for each family of networks beside this file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ethosu_sdk import npu
from ethosu_sdk.base import npz
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import worker
from ethosu_sdk.compile.compile_facts import CompileOutput, CompileRequest
from ethosu_sdk.compile.program_options import ProgramOptions
from ethosu_sdk.compile.rewrite import frame
from ethosu_sdk.compile.rewrite.before_quantisation import Goal
from ethosu_sdk.simulate import host_runtime
from tests.integration.compile.forms.models import Form
from tests.integration.compile.forms.test_forms import distance_db, eager

FLOAT_TOLERANCE = 1e-5  # of the largest value: sums in another order


def rewritten(module: Any, inputs: Sequence[Any], target: str = "ethos-u55-128") -> tuple[Any, list[str]]:
    """The exported program of `module` after all rewrites for speed, and their names. AssertionError when it gives
    other values than the module, in floating point."""
    import torch

    with torch.no_grad():
        expected = module(*inputs)
        program = torch.export.export(module, tuple(inputs))
        program, taken = frame.rewrite_float(program, Goal(parse_target(target), "int8"), [tuple(inputs)])
        found = program.module(check_guards=False)(*inputs)
    pairs = zip(*((part if isinstance(part, tuple) else (part,)) for part in (expected, found)), strict=True)
    for reference, result in pairs:
        assert reference.shape == result.shape
        limit = FLOAT_TOLERANCE * max(1.0, float(reference.abs().max()))
        torch.testing.assert_close(result, reference, rtol=0, atol=limit)
    return program, [row.gain for row, _, _ in taken]


@dataclass(frozen=True)
class Compiled:
    """A form that was compiled: the facts, and the distance of its outputs from the untouched model, in dB."""

    output: CompileOutput
    sqnr_db: list[float]

    @property
    def gains(self) -> list[str]:
        """The names of the rewrites for speed."""
        return [row.name for row in self.output.rewrites]

    @property
    def on_cpu(self) -> list[str]:
        """The operators that the NPU does not compute, conversions at its border aside."""
        return [row.name for row in self.output.cpu_operators if not row.boundary]


def compiled(form: Form, folder: Path, host_runner: Path, *, as_written: bool = False) -> Compiled:
    """Compile a form in this process and run it in ExecuTorch's runtime, with the NPU model for its delegates."""
    options = ProgramOptions(quantize=form.quantize, as_written=as_written)
    request = CompileRequest(
        f"{form.write(folder)}:model", parse_target(form.target), folder, options=options
    )
    output = worker.run_stages(request, lambda stage: None)
    stored = npz.read_npz(output.io)
    inputs = [stored[f"input{index}"] for index in range(len(output.inputs))]

    def execute(call: host_runtime.DelegateCall) -> list[np.ndarray[Any, Any]]:
        return npu.run(call.payload, call.inputs).outputs

    with host_runtime.open_pte(host_runner, output.pte, execute) as runtime:
        results = runtime.run(inputs)
    expected = eager(folder / "net.py")
    assert [row.shape for row in results] == [row.shape for row in expected]
    return Compiled(output, [distance_db(*pair) for pair in zip(expected, results, strict=True)])
