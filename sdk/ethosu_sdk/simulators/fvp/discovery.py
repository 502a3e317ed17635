"""Where an FVP is installed, and which version it is."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk import proc
from ethosu_sdk.errors import SdkError, ToolError
from ethosu_sdk.evidence.fvp_output import NOT_AN_FVP
from ethosu_sdk.simulators.fvp.models import FvpModel

FVP_VARIABLE = "ETHOSU_FVP_DIR"

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*")
_VERSION_TIMEOUT_S = 30.0
# An installer of Arm's puts the programs into models/<platform>_<compiler>/ of the folder it is given.
_PLACES = ("{name}", "bin/{name}", "models/*/{name}", "*/models/*/{name}", "*/*/models/*/{name}")
_LAUNCHER_MARK = b"ethosu_sdk.fvp_launcher"
_HEAD_BYTES = 4096


@dataclass(frozen=True)
class InstalledFvp:
    """A program that is there, its version and the environment that it needs."""

    program: Path
    version: str
    environment: Mapping[str, str]


def install_root() -> Path:
    """The folder into which FVPs are installed by default, ``<board>/<version>/`` below it; need not exist (XDG base
    directory specification: $XDG_DATA_HOME, else ~/.local/share)."""
    base = os.environ.get("XDG_DATA_HOME") or os.path.expanduser(
        "~/.local/share"
    )  # never fails, as Path.home() does
    return Path(base).absolute() / "ethosu-sdk" / "fvp"


def find(model: FvpModel) -> Path:
    """The program of `model`: below $ETHOSU_FVP_DIR, on PATH, or where `ethosu-sdk fvp install` puts it.

    ToolError, with how to install it, when there is none; the SDK's own launchers are none.
    """
    launcher = None
    for path in _candidates(model.program):
        if not is_launcher(path):
            return path
        launcher = path
    folder = os.environ.get(FVP_VARIABLE)
    where = f"below {folder} ({FVP_VARIABLE}) or on PATH" if folder else "on PATH"
    only = f"; {launcher} is this SDK's launcher, {NOT_AN_FVP}" if launcher is not None else ""
    raise ToolError(
        f"{model.program} was not found {where}{only}",
        f"`ethosu-sdk fvp install {model.board}` installs it once you accept Arm's licence; {FVP_VARIABLE} names "
        "the folder of one that is installed; `--simulator qemu` needs none",
    )


def _candidates(name: str) -> Iterator[Path]:
    folder = os.environ.get(FVP_VARIABLE)
    if folder:
        yield from _below(Path(folder), name)
    found = shutil.which(name)
    if found is not None:
        yield Path(found).absolute()
    yield from _below(install_root(), name)


def _below(folder: Path, name: str) -> Iterator[Path]:
    """The programs called `name` below `folder`; of several versions the one whose folder sorts last comes first."""
    for place in _PLACES:
        for path in sorted(folder.glob(place.format(name=name)), reverse=True):
            if path.is_file() and os.access(path, os.X_OK):
                yield path.absolute()


def is_launcher(path: Path) -> bool:
    """Whether the program at `path` is a launcher of this SDK."""
    try:
        with path.open("rb") as stream:
            return _LAUNCHER_MARK in stream.read(_HEAD_BYTES)
    except OSError:
        return False


def environment(program: Path) -> dict[str, str]:
    """The environment for `program`: SSE-320's is linked with the Python that is installed beside it."""
    result = dict(os.environ)
    root = program.resolve().parent
    for folder in (root, *root.parents[:2]):
        libraries = folder / "python" / "lib"
        if libraries.is_dir():
            known = [part for part in result.get("LD_LIBRARY_PATH", "").split(os.pathsep) if part]
            result["LD_LIBRARY_PATH"] = os.pathsep.join([str(libraries), *known])
            break
    return result


def installed(model: FvpModel) -> InstalledFvp:
    """The FVP of the kind `model`, asked for its version.

    ToolError when it is missing, cannot be started, prints no version, or is the SDK's own launcher.
    """
    program = find(model)
    variables = environment(program)
    try:
        answer = proc.run(
            [str(program), "--version"], timeout_s=_VERSION_TIMEOUT_S, env=variables, error=ToolError
        ).output
    except SdkError as error:
        raise ToolError(f"{program} does not start: {error.message}", error.hint) from error
    if NOT_AN_FVP in answer:
        raise ToolError(
            f"{program} is this SDK's launcher, {NOT_AN_FVP}",
            f"use --simulator qemu, which is what the launcher runs, or set {FVP_VARIABLE} to the folder of Arm's "
            "FVP",
        )
    match = _VERSION.search(answer)
    if match is None:
        raise ToolError(
            f"{program} does not print its version", "is it an FVP? `ethosu-sdk doctor` shows more"
        )
    return InstalledFvp(program, match.group(), variables)
