"""What a model's file reads while it is executed and compiled: files, folders, modules, variables of the environment.

The process that compiles keeps a list (:class:`Recorder`). Whoever may go on with its program compares the list with
what is there now (:func:`difference`), which takes no torch. Reads by unknown native code, other processes
and networks cannot be listed. `unseen` says so, and the model is then compiled each time. The time of day and random
numbers without a seed leave no trace.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import stat
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from ethosu_sdk.base import filesystem, resources
from ethosu_sdk.base.errors import InputError

_COMPILED = re.compile(rf"(.+)\.{re.escape(sys.implementation.cache_tag)}(?:\.opt-\w+)?\.pyc")
_DEVICES = ("/proc/", "/sys/", "/dev/")
_SYSTEM = (*_DEVICES, "/etc/", "/usr/include/", "/usr/lib/", "/usr/share/")
# States of what is no file with content. A file that changed meanwhile is like no other: nobody knows what was read.
_NOTHING, _FOLDER, _SPECIAL, _CHANGED = "nothing", "folder", "special", "changed"
_ALL_NAMES = ""  # among variables: the names of all
_PATHS = "PYTHONPATH"  # which Python itself reads
_MOST_BYTES = 1 << 24

# Packages whose native modules open no file behind Python's back, and operators of theirs that do.
_FOLLOWED = frozenset(
    {
        *("torch", "functorch", "torchao", "torchvision", "executorch", "ethosu", "tosa", "serializer"),
        *("tosa_serializer", "numpy", "scipy", "PIL", "pandas", "sklearn", "matplotlib", "ml_dtypes"),
        *("msgspec", "yaml", "_yaml", "markupsafe", "regex", "charset_normalizer", "psutil", "google"),
        *("pydantic_core", "rpds"),
    }
)
_READING_OPERATORS = {
    "image": {"read_file"},
    "video_reader": {"read_video_from_file", "probe_video_from_file"},
}
_TOOLS = ("executorch/", "ethosu/", "tosa/", "serializer/", "tosa_serializer/")
_TORCH, _ANY = ("torch/", "torchao/", "functorch/", "sympy/"), ("",)
# Audit events of Python after which a list is not complete.
_UNSEEN = {
    **dict.fromkeys(("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn"), "it started a program"),
    **dict.fromkeys(("os.fork", "os.forkpty"), "it started a process"),
    **dict.fromkeys(("socket.connect", "socket.getaddrinfo", "socket.sendto"), "it used the network"),
}
_stat = os.stat  # before a recorder takes its place
_LIBRARY = f"{os.path.dirname(os.__file__)}/"  # Python's own; site-packages may be in it


@dataclass(frozen=True)
class Reads:
    """What was read, with its state then: of a file its SHA-256, of an installed one size and time, of a folder that
    was listed a digest of the names in it, of a variable a digest of its value.

    `model` is the model's file, `folder` the working folder. `modules` are names that were imported, or looked for;
    `places` are the folders that Python searches, with what is there by these names. `unseen` says why the list is
    not complete, if it is not.
    """

    model: str
    folder: str
    python: str
    files: dict[str, str]
    listings: dict[str, str]
    modules: tuple[str, ...]
    places: dict[str, str]
    variables: dict[str, str]
    unseen: str = ""


def difference(reads: Reads, model: Path) -> str:
    """Why a program of the file `model` is another one than that of which `reads` is the list; empty if it is not."""
    if reads.unseen:
        return reads.unseen
    if (reads.model, reads.folder, reads.python) != (os.path.abspath(model), os.getcwd(), _python()):
        return "it was compiled in another folder, or with another Python"
    names = frozenset(reads.modules)
    for rows, state, what in (
        (reads.files, _file_state, "{} has changed"),
        (reads.listings, _names_state, "other files are in {}"),
        (reads.places, functools.partial(_modules_state, names=names), "other modules are in {}"),
    ):
        for path, known in rows.items():
            if state(path) != known:
                return what.format(os.path.relpath(path))
    for name, known in reads.variables.items():
        if _variable_state(name, os.environ) != known:
            return f"the variable {name} has changed" if name else "there are other variables"
    return ""


def reads_of_files(model: Path, files: Iterable[Path]) -> Reads:
    """What a `model` reads that is parsed, not executed: its `files`."""
    states = {os.path.abspath(path): _file_state(os.path.abspath(path)) for path in files}
    return Reads(os.path.abspath(model), os.getcwd(), _python(), states, {}, (), {}, {})


class _Kept(msgspec.Struct):
    program: str
    reads: Reads


def write_reads(pte: Path, sha256: str, reads: Reads) -> None:
    """Keep `reads` beside the program at `pte`, which has this SHA-256."""
    filesystem.write_bytes(_kept_file(pte), msgspec.json.encode(_Kept(sha256, reads)))


def forget_reads(pte: Path) -> None:
    """Remove what :func:`write_reads` kept: what lies at `pte` is about to be made anew."""
    _kept_file(pte).unlink(missing_ok=True)


def read_reads(pte: Path, sha256: str) -> Reads | None:
    """What :func:`write_reads` kept for this program."""
    try:
        kept = msgspec.json.decode(filesystem.file_content(_kept_file(pte), _MOST_BYTES), type=_Kept)
    except (InputError, msgspec.MsgspecError):
        return None
    return kept.reads if kept.program == sha256 else None


def _kept_file(pte: Path) -> Path:
    return pte.with_name(f".{pte.stem}.reads.json")  # hidden: no manifest lists it


def _python() -> str:
    return f"{os.path.realpath(sys.prefix)} {sys.version}"


@functools.cache
def _installed() -> tuple[str, ...]:
    environment = (sys.prefix,) if sys.prefix != sys.base_prefix else ()
    libraries = ("stdlib", "platstdlib", "purelib", "platlib")
    data = (resources.directory(name) for name in ("firmware", "schemas"))
    places = (*environment, *map(sysconfig.get_path, libraries), resources.PACKAGE_ROOT, *data)
    found = {os.path.realpath(place) for place in places}
    return (*_SYSTEM, *(f"{place}/" for place in found if place != "/"))


def is_installed(path: str) -> bool:
    """Whether a file belongs to the system, to Python, or to a package that was installed."""
    return path.startswith(_installed()) or "/site-packages/" in path


def _file_state(path: str) -> str:
    try:
        known = _stat(path)
        if stat.S_ISREG(known.st_mode):
            if is_installed(os.path.realpath(path)):
                return f"{known.st_size} {known.st_mtime_ns}"
            return filesystem.sha256_file(Path(path))
    except (OSError, ValueError, InputError):
        return _NOTHING
    return _FOLDER if stat.S_ISDIR(known.st_mode) else _SPECIAL


def _names_in(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def _digest(texts: Iterable[str]) -> str:
    return filesystem.sha256_bytes("\0".join(texts).encode("utf-8", "surrogateescape"))


def _names_state(path: str) -> str:
    return _digest(_names_in(path))


def _modules_state(path: str, names: frozenset[str]) -> str:
    found = (name for name in _names_in(path) if name.partition(".")[0] in names)
    return _digest(f"{name} {os.path.isfile(os.path.join(path, name, '__init__.py'))}" for name in found)


def _variable_state(name: str, environment: Mapping[str, str]) -> str:
    if name == _ALL_NAMES:
        return _digest(sorted({*environment} - {"PYTHONHASHSEED"}))
    value = environment.get(name)
    return _NOTHING if value is None else _digest([value])


def source_of(path: Path) -> Path:
    """The Python file of a compiled one. Its own name may have dots, which importlib does not expect."""
    found = _COMPILED.fullmatch(path.name)
    if found is not None and path.parent.name == "__pycache__":
        return path.parent.parent / f"{found[1]}.py"
    return path


_Stamp = tuple[int, ...] | None


def _stamp(path: str) -> _Stamp:
    """What is another one when a file was written, made or removed; of a folder, that it is there."""
    try:
        known = _stat(path)
    except (OSError, ValueError):
        return None
    return (known.st_ino, known.st_size, known.st_mtime_ns) if stat.S_ISREG(known.st_mode) else ()


class Recorder:
    """Lists what this process reads, from now on and to its end. `environment` is as it was before torch, which sets
    variables, was imported."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._start_ns = time.time_ns()
        self._folder = os.getcwd()
        self._files: dict[str, _Stamp] = {}
        self._made: set[str] = set()
        self._changed: set[str] = set()
        self._listings: dict[str, str] = {}
        self._modules: set[str] = set()
        self._variables = {_PATHS}
        self._unseen: dict[str, None] = {}
        self._heard: dict[str, Callable[..., None]] = {
            **dict.fromkeys(_UNSEEN, self._take_unseen),
            **dict.fromkeys(("os.listdir", "os.scandir"), self._take_listing),
            "open": self._take_open,
            "os.rename": lambda event, old, new, *places: self._take_file(new, os.O_WRONLY | os.O_TRUNC),
            "import": self._take_import,
            "ctypes.dlopen": self._take_native,
            "sqlite3.connect": lambda event, path: self._take_file(path),
        }
        sys.addaudithook(self._hear)
        torch = importlib.import_module("torch")
        silent = [
            (os, "stat"),
            (os, "access"),
            (torch, "from_file"),
            (torch._C.PyTorchFileReader, "__init__"),
        ]
        for holder, name in silent:  # of which no audit event tells
            setattr(holder, name, self._noting(getattr(holder, name)))
        self._hear_variables()

    def reads(self, model: Path) -> Reads:
        """The list for the file `model`, with the states of now."""
        names = frozenset(name.rpartition(".")[2] for name in [*self._modules])
        operators = vars(importlib.import_module("torch").ops)
        for space, members in _READING_OPERATORS.items():
            if space in operators and not members.isdisjoint(vars(operators[space])):
                self._unseen["it read files by operators of torchvision"] = None
        listings = dict(self._listings)
        return Reads(
            model=os.path.join(self._folder, model),
            folder=self._folder,
            python=_python(),
            files=dict(self._file_states()),
            listings={
                path: known if _names_state(path) == known else _CHANGED for path, known in listings.items()
            },
            modules=tuple(sorted(names)),
            places={path: _modules_state(path, names) for path in self._places()},
            variables={name: _variable_state(name, self._environment) for name in [*self._variables]},
            unseen=" and ".join(self._unseen),
        )

    def digests(self, folder: Path) -> dict[str, str]:
        """The SHA-256 of files that were read and are not installed, by their paths from `folder`, but for those that
        the process made itself. One that changed meanwhile has zeros."""
        found = {
            os.path.relpath(os.path.realpath(path), folder): "0" * 64 if state == _CHANGED else state
            for path, state in self._file_states()
            if state not in (_NOTHING, _FOLDER, _SPECIAL) and not is_installed(os.path.realpath(path))
        }
        return dict(sorted(found.items()))

    def _file_states(self) -> Iterator[tuple[str, str]]:
        """States of what was read and is not the process's own work."""
        for module in [
            *sys.modules.values()
        ]:  # of some, only the compiled file was opened, which may be anywhere
            origin = getattr(module, "__file__", None)
            if isinstance(origin, str) and os.path.isabs(origin) and not is_installed(origin):
                stamp = _stamp(origin)
                if origin not in self._files and stamp and stamp[-1] >= self._start_ns:
                    self._changed.add(origin)
                self._files.setdefault(origin, stamp)
        for path, stamp in [*self._files.items()]:
            is_another = path in self._changed or _stamp(path) != stamp
            yield path, _CHANGED if is_another else _file_state(path)

    def _places(self) -> Iterator[str]:
        yield from dict.fromkeys(os.path.abspath(path) for path in sys.path if os.path.isdir(path))
        for module in [*sys.modules.values()]:
            found = getattr(module, "__path__", ())
            for path in found if isinstance(found, Iterable) else ():
                if not is_installed(f"{path}/"):
                    yield path

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        take = self._heard.get(event)
        if take is not None:
            caller = sys._getframe().f_back
            if caller is not None and caller.f_code.co_filename != __file__:
                take(event, *arguments)

    def _take_open(self, event: str, path: Any, mode: Any, flags: Any) -> None:
        self._take_file(path, flags if isinstance(flags, int) else os.O_RDONLY)

    def _take_import(self, event: str, module: str, path: Any, *search: Any) -> None:
        self._modules.add(module)
        self._take_native(event, path)

    def _take_unseen(self, event: str, *arguments: Any) -> None:
        if not _is_tools_own(_TORCH):
            self._unseen[_UNSEEN[event]] = None

    def _take_file(self, path: Any, flags: int = os.O_RDONLY) -> None:
        """Note that the file at `path` is about to be opened, as `flags` have it."""
        name = _absolute(path)
        if not name or name.startswith(_DEVICES) or _is_tools_own(_TORCH):
            return
        stamp = _stamp(name)
        if flags & os.O_ACCMODE == os.O_RDONLY:
            if name not in self._made:
                self._files.setdefault(name, stamp)
        elif name in self._files or (stamp and not flags & (os.O_TRUNC | os.O_EXCL)):
            self._files.setdefault(name, stamp)
            self._changed.add(name)
        else:
            self._made.add(name)

    def _take_listing(self, event: str, path: Any) -> None:
        if not next(_callers()).startswith("<frozen importlib"):  # which looks for modules: see `places`
            name = _absolute("." if path is None else path)
            if name and not _is_tools_own(_TORCH):
                self._listings.setdefault(name, _names_state(name))

    def _take_native(self, event: str, path: Any) -> None:
        if not isinstance(path, str) or os.sep not in path or _is_tools_own(_ANY):
            return
        self._files.setdefault(path, _stamp(path))
        package = path.rpartition("/site-packages/")[2].lstrip("/").partition("/")[0].partition(".")[0]
        if not _is_of_python(path) and package not in _FOLLOWED:
            self._unseen[f"what {package or path} reads cannot be followed"] = None

    def _noting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def noted(*arguments: Any, **options: Any) -> Any:
            for value in (*arguments, *options.values()):
                self._take_file(value)
            return function(*arguments, **options)

        return noted

    def _hear_variables(self) -> None:
        kind, variables = type(os.environ), self._variables
        value_of, all_names = kind.__getitem__, kind.__iter__

        def noted_value(environment: Any, key: Any) -> Any:
            if not _is_tools_own(_TORCH):
                variables.add(os.fsdecode(key))
            return value_of(environment, key)

        def noted_names(environment: Any) -> Iterator[Any]:
            if not _is_tools_own(_TORCH):
                variables.add(_ALL_NAMES)
            return all_names(environment)

        kind.__getitem__, kind.__iter__ = noted_value, noted_names  # type: ignore[method-assign]


def _absolute(path: Any) -> str:
    """Where `path` leads now, for a model may change the folder; empty for no path."""
    path = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(path, str | bytes) or not path:
        return ""
    name = os.path.abspath(os.fsdecode(path))
    return str(source_of(Path(name))) if name.endswith(".pyc") else name


def _is_of_python(path: str) -> bool:
    return path.startswith(("<frozen", _LIBRARY)) and "/site-packages/" not in path


def _callers() -> Iterator[str]:
    """The files of the code that caused an event, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename != __file__:
            yield frame.f_code.co_filename
        frame = frame.f_back


def _is_tools_own(through: tuple[str, ...]) -> bool:
    """Whether what compiles models does what is heard of, by itself or `through` packages: not the model."""
    for path in _callers():
        if _is_tool(path):
            return True
        package = path.rpartition("/site-packages/")[2]
        if not _is_of_python(path) and (package == path or not package.startswith(through)):
            return False
    return False


@functools.cache
def _is_tool(path: str) -> bool:
    if path.startswith(f"{resources.PACKAGE_ROOT}/"):
        return not path.endswith("/compile/front_ends/loading.py")  # which has the model's file read
    return path.rpartition("/site-packages/")[2].startswith(_TOOLS)
