"""The board profiles: those of the SDK (profiles.toml), and a user's own file."""

from __future__ import annotations

import functools
import re
from pathlib import Path

from ethosu_sdk.boards import profile_toml
from ethosu_sdk.boards.profile import BoardProfile
from ethosu_sdk.boards.profile_toml import Shared, Table
from ethosu_sdk.errors import UsageError
from ethosu_sdk.files import toml_source
from ethosu_sdk.files.toml_source import Kind, TomlSource
from ethosu_sdk.targets import suggestion

SUFFIX = ".toml"
_KIND = Kind("a board profile", most_bytes=256 << 10, most_lines=5000)
_FILE_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)


@functools.cache
def _tables() -> tuple[TomlSource, Table]:
    return toml_source.read(Path(__file__).parent / "profiles.toml", _KIND)


def _shared() -> Shared:
    _, table = _tables()
    return Shared(table["boards"], table["system_configs"], table["memory_modes"], table["documents"])


def names() -> tuple[str, ...]:
    """The profiles that come with the SDK."""
    return tuple(_shared().boards)


def is_file(word: str) -> bool:
    """Whether `word`, given for a profile, stands for a user's file."""
    return word.endswith(SUFFIX)


def find(word: str) -> BoardProfile:
    """The profile that a user means: one of :func:`names`, or a file ``NAME.toml``.

    UsageError for an unknown name, InputError for a file that is not a profile.
    """
    if is_file(word):
        path = Path(word)
        source, table = toml_source.read(path, _KIND)
        name = path.stem if _FILE_NAME.fullmatch(path.stem) else "board"
        return profile_toml.users(source, table, _shared(), name)
    if word not in names():
        hint = f"{suggestion(word, names())}; a file of your own ends in {SUFFIX}"
        raise UsageError(f"there is no board profile '{word}'", hint)
    return _own(word)


@functools.cache
def _own(name: str) -> BoardProfile:
    return profile_toml.own(_tables()[0], _shared(), name)
