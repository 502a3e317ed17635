"""SWEEP.toml: which cells a sweep has, and the systems that they are compiled for and priced on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from ethosu_sdk.base import board_profiles, filesystem, toml_source
from ethosu_sdk.base.board_profiles import BoardProfile
from ethosu_sdk.base.boards import BOARD_NAMES
from ethosu_sdk.base.errors import InputError, SdkError, UsageError
from ethosu_sdk.base.targets import every_target, families, suggestion
from ethosu_sdk.base.toml_source import Place, TomlKind, TomlSource, short_word
from ethosu_sdk.compile import evaluation_data, vela_config, vela_versions, zoo
from ethosu_sdk.compile.front_ends.model_spec import parse_model_spec
from ethosu_sdk.compile.program_options import QUANTIZE_CHOICES, ProgramOptions
from ethosu_sdk.compile.vela_config import VelaConfig
from ethosu_sdk.npu.timing import systems
from ethosu_sdk.sweep.sweep_goals import ConstraintTables, Goals, GoalTables, parse_goals

DEFAULT = "default"
SYSTEMS_KEY = "systems"


@dataclass(frozen=True)
class System:
    """A configuration in place of Vela's own; without `config`, it is that. `argument` is what commands take for a
    board profile, from any folder; None where it is none."""

    argument: str | None = None
    config: VelaConfig | None = None

    @property
    def board(self) -> BoardProfile | None:
        return None if self.config is None else self.config.board

    @property
    def name(self) -> str | None:
        return None if self.board is None else self.board.name

    @property
    def sha256(self) -> str | None:
        return None if self.board is None else self.board.sha256


def _read_systems(
    source: TomlSource, named: Iterable[tuple[Place, Sequence[str]]], options: ProgramOptions
) -> dict[str, System]:
    """The systems by what a sweep calls them: DEFAULT is that of `options`, the others are `named` by place."""
    found = {DEFAULT: System(_argument(options.system, Path()), vela_config.chosen_config(options))}
    for place, patterns in named:
        if options.system is not None:
            message = f"--system and `{SYSTEMS_KEY}` in {source.path} both name boards"
            raise UsageError(message, "leave one of the two out")
        for word in system_words(source, place, patterns):
            if word not in found:
                argument = _argument(word, source.path.absolute().parent)
                try:
                    config = vela_config.chosen_config(ProgramOptions(system=argument))
                except SdkError as error:
                    raise source.wrong(place, error.message, error.hint) from error
                found[word] = System(argument, config)
    return found


def system_words(source: TomlSource, place: Place, patterns: Sequence[str]) -> tuple[str, ...]:
    """DEFAULT, files of profiles, and the names of profiles that `patterns` fit. InputError if one fits none."""
    found: dict[str, None] = {}
    for pattern in patterns:
        if pattern == DEFAULT or board_profiles.profile_file(pattern) is not None:
            found[pattern] = None
            continue
        names = [name for name in board_profiles.profile_names() if fnmatchcase(name, pattern)]
        if not names:
            hint = suggestion(short_word(pattern), (DEFAULT, *board_profiles.profile_names()))
            raise source.wrong(place, f"there is no board profile '{short_word(pattern)}'", hint)
        found.update(dict.fromkeys(names))
    return tuple(found)


def _argument(word: str | None, folder: Path) -> str | None:
    path = board_profiles.profile_file(word) if word else None
    return word if path is None else str((folder / path).absolute())


Names = Mapping[str, tuple[str, ...]]  # of a dimension

NONE, HOST, QEMU = "none", "host", "qemu"
SIMULATORS = (NONE, HOST, QEMU)
_GLOB = re.compile(r"[*?\[]")
_KIND = TomlKind("a sweep", most_bytes=256 << 10, most_lines=5000)
_MOST_VALUES = 1000
_NAME_PATTERN = r"\A(?!\.)[A-Za-z0-9_.-]{1,64}\Z"
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]i?)?B?", re.ASCII)
_MEMORY = "a size of at least 64 MiB"
_MOST_MODELS = 10_000
_LONGEST_S = 604_800
DEFAULT_TIME_S = 3600.0

# Dimension of a cell → the key of its values in the file.
DIMENSIONS = {
    "model": "models",
    "target": "targets",
    "system": SYSTEMS_KEY,
    "system_config": "system_configs",
    "memory_mode": "memory_modes",
    "quantize": "quantize",
    "vela": "vela",
    "simulator": "simulators",
    "board": "boards",
    "inputs": "inputs",
}
_Word = Annotated[str, Meta(min_length=1)]
_LISTED = Meta(
    min_length=1, max_length=_MOST_VALUES, extra={"words": f"a list of 1 to {_MOST_VALUES:,} texts"}
)
_Words = _Word | Annotated[list[_Word], _LISTED] | None
_SECONDS = Meta(gt=0, le=_LONGEST_S, extra={"words": f"a number of seconds, at most {_LONGEST_S}"})
_NAMED = Meta(
    pattern=_NAME_PATTERN, extra={"words": "up to 64 letters, digits, '_', '-' and '.', the first no '.'"}
)


class _Limits(Struct, frozen=True, forbid_unknown_fields=True):
    time: Annotated[float, _SECONDS] = DEFAULT_TIME_S
    memory: Annotated[str, Meta(extra={"words": _MEMORY})] | None = None


class _Cells(Struct, forbid_unknown_fields=True):
    """Values of the dimensions, as [[include]] and [[exclude]] have them."""

    model: _Words = None
    target: _Words = None
    system: _Words = None
    system_config: _Words = None
    memory_mode: _Words = None
    quantize: _Words = None
    vela: _Words = None
    simulator: _Words = None
    board: _Words = None
    inputs: _Words = None


class _File(Struct, forbid_unknown_fields=True):
    name: Annotated[str, _NAMED] | None = None
    models: _Words = None
    targets: _Words = None
    systems: _Words = None
    system_configs: _Words = None
    memory_modes: _Words = None
    quantize: _Words = None
    vela: _Words = None
    simulators: _Words = None
    boards: _Words = None
    inputs: _Words = None
    evaluate: dict[str, str] = {}
    limits: _Limits = _Limits()
    include: list[_Cells] = []
    exclude: list[_Cells] = []
    constraints: ConstraintTables = []
    goals: GoalTables = []


@dataclass(frozen=True)
class Limits:
    """What one task may take; None: as much as there is."""

    time_s: float | None = DEFAULT_TIME_S
    memory_bytes: int | None = None


@dataclass(frozen=True)
class Configuration:
    """A sweep as its file describes it: values of each dimension, further cells and cells to leave out.

    Values are names, patterns of names, or DEFAULT; models and files are as named, from `folder`. `evaluate` has the
    files of samples by patterns of models; `goals` are what the cells are judged by. `systems` are those that the
    values of this dimension stand for.
    """

    source: TomlSource
    name: str
    values: dict[str, tuple[str, ...]]
    include: tuple[dict[str, tuple[str, ...]], ...] = ()
    exclude: tuple[dict[str, tuple[str, ...]], ...] = ()
    evaluate: dict[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    goals: Goals = field(default_factory=Goals)
    systems: Mapping[str, System] = field(default_factory=lambda: {DEFAULT: System()})

    def system(self, name: str | None) -> System:
        return self.systems.get(name or DEFAULT, self.systems[DEFAULT])

    @property
    def folder(self) -> Path:
        return self.source.path.absolute().parent

    def samples(self, model: str) -> str | None:
        """The file that `model` is evaluated on: that of the first pattern which fits."""
        return next((file for pattern, file in self.evaluate.items() if fnmatchcase(model, pattern)), None)

    @property
    def sha256(self) -> str:
        """The digest of the file."""
        return filesystem.sha256_bytes(self.source.text.encode())


def read_configuration(
    path: Path, vela_config: Path | None = None, system: str | None = None
) -> Configuration:
    """The sweep in the file `path`, for the systems in the file `vela_config` or of the board profile `system`, by
    default Vela's own. InputError with file and line for what is wrong in it."""
    source, table = toml_source.read_toml(path, _KIND)
    options = ProgramOptions(vela_config=vela_config, system=system)
    file = source.convert(table, _File)
    named: list[tuple[Place, _Words]] = [((SYSTEMS_KEY,), file.systems)]
    named += [(("include", index, "system"), row.system) for index, row in enumerate(file.include)]
    found = _read_systems(source, [(place, _listed(words)) for place, words in named if words], options)
    known = _known(found)
    values = {name: _values(source, file, name, known) for name in DIMENSIONS}
    include = tuple(_partial(source, "include", file.include, known))
    models = [*values["model"], *(model for row in include for model in row.get("model", ()))]
    _check_samples(source, file.evaluate, models)
    memory = file.limits.memory
    return Configuration(
        source,
        file.name or (path.stem if re.match(_NAME_PATTERN, path.stem) else "sweep"),
        values,
        include,
        tuple(_partial(source, "exclude", file.exclude, known)),
        file.evaluate,
        Limits(file.limits.time, None if memory is None else _memory_bytes(source, memory)),
        parse_goals(source, file.constraints, file.goals),
        found,
    )


