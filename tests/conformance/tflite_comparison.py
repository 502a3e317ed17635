"""One .tflite compiled by a Vela, run by the NPU model, compared with TFLite's reference kernels."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk import npu
from ethosu_sdk.program.tflite import TfliteModel, read_tflite
from ethosu_sdk.program.vela_tflite import npu_calls

Array = npt.NDArray[Any]
_WORKER = Path(__file__).parent / "vela_worker.py"


class Vela:
    """A Vela in a process of its own: `python` is the interpreter that has it installed."""

    def __init__(self, python: str | Path = sys.executable) -> None:
        self._python = str(python)
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> "Vela":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.communicate()

    def compile(self, model: Path, accelerator: str, folder: Path) -> tuple[TfliteModel | None, str]:
        """What Vela makes of `model`, and the end of what it says."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [self._python, str(_WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={},
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps([str(model), accelerator, str(folder)]), file=self._process.stdin, flush=True)
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self._process.wait()
            return None, "Vela ended its process"
        is_made, said = json.loads(answer)
        return (read_tflite(folder / f"{model.stem}_vela.tflite") if is_made else None), said


def modelled(made: TfliteModel, inputs: Mapping[str, Array]) -> list[Array] | None:
    """What the NPU model makes of `inputs`, by their names; None where something is left to the CPU."""
    calls = npu_calls(made)
    if len(calls) != 1 or len(made.main.operators) != 1:
        return None
    tensors = made.main.tensors
    named = [tensors[index].name for index in made.main.inputs]
    # Vela renames some inputs, but keeps their order.
    ordered = [inputs[name] for name in named] if set(named) <= set(inputs) else list(inputs.values())
    given = dict(zip(made.main.inputs, ordered, strict=False))
    if not set(calls[0].inputs) <= set(given):
        return None
    results = npu.run(calls[0].payload, [given[index] for index in calls[0].inputs]).outputs
    by_index = dict(zip(calls[0].outputs, results, strict=True))
    if not set(made.main.outputs) <= set(by_index):
        return None
    return [
        np.ascontiguousarray(by_index[index])
        .reshape(-1)
        .view(tensors[index].dtype)
        .reshape(tensors[index].shape)
        for index in made.main.outputs
    ]


def reference(model: bytes, inputs: Sequence[Array]) -> list[Array]:
    """What LiteRT's reference kernels make of `inputs`, in the model's order."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    interpreter = Interpreter(
        model_content=model, experimental_op_resolver_type=OpResolverType.BUILTIN_REF, num_threads=1
    )
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(row["index"])) for row in interpreter.get_output_details()]


def micro_reference(model: bytes, inputs: Sequence[Array], outputs: int) -> list[Array] | None:
    """What TensorFlow Lite Micro's reference kernels make of `inputs`; None when they refuse the model.

    In a process of its own: some models that it refuses end the process.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "model").write_bytes(model)
        np.savez(folder / "inputs.npz", *inputs)
        command = [sys.executable, "-c", _MICRO, str(folder), str(outputs)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return None
        with np.load(folder / "outputs.npz") as made:
            return [made[f"arr_{index}"] for index in range(outputs)]


_MICRO = """
import sys, pathlib
import numpy as np
from tflite_micro import runtime
folder = pathlib.Path(sys.argv[1])
interpreter = runtime.Interpreter.from_bytes((folder / "model").read_bytes(), arena_size=1 << 22)
with np.load(folder / "inputs.npz") as inputs:
    for index in range(len(inputs.files)):
        interpreter.set_input(inputs[f"arr_{index}"], index)
interpreter.invoke()
np.savez(folder / "outputs.npz", *(np.array(interpreter.get_output(i)) for i in range(int(sys.argv[2]))))
"""
