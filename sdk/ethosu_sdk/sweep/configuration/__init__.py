"""SWEEP.toml: which cells a sweep has, as its file says it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ethosu_sdk.aot import zoo
from ethosu_sdk.aot.comparison.evaluation import evaluation_data
from ethosu_sdk.aot.model.spec import parse_model_spec
from ethosu_sdk.aot.vela import versions
from ethosu_sdk.boards import BOARDS
from ethosu_sdk.errors import InputError, SdkError
from ethosu_sdk.files import hashing
from ethosu_sdk.files.toml_source import short
from ethosu_sdk.npu.timing import vela_ini
from ethosu_sdk.program_options import QUANTIZE_CHOICES, ProgramOptions
from ethosu_sdk.sweep import goals
from ethosu_sdk.sweep.configuration import source as sweep_source, systems
from ethosu_sdk.sweep.configuration.source import Source
from ethosu_sdk.sweep.configuration.systems import DEFAULT, System
from ethosu_sdk.sweep.goals import Goals
from ethosu_sdk.targets import every_target, families, suggestion

Names = Mapping[str, tuple[str, ...]]  # of a dimension

NONE, HOST, QEMU = "none", "host", "qemu"
SIMULATORS = (NONE, HOST, QEMU)
_GLOB = re.compile(r"[*?\[]")
_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]i?)?B?", re.ASCII)
_POWERS = {"K": 1, "M": 2, "G": 3, "T": 4}
_LEAST_BYTES, _MOST_BYTES = 64 << 20, 1 << 50
_MOST_MODELS = 10_000
_LONGEST_S = 604_800.0
DEFAULT_TIME_S = 3600.0
_LIMITS = ("time", "memory")

# Dimension of a cell → the key of its values in the file.
DIMENSIONS = {
    "model": "models",
    "target": "targets",
    "system": systems.SYSTEMS,
    "system_config": "system_configs",
    "memory_mode": "memory_modes",
    "quantize": "quantize",
    "vela": "vela",
    "simulator": "simulators",
    "board": "boards",
    "inputs": "inputs",
}
_KEYS = ("name", *DIMENSIONS.values(), "evaluate", "limits", "include", "exclude", *goals.TABLES)


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

    source: Source
    name: str
    values: dict[str, tuple[str, ...]]
    include: tuple[dict[str, tuple[str, ...]], ...] = ()
    exclude: tuple[dict[str, tuple[str, ...]], ...] = ()
    evaluate: dict[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    goals: Goals = field(default_factory=Goals)
    systems: Mapping[str, System] = field(default_factory=lambda: {DEFAULT: System()})

    def system(self, name: str | None) -> System:
        """The system that cells with this `name` of one are for."""
        return self.systems.get(name or DEFAULT, self.systems[DEFAULT])

    @property
    def folder(self) -> Path:
        """The folder of the file, from which it names others."""
        return self.source.path.absolute().parent

    def samples(self, model: str) -> str | None:
        """The file that `model` is evaluated on: that of the first pattern which fits."""
        return next((file for pattern, file in self.evaluate.items() if fnmatchcase(model, pattern)), None)

    @property
    def sha256(self) -> str:
        """The digest of the file."""
        return hashing.sha256_bytes(self.source.text.encode())


def read(path: Path, vela_config: Path | None = None, system: str | None = None) -> Configuration:
    """The sweep in the file `path`, for the systems in the file `vela_config` or of the board profile `system`, by
    default Vela's own. InputError with file and line for what is wrong in it."""
    source, table = sweep_source.read(path)
    options = ProgramOptions(vela_config=vela_config, system=system)
    for key in table:
        if key not in _KEYS:
            raise source.wrong((key,), f"a sweep has no '{short(key)}'", suggestion(short(key), _KEYS))
    found = systems.read(source, table, options)
    known = _known(found)
    values = {name: _values(source, table, name, known) for name in DIMENSIONS}
    include = tuple(_partial(source, table, "include", known))
    models = [*values["model"], *(model for row in include for model in row.get("model", ()))]
    return Configuration(
        source,
        _name(source, table),
        values,
        include,
        tuple(_partial(source, table, "exclude", known)),
        _evaluate(source, table.get("evaluate", {}), models),
        _limits(source, table.get("limits", {})),
        goals.parse(table, source.locate),
        found,
    )


def _name(source: Source, table: dict[str, Any]) -> str:
    name = table.get("name", source.path.stem)
    if not isinstance(name, str) or _NAME.fullmatch(name) is None or name.startswith("."):
        if "name" not in table:
            return "sweep"
        raise source.wrong(("name",), "a sweep's name is up to 64 letters, digits, '_', '-' and '.'")
    return name


def _values(source: Source, table: dict[str, Any], dimension: str, known: Names) -> tuple[str, ...]:
    key = DIMENSIONS[dimension]
    if key in table:
        return _checked(source, (key,), dimension, table[key], known)
    if dimension in ("model", "target") and not table.get("include"):
        example = 'models = ["zoo:digits_cnn"]' if dimension == "model" else 'targets = ["ethos-u55-*"]'
        raise InputError(f"{source.path} has no '{key}': there is nothing to do", example)
    if dimension in ("model", "target"):
        return ()
    return {"simulator": (NONE,)}.get(dimension, (DEFAULT,))


