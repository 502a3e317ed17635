"""Hostile archives: those of an FVP, and what calls itself a `.pt2`."""

import gzip
import io
import os
import pickle
import random
import tarfile
from pathlib import Path

from campaigns.attack import damage
from campaigns.attack.case import Case, Context, Kind, Probe
from campaigns.attack.kinds import arrays
from campaigns.attack.process import Ended
from ethosu_sdk.base import file_kinds
from ethosu_sdk.installation import unpacking as fvp_install_archive
from tests.integration.fvp import archives as fvp_archives

_NAMES = (
    "a",
    "d/a",
    "../evil",
    "/tmp/attack-evil",
    "d/../../evil",
    "./a",
    "d",
    "a" * 300,
    "\u202ex",
    "b\x1b[2J",
    "",
)
_TARGETS = ("a", "../evil", "/etc/passwd", "d/../../evil", ".", "d", "", "x" * 500)
_TYPES = (
    tarfile.REGTYPE,
    tarfile.SYMTYPE,
    tarfile.LNKTYPE,
    tarfile.DIRTYPE,
    tarfile.FIFOTYPE,
    tarfile.CHRTYPE,
)
_LIMITS = fvp_install_archive.Limits(
    members=30, member_bytes=1 << 20, total_bytes=2 << 20, header_bytes=1 << 18
)
_EVIL = Path("/tmp/attack-evil")


def _tar(choice: random.Random) -> bytes:
    """The archive with the double of Arm's installer, and up to six members that nobody should trust."""
    buffer = io.BytesIO()
    members = [fvp_archives.member("FVP_Corstone_SSE-300.sh", fvp_archives.INSTALLER.encode())]
    for _ in range(choice.randrange(7)):
        kind, name = choice.choice(_TYPES), choice.choice(_NAMES)
        data = choice.randbytes(20) if kind == tarfile.REGTYPE else b""
        row = fvp_archives.member(name, data, kind, choice.choice(_TARGETS))
        row[0].mode = choice.choice((0o755, 0o644, 0, 0o4755, 0o2755, 0o1777))
        members.append(row)
    form = choice.choice((tarfile.GNU_FORMAT, tarfile.PAX_FORMAT))
    with tarfile.open(fileobj=buffer, mode="w", format=form) as stream:
        for info, data in members:
            stream.addfile(info, io.BytesIO(data))
    data = buffer.getvalue()
    if choice.random() < 0.3:
        data = damage.damaged(choice, data)
    packed = gzip.compress(data, mtime=0)
    return damage.damaged(choice, packed) if choice.random() < 0.2 else packed


def _unpack(folder: Path) -> None:
    place = folder / "deep" / "place"
    place.mkdir(parents=True, exist_ok=True)
    fvp_install_archive.unpack(folder / "given.tgz", place, _LIMITS)
    assert not escaped(place), escaped(place)


def escaped(place: Path) -> list[str]:
    """What below `place` leads out of it, and what was made outside."""
    found = [
        str(path) for path in (_EVIL, place.parent / "evil", place.parent.parent / "evil") if path.exists()
    ]
    for root, folders, files in os.walk(place):
        for name in (*folders, *files):
            path = Path(root, name)
            if not Path(os.path.realpath(path)).is_relative_to(place.resolve()):
                found.append(str(path))
            elif not (path.is_symlink() or path.is_dir() or path.is_file()) or path.lstat().st_mode & 0o6000:
                found.append(f"{path}, of mode {path.lstat().st_mode:o}")
    return found


def _zip(choice: random.Random) -> bytes:
    """The members of a `.pt2`, with a pickle that makes a file when anybody loads it."""
    evil = pickle.dumps(arrays._Evil(), choice.choice((0, 2, 4)))
    names = (
        "serialized_exported_program.json",
        "serialized_state_dict.pt",
        "version",
        "data.pkl",
        "archive/data.pkl",
    )
    entries = [
        (name, choice.choice((evil, b"{}", b"8.5", b"", b"[" * 2000)))
        for name in names
        if choice.random() < 0.7
    ]
    data = arrays.archive(choice, entries)
    return damage.damaged(choice, data) if data and choice.random() < 0.5 else data


def _probe(context: Context, choice: random.Random) -> Probe:
    if choice.random() < 0.5:
        return Probe("unpack", {"given.tgz": _tar(choice)}, _unpack)
    name = choice.choice(("given.pt2", "given.pte", "given.npz", "given.pt"))
    return Probe("recognise", {name: _zip(choice)}, lambda folder: _recognise(folder / name))


def _recognise(path: Path) -> None:
    file_kinds.recognise(path)
    raise file_kinds.not_a(path, "a program", "give another")


def _case(context: Context, choice: random.Random) -> Case:
    if choice.random() < 0.15:
        words = ("compile", "given.pt2", "-o", "out")
        return Case("compile a .pt2", {"given.pt2": _zip(choice)}, words, judge=_no_pickle)
    data = _tar(choice)
    path = context.shared / "given.tgz"
    path.write_bytes(data)
    argv = fvp_archives.command(path, "--json")
    return Case("fvp install", {"given.tgz": data}, argv=argv, judge=_inside)


def _no_pickle(ended: Ended, folder: Path) -> list[str]:
    found = ["a pickle was loaded"] if (folder / arrays.EVIL).exists() else []
    return found + (["exit code 0 for what is no program"] if ended.code == 0 else [])


def _inside(ended: Ended, folder: Path) -> list[str]:
    place = folder / "fvp"
    if ended.code != 0 and place.exists():
        return [f"{place.name} is there, though nothing was installed"]
    return escaped(place) if place.exists() else escaped(folder)


KIND = Kind("archives", _case, _probe)
