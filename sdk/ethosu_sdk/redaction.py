"""Addresses without what they keep secret: user and password, signed and tokened queries, authorisation headers.

Everything that reaches a terminal (:mod:`plain_text`) or a record (:mod:`records`) goes through :func:`addresses`.
"""

from __future__ import annotations

import re

HIDDEN = "<redacted>"

_END = r"\s\"'<>\\"  # what ends an address in a text
# One slash is enough: a path made of an address, as an option's value is, has lost the other. The bounds of this and
# the other patterns keep the time linear in the text, whoever wrote it.
_ADDRESS = re.compile(rf"\b[A-Za-z][A-Za-z0-9+.-]{{0,20}}:/[^{_END}]+")
_USER = re.compile(r"(:/{1,2})[^/?#]+@")  # a password may hold an @: the last one counts
# Any query, and a fragment of parameters: the names of those that sign or identify are endless.
_QUERY = re.compile(r"(\?|#(?=[^=]{1,40}=)).+")
# A query in a file's name, as `wget` keeps it: there the parameter's name has to tell.
_SECRET = r"token|secret|signature|credential|password|passwd|api[_-]?key|access[_-]?key"
_PARAMETER = re.compile(
    rf"([?&#](?:[\w.%-]{{0,40}}(?:{_SECRET})[\w.%-]{{0,40}}|sig|key|auth)=)[^{_END}]+", re.IGNORECASE
)
_HEADER = re.compile(
    rf"(\bauthorization[\"']?\s?[:=]\s?[\"']?(?:(?:basic|bearer|digest|token)\s+)?+)[^{_END}]+", re.IGNORECASE
)


def _address(match: re.Match[str]) -> str:
    return _QUERY.sub(rf"\1{HIDDEN}", _USER.sub(rf"\1{HIDDEN}@", match.group()))


def addresses(text: str) -> str:
    """`text` with the secrets of every address in it hidden."""
    if ":/" in text:
        text = _ADDRESS.sub(_address, text)
    if "=" in text or ":" in text:
        text = _HEADER.sub(rf"\1{HIDDEN}", _PARAMETER.sub(rf"\1{HIDDEN}", text))
    return text


def value(item: object) -> object:
    """A JSON value, all its texts redacted. Keys are the SDK's own."""
    if isinstance(item, str):
        return addresses(item)
    if isinstance(item, dict):
        return {key: value(part) for key, part in item.items()}
    return [value(part) for part in item] if isinstance(item, list | tuple) else item
