"""Text from files, models, tools and simulated boards, made fit for a terminal.

A name may hold the codes that move a cursor, set a window's title or turn the direction of writing, and so forge what
the SDK says. What is not printable is shown as an escape instead.
"""

from __future__ import annotations

_LONGEST_ERROR = 500
_MOST_READ = 10_000  # of an exception's text, which may be of any length


def line(value: object) -> str:
    """`value` as a text on one line: every character that is not printable becomes an escape."""
    text = str(value)
    return text if text.isprintable() else "".join(map(_shown, text))


def cut(value: object, most: int) -> str:
    """`value` on one line of at most `most` characters; an ellipsis is the last of what is longer."""
    text = line(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def error(value: BaseException) -> str:
    """An exception that others raised, on one line: its type and the first line of its text, cut."""
    name = type(value).__name__
    try:
        found = str(value)[:_MOST_READ].strip().splitlines()
    except Exception:  # what makes the text is code of others too
        found = []
    return cut(f"{name}: {found[0]}" if found else name, _LONGEST_ERROR)


def lines(value: object) -> str:
    """The same for text of several lines: line ends and tabulators stay."""
    text = str(value).replace("\r\n", "\n")
    return "".join(c if c in "\n\t" else _shown(c) for c in text)


def message(word: str, text: str) -> str:
    """A message such as ``error: …``. Its further lines are indented: none of them can pass for another message."""
    first, *rest = lines(text).split("\n")
    return "\n".join([f"{word}: {first}", *(_indented(more) for more in rest)]) + "\n"


def _indented(text: str) -> str:
    return text if not text or text[0].isspace() else f"  {text}"


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def counted(count: int, noun: str) -> str:
    """A number of things, such as ``1 sample`` or ``2,000 samples``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
