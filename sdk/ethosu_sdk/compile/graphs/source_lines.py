"""Where in the model's own source a node of a torch.fx graph comes from."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
import sysconfig
import textwrap
import traceback
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ethosu_sdk.compile.tool_hooks import patched
from ethosu_sdk.records.common import SourceLine

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)')
_PACKAGES = frozenset(("site-packages", "dist-packages"))  # folders of installed packages
# Compiler packages put frames of their own passes into the trace of the nodes that they make.
_COMPILERS = ("executorch", "torchao", "ethosu_sdk", "functorch")
_STANDARD_LIBRARY = Path(sysconfig.get_path("stdlib"))
# Models that come in packages: those of ExecuTorch, and the zoo.
ZOO_FOLDER = "ethosu_sdk/compile/zoo/"
_MODEL_FOLDERS = ("executorch/examples/models/", ZOO_FOLDER)

_OF_MODELS = ("model", "package")
Line = tuple[str, int, str | None]  # file, line, function


@dataclass(frozen=True)
class SourceFinder:
    """Finds source lines, naming files relative to `root`, the folder of the model's own file (None when it has
    none), or to the folder of the installed package that they belong to."""

    root: Path | None
    # Where the user's files constructed each module, by the module's name.
    constructed: Mapping[str, Line] = field(default_factory=dict)

    @cached_property
    def _tools(self) -> dict[str, Path]:
        found = {}
        for name in ("torch", *_COMPILERS):
            spec = find_spec(name)
            if spec is not None and spec.submodule_search_locations:
                found[name] = Path(next(iter(spec.submodule_search_locations)))
        return found

    @cached_property
    def _installed(self) -> tuple[Path, ...]:
        """The folders where Python finds packages, such as one that a model comes from."""
        paths = {Path(entry) for entry in sys.path if Path(entry).is_absolute()}
        paths |= {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
        own = {self.root, _STANDARD_LIBRARY, _STANDARD_LIBRARY / "lib-dynload"}
        return tuple(sorted(paths - own))

    def find(self, meta: Mapping[str, Any]) -> SourceLine | None:
        """The user's innermost line in a node's `meta`, else that of an installed package outside of torch, else the
        line that constructed the module; None when torch recorded neither line nor module."""
        module, kind = _module(meta)
        frames = [
            (*self.named(match["file"]), match) for match in _FRAME.finditer(meta.get("stack_trace") or "")
        ]
        for wanted in _OF_MODELS:
            for file_kind, name, match in reversed(frames):
                if file_kind == wanted:
                    line = int(match["line"])
                    function = _function(match["file"], line, match["function"].strip())
                    package = name.partition("/")[0].removesuffix(".py") if file_kind == "package" else None
                    return SourceLine(
                        file=name,
                        line=line,
                        function=function,
                        package=package,
                        module=module,
                        module_type=kind,
                    )
        if module is None:
            return None
        file, number, function = self._constructed(module) or (None, None, None)
        package = ZOO_FOLDER.partition("/")[0] if file is not None and file.startswith(ZOO_FOLDER) else None
        return SourceLine(
            file=file, line=number, function=function, package=package, module=module, module_type=kind
        )

    def _constructed(self, module: str) -> Line | None:
        """The line that constructed `module`, or the nearest module around it: torch copies modules that it makes
        several of, such as the layers of nn.TransformerEncoder, and a copy is not constructed."""
        while module:
            if module in self.constructed:
                return self.constructed[module]
            module = module.rpartition(".")[0]
        return self.constructed.get("")

    def place(self, meta: Mapping[str, Any]) -> str | None:
        found = self.find(meta)
        return None if found is None else found.words

    def place_of(self, error: BaseException) -> str | None:
        """The innermost line of the model's own files that raised `error`, with its text; None when there is none.
        Only files below `root`, and the zoo's, are taken: below them, every package that torch uses itself is met."""
        frames = [
            (self.named(frame.filename), frame)
            for frame in traceback.extract_tb(error.__traceback__)
            if not frame.filename.startswith("<")
        ]
        own = [
            (name, frame)
            for (kind, name), frame in frames
            if (kind == "model" and self._is_own(Path(frame.filename))) or name.startswith(_MODEL_FOLDERS)
        ]
        if not own:
            return None
        name, frame = own[-1]
        return f"{name}, line {frame.lineno}" + (f": `{frame.line}`" if frame.line else "")

    def _is_own(self, path: Path) -> bool:
        return self.root is not None and path.is_relative_to(self.root)

    @cached_property
    def _names(self) -> dict[str, tuple[str, str]]:
        """What :meth:`named` found before: a trace names few files, each of them thousands of times."""
        return {}

    def named(self, file: str) -> tuple[str, str]:
        """(kind, name) of a file: ``model`` (the user's), ``package`` (a model that comes in an installed package),
        ``tool`` (torch and the compiler), or ``python`` for the standard library and for what torch makes up at run
        time."""
        if file not in self._names:
            self._names[file] = self._name(Path(file))
        return self._names[file]

    def _name(self, path: Path) -> tuple[str, str]:
        if path.name.startswith("<"):
            return "python", path.name
        for package, folder in self._tools.items():
            if path.is_relative_to(folder):
                name = f"{package}/{path.relative_to(folder).as_posix()}"
                return "package" if name.startswith(_MODEL_FOLDERS) else "tool", name
        known = [folder for folder in (*self._installed, self.root) if folder and path.is_relative_to(folder)]
        nearest = max(known, key=lambda folder: len(folder.parts), default=None)
        inside = max((index for index, part in enumerate(path.parts) if part in _PACKAGES), default=None)
        if path.is_relative_to(_STANDARD_LIBRARY) and "site-packages" not in path.parts:
            return "python", path.name
        if inside is not None:
            return "package", "/".join(path.parts[inside + 1 :])
        return "model", str(path) if nearest is None else path.relative_to(nearest).as_posix()


