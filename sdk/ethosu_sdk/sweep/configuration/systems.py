"""The systems that the cells of a sweep are compiled for and priced on: Vela's own, a file's, or board profiles'."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from ethosu_sdk.aot.vela import vela_config
from ethosu_sdk.aot.vela.vela_config import VelaConfig
from ethosu_sdk.boards import profiles
from ethosu_sdk.errors import SdkError, UsageError
from ethosu_sdk.files.toml_lines import Place
from ethosu_sdk.files.toml_source import TomlSource, short
from ethosu_sdk.program_options import ProgramOptions
from ethosu_sdk.targets import suggestion

DEFAULT = "default"
SYSTEM, SYSTEMS = "system", "systems"


@dataclass(frozen=True)
class System:
    """A configuration in place of Vela's own; without `config`, it is that. `argument` is what commands take for a
    board profile, from any folder; None where it is none."""

    argument: str | None = None
    config: VelaConfig | None = None

    @property
    def name(self) -> str | None:
        """The name of the board profile."""
        board = None if self.config is None else self.config.board
        return None if board is None else board.name

    @property
    def sha256(self) -> str | None:
        """The digest of the board profile's values."""
        board = None if self.config is None else self.config.board
        return None if board is None else board.sha256


def read(
    source: TomlSource, named: Iterable[tuple[Place, Sequence[str]]], options: ProgramOptions
) -> Mapping[str, System]:
    """The systems of a sweep by the words of its file, `named` at places of it. DEFAULT is what `options` ask for.

    InputError, with the line, for a profile that does not exist or is none, UsageError for two that exclude each
    other.
    """
    found = {DEFAULT: System(_argument(options.system, Path()), vela_config.of(options))}
    for place, patterns in named:
        if options.system is not None:
            raise UsageError(
                f"--system and `{SYSTEMS}` in {source.path} both name boards", "leave one of the two out"
            )
        for word in words(source, place, patterns):
            if word not in found:
                found[word] = _profile(source, place, word)
    return found


def words(source: TomlSource, place: Place, patterns: Sequence[str]) -> tuple[str, ...]:
    """DEFAULT, files of profiles, and the names of profiles that `patterns` fit.

    InputError, with the line, for a pattern that fits none.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        if pattern == DEFAULT or profiles.is_file(pattern):
            found[pattern] = None
            continue
        names = [name for name in profiles.names() if fnmatchcase(name, pattern)]
        if not names:
            hint = suggestion(short(pattern), (DEFAULT, *profiles.names()))
            raise source.wrong(place, f"there is no board profile '{short(pattern)}'", hint)
        found.update(dict.fromkeys(names))
    return tuple(found)


def _profile(source: TomlSource, place: Place, word: str) -> System:
    argument = _argument(word, source.path.absolute().parent)
    try:
        return System(argument, vela_config.of(ProgramOptions(system=argument)))
    except SdkError as error:
        raise source.wrong(place, error.message, error.hint) from error


def _argument(word: str | None, folder: Path) -> str | None:
    return str((folder / word).absolute()) if word is not None and profiles.is_file(word) else word
