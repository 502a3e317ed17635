"""Evidence that somebody edited: records inside of folders of results, and cells of a sweep."""

import json
import os
import random
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from campaigns.attack import damage
from campaigns.attack.case import Case, Context, Kind, Probe
from campaigns.attack.process import Ended
from ethosu_sdk.analysis import profile_command, verify_command
from ethosu_sdk.analysis.options import ProfileOptions
from ethosu_sdk.base import filesystem
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.records import bundle, kinds
from ethosu_sdk.records.bundle import ReadPolicy, read_raw_record
from ethosu_sdk.records.run_facts import ProgramFacts, RunFacts
from ethosu_sdk.reporting import summary_command
from ethosu_sdk.reporting.advise import advise_command
from ethosu_sdk.reporting.compare import compared_records
from ethosu_sdk.reporting.convert import conversion_inputs as convert
from ethosu_sdk.reporting.pages import report_inputs as report
from ethosu_sdk.reporting.validate_command import validate
from ethosu_sdk.run.options import RunOptions
from tests.places import ROOT

_EXAMPLES = ROOT / "schemas" / "examples" / "valid"
# The name in the folder, and the example that it is.
RECORDS = {
    "run.json": "run-ds_cnn",
    "profile.json": "profile-digits_cnn",
    "build.json": "build-ds_cnn",
    "net.compile.json": "compile-ds_cnn",
    "debug.json": "debug-wrong-scale",
    "compare.json": "compare-digits_cnn",
}
_QUIET = Reporter(quiet=True)
Reader = Callable[[Path, ReadPolicy], object]


def _advise(folder: Path) -> None:
    done = profile_command.profile(
        str(folder), CompileOptions(), RunOptions(), ProfileOptions(), None, _QUIET
    )
    found = advise_command.AdviceInputs(done.folder, done.run_folder, done.pte, done.content, ProgramFacts())
    advise_command.advise(found, _QUIET)


# What reads the record at a path that a user named, or the folder that it is in.
ONE: dict[str, Reader] = {
    "results.read": read_raw_record,
    "validate": lambda path, reading: validate(path, reading, _QUIET),
    "summary": summary_command.read_summarised,
    "convert": lambda path, reading: convert.read_inputs(path, tuple(_kinds()), reading),
    "compare": lambda path, reading: compared_records.read_subject(path, loose=reading.loose),
    "verify": verify_command._read,
}
FOLDER: dict[str, Callable[[Path], object]] = {
    "validate": lambda folder: validate(folder, ReadPolicy(), _QUIET),
    "convert": lambda folder: convert.read_inputs(folder, tuple(_kinds()), ReadPolicy()),
    "compare": compared_records.read_subject,
    "report": lambda folder: report.read_runs([folder], [RunFacts()]),
}
# Those that read one file of the folder.
OF_RUN: dict[str, Callable[[Path], object]] = {
    "profile": lambda folder: profile_command.profile_of_run(folder, timeout_s=10.0),
    "advise": _advise,
}


_READERS: dict[str, list[str]] = {"one": list(ONE), "folder": list(FOLDER), "of run": list(OF_RUN)}
_OF_A_PROGRAM = ("run.json", "profile.json", "build.json", "net.compile.json")
_READ_BY = {("folder", "compare"): _OF_A_PROGRAM, ("folder", "report"): _OF_A_PROGRAM}


def _kinds() -> list[str]:
    chosen = (kinds.RUN, kinds.PROFILE, kinds.BUILD, kinds.COMPILE, kinds.COMPARE, kinds.DEBUG)
    return [kind.schema for kind in chosen]


def lay(folder: Path) -> None:
    """A folder of results with records of every kind."""
    with (
        filesystem.locked_folder(filesystem.make_directory(folder)),
        bundle.writing_folder(folder, "run") as add,
    ):
        for name, example in RECORDS.items():
            filesystem.write_bytes(folder / name, (_EXAMPLES / f"{example}.json").read_bytes())
            add(name)


def edited(choice: random.Random, content: bytes) -> bytes:
    """`content` with a number, a text or a row changed, mostly so that it stays valid; or damaged."""
    if choice.random() < 0.2:
        found = damage.damaged(choice, content)
        return found if found != content else content + b" "
    record = json.loads(content)
    leaves: list[tuple[Any, Any]] = []
    todo: list[Any] = [record]
    while todo:
        part = todo.pop()
        rows = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        for key, value in rows:
            todo.append(value)
            if not isinstance(value, dict | list):
                leaves.append((part, key))
    part, key = choice.choice(leaves)
    value = part[key]
    new = value + 1 if isinstance(value, int | float) else f"{value}x" if choice.random() < 0.3 else value
    part[key] = new
    changed = json.dumps(record, indent=choice.choice((None, 1, 4))).encode()
    return changed if changed != content else changed + b" "


def _probe(context: Context, choice: random.Random) -> Probe:
    way, loose = choice.choice(("one", "folder", "of run")), choice.random() < 0.3
    reader = choice.choice(sorted(_READERS[way]))
    name = "run.json" if way == "of run" else choice.choice(_READ_BY.get((way, reader), sorted(RECORDS)))
    content = edited(choice, (_EXAMPLES / f"{RECORDS[name]}.json").read_bytes())

    def call(folder: Path) -> None:
        place = folder / "given"
        lay(place)
        (place / name).write_bytes(content)
        if way == "folder":
            FOLDER[reader](place)
        elif way == "of run":
            OF_RUN[reader](place)
        else:
            _one(place / name, reader, loose)
            return
        raise AssertionError(f"{reader} took a folder in which {name} was edited")

    return Probe(f"{reader}, {way}, {name}", {"given.edited": content}, call)


