"""The MODEL argument: which model to compile, in the words of the command line, and what its file's text says before
torch is imported.

``zoo:NAME``
    a model of the SDK's own zoo (:mod:`ethosu_sdk.compile.zoo`).
``FILE.py:NAME``
    the object NAME of a Python file: an ``nn.Module`` instance, an ``nn.Module`` class that takes no arguments, or a
    function without arguments that returns a module or ``(module, example_inputs)``.
``FILE.py``
    the same, with NAME the first of ``ModelUnderTest``, ``model``, ``Model``, ``get_model`` that exists, or else the
    only ``nn.Module`` subclass or instance that the file itself defines.
``FILE.pt2``
    a program saved with ``torch.export.save``.
``FILE.tflite``
    a quantised TensorFlow Lite model.
``FILE.onnx``
    a float ONNX model.

:mod:`ethosu_sdk.compile.front_ends.table` has a row for each kind of file.

Example inputs are a tensor or a tuple of tensors. They come, first found first taken, from ``--inputs``, the
function's second result, the file's ``ModelInputs`` or ``example_inputs``, the module's ``example_inputs`` (each a
value or a function without arguments), or the `.pt2` itself.

Calibration samples, each a tensor or a tuple of tensors like the example inputs, come from ``--calibration``, or
from the file's ``calibration`` or ``calibration_inputs``, or the module's ``calibration_inputs`` (each a list of
samples or a function without arguments that returns one).

A file's ``feeds``, a list of texts such as ``"argmax(output0):input0"``, say how a step takes inputs from the
outputs of the step before; ``steps`` is how many of them `compile` executes in PyTorch.
"""

from __future__ import annotations

import ast
import difflib
import importlib.util
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.base import file_kinds, filesystem
from ethosu_sdk.base.errors import InputError, SdkError, UsageError
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.compile import saved_program, zoo
from ethosu_sdk.compile.front_ends.table import (
    ENDINGS,
    FORMS as _FORMS,
    PT2,
    PYTHON,
    TFLITE,
    ZOO,
    by_ending,
    by_kind,
)
from ethosu_sdk.program import tflite

# Packages whose name on PyPI is not the name that is imported.
_PIP_NAMES = {
    "PIL": "pillow",
    "cv2": "opencv-python-headless",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "yaml": "pyyaml",
}
# Their absence is an error of the SDK's own set-up, with another exit code.
_JUDGED_ELSEWHERE = ("torch", "torchao", "executorch")
_MAX_BYTES = 16 << 20


@dataclass(frozen=True)
class ModelSpec:
    """A parsed MODEL. `kind` is ``zoo`` or that of its front end; `path` is None for the zoo; `entry` is the zoo
    model's name, or the object's name in the Python file, or None."""

    kind: str
    path: Path | None
    entry: str | None

    @property
    def name(self) -> str:
        """The name that output files get: letters, digits, ``_``, ``-`` and ``.`` only."""
        word = self.entry if self.path is None else self.path.stem
        return re.sub(r"[^A-Za-z0-9_.-]", "_", word or "model").lstrip(".") or "model"


def parse_model_spec(text: str) -> ModelSpec:
    """Read a MODEL argument. UsageError for an unknown zoo name or form, InputError for a missing file."""
    if text.startswith("zoo:"):
        name = text.removeprefix("zoo:")
        if name not in zoo.names():
            known = suggestion(name, zoo.names())
            raise UsageError(f"the zoo has no model '{name}'", f"{known} (`ethosu-sdk zoo` describes them)")
        return ModelSpec(ZOO, None, name)
    path_text, entry = _split_entry(text)
    path = Path(path_text)
    front_end = by_ending(path)
    if front_end is None:
        raise _not_a_model(text, path)
    if front_end.kind != PYTHON and entry is not None:
        raise UsageError(f"a {path.suffix} file holds one program: leave out ':{entry}'", _FORMS)
    if path.is_dir():
        raise file_kinds.not_a(path, "a model that can be compiled", _FORMS)
    if not path.is_file():
        raise InputError(f"there is no model file {path}", file_kinds.nearest_file(path, *ENDINGS) or _FORMS)
    return ModelSpec(front_end.kind, path, entry)


def check_model_file(spec: ModelSpec, *, trust: bool = False) -> None:
    """InputError when the file of `spec` is not what its name says, or a ``.pt2`` that could run code and has no
    `trust`, as far as this can be checked without torch and without running anything in it."""
    if spec.path is None:
        return
    if spec.kind == PYTHON:
        check_python_source(spec.path)
        return
    front_end, kind = by_kind(spec.kind), file_kinds.recognise(spec.path)
    if kind is None or kind.id != front_end.content:
        raise file_kinds.not_a(spec.path, front_end.what, _FORMS)
    if spec.kind == PT2:
        saved_program.read_saved_program(spec.path, trust=trust)
    if spec.kind == TFLITE:
        tflite.read_tflite(spec.path)


