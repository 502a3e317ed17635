"""Links, pipes and folders at the names of results: nothing outside is written, and nothing waits."""

import os
import random
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np

from campaigns.attack.case import Case, Context, Kind, Probe
from campaigns.attack.oracle import PLANTED
from campaigns.attack.process import Ended
from ethosu_sdk.base import filesystem, json_text, npz
from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.records import bundle
from tests.pte_files import golden

_NAMES = (
    *("run.json", "outputs.npz", "uart.log", ".lock", "manifest.json", "build.json", "executor_runner.elf"),
    *("executor_runner.map", "profile.json", "profile.csv", "advice.json", "report.html", "made.json"),
    *("given.export.json", "given.cmake", "firmware/.lock", "firmware/build.log"),
)
# What stands at the name of a result, as a shell makes it of the name `at`.
_PLANTS = {
    "link": "ln -s {to} {at}",
    "link to nothing": "ln -s {to}.none {at}",
    "hard link": "ln {to} {at}",
    "link to itself": "ln -s {name} {at}",
    "pipe": "mkfifo {at}",
    "folder": "mkdir {at}",
    "device": "ln -s /dev/zero {at}",
}
_COMMANDS = (
    ("run", "given.pte", "-o", "out", "--timeout", "60"),
    ("build", "given.pte", "-o", "out"),
    ("profile", "given.pte", "-o", "out", "--timeout", "60"),
    ("export", "given.pte", "-o", "out"),
    ("validate", "out"),
    ("validate", "out/run.json"),
    ("summary", "out/run.json"),
    ("report", "out"),
    ("compare", "out", "out/build.json", "-o", "out"),
    ("convert", "out", "--to", "sarif", "-o", "out/made.json"),
    ("inspect", "out/run.json"),
    ("parse-log", "out/uart.log"),
    ("advise", "out"),
    ("run", "given.pte", "-o", "out", "--inputs", "out/outputs.npz"),
    ("run", "given.pte", "-o", "out", "--simulator", "host"),
)


def _case(context: Context, choice: random.Random) -> Case:
    script = ["mkdir -p out/firmware", f"printf {shlex.quote(PLANTED)} > outside"]
    planted = choice.sample(_NAMES, choice.randint(1, 5))
    for name in planted:
        kind = choice.choice(sorted(_PLANTS))
        at, to = Path("out", name), f"{'../' * name.count('/')}../outside"
        to = "outside" if kind == "hard link" else to
        script.append(_PLANTS[kind].format(at=shlex.quote(str(at)), to=to, name=at.name))
    words = choice.choice(_COMMANDS)
    command = shlex.join([*context.command, *words])
    title = f"{' '.join(words)} with {', '.join(planted)} planted"
    argv = ("sh", "-c", " && ".join([*script, command]))
    return Case(title, {"given.pte": golden("add_u55")}, argv=argv, judge=_judge)


def _judge(ended: Ended, folder: Path) -> list[str]:
    found = (
        [] if (folder / "outside").read_text() == PLANTED else ["a file outside was written through a link"]
    )
    return found + (["a file was made through a link"] if (folder / "outside.none").exists() else [])


def _published(folder: Path, name: str) -> None:
    with filesystem.locked_folder(folder), bundle.writing_folder(folder, "run") as add:
        json_text.write_json(folder / name, {"x": 1})
        add(name)


def _appended(folder: Path, name: str) -> None:
    try:
        with filesystem.open_appending(folder / name) as stream:
            stream.write(b"x")
    except OSError:
        return


def _replaced(folder: Path, name: str) -> None:
    try:
        with filesystem.open_replacing(folder / name) as stream:
            stream.write(b"x")
    except OSError:
        return


def _read(folder: Path, name: str) -> None:
    json_text.read_json(folder / name)


def _copied(folder: Path, name: str) -> None:
    filesystem.copy_file(folder.parent / "outside", folder / name)


def _arrays(folder: Path, name: str) -> None:
    npz.write_npz(folder / name, {"input0": np.zeros(3, np.int8)})


_WAYS: tuple[Callable[[Path, str], None], ...] = (_published, _appended, _replaced, _read, _copied, _arrays)


def _probe(context: Context, choice: random.Random) -> Probe:
    way, kind, name = choice.choice(_WAYS), choice.choice(sorted(_PLANTS)), choice.choice(_NAMES[:7])

    def call(folder: Path) -> None:
        place, outside = filesystem.make_directory(folder / "out"), folder / "outside"
        outside.write_text(PLANTED)
        _plant(place / name, outside, kind)
        try:
            way(place, "run.json" if way is _published else name)
        except SdkError:
            _check(folder, kind)
            raise
        # The one thing that may change a file under another name is an appended line: a hard link is no link.
        _check(folder, "" if way is _appended and kind == "hard link" else kind)

    return Probe(f"{way.__name__} with a {kind} at {name}", {}, call)


def _plant(path: Path, outside: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "hard link":
        path.hardlink_to(outside)
    else:
        targets = {"link": outside, "link to nothing": Path(f"{outside}.none"), "device": Path("/dev/zero")}
        path.symlink_to(targets.get(kind, path))


def _check(folder: Path, kind: str) -> None:
    assert not (folder / "outside.none").exists(), "a file was made through a link"
    assert not kind or (folder / "outside").read_text() == PLANTED, "a file outside was written"


KIND = Kind("links", _case, _probe)
