"""Small pieces: how long a function and a file may be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.places import ROOT

MOST_LINES = 400
MOST_LINES_OF_A_FUNCTION = 60
MOST_MODULES = 20
MOST_SOURCES = 40
PYTHON = ("sdk", "tests", "scripts", "benchmarks", "docs")
CPP = ("firmware", "sdk")


def files(folders: tuple[str, ...], *suffixes: str) -> list[Path]:
    return sorted(
        path
        for name in folders
        for path in (ROOT / name).rglob("*")
        if path.suffix in suffixes and path.is_file()
    )


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


SOURCES = [*files(PYTHON, ".py"), *files(CPP, ".cpp", ".hpp")]


def test_files_are_short() -> None:
    lengths = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert lengths
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """(name, lines) of each function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, node.end_lineno - node.lineno + 1


def test_functions_are_short() -> None:
    lengths = {
        f"{name_of(path)}:{name}": lines for path in files(PYTHON, ".py") for name, lines in functions(path)
    }
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FUNCTION} == {}


def test_folders_have_few_files() -> None:
    modules: dict[Path, int] = {}
    for path in files(PYTHON, ".py"):
        modules[path.parent] = modules.get(path.parent, 0) + 1
    modules.pop(ROOT / "sdk" / "ethosu_sdk" / "cli")  # a module for each command
    assert {name_of(folder): count for folder, count in modules.items() if count > MOST_MODULES} == {}
    kernels = ROOT / "firmware" / "kernels"
    for folder in (path for path in (kernels, *kernels.iterdir()) if path.is_dir()):
        assert len(list(folder.glob("*.[ch]pp"))) <= MOST_SOURCES, folder