def _partial(
    source: Source, table: dict[str, Any], key: str, known: Names
) -> list[dict[str, tuple[str, ...]]]:
    rows = table.get(key, [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise source.wrong((key,), f"{key} must be a list of tables", f"[[{key}]]")
    found = []
    for index, row in enumerate(rows):
        for name in row:
            if name not in DIMENSIONS:
                hint = suggestion(short(name), DIMENSIONS)
                raise source.wrong((key, index, name), f"a cell has no '{short(name)}'", hint)
        if not row:
            raise source.wrong(
                (key, index), f"this {key} is empty", f"[[{key}]] with {', '.join(DIMENSIONS)}"
            )
        exclude = key == "exclude"
        found.append(
            {
                name: source.strings((key, index, name), value)
                if exclude and name in ("model", "inputs", "system")
                else _checked(source, (key, index, name), name, value, known)
                for name, value in row.items()
            }
        )
    return found


def _checked(
    source: Source, place: tuple[str | int, ...], dimension: str, value: Any, names: Names
) -> tuple[str, ...]:
    """The values of a dimension: names that exist, and patterns that fit some."""
    words = source.strings(place, value)
    if dimension == "model":
        return _models(source, place, words)
    if dimension == "system":
        return systems.words(source, place, words)
    if dimension in ("inputs", "vela"):
        for word in words:
            if word != DEFAULT:
                _check_word(source, place, dimension, word)
        return words
    known = names[dimension]
    for word in words:
        if not any(fnmatchcase(name, word) for name in known):
            message = f"there is no {_WORDS[dimension]} '{short(word)}'"
            raise source.wrong(place, message, suggestion(short(word), known))
    return words


def _check_word(source: Source, place: tuple[str | int, ...], dimension: str, word: str) -> None:
    """InputError for inputs that are no file, or what is no version of Vela."""
    if dimension == "inputs" and not (source.path.absolute().parent / word).is_file():
        raise source.wrong(place, f"there is no file {word}", f"an .npz, or '{DEFAULT}'")
    if dimension == "vela" and not versions.is_version(word):
        raise source.wrong(place, f"'{short(word)}' is not a version of Vela", 'such as vela = ["5.1.0"]')


_WORDS = {
    "target": "target",
    "system_config": "system configuration",
    "memory_mode": "memory mode",
    "quantize": "quantisation",
    "simulator": "simulator for sweeps",
    "board": "board",
}


def _known(chosen: Mapping[str, System]) -> Names:
    """The names that each dimension has in the `chosen` systems."""
    own = {name: modes for row in families().values() for name, modes in row.system_configs.items()}
    configs: dict[str, None] = {}
    modes: dict[str, None] = {}
    for config in (row.config for row in chosen.values()):
        configs.update(dict.fromkeys(own if config is None else config.ini.names(vela_ini.SYSTEM)))
        every = (mode for row in own.values() for mode in row)
        modes.update(dict.fromkeys(every if config is None else config.ini.names(vela_ini.MODE)))
    return {
        "target": every_target(),
        "system_config": (DEFAULT, *configs),
        "memory_mode": (DEFAULT, *modes),
        "quantize": (DEFAULT, *QUANTIZE_CHOICES),
        "simulator": SIMULATORS,
        "board": (DEFAULT, *BOARDS),
    }


def _models(source: Source, place: tuple[str | int, ...], words: Sequence[str]) -> tuple[str, ...]:
    """The models that `words` name, each as `compile` takes it in the file's folder."""
    folder = source.path.absolute().parent
    found: dict[str, None] = {}
    for word in words:
        try:
            names = _expanded(folder, word)
        except ValueError as error:
            raise source.wrong(place, f"'{short(word)}' is not a valid pattern: {error}") from error
        if not names:
            raise source.wrong(place, f"no model is called '{short(word)}'", _model_hint(word))
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


def _model_hint(word: str) -> str:
    if word.startswith("zoo:"):
        return suggestion(word.removeprefix("zoo:"), zoo.names())
    return "patterns of files are relative to the folder of the sweep's file, such as models/*.py"


def _evaluate(source: Source, table: Any, models: Sequence[str]) -> dict[str, str]:
    """The files of samples by patterns that fit some of `models`, as they are named; each can be read."""
    example = '[evaluate] "zoo:digits_cnn" = "digits.npz"'
    if not isinstance(table, dict):
        raise source.wrong(("evaluate",), "evaluate must be a table of models and files", example)
    for pattern, file in table.items():
        place = ("evaluate", pattern)
        if not any(fnmatchcase(model, pattern) for model in models):
            hint = suggestion(short(pattern), models)
            raise source.wrong(place, f"the sweep has no model '{short(pattern)}'", hint)
        if not isinstance(file, str) or not (source.path.absolute().parent / file).is_file():
            raise source.wrong(place, f"there is no file {short(str(file))}", example)
        try:
            evaluation_data.content(source.path.absolute().parent / file)
        except SdkError as error:
            raise source.wrong(place, error.message, error.hint) from error
    return table


def _limits(source: Source, table: Any) -> Limits:
    if not isinstance(table, dict):
        raise source.wrong(("limits",), "limits must be a table", "[limits] time = 600")
    for key in table:
        if key not in _LIMITS:
            raise source.wrong(("limits", key), f"there is no limit '{short(key)}'", suggestion(key, _LIMITS))
    time_s = _time_s(source, table["time"]) if "time" in table else DEFAULT_TIME_S
    return Limits(time_s, _memory_bytes(source, table["memory"]) if "memory" in table else None)


def _time_s(source: Source, value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value <= _LONGEST_S:  # a NaN is neither
        raise source.wrong(("limits", "time"), f"time must be a number of seconds, at most {_LONGEST_S:g}")
    return float(value)


def _memory_bytes(source: Source, value: Any) -> int:
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    size = -1.0
    if found is not None:
        unit = found[2] or ""
        size = float(found[1]) * (1024 if unit.endswith("i") else 1000) ** (_POWERS.get(unit[:1], 0))
    if not _LEAST_BYTES <= size <= _MOST_BYTES:
        raise source.wrong(
            ("limits", "memory"), "memory must be a size of at least 64 MiB", 'memory = "4 GiB"'
        )
    return int(size)