def _listed(words: _Words) -> tuple[str, ...]:
    return tuple(dict.fromkeys([words] if isinstance(words, str) else words or ()))


def _values(source: TomlSource, file: _File, dimension: str, known: Names) -> tuple[str, ...]:
    key = DIMENSIONS[dimension]
    if words := _listed(getattr(file, key)):
        return _checked(source, (key,), dimension, words, known)
    if dimension not in ("model", "target"):
        return (NONE if dimension == "simulator" else DEFAULT,)
    if not file.include:
        example = 'models = ["zoo:digits_cnn"]' if dimension == "model" else 'targets = ["ethos-u55-*"]'
        raise InputError(f"{source.path} has no '{key}': there is nothing to do", example)
    return ()


def _partial(
    source: TomlSource, key: str, rows: Sequence[_Cells], known: Names
) -> Iterator[dict[str, tuple[str, ...]]]:
    for index, row in enumerate(rows):
        values = {name: _listed(words) for name in DIMENSIONS if (words := getattr(row, name)) is not None}
        if not values:
            hint = f"[[{key}]] with {', '.join(DIMENSIONS)}"
            raise source.wrong((key, index), f"this {key} is empty", hint)
        yield {
            name: words
            if key == "exclude" and name in ("model", "inputs", "system")
            else _checked(source, (key, index, name), name, words, known)
            for name, words in values.items()
        }


