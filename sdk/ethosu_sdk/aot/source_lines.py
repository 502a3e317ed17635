"""Where in the model's own source a node of a torch.fx graph comes from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ethosu_sdk.aot.source_line import SourceLine

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)')
# Compiler packages put frames of their own passes into the trace of the nodes that they make.
_COMPILERS = ("executorch", "torchao")
_TORCH = "torch"
_TORCH_MODEL_PARTS = "torch/nn/"
# Models that come in packages: those of ExecuTorch, and the zoo.
_MODEL_FOLDERS = ("executorch/examples/models/", "ethosu_sdk/aot/zoo/")


@dataclass(frozen=True)
class SourceFinder:
    """Finds source lines, naming files relative to `root`, the folder of the model's own file (None when it has
    none), or to the folder of the installed package that they belong to."""

    root: Path | None

    @cached_property
    def _packages(self) -> dict[str, Path]:
        found = {}
        for name in (_TORCH, *_COMPILERS, "ethosu_sdk"):
            spec = find_spec(name)
            if spec is not None and spec.submodule_search_locations:
                found[name] = Path(next(iter(spec.submodule_search_locations)))
        return found

    def find(self, meta: Mapping[str, Any]) -> SourceLine | None:
        """The innermost line of the model in a node's `meta`, or of the torch.nn module that the model calls
        when torch recorded nothing else; None when it recorded neither line nor module."""
        line = _innermost([self._frame(match) for match in _FRAME.finditer(meta.get("stack_trace") or "")])
        module, kind = _module(meta)
        if line is None and module is None:
            return None
        file, number = line if line is not None else (None, None)
        return SourceLine(file=file, line=number, module=module, module_type=kind)

    def _frame(self, match: re.Match[str]) -> tuple[str, int, str]:
        """(kind, line, name) of a frame; `kind` is ``model``, ``torch`` or ``compiler``."""
        path, number = Path(match["file"]), int(match["line"])
        for package, folder in self._packages.items():
            if path.is_relative_to(folder):
                name = f"{package}/{path.relative_to(folder).as_posix()}"
                return _kind(name), number, name
        if self.root is not None and path.is_relative_to(self.root):
            return "model", number, path.relative_to(self.root).as_posix()
        return "model", number, str(path)


def _kind(name: str) -> str:
    if name.startswith(_MODEL_FOLDERS):
        return "model"
    return "torch" if name.startswith(_TORCH_MODEL_PARTS) else "compiler"


def _innermost(frames: Sequence[tuple[str, int, str]]) -> tuple[str, int] | None:
    for wanted in ("model", "torch"):
        for kind, line, name in reversed(frames):
            if kind == wanted:
                return name, line
    return None


def _module(meta: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The innermost module's name below the model (empty for the model itself) and its class."""
    stack = meta.get("nn_module_stack") or {}
    for name, kind in reversed(list(stack.values())):
        text = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
        if not text.startswith("torch.export."):  # torch's own wrapper of what it exports
            return str(name), text.rsplit(".", 1)[-1]
    return None, None
