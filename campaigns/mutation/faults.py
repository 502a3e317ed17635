"""The planted faults: what faults.toml says, checked against a tree."""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FAULTS = Path(__file__).with_name("faults.toml")


@dataclass(frozen=True)
class Fault:
    """One change of one file, and the tests that may find it: cheap ones first.

    `tests_before` are those of a tree in which tests lie elsewhere; empty where they are the same. `fresh`: caches of
    compiled programs must not outlive it.
    """

    id: str
    area: str
    file: str
    old: str
    new: str
    breaks: str
    tests: tuple[str, ...]
    tests_before: tuple[str, ...] = ()
    fresh: bool = False

    def candidates(self, before: bool) -> tuple[str, ...]:
        """The tests for the tree as it is, or as it was."""
        return self.tests_before or self.tests if before else self.tests

    def planted(self, text: str) -> str:
        """`text`, the file's, with the fault in it. ValueError when `old` is not there exactly once."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.id}: `old` is {text.count(self.old)} times in {self.file}, not once")
        return text.replace(self.old, self.new)


def read(path: Path = FAULTS) -> dict[str, Fault]:
    """All faults by their id."""
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["fault"]
    faults = [
        Fault(**{key: tuple(value) if isinstance(value, list) else value for key, value in row.items()})
        for row in rows
    ]
    found = {fault.id: fault for fault in faults}
    if len(found) != len(faults):
        raise ValueError("two faults have the same id")
    return found


def problems(fault: Fault, tree: Path, before: bool) -> Iterator[str]:
    """Why the fault cannot be planted in `tree` or its tests not be run there."""
    try:
        text = fault.planted((tree / fault.file).read_text(encoding="utf-8"))
        if fault.file.endswith(".py"):
            ast.parse(text)
    except (OSError, ValueError, SyntaxError) as error:
        yield f"{fault.id}: {error}"
    for candidate in fault.candidates(before):
        path = candidate.partition(" -k ")[0].partition("::")[0]
        if not (tree / path).exists():
            yield f"{fault.id}: there is no {path}"
