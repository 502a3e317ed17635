"""One .tflite compiled by a Vela, run by the NPU model, compared with TFLite's reference kernels."""

import json
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk import npu

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

    def compile(
        self, model: Path, accelerator: str, folder: Path, options: Sequence[str] = ()
    ) -> tuple[Path | None, str]:
        """The npz of `model`; None with Vela's message where it makes none."""
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [self._python, str(_WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = json.dumps([str(model), accelerator, str(folder), list(options)])
        try:
            print(request, file=self._process.stdin, flush=True)
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self._process.wait()
            return None, "Vela ended its process"
        made, said = json.loads(answer)
        return (Path(made) if made else None), said


def payload(npz: Path) -> bytes:
    """Vela's raw output as the payload of a delegate."""
    raw = np.load(npz, allow_pickle=True)

    def slots(kind: str) -> bytes:
        columns = (raw[f"{kind}_{part}"] for part in ("shape", "elem_size", "offset", "region"))
        rows = [
            struct.pack(
                "<9i", *(1,) * (6 - len(shape)), *map(int, shape), int(size), int(offset), int(region)
            )
            for shape, size, offset, region in zip(*columns, strict=True)
        ]
        return struct.pack("<i", len(rows)) + b"".join(rows)

    blocks = {
        "vela_bin_stream": b"",
        "cmd_data": raw["cmd_data"].tobytes(),
        "weight_data": raw["weight_data"].tobytes(),
        "scratch_size": struct.pack("<I", int(raw["scratch_shape"][0])),
        "inputs": slots("input"),
        "outputs": slots("output"),
        "vela_end_stream": b"",
    }
    return b"".join(
        struct.pack("<16sIB11s", name.encode(), len(data), 0, bytes(11)) + data + bytes(-len(data) % 16)
        for name, data in blocks.items()
    )


def modelled(
    npz: Path, inputs: Sequence[Array], outputs: Sequence[tuple[tuple[int, ...], str]]
) -> list[Array]:
    """What the NPU model makes of `inputs`, as arrays of the shapes and types in `outputs`."""
    results = npu.run(payload(npz), inputs).outputs
    return [
        np.ascontiguousarray(result).reshape(-1).view(dtype).reshape(shape)
        for result, (shape, dtype) in zip(results, outputs, strict=True)
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
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def micro_reference(model: bytes, inputs: Sequence[Array], outputs: int) -> list[Array]:
    """What TensorFlow Lite Micro's reference kernels make of `inputs`."""
    from tflite_micro import runtime

    interpreter = runtime.Interpreter.from_bytes(model, arena_size=1 << 22)
    for index, value in enumerate(inputs):
        interpreter.set_input(value, index)
    interpreter.invoke()
    return [np.array(interpreter.get_output(index)) for index in range(outputs)]
