"""A pull request against the CI scripts: links where results went, words that a shell could take for its own."""

import os
import random
import sys
from pathlib import Path

from campaigns.attack.case import Case, Context, Kind
from campaigns.attack.oracle import PLANTED
from campaigns.attack.process import Ended
from tests.integration.setup import ci_runner
from tests.places import ROOT
from tests.pte_files import golden

_NAMES = ("record.json", "summary.md", "run.json", "build.json", "uart.log", ".lock", "manifest.json")
_FOLDERS = ("ethosu-sdk-results", "results", "build")
_MODELS = (
    "given.pte",
    "given.pte",
    "gone.pte",
    "link.pte",
    "$(touch evil).pte",
    "-x",
    "a;touch evil",
    "folder.pte",
)
_OPTIONS = (
    "--quiet",
    "; touch evil",
    "`touch evil`",
    "--simulator\nnone",
    "--output\nresults",
    "$(touch evil)",
    "*",
)


def _case(context: Context, choice: random.Random) -> Case:
    seed = choice.getrandbits(32)
    where = choice.choice(("github", "gitlab"))
    argv = (sys.executable, "-m", "campaigns.attack.kinds.ci", where, str(seed))
    path = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
    return Case(
        f"{where}, seed {seed}",
        {"given.pte": golden("add_u55")},
        argv=argv,
        env={"PYTHONPATH": path},
        judge=_judge,
    )


def _judge(ended: Ended, folder: Path) -> list[str]:
    found = [f"{path} was made by a word of an input" for path in folder.rglob("evil")]
    outside = folder / "given-outside"
    if any(path.read_text() != PLANTED for path in outside.iterdir()) or len(list(outside.iterdir())) != len(
        _NAMES
    ):
        found.append("a file outside of the workspace was written")
    kept = [*(folder / "runner temp").glob("*/results"), folder / "ws" / "ethosu-sdk-results"]
    links = [
        path for place in kept if not place.is_symlink() for path in place.rglob("*") if path.is_symlink()
    ]
    if ended.out.startswith("gitlab") or (folder / "runner temp").exists():
        found += [f"{path} would be uploaded" for path in links if "runner temp" in path.parts]
    return found


def main(where: str, seed: str) -> int:
    """Plant what a pull request could bring below the working folder, and run the script of `where` on it."""
    choice, here = random.Random(seed), Path.cwd()
    workspace, outside = here / "ws", here / "given-outside"
    workspace.mkdir()
    outside.mkdir()
    for name in _NAMES:
        (outside / name).write_text(PLANTED)
    (workspace / "given.pte").write_bytes((here / "given.pte").read_bytes())
    (workspace / "link.pte").symlink_to(
        choice.choice(("/dev/zero", "given.pte", "../given-outside/run.json"))
    )
    os.mkfifo(workspace / "folder.pte")
    for folder in _FOLDERS:
        if choice.random() < 0.3:
            (workspace / folder).symlink_to(outside)
            continue
        (workspace / folder).mkdir()
        for name in choice.sample(_NAMES, choice.randint(0, len(_NAMES))):
            (workspace / folder / name).symlink_to(outside / name)
    options = choice.sample(_OPTIONS, choice.choice((0, 0, 1, 2)))
    model = choice.choice(_MODELS)
    if where == "gitlab":
        done = ci_runner.gitlab(workspace, model, "\n".join(options))
        code, said = done.returncode, done.stdout + done.stderr
    else:
        code, said, _ = ci_runner.github(workspace, model, *options)
    sys.stderr.write(said)
    return code


KIND = Kind("ci", _case)

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
