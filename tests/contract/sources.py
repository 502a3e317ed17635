"""The repository's texts for rules about them: each is read once, parsed once, and every offender is named."""

import ast
import functools
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.places import ROOT

PACKAGE = ROOT / "sdk" / "ethosu_sdk"


@functools.cache
def python_files() -> tuple[Path, ...]:
    """The modules of the package."""
    return tuple(sorted(PACKAGE.rglob("*.py")))


@functools.cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(text(path))))


def offenders(paths: Iterable[Path], found: Callable[[Path], object]) -> str:
    """A line for each file that a rule finds something in."""
    return "\n".join(
        f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}: {what}"
        for path in paths
        if (what := found(path))
    )
