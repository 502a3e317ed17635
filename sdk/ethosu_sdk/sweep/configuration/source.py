"""The text of a SWEEP.toml, and the strings in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ethosu_sdk.files import toml_source
from ethosu_sdk.files.toml_lines import Place
from ethosu_sdk.files.toml_source import Kind, TomlSource

_KIND = Kind("a sweep", most_bytes=256 << 10, most_lines=5000)
_MOST_VALUES = 1000


class Source(TomlSource):
    """A file of a sweep, which is called by its path."""

    @property
    def path(self) -> Path:
        """The file's path."""
        return Path(self.name)

    def strings(self, place: Place, value: Any) -> tuple[str, ...]:
        """A string or a list of strings, not empty and without repetition."""
        return tuple(dict.fromkeys(self._strings(place, value)))

    def _strings(self, place: Place, value: Any) -> Iterator[str]:
        rows = value if isinstance(value, list) else [value]
        name = place[-1]
        if not rows:
            raise self.wrong(
                place, f"{name} is empty: the sweep would have no cells", "leave it out for the default"
            )
        if len(rows) > _MOST_VALUES:
            raise self.wrong(place, f"{name} has {len(rows):,} values: the limit is {_MOST_VALUES:,}")
        for row in rows:
            if not isinstance(row, str) or not row:
                raise self.wrong(place, f"{name} must be a list of strings", f'{name} = ["…"]')
            yield row


def read(path: Path) -> tuple[Source, dict[str, Any]]:
    """The file at `path` and its tables. InputError, with the line, when it is not TOML."""
    source, table = toml_source.read(path, _KIND)
    return Source(source.name, source.text), table