def _checked(
    source: TomlSource, place: Place, dimension: str, words: tuple[str, ...], names: Names
) -> tuple[str, ...]:
    """The values of a dimension: names that exist, and patterns that fit some."""
    if dimension == "model":
        return _models(source, place, words)
    if dimension == "system":
        return system_words(source, place, words)
    if dimension in ("inputs", "vela"):
        for word in (word for word in words if word != DEFAULT):
            if dimension == "inputs" and not (source.path.absolute().parent / word).is_file():
                raise source.wrong(place, f"there is no file {word}", f"an .npz, or '{DEFAULT}'")
            if dimension == "vela" and not vela_versions.is_version(word):
                message = f"'{short_word(word)}' is not a version of Vela"
                raise source.wrong(place, message, 'such as vela = ["5.1.0"]')
        return words
    known = names[dimension]
    for word in words:
        if not any(fnmatchcase(name, word) for name in known):
            called = {"quantize": "quantisation", "simulator": "simulator for sweeps"}.get(dimension)
            called = called or dimension.replace("system_config", "system configuration").replace("_", " ")
            message = f"there is no {called} '{short_word(word)}'"
            raise source.wrong(place, message, suggestion(short_word(word), known))
    return words


def _known(chosen: Mapping[str, System]) -> Names:
    """The names that each dimension has in the `chosen` systems."""
    own = {name: modes for row in families().values() for name, modes in row.system_configs.items()}
    found: list[tuple[Iterable[str], Iterable[str]]] = []  # system configurations and memory modes
    for row in chosen.values():
        if row.config is None:
            found.append((own, (mode for names in own.values() for mode in names)))
        else:
            found.append((row.config.ini.names(systems.SYSTEM), row.config.ini.names(systems.MODE)))
    configs, modes = (
        dict.fromkeys(name for row in part for name in row) for part in zip(*found, strict=True)
    )
    return {
        "target": every_target(),
        "system_config": (DEFAULT, *configs),
        "memory_mode": (DEFAULT, *modes),
        "quantize": (DEFAULT, *QUANTIZE_CHOICES),
        "simulator": SIMULATORS,
        "board": (DEFAULT, *BOARD_NAMES),
    }