def _not_a_model(text: str, path: Path) -> SdkError:
    if text and path.exists():
        return file_kinds.not_a(path, "a model that can be compiled", _FORMS)
    named = file_kinds.kind_by_name(path)
    if named is None:
        near = difflib.get_close_matches(text, zoo.names(), n=1)
        hint = f"did you mean zoo:{near[0]}?" if near else _FORMS
        hint = file_kinds.nearest_file(path, *ENDINGS, ".pte") or hint
        return UsageError(f"'{text}' is not a model that can be compiled", hint)
    return UsageError(
        f"'{text}' is not a model that can be compiled: its name says that it is {named.what}", named.way
    )


def _split_entry(text: str) -> tuple[str, str | None]:
    head, colon, tail = text.rpartition(":")
    if not colon or not head.endswith(ENDINGS):
        return text, None
    if not tail.isidentifier():
        raise UsageError(f"'{tail}' in '{text}' is not a Python name", _FORMS)
    return head, tail


def check_python_source(path: Path) -> None:
    """InputError when `path` is no Python file, has an error of syntax, or begins with an import of something that is
    not installed."""
    source = filesystem.file_content(path, _MAX_BYTES)
    if len(source) > _MAX_BYTES:
        raise file_kinds.not_a(path, "a Python file", "give a FILE.py that defines the model")
    _check_imports(path, _parse(path, source))


def missing_package(name: str) -> str:
    """The hint for a module that a model's file imports and Python does not find."""
    package = name.partition(".")[0]
    if package != name and _is_found(package):
        return f"'{package}' is installed but has no '{name}': the model may need another version"
    return f"install it in the environment of ethosu-sdk: pip install {_PIP_NAMES.get(package, package)}"


def _parse(path: Path, source: bytes) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a string is the file's own business
            tree = ast.parse(source, str(path))
            # This alone finds some errors, such as `return` outside of a function.
            compile(tree, str(path), "exec")
    except SyntaxError as error:
        if not _is_text(source):
            raise file_kinds.not_a(path, "a Python file", "give a FILE.py that defines the model") from error
        raise _syntax_message(path, error) from error
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes; nested too deeply
        raise file_kinds.not_a(path, "a Python file", "give a FILE.py that defines the model") from error
    return tree


def _is_text(source: bytes) -> bool:
    """Whether `source` may be meant as Python: text, and not that of a notebook, a web page or a pointer."""
    if (
        b"\0" in source[:4096]
        or source.lstrip()[:1] in (b"{", b"<")
        or source.startswith(b"version https://git-lfs")
    ):
        return False
    try:
        source.decode("utf-8")
    except UnicodeDecodeError:
        return b"coding" in source[:200]
    return True


def _syntax_message(path: Path, error: SyntaxError) -> InputError:
    where = path if error.lineno is None else f"{path}, line {error.lineno}"
    text = (error.text or "").strip()
    return InputError(
        f"{where}: {type(error).__name__}: {error.msg}" + (f": {text}" if text else ""),
        "the file is not valid Python "
        f"{sys.version_info.major}.{sys.version_info.minor}: `python -m py_compile {path.name}` shows the same",
    )


def _check_imports(path: Path, tree: ast.Module) -> None:
    """InputError for a relative import at the file's beginning, or the first package that is not found there. Only
    what certainly runs first is judged: any other statement, and any file of the model's own, may change where Python
    looks for modules."""
    folder = path.resolve().parent
    for line, name in _first_imports(path, tree):
        if (folder / f"{name}.py").is_file() or (folder / name).is_dir():
            return
        if _is_found(name):
            continue
        raise InputError(
            f"{path}, line {line}: the Python package '{name}' is not installed", missing_package(name)
        )


def _relative_import(path: Path, node: ast.ImportFrom) -> InputError:
    """The error for an import with a dot: the file is executed as `python FILE.py` does, in no package."""
    words = ast.unparse(node)
    hint = "import it without the dots from a file that lies beside the package"
    if node.level == 1 and node.module:
        node.level = 0
        hint = f"write `{ast.unparse(node)}`: the folder of {path.name} is searched first"
    if (path.parent / "__init__.py").is_file():
        package = path.resolve().parent.name
        hint += (
            f"; or compile a file beside the folder {package} that says `from {package}.{path.stem} import …`"
        )
    return InputError(
        f"{path}, line {node.lineno}: `{words}` needs a package, and the file is executed by itself", hint
    )


def _first_imports(path: Path, tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                raise _relative_import(path, node)
            yield node.lineno, (node.module or "").partition(".")[0]
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            return


def _is_found(name: str) -> bool:
    if name in (*_JUDGED_ELSEWHERE, *sys.stdlib_module_names, *sys.modules):
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return True  # not for us to judge
