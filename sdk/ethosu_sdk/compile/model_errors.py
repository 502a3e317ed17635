"""Errors of a model's own code that many meet, in loading it or executing it: what to do about each."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class _Known:
    """A text of Python or PyTorch, what it means, or nothing where it says so itself, and the way out. Groups of the
    pattern can be used in both."""

    pattern: str
    meaning: str
    way_out: str


_KNOWN = (
    _Known(
        "Torch not compiled with CUDA enabled|Found no NVIDIA driver|No CUDA GPUs are available",
        "it asks for CUDA, and models are compiled on the CPU",
        "leave .cuda() and 'cuda' out, or write device = 'cuda' if torch.cuda.is_available() else 'cpu'",
    ),
    _Known(
        "Attempting to deserialize object on (?:a CUDA|CUDA) device",
        "the file has weights of a GPU, and models are compiled on the CPU",
        "load them to the CPU: torch.load(FILE, map_location='cpu')",
    ),
    _Known(
        "Weights only load failed",
        "the file holds more than weights, which torch.load refuses to unpickle",
        "save its state_dict() alone; for a file you trust, torch.load(FILE, weights_only=False) runs what is in it",
    ),
    _Known(
        r"expected input\[([\d, ]+)\] to have (\d+) channels, but got (\d+) channels instead",
        "the layer takes \\2 channels, and its input of shape (\\1) has \\3",
        "give the example inputs \\2 channels behind the batch: (N, \\2, H, W); images with the channels last need "
        ".permute(0, 3, 1, 2)",
    ),
    _Known(
        r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)",
        "matrices of \\1x\\2 and \\3x\\4 cannot be multiplied",
        "a Linear layer with in_features=\\3 takes \\3 values on the last axis, and gets \\2: give example inputs of "
        "the size that the model was made for, or change in_features",
    ),
    _Known(
        r"Input type \((\w+)\) and (?:weight|bias) type \((\w+)\) should be the same"
        r"|mat1 and mat2 must have the same dtype, but got (\w+) and (\w+)",
        "",
        "give example inputs of the weights' type, such as x.float()",
    ),
    _Known(
        "attempted relative import with no known parent package",
        "",
        "the file is executed by itself, not as a part of a package: import by the name, without the dot, from the "
        "file's own folder",
    ),
)


def explained(words: str, error: BaseException, folder: Path | None = None) -> tuple[str, str]:
    """`words`, which say what `error` is, or what it means, and the way out; the folder of the model's file helps."""
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, str):
        return f"it opens {error.filename}, and there is no such file", _missing_file(
            Path(error.filename), folder
        )
    for row in _KNOWN:
        found = re.search(row.pattern, words)
        if found is not None:
            meaning = found.expand(row.meaning) if row.meaning else words
            return meaning, found.expand(row.way_out)
    return words, ""


def _missing_file(path: Path, folder: Path | None) -> str:
    here = f"names are relative to the working folder, {Path.cwd()}"
    if folder is not None and not path.is_absolute() and (folder / path).is_file():
        return f"{here}; the file lies beside the model: write Path(__file__).parent / '{path}'"
    if path.is_absolute():
        return "correct the name, or make the file"
    return f"{here}: run the command in the file's folder, or write Path(__file__).parent / '{path}' and put it there"
