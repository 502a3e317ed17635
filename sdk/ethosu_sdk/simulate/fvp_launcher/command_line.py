"""The FVPs' command line as a launcher takes it: its options, and the parameters (-C NAME=VALUE) that it knows
(parameters.toml).
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.simulate.fvp_models import FvpModel

Value = bool | int | str
_BOOLEANS = {"1": True, "0": False, "true": True, "false": False}


@dataclass(frozen=True)
class Parameter:
    """One parameter. An `honoured` one does something; `allowed` are the values of one that cannot be chosen."""

    name: str
    kind: str
    honoured: bool
    allowed: tuple[int, ...]

    def read(self, text: str) -> Value:
        """The value of `text`. UsageError when it is not of this kind, or not available here."""
        value = self._converted(text)
        if self.allowed and value not in self.allowed:
            raise UsageError(
                f"parameter error: {self.name}={text}: value is out of range",
                f"the simulated board has {' or '.join(f'{row:#x}' for row in self.allowed)} only",
            )
        return value

    def _converted(self, text: str) -> Value:
        text = unquoted(text)
        try:
            if self.kind == "boolean":
                return _BOOLEANS[text.lower()]
            return int(text, 0) if self.kind == "integer" else text
        except (KeyError, ValueError) as error:
            raise UsageError(f"parameter error: {self.name}={text} is not of type {self.kind}") from error


def unquoted(text: str) -> str:
    """`text` without the quotation marks around it: scripts pass them on where no shell takes them off."""
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


def known_parameters(model: FvpModel) -> dict[str, Parameter]:
    """The parameters of the launcher for `model`, by name."""
    table = tomllib.loads((Path(__file__).parent / "parameters.toml").read_text(encoding="utf-8"))
    found: dict[str, Parameter] = {}
    for row in table["parameters"]:
        if row.get("only") == "SSE-320" and model.board != "corstone-320":
            continue
        allowed = tuple(row.get("allowed", ()))
        if "INITSVTOR" in row["name"]:
            allowed = (*allowed, *model.vectors)
        names = {row["name"].format(**model.instances, terminal=terminal) for terminal in model.terminals}
        for name in sorted(names):
            # uart0 has rows of its own, before those for every UART.
            found.setdefault(name, Parameter(name, row["kind"], row["use"] == "honoured", allowed))
    return found


def read_assignment(text: str, known: dict[str, Parameter]) -> tuple[str, Value]:
    """``NAME=VALUE`` → name and value. UsageError for an unknown name or an impossible value."""
    name, equals, value = unquoted(text).partition("=")
    name = name.strip()
    if not equals:
        raise UsageError(f"parameter error: '{text}' is not NAME=VALUE")
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        raise UsageError(
            f"parameter error: there is no parameter '{name}'",
            "".join(f"did you mean '{row}'? " for row in near) + "--list-params shows all",
        )
    return name, known[name].read(value.strip())


_MOST_CONFIG_BYTES = 1 << 20
# Options of the FVPs' command line by every spelling → one name. Those of the first table take a value.
_WITH_VALUE = {
    "-C": "parameter",
    "--parameter": "parameter",
    "-a": "application",
    "--application": "application",
    "-f": "config-file",
    "--config-file": "config-file",
    "--data": "data",
    "--dump": "dump",
    "-T": "timelimit",
    "--timelimit": "timelimit",
    "--simlimit": "simlimit",
    "--cyclelimit": "cyclelimit",
    # Of the launchers alone: which system the NPU's cycles are for.
    "--vela-config": "vela-config",
    "--system-config": "system-config",
    "--memory-mode": "memory-mode",
}
_WITHOUT = {
    "--stat": "stat",
    "--version": "version",
    "-h": "help",
    "--help": "help",
    "-l": "list-params",
    "--list-params": "list-params",
    "-q": "quiet",
    "--quiet": "quiet",
}
_ACTIONS: tuple[Literal["help", "version", "list-params"], ...] = ("help", "version", "list-params")

HELP = f"""usage: {{program}} [options] [-a] FIRMWARE.elf
options: {", ".join(_WITH_VALUE)}, {", ".join(_WITHOUT)}
The NPU's cycles are for the family's default system configuration and memory mode. --system-config NAME and
--memory-mode NAME choose others of Vela's own file, --vela-config FILE.ini those of another file.
"""


@dataclass(frozen=True)
class Dump:
    """Memory that goes to `file` after the run."""

    file: Path
    address: int
    size_bytes: int


@dataclass(frozen=True)
class Options:
    """A parsed command line. `data` are files and addresses; a limit that is not given is None.

    `vela_config`, `system_config` and `memory_mode` say which system the NPU's cycles are for: a Vela configuration
    file and names in it. `action` is what to print instead of running a firmware; `values` holds the parameters that
    were given.
    """

    action: Literal["", "help", "version", "list-params"]
    elf: Path | None
    values: dict[str, Value]
    data: tuple[tuple[Path, int], ...]
    time_limit_s: float | None
    unhonoured_limits: tuple[str, ...]  # those of simulated time, which is not modelled
    statistics: bool
    dumps: tuple[Dump, ...] = ()
    vela_config: Path | None = None
    system_config: str | None = None
    memory_mode: str | None = None


def parse_options(words: Sequence[str], model: FvpModel) -> Options:
    """Parse the command line `words` of the launcher for `model`.

    UsageError for what an FVP does not know either, or a launcher does not; InputError for a file that lacks.
    """
    options = list(_options(words))
    names = [name for name, _ in options]
    for action in _ACTIONS:
        if action in names:
            return Options(action, None, {}, (), None, (), statistics=False)
    applications = [value for name, value in options if name == "application"]
    if len(applications) > 1:
        raise UsageError(f"{len(applications)} applications: {', '.join(applications)}", "give one firmware")
    limits = [value for name, value in options if name == "timelimit"]
    named = {name: unquoted(value) for name, value in options}
    return Options(
        action="",
        elf=Path(_without_instance(applications[0])) if applications else None,
        values=dict(_values(options, model)),
        data=tuple(_data(value) for name, value in options if name == "data"),
        time_limit_s=_seconds(limits[-1]) if limits else None,
        unhonoured_limits=tuple(f"--{name}" for name in names if name in ("simlimit", "cyclelimit")),
        statistics="stat" in names,
        dumps=tuple(_dump(value) for name, value in options if name == "dump"),
        vela_config=Path(named["vela-config"]) if "vela-config" in named else None,
        system_config=named.get("system-config"),
        memory_mode=named.get("memory-mode"),
    )


def _options(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(name, value) for every option; a word that is not an option is the application."""
    rest = iter(words)
    for word in rest:
        long, equals, value = word.partition("=")
        if word in _WITHOUT:
            yield _WITHOUT[word], ""
        elif word in _WITH_VALUE:
            try:
                yield _WITH_VALUE[word], next(rest)
            except StopIteration:
                raise UsageError(f"option {word} needs a value") from None
        elif word.startswith("--") and equals and long in _WITH_VALUE:
            yield _WITH_VALUE[long], value
        elif word[:2] in _WITH_VALUE and not word.startswith("--"):
            yield _WITH_VALUE[word[:2]], word[2:]
        elif word.startswith("-"):
            raise UsageError(f"unknown option '{word}'", "--help lists the options that launchers accept")
        else:
            yield "application", word