def _one(path: Path, reader: str, loose: bool) -> None:
    reading = ReadPolicy(loose)
    found = ONE[reader](path, reading)
    said = reading.differences or getattr(getattr(found, "reading", None), "differences", {})
    assert loose, f"{reader} took {path.name}, which was edited"
    assert said, f"{reader} --loose took {path.name} and does not say so"


_WORDS = (
    "validate {file}",
    "summary {file}",
    "convert {file} --to sarif -o made.json",
    "compare {file} {file} -o made",
    "verify {file} --model given.pte",
    "export given.pte --run {file} -o made",
    "validate given-out",
    "report given-out",
    "profile given-out",
    "advise given-out",
    "convert given-out --to junit -o made.xml",
    "compare given-out given-out -o made",
)


def _case(context: Context, choice: random.Random) -> Case:
    from tests.pte_files import golden

    words = choice.choice(_WORDS)
    name = "run.json" if "{file}" not in words else choice.choice(("run.json", "build.json"))
    with_run = (_EXAMPLES / f"{RECORDS[name]}.json").read_bytes()
    # `given-out` is a folder as `run` leaves it, its manifest about the record as it was.
    argv = words.format(file=f"given-out/{name}").split()
    lay_it = shlex.join(("python3", "-c", _LAY, name))
    command = shlex.join([*context.command, *argv])
    files = {
        "given.pte": golden("add_u55"),
        "given.record": with_run,
        "given.edited": edited(choice, with_run),
    }
    return Case(
        f"{words} of an edited {name}", files, argv=("sh", "-c", f"{lay_it} && {command}"), judge=_refused
    )


_LAY = """
import hashlib, json, os, sys
os.mkdir("given-out")
content = open("given.record", "rb").read()
name = sys.argv[1]
row = {"path": name, "role": "record", "media_type": "application/json", "bytes": len(content),
       "sha256": hashlib.sha256(content).hexdigest(), "writer": "run"}
tool = {"name": "ethosu-sdk", "version": "0"}
manifest = {"schema": "bundle/1", "status": "complete", "created": "2026-01-01T00:00:00Z", "tool": tool,
            "writer": "run", "files": [row]}
json.dump(manifest, open("given-out/manifest.json", "w"))
open("given-out/" + name, "wb").write(open("given.edited", "rb").read())
"""


def _refused(ended: Ended, folder: Path) -> list[str]:
    return [] if ended.code == 3 else [f"exit code {ended.code} for evidence that was edited"]


BUNDLES = Kind("bundles", _case, _probe)

_SWEEP = """
name = "one"
models = ["zoo:add"]
targets = ["ethos-u55-128"]
simulators = ["host"]
"""


def _sweep_case(context: Context, choice: random.Random) -> Case:
    """A sweep of one cell, whose record is edited before it is resumed: it is done again, or refused."""
    done = context.shared / "sweep"
    words = [*context.command, "sweep", "given.toml", "-o", "given-out", "-j", "1", "--quiet"]
    again = shlex.join(words)
    make = f"if [ -d {done} ]; then cp -a {done} given-out; else {again} && cp -a given-out {done}; fi"
    seed = choice.getrandbits(32)
    env = {"PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))}
    edit = f"python3 -c {shlex.quote(_EDIT)} {seed}"
    return Case(
        f"resume with an edited cell, seed {seed}",
        {"given.toml": _SWEEP.encode()},
        argv=("sh", "-c", f"{make} && {edit} && {again}"),
        env=env,
        judge=_done_again,
    )


_EDIT = """
import glob, json, random, sys
choice = random.Random(sys.argv[1])
(path,) = glob.glob("given-out/**/cell.json", recursive=True)
record = json.load(open(path))
json.dump(record, open("given.cell", "w"))
leaves, todo = [], [record]
while todo:
    part = todo.pop()
    for key, value in part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ():
        todo.append(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            leaves.append((part, key))
part, key = choice.choice(leaves)
part[key] += choice.choice((1, 1000))
json.dump(record, open(path, "w"))
"""
_VOLATILE = ("created", "seconds", "wall_time_s", "host", "peak_bytes")


def _done_again(ended: Ended, folder: Path) -> list[str]:
    if ended.code == 3:
        return []
    paths = list((folder / "given-out").rglob("cell.json"))
    if ended.code or len(paths) != 1 or not (folder / "given.cell").is_file():
        return [f"exit code {ended.code}, {len(paths)} cells"]
    before, after = (_stable(json.loads(path.read_text())) for path in (folder / "given.cell", paths[0]))
    return [] if before == after else ["an edited cell was taken"]


def _stable(value: object) -> object:
    if isinstance(value, dict):
        return {key: _stable(part) for key, part in value.items() if key not in _VOLATILE}
    return [_stable(part) for part in value] if isinstance(value, list) else value


SWEEP = Kind("sweep", _sweep_case)
