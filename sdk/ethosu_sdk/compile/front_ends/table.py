"""The front ends: one row for each kind of file that a model comes in. Imported for `--help`: it must stay light."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.base.errors import ToolError

PYTHON, PT2, TFLITE, ONNX, ZOO = "python", "pt2", "tflite", "onnx", "zoo"
_TORCH = ("torch", "torchao", "executorch")


@dataclass(frozen=True)
class FrontEnd:
    """`what` a file with this `ending` is, with its article; the `packages` that it needs, which the SDK's `extra`
    installs; and what the first link of the check compares, in words. `content` is its kind among the kinds of files
    (:mod:`ethosu_sdk.base.file_kinds`)."""

    kind: str
    ending: str
    content: str
    what: str
    first_link: str
    packages: tuple[str, ...] = _TORCH
    extra: str = "compile"


FRONT_ENDS = (
    FrontEnd(PYTHON, ".py", "python", "a Python file", "the untouched model in PyTorch"),
    FrontEnd(
        PT2, ".pt2", "pt2", "a program saved by torch.export.save (.pt2)", "the exported program in PyTorch"
    ),
    FrontEnd(
        TFLITE,
        ".tflite",
        "tflite",
        "a TensorFlow Lite model (.tflite)",
        "the .tflite in a reference interpreter",
        packages=("ethosu.vela", "flatbuffers"),
    ),
    FrontEnd(
        ONNX,
        ".onnx",
        "onnx",
        "an ONNX model (.onnx)",
        "the .onnx in onnxruntime",
        packages=(*_TORCH, "onnx", "onnxruntime", "onnx2torch"),
        extra="onnx",
    ),
)
ENDINGS = tuple(row.ending for row in FRONT_ENDS)
FORMS = "give zoo:NAME, FILE.py[:NAME], FILE.pt2, FILE.tflite or FILE.onnx"


def by_ending(path: Path) -> FrontEnd | None:
    """The front end for a file with the name `path`."""
    return next((row for row in FRONT_ENDS if row.ending == path.suffix), None)


def by_kind(kind: str) -> FrontEnd:
    """The front end of a parsed MODEL; the zoo's models are Python files."""
    return next(row for row in FRONT_ENDS if row.kind == (PYTHON if kind == ZOO else kind))


def check_packages(kind: str) -> None:
    """ToolError when a package is missing without which models of this kind cannot be compiled."""
    row = by_kind(kind)
    missing = [name for name in row.packages if not _is_there(name)]
    if missing:
        raise ToolError(
            f"compiling {row.what} needs Python packages that are not installed: {', '.join(missing)}",
            f"pip install 'ethosu-sdk[{row.extra}]'",
        )


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # of the package around it
        return False
