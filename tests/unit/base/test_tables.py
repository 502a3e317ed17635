"""Tables whose rows are one test: every row is judged, with its own folder, and those that fail are named."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tables import each


class Recorder:
    """As pytest's `subtests`: notes what fails, and goes on."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    @contextlib.contextmanager
    def test(self, name: str) -> Iterator[None]:
        try:
            yield
        except AssertionError:
            self.failed.append(name)


def test_rows_that_fail_are_named(tmp_path: Path) -> None:
    @each("c", [10, 20])
    @each(("a", "b"), [(1, 2), (3, 4), pytest.param(5, 6, id="\ud800")])
    def judged(a: int, b: int, c: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert "ROW" not in os.environ
        monkeypatch.setenv("ROW", "set")
        (tmp_path / "own").mkdir()
        assert (a, b, c) in [(1, 2, 10), (3, 4, 20)]

    with pytest.MonkeyPatch.context() as patch:
        recorder = Recorder()
        judged(recorder, tmp_path=tmp_path, monkeypatch=patch)
    assert recorder.failed == ["3-4", "\\ud800", "1-2", "\\ud800"]
    with pytest.raises(AssertionError, match="a table without rows"):
        each("a", [])(lambda a: None)(recorder)
