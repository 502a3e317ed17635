"""How long a function and a file may be."""

import ast
from pathlib import Path

from tests.contract.sources import nodes, offenders, text
from tests.places import ROOT

MOST_LINES = 1000
MOST_LINES_OF_A_FUNCTION = 60
PYTHON = ("sdk", "tests", "campaigns", "scripts", "benchmarks", "docs")
CPP = ("firmware", "sdk")


def files(folders: tuple[str, ...], *suffixes: str) -> list[Path]:
    return sorted(
        path
        for name in folders
        for path in (ROOT / name).rglob("*")
        if path.suffix in suffixes and path.is_file()
    )


def too_long(path: Path) -> list[str]:
    """A file's own length and that of each of its functions, where it is beyond the limit."""
    lines = len(text(path).splitlines())
    found = [f"{lines} lines"] if lines > MOST_LINES else []
    for node in nodes(path) if path.suffix == ".py" else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or 0) - node.lineno + 1
            found += [f"{node.name} of {lines} lines"] if lines > MOST_LINES_OF_A_FUNCTION else []
    return found


def test_files_and_functions_are_short() -> None:
    sources = [*files(PYTHON, ".py"), *files(CPP, ".cpp", ".hpp")]
    assert sources
    found = offenders(sources, too_long)
    assert not found, found


def test_planted_lengths_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "planted.py"
    short, long = ("def {0}():\n" + "    pass\n" * (lines - 1) for lines in (60, 61))
    path.write_text(short.format("short") + long.format("long") + "#\n" * 879)
    assert too_long(path) == ["long of 61 lines"]
    path.with_suffix(".cpp").write_text("//\n" * 1001)
    assert too_long(path.with_suffix(".cpp")) == ["1001 lines"]
