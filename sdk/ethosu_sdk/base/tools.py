"""The programs and Python packages that the SDK uses (tools.toml): finding them, and what to do when one is
missing; and the SDK's commit.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import os
import re
import shutil
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from ethosu_sdk.base import cache, filesystem, proc, resources
from ethosu_sdk.base.errors import InputError, SdkError, ToolError

EXECUTORCH_INSTALL = "pip install 'ethosu-sdk[compile]'"


def package_version(name: str) -> str | None:
    """The installed version of the Python distribution `name`, read from its metadata; None when absent."""
    import importlib.metadata  # slow to import, and the FVP launchers, which must start fast, need no versions

    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


@functools.cache
def git_revision() -> str | None:
    """The SDK's commit, with ``-dirty`` when files differed from it; None where nothing names it.

    In a checkout git tells it; hatch_build.py writes it into a wheel.
    """
    root = resources.repository()
    if root is None:
        noted = resources.file("commit")
        return noted.read_text(encoding="ascii").strip() if noted is not None else None
    try:
        git = [proc.find_tool("git", hint=""), "-C", str(root)]
        argv = [*git, "describe", "--always", "--dirty", "--abbrev=12"]
        return proc.run(argv, timeout_s=_TIMEOUT_S, error=ToolError).output.strip() or None
    except SdkError:
        return None


FORMATS, SWEEP = "formats", "sweep"
_WHAT = {FORMATS: "this format needs", SWEEP: "sweeps need"}
_OWN = "ethosu-sdk"


def load_extra(module: str, extra: str) -> Any:
    """The module `module`. ToolError, with what to install, when its package is not there or does not load."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ToolError(
            f"{_WHAT[extra]} the Python package {package}, which cannot be loaded: {error}",
            f"pip install '{_OWN}[{extra}]', or pip install {_extra_requirement(package, extra)}",
        ) from error


def _extra_requirement(package: str, extra: str) -> str:
    """The package as the SDK asks for it, with its version; the name alone where the SDK is not installed."""
    import importlib.metadata

    condition = re.compile(rf"({re.escape(package)}\b[^;]*?) *; *extra == ['\"]{extra}['\"]")
    try:
        rows = importlib.metadata.requires(_OWN) or ()
    except importlib.metadata.PackageNotFoundError:
        rows = ()
    return next((found[1] for row in rows if (found := condition.fullmatch(row))), package)


Status = Literal["found", "missing", "too old", "broken"]
_VERSION = re.compile(r"\d+(?:\.\d+)+")
_TIMEOUT_S = 10.0
_MOST_PLUGIN_BYTES = 1 << 24
_MOST_NOTE_BYTES = 1 << 16
_PLUGINS = Path("/usr/local/lib/ethosu-sdk")  # where the container images have them


@dataclass(frozen=True)
class Tool:
    """One row of tools.toml."""

    name: str
    is_package: bool
    arguments: tuple[str, ...]
    wanted: str  # minimum version of a program, exact version of a package; empty when any will do
    needed_for: str
    fix: str
    optional: bool = False
    debian: str = ""  # the Debian package of a program
    from_system: bool = False  # not the one that a Python package put beside this interpreter
    variable: str = ""  # of what the SDK builds itself: the environment variable that names another
    is_plugin: bool = False  # a shared object, with its name and version in it as text


@dataclass(frozen=True)
class ToolStatus:
    """What is installed of a tool."""

    tool: Tool
    status: Status
    version: str = ""
    path: Path | None = None
    detail: str = ""


@functools.cache
def tool_table() -> dict[str, Tool]:
    """All rows of tools.toml by name."""
    data = tomllib.loads((Path(__file__).parent / "tools.toml").read_text(encoding="utf-8"))
    members = ("needed_for", "fix", "optional", "debian", "from_system", "variable")
    return {
        name: Tool(
            name=name,
            is_package=kind == "packages",
            is_plugin=kind == "plugins",
            arguments=tuple(row.get("arguments", ())),
            wanted=row.get("exact", row.get("minimum", "")),
            **{key: row[key] for key in members if key in row},
        )
        for kind in ("programs", "plugins", "packages")
        for name, row in data[kind].items()
    }


