"""What can be said of a model's Python file from its text alone, before torch is imported: whether it is Python, and
whether the packages that it imports first are installed."""

from __future__ import annotations

import ast
import importlib.util
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from ethosu_sdk.errors import InputError
from ethosu_sdk.files import file_kinds, opening

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


def check(path: Path) -> None:
    """InputError when `path` is no Python file, has an error of syntax, or begins with an import of something that is
    not installed."""
    source = opening.content(path, _MAX_BYTES)
    if len(source) > _MAX_BYTES:
        raise file_kinds.not_a(path, "a Python file", "give a FILE.py that defines the model")
    tree = _parse(path, source)
    _check_imports(path, tree)


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
            compile(
                tree, str(path), "exec"
            )  # some errors are found here alone, such as `return` outside of a function
    except SyntaxError as error:
        if not _is_text(source):
            raise file_kinds.not_a(path, "a Python file", "give a FILE.py that defines the model") from error
        raise _syntax_error(path, error) from error
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


def _syntax_error(path: Path, error: SyntaxError) -> InputError:
    where = path if error.lineno is None else f"{path}, line {error.lineno}"
    text = (error.text or "").strip()
    return InputError(
        f"{where}: {type(error).__name__}: {error.msg}" + (f": {text}" if text else ""),
        "the file is not valid Python "
        f"{sys.version_info.major}.{sys.version_info.minor}: `python -m py_compile {path.name}` shows the same",
    )


def _check_imports(path: Path, tree: ast.Module) -> None:
    """InputError for the first package that a plain import at the file's beginning does not find.

    Only what certainly runs first is judged: any other statement, and any file of the model's own, may change where
    Python looks for modules.
    """
    folder = path.resolve().parent
    for line, name in _first_imports(tree):
        if (folder / f"{name}.py").is_file() or (folder / name).is_dir():
            return
        if _is_found(name):
            continue
        raise InputError(
            f"{path}, line {line}: the Python package '{name}' is not installed", missing_package(name)
        )


def _first_imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, top-level package) of the imports that a file begins with."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                return
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
