"""Tables whose rows are one test."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest


def each(
    names: str | tuple[str, ...], rows: Iterable[Any], ids: Iterable[str] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `pytest.mark.parametrize`, but the rows are one test, which names every row that fails.

    For tables of one rule: what is refused, with which words. A row has its own `tmp_path` and `monkeypatch`; other
    fixtures are common to all.
    """
    parameters = [name.strip() for name in names.split(",")] if isinstance(names, str) else [*names]
    table = [_row(row, len(parameters)) for row in rows]
    shown = [*ids]

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)
        fixtures = [
            row for name, row in signature.parameters.items() if name not in (*parameters, "subtests")
        ]
        takes_subtests = "subtests" in signature.parameters  # as a table within a table does

        @functools.wraps(test)
        def judged(subtests: pytest.Subtests, **shared: Any) -> None:
            assert table, "a table without rows"
            for number, (values, name) in enumerate(table):
                with subtests.test(shown[number] if shown else name), _own(shared, number) as own:
                    if takes_subtests:
                        own["subtests"] = subtests
                    test(**own, **dict(zip(parameters, values, strict=True)))

        subtests = inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY)
        plain = [row.replace(kind=inspect.Parameter.KEYWORD_ONLY) for row in fixtures]
        judged.__signature__ = signature.replace(parameters=[*plain, subtests])  # type: ignore[attr-defined]
        return judged

    return decorated


def _row(row: Any, count: int) -> tuple[tuple[Any, ...], str]:
    """The values of a row and its name."""
    if isinstance(row, type(pytest.param())):
        assert not row.marks
        values, name = tuple(row.values), row.id
    else:
        values, name = (row,) if count == 1 else tuple(row), None
    shown = str(name or "-".join(str(getattr(value, "__name__", value))[:60] for value in values))
    return values, shown.encode("ascii", "backslashreplace").decode()  # xdist takes no other text


@contextlib.contextmanager
def _own(shared: Mapping[str, Any], number: int) -> Iterator[dict[str, Any]]:
    own = dict(shared)
    with pytest.MonkeyPatch.context() as patch:
        if "monkeypatch" in own:
            own["monkeypatch"] = patch
        if "tmp_path" in own:
            own["tmp_path"] = Path(own["tmp_path"], f"row{number}")
            own["tmp_path"].mkdir()
        yield own