def _as_tuple(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


@functools.cache
def probe(name: str, *, anew: bool = False) -> ToolStatus:
    """What is installed of the tool called `name`. A program is asked its version once, or each time with `anew`."""
    tool = tool_table()[name]
    if tool.is_plugin:
        return _probe_plugin(tool)
    return _probe_package(tool) if tool.is_package else _probe_program(tool, anew=anew)


def _probe_package(tool: Tool) -> ToolStatus:
    version = package_version(tool.name)
    if version is None:
        return ToolStatus(tool, "missing")
    same = version.split("+")[0] == tool.wanted
    detail = "" if same else f"{tool.wanted} is pinned: other versions may give other results"
    return ToolStatus(tool, "found" if same else "broken", version, detail=detail)


def _probe_plugin(tool: Tool) -> ToolStatus:
    built = _own_build(tool)
    path = Path(built) if built is not None else _PLUGINS / tool.name
    if not path.exists():
        return ToolStatus(tool, "missing")
    try:
        content = filesystem.file_content(path, _MOST_PLUGIN_BYTES)
    except InputError as error:
        return ToolStatus(tool, "broken", path=path, detail=error.message)
    stem = re.escape(Path(tool.name).stem.encode())
    match = re.search(rb"\0" + stem + rb" ([\d.]+)\0", content)
    if match is None:
        return ToolStatus(tool, "broken", path=path, detail="it has no version")
    return _judged(tool, match[1].decode(), path)


def _judged(tool: Tool, version: str, path: Path) -> ToolStatus:
    old = bool(tool.wanted) and _as_tuple(version) < _as_tuple(tool.wanted)
    return ToolStatus(tool, "too old" if old else "found", version, path)


def _system_path() -> str:
    """PATH without the folder of this interpreter's environment, whether that is activated or not."""
    ours = (Path(sys.prefix) / "bin").resolve()
    parts = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(part for part in parts if part and Path(part).resolve() != ours)


def _own_build(tool: Tool) -> str | None:
    """Where a program is that the SDK builds: what its variable names, in any case, else the one in the cache."""
    chosen = os.environ.get(tool.variable)
    if chosen:
        return chosen
    built = cache.installed(tool.name) / "current" / tool.name
    return str(built) if os.access(built, os.X_OK) else None


def _probe_program(tool: Tool, *, anew: bool) -> ToolStatus:
    where = _own_build(tool) if tool.variable else None
    if where is None:
        where = shutil.which(tool.name, path=_system_path() if tool.from_system else None)
    if where is None:
        return ToolStatus(tool, "missing")
    path = Path(where)
    identity = _identity(path)
    if not anew and identity and (known := _noted_versions().get(tool.name)) and known[0] == identity:
        return _judged(tool, known[1], path)
    try:
        output = proc.run([where, *tool.arguments], timeout_s=_TIMEOUT_S, error=ToolError).output
    except SdkError as error:
        return ToolStatus(tool, "broken", path=path, detail=error.message.splitlines()[0])
    match = _VERSION.search(output)
    if match is None:
        return ToolStatus(tool, "broken", path=path, detail="it prints no version")
    if identity:
        _note_version(tool.name, identity, match.group())
    return _judged(tool, match.group(), path)


# Versions of programs in the cache, each with the file that told it: to start five programs takes a tenth of the time
# of a run whose firmware is there.

_VERSIONS = "versions.json"


class _Versions(msgspec.Struct):
    programs: dict[
        str, tuple[str, Annotated[str, msgspec.Meta(pattern=rf"^{_VERSION.pattern}$")]]
    ]  # identity, version


def _identity(path: Path) -> str:
    """What changes when a program is replaced; empty for a script, which may start another one each time."""
    try:
        with path.open("rb") as file:
            if file.read(4) != b"\x7fELF":
                return ""
            state = os.fstat(file.fileno())
    except OSError:
        return ""
    facts = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    return " ".join(map(str, (path.resolve(), *facts)))


def _noted_versions() -> dict[str, tuple[str, str]]:
    try:
        content = filesystem.file_content(cache.place("programs") / _VERSIONS, _MOST_NOTE_BYTES)
        return msgspec.json.decode(content, type=_Versions).programs
    except (InputError, msgspec.DecodeError):  # none, or damaged
        return {}


def _note_version(name: str, identity: str, version: str) -> None:
    noted = _Versions({**_noted_versions(), name: (identity, version)})
    with contextlib.suppress(
        SdkError, OSError
    ):  # a cache that cannot be written is reported where it matters
        filesystem.write_bytes(cache.directory("programs") / _VERSIONS, msgspec.json.encode(noted))


def require(name: str) -> ToolStatus:
    """The tool called `name`, fit for use. ToolError, with the fix, when it is missing, too old or broken."""
    found = probe(name)
    if found.status != "found":
        version = f" ({found.version}, {found.tool.wanted} is needed)" if found.version else ""
        raise ToolError(
            f"'{name}', needed for {found.tool.needed_for}, is {found.status}{version}", found.tool.fix
        )
    return found


def executorch_root() -> Path:
    """The folder of the installed package. ToolError when it is absent or lacks the C++ runtime."""
    spec = importlib.util.find_spec("executorch")
    locations = [] if spec is None else list(spec.submodule_search_locations or [])
    if not locations:
        raise ToolError("the Python package executorch is not installed", EXECUTORCH_INSTALL)
    for folder in map(Path, locations):
        if (folder / "lib" / "libexecutorch.so").is_file():
            return folder
    raise ToolError("the installed executorch package has no C++ runtime", EXECUTORCH_INSTALL)


def event_place(tensor: str) -> str:
    """What stands in an event's identifier for the TOSA operator that makes `tensor`, in an ETDump and its ETRecord.

    The Inspector takes an identifier for any of which it contains the name: one name must not be in another.
    """
    return f"[{tensor}]"