def _models(source: TomlSource, place: Place, words: Sequence[str]) -> tuple[str, ...]:
    """The models that `words` name, each as `compile` takes it in the file's folder."""
    folder = source.path.absolute().parent
    found: dict[str, None] = {}
    for word in words:
        try:
            names = _expanded(folder, word)
        except ValueError as error:
            raise source.wrong(place, f"'{short_word(word)}' is not a valid pattern: {error}") from error
        if not names:
            hint = "patterns of files are relative to the folder of the sweep's file, such as models/*.py"
            if word.startswith("zoo:"):
                hint = suggestion(word.removeprefix("zoo:"), zoo.names())
            raise source.wrong(place, f"no model is called '{short_word(word)}'", hint)
        for name in names:
            try:
                parse_model_spec(name if name.startswith("zoo:") else str(folder / name))
            except SdkError as error:
                raise source.wrong(place, error.message, error.hint) from error
        found.update(dict.fromkeys(names))
    if len(found) > _MOST_MODELS:
        raise source.wrong(place, f"{len(found):,} models are too many: the limit is {_MOST_MODELS:,}")
    return tuple(found)


def _expanded(folder: Path, word: str) -> list[str]:
    if _GLOB.search(word) is None:
        return [word]
    if word.startswith("zoo:"):
        return [f"zoo:{name}" for name in zoo.names() if fnmatchcase(name, word.removeprefix("zoo:"))]
    if Path(word).is_absolute():
        root = Path(word).anchor
        return sorted(str(path) for path in Path(root).glob(word.removeprefix(root)) if path.is_file())
    return sorted(str(path.relative_to(folder)) for path in folder.glob(word) if path.is_file())


def _check_samples(source: TomlSource, files: Mapping[str, str], models: Sequence[str]) -> None:
    """InputError for patterns that fit none of `models`, and for files of samples that cannot be read."""
    for pattern, file in files.items():
        place = ("evaluate", pattern)
        if not any(fnmatchcase(model, pattern) for model in models):
            hint = suggestion(short_word(pattern), models)
            raise source.wrong(place, f"the sweep has no model '{short_word(pattern)}'", hint)
        path = source.path.absolute().parent / file
        if not path.is_file():
            example = '[evaluate] "zoo:digits_cnn" = "digits.npz"'
            raise source.wrong(place, f"there is no file {short_word(file)}", example)
        try:
            evaluation_data.evaluation_content(path)
        except SdkError as error:
            raise source.wrong(place, error.message, error.hint) from error


def _memory_bytes(source: TomlSource, text: str) -> int:
    found = _SIZE.fullmatch(text)
    size = -1.0
    if found is not None:
        unit = found[2] or ""
        power = {"K": 1, "M": 2, "G": 3, "T": 4}.get(unit[:1], 0)
        size = float(found[1]) * (1024 if unit.endswith("i") else 1000) ** power
    if not 64 << 20 <= size <= 1 << 50:
        raise source.wrong(("limits", "memory"), f"memory must be {_MEMORY}", 'memory = "4 GiB"')
    return int(size)
