"""Disks that are full: a small file system, files that must not grow, and an output that takes nothing."""

import functools
import random
import shlex
import subprocess
from pathlib import Path

from campaigns.attack.case import Case, Context, Kind
from campaigns.attack.process import Ended, Limits
from tests.integration.fvp import archives as fvp_archives
from tests.pte_files import golden

_NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")
_WORDS = {
    "inspect": ("inspect", "given.pte", "--json"),
    "sbom": ("sbom", "-o", "small/sbom.json"),
    "build": ("build", "given.pte", "-o", "small"),
    "host run": ("run", "given.pte", "--simulator", "host", "-o", "small"),
    "run": ("run", "given.pte", "-o", "small", "--timeout", "60"),
    "parse-log": ("parse-log", "given.log", "--json"),
}


@functools.cache
def has_namespaces() -> bool:
    """Whether a small file system can be mounted here."""
    words = (*_NAMESPACE, "mount", "-t", "tmpfs", "none", "/mnt")
    try:
        return subprocess.run(words, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _case(context: Context, choice: random.Random) -> Case:
    name = choice.choice((*_WORDS, "fvp install"))
    kib = choice.choice((4, 8, 16, 40, 64, 100, 300, 1000, 3000))
    files = {"given.pte": golden("add_u55"), "given.log": b"I [executorch:a.cpp:1 main()] hello\n" * 50}
    if name == "fvp install":
        path = fvp_archives.good(context.shared / "given.tgz")
        files["given.tgz"] = path.read_bytes()
        argv = [word if word != "fvp" else "small" for word in fvp_archives.command(path)]
    else:
        argv = [*context.command, *map(str, _WORDS[name])]
    way = choice.random()
    if way < 0.2:
        script = f"{shlex.join(argv)} > /dev/full"
        return Case(f"{name} > /dev/full", files, argv=("sh", "-c", script), judge=_not_green)
    if way < 0.5 or not has_namespaces():
        limits = Limits(file_bytes=kib << 10)
        return Case(f"{name}, files up to {kib} KiB", files, argv=argv, limits=limits)
    # The small file system ends with its namespace: what is on it is kept beside it.
    script = f"mount -t tmpfs -o size={kib}k none small && {shlex.join(argv)}; code=$?; cp -a small kept; exit $code"
    words = (*_NAMESPACE, "sh", "-c", f"mkdir small && {script}")
    return Case(f"{name} on a disk of {kib} KiB", files, argv=words)


def _not_green(ended: Ended, folder: Path) -> list[str]:
    """Only a command that writes nothing to its output may end well."""
    return ["exit code 0, and what it said is lost"] if ended.code == 0 else []


KIND = Kind("disks", _case)
