"""The one door to a terminal for tables and progress: nothing from a file can move its cursor or style its text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich import markup
from rich.console import Console, ConsoleOptions, RenderableType
from rich.errors import MarkupError
from rich.segment import Segment
from rich.text import Text

from ethosu_sdk import plain_text


def escape(value: object) -> str:
    """`value`, a name or a text of others, as markup that shows it on one line, as it is."""
    return _escaped(plain_text.line(value))


def escape_lines(value: object) -> str:
    """The same for text of several lines, such as what a tool printed."""
    return _escaped(plain_text.lines(value))


def _escaped(text: str) -> str:
    # A backslash at the end would take its meaning from the markup that comes next, or give that another one.
    body = text.rstrip("\\")
    return markup.escape(body) + "\\x5c" * (len(text) - len(body))


class Terminal(Console):
    """Rich's console, which shows as escapes all that is not printable, and as it is what only looks like markup."""

    def __init__(self, **options: Any) -> None:
        """With `options` of Rich's console."""
        super().__init__(highlight=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Texts before they are measured and wrapped."""
        plain = plain_text.lines(text)
        try:
            return super().render_str(plain, **options)
        except MarkupError:
            return super().render_str(plain, **{**options, "markup": False})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """All else, once it is text: what comes as Rich's objects has not gone through :meth:`render_str`."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=plain_text.lines(segment.text))