def last_return(module: Any) -> str | None:
    """The last ``return`` of a module's ``forward``, as file, line and text; None where there is no source."""
    try:
        forward = inspect.unwrap(type(module).forward)
        lines, first = inspect.getsourcelines(forward)
        rows = [
            row for row in ast.walk(ast.parse(textwrap.dedent("".join(lines)))) if isinstance(row, ast.Return)
        ]
        number = max(row.lineno for row in rows) - 1
        name = Path(inspect.getfile(forward)).name
    except (OSError, TypeError, ValueError, SyntaxError, AttributeError):
        return None
    return f"{name}, line {first + number}: `{lines[number].strip()}`"


def lines_recorded(finder: SourceFinder) -> AbstractContextManager[None]:
    """While the block runs, torch records with each node it traces all lines of the model that lead to it.
    torch.export of torch 2.13 keeps the frames of functions called ``forward`` alone, and so names the line that
    calls a helper instead of the helper's line that calls the operator."""
    from torch.fx.proxy import TracerBase

    def all_of_the_model(_tracer: Any, summary: traceback.StackSummary) -> traceback.StackSummary:
        names = [frame.name for frame in summary]
        first = names.index("forward") if "forward" in names else len(names)
        return traceback.StackSummary.from_list(
            [
                frame
                for frame in summary[first:]
                if frame.name == "forward" or finder.named(frame.filename)[0] in _OF_MODELS
            ]
        )

    return patched(TracerBase, _filter_traceback_frames=all_of_the_model)


def _function(file: str, line: int, name: str) -> str | None:
    """The function at a line with its classes, such as ``Block.forward``; `name` is what the trace says of it. Only
    files that this process has imported are read: a saved program's traces name files of another machine."""
    if name == "<module>":
        return None
    around = [(start, end, full) for start, end, full in _functions(file) if start <= line <= end]
    return max(around)[2] if around else name


@functools.cache
def _functions(file: str) -> tuple[tuple[int, int, str], ...]:
    """First line, last line and qualified name of each function of an imported module's file."""
    if not any(getattr(module, "__file__", None) == file for module in list(sys.modules.values())):
        return ()
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return ()
    return tuple(_inside(tree, ""))


def _inside(tree: ast.AST, around: str) -> Iterator[tuple[int, int, str]]:
    for child in ast.iter_child_nodes(tree):
        name = around
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{around}.{child.name}" if around else child.name
            if not isinstance(child, ast.ClassDef):
                yield child.lineno, child.end_lineno or child.lineno, name
        yield from _inside(child, name)


def _module(meta: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The innermost module's name below the model (empty for the model itself) and its class."""
    stack = meta.get("nn_module_stack") or {}
    for name, kind in reversed(list(stack.values())):
        text = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
        if not text.startswith("torch.export."):  # torch's own wrapper of what it exports
            # In branches, torch 2.13 names modules from this root.
            return str(name).removeprefix("_export_root").lstrip("."), text.rsplit(".", 1)[-1]
    return None, None