def _values(options: Sequence[tuple[str, str]], model: FvpModel) -> Iterator[tuple[str, Value]]:
    known = known_parameters(model)
    for name, value in options:
        if name == "parameter":
            yield read_assignment(value, known)
        elif name == "config-file":
            for line in _config_lines(Path(value)):
                yield read_assignment(line, known)


def _config_lines(path: Path) -> Iterator[str]:
    """The assignments in a configuration file; what follows a # is a comment."""
    try:
        text = filesystem.file_content(path, _MOST_CONFIG_BYTES).decode("utf-8")
    except InputError as error:
        raise InputError(f"the configuration file: {error.message}", error.hint) from error
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read the configuration file {path}: {error}") from error
    for line in text.splitlines():
        assignment = line.partition("#")[0].strip()
        if assignment:
            yield assignment


def _without_instance(text: str) -> str:
    """A file's name without ``INSTANCE=`` before it; a file whose name holds ``=`` keeps it."""
    instance, equals, rest = text.partition("=")
    return rest if equals and "/" not in instance and not Path(text).exists() else text


def _data(text: str) -> tuple[Path, int]:
    """``[INSTANCE=]FILE@[SPACE:]ADDRESS`` → file and address."""
    name, at, address = unquoted(text).rpartition("@")
    try:
        if not (at and name):
            raise ValueError(text)
        return Path(_without_instance(name)), int(address.rpartition(":")[2], 0)
    except ValueError:
        raise UsageError(f"--data {text} is not FILE@ADDRESS", "such as model.bin@0x70000000") from None


def _dump(text: str) -> Dump:
    """``[INSTANCE=]FILE@[SPACE:]ADDRESS,SIZE`` → file, address and size."""
    place, comma, size = unquoted(text).rpartition(",")
    try:
        file, address = _data(place)
        size_bytes = int(size, 0)
        if not comma or size_bytes <= 0:
            raise ValueError(text)
    except (UsageError, ValueError):
        example = "such as out.bin@0x93000000,1000"
        raise UsageError(f"--dump {text} is not FILE@ADDRESS,SIZE", example) from None
    return Dump(file, address, size_bytes)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise UsageError(f"--timelimit {text} is not a number of seconds")
    return value
