"""Arm's installer: run where it can do no harm, and what it leaves looked through before anybody follows it."""

from __future__ import annotations

import os
import stat
from collections import Counter
from pathlib import Path

from ethosu_sdk import proc
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.errors import InputError, ToolError
from ethosu_sdk.files import writing
from ethosu_sdk.proc import sandbox
from ethosu_sdk.records import Record

_TIMEOUT_S = 900.0
_PROBE_TIMEOUT_S = 30.0
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


# Whether the installer runs in a sandbox: where one can be made, always or the command fails, or never.


def run(folder: Path, wanted: str, reporter: Reporter) -> tuple[Path, Record]:
    """Run the one installer below `folder`/archive; the folder that it filled, and the record of its sandbox.

    Raises InputError when there is no installer or it leaves what is refused, ToolError when it fails.
    """
    found = sorted((folder / "archive").glob(_NAME))
    if len(found) != 1 or found[0].is_symlink() or not found[0].is_file():
        raise InputError(
            f"the archive has no installer {_NAME}, or several", "give the archive of an FVP for Linux"
        )
    writing.make_executable(found[0])
    target = writing.make_directory(folder / "installed")
    writing.make_directory(folder / "home")
    record = _sandbox(folder, wanted)
    if not record["used"]:
        reporter.warn(f"Arm's installer runs without a sandbox: {escape(record['reason'])}")
    seen = sandbox.INSIDE if record["used"] else folder
    argv = [str(seen / found[0].relative_to(folder)), *_ARGUMENTS]
    proc.run(
        sandbox.words(folder, argv) if record["used"] else argv,
        timeout_s=_TIMEOUT_S,
        cwd=target,
        env=_environment(seen),
        error=ToolError,
    )
    refuse_unsafe(target)
    return target, record


def _environment(folder: Path) -> dict[str, str]:
    """All that the installer gets to know of the user's environment."""
    home = str(folder / "home")
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": home,
        "TMPDIR": home,
        "PWD": str(folder / "installed"),
        "LC_ALL": "C",
    }


def _sandbox(folder: Path, wanted: str) -> Record:
    """Whether there is one, for the record. ToolError when there is none and the user requires it."""
    if wanted == "off":
        return {"used": False, "reason": "--sandbox off"}
    argv = sandbox.words(folder, ["/bin/sh", "-c", ":"])
    done = proc.run(
        argv,
        timeout_s=_PROBE_TIMEOUT_S,
        cwd=folder,
        env=_environment(sandbox.INSIDE),
        check=False,
        error=ToolError,
    )
    if done.returncode == 0:
        return {"used": True}
    reason = f"this system makes no namespaces ({proc.tail(done.output, 1) or done.returncode})"
    if wanted == "require":
        raise ToolError(
            f"the installer was not run because it cannot run in a sandbox: {reason}",
            "allow user namespaces (user_namespaces(7)), install outside of the container, or use --sandbox auto",
        )
    return {"used": False, "reason": reason}


def refuse_unsafe(folder: Path) -> None:
    """InputError for a link below `folder` that leaves it, a device or pipe, and what would run as another user."""
    inside: Counter[tuple[int, int]] = Counter()
    hard_links: dict[tuple[int, int], tuple[Path, int]] = {}
    for path in _everything(folder):
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


def _everything(folder: Path) -> list[Path]:
    found = []
    for root, folders, files in os.walk(folder):
        found += [Path(root, name) for name in (*folders, *files)]
    return sorted(found)


def _stays(link: Path, folder: Path) -> bool:
    """Whether a symbolic link is relative and leads, by way of whatever others, to a place below `folder`."""
    target = os.readlink(link)
    return not target.startswith("/") and Path(os.path.realpath(link)).is_relative_to(folder.resolve())


def _refuse(path: Path, folder: Path, problem: str) -> None:
    name = path.relative_to(folder).as_posix()
    raise InputError(f"a file from Arm's installer is refused: {name[:200]!r} {problem}", _HINT)
