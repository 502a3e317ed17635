"""Arm's installer: run, and what it leaves looked through before anybody follows it."""

from __future__ import annotations

import itertools
import os
import stat
from collections import Counter
from pathlib import Path

from ethosu_sdk import proc
from ethosu_sdk.errors import InputError, ToolError
from ethosu_sdk.files import writing

_TIMEOUT_S = 900.0
# ExecuTorch's backends/arm/scripts/fvp_utils.sh starts Arm's installers with these.
_ARGUMENTS = (
    *("--i-agree-to-the-contained-eula", "--force", "--destination", "./", "--quiet", "--no-interactive"),
)
_NAME = "FVP_*.sh"
_HINT = "nothing was installed; get the archive from Arm again"
_KINDS = {
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def run(folder: Path) -> Path:
    """Run the one installer below `folder`/archive; the folder that it filled.

    Raises InputError when there is no installer or it leaves what is refused, ToolError when it fails.
    """
    found = sorted((folder / "archive").glob(_NAME))
    if len(found) != 1 or found[0].is_symlink() or not found[0].is_file():
        raise InputError(
            f"the archive has no installer {_NAME}, or several", "give the archive of an FVP for Linux"
        )
    writing.make_executable(found[0])
    target = writing.make_directory(folder / "installed")
    home = str(writing.make_directory(folder / "home"))
    # All that the installer gets to know of the user's environment.
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": home, "TMPDIR": home, "LC_ALL": "C"}
    proc.run([str(found[0]), *_ARGUMENTS], timeout_s=_TIMEOUT_S, cwd=target, env=environment, error=ToolError)
    refuse_unsafe(target)
    return target


def refuse_unsafe(folder: Path) -> None:
    """InputError for a link below `folder` that leaves it, a device or pipe, and what would run as another user."""
    inside: Counter[tuple[int, int]] = Counter()
    hard_links: dict[tuple[int, int], tuple[Path, int]] = {}
    for path in sorted(
        Path(root, name) for root, *names in os.walk(folder) for name in itertools.chain(*names)
    ):
        state = path.lstat()
        if path.is_symlink():
            if not _stays(path, folder):
                _refuse(path, folder, f"is a link out of its folder, to {os.readlink(path)[:200]!r}")
        elif kind := _KINDS.get(stat.S_IFMT(state.st_mode)):
            _refuse(path, folder, f"is {kind}")
        elif stat.S_ISREG(state.st_mode):
            if state.st_mode & (stat.S_ISUID | stat.S_ISGID):
                _refuse(path, folder, "would run as another user (set-user-ID)")
            inside[state.st_dev, state.st_ino] += 1
            hard_links[state.st_dev, state.st_ino] = path, state.st_nlink
    for key, (path, links) in hard_links.items():
        if inside[key] != links:
            _refuse(path, folder, "is a hard link to a file outside")


def _stays(link: Path, folder: Path) -> bool:
    """Whether a symbolic link is relative and leads, by way of whatever others, to a place below `folder`."""
    target = os.readlink(link)
    return not target.startswith("/") and Path(os.path.realpath(link)).is_relative_to(folder.resolve())


def _refuse(path: Path, folder: Path, problem: str) -> None:
    name = path.relative_to(folder).as_posix()
    raise InputError(f"a file from Arm's installer is refused: {name[:200]!r} {problem}", _HINT)
