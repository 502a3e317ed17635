"""Profiles of runs that nobody made: damaged programs with records that fit them, and damaged records."""

import copy
import functools
import json
import random
import shlex
from pathlib import Path
from typing import Any

from campaigns.attack.case import Case, Context, Kind, Probe
from campaigns.attack.kinds.programs import mutated
from campaigns.attack.process import Limits
from ethosu_sdk.analysis import profile_command
from ethosu_sdk.base import filesystem
from ethosu_sdk.records import validation
from tests.places import ROOT
from tests.pte_files import golden

_PROGRAMS = ("add_u55", "add_u85_segment", "choice", "conv_u65_int8", "softmax")
_EXAMPLES = ROOT / "schemas" / "examples" / "valid"
_VALUES = (0, 1, -1, 1 << 31, 1 << 62, 1e308, "", "\x1b[2J", "../x", [], {}, [[]], None, True)
_PROBE_S = 20.0
_LIMITS = Limits(seconds=120.0)
_CALLS = ("delegate", "kernel", "move", "jump", "free")

Record = dict[str, Any]


@functools.cache
def _example(name: str) -> Record:
    record: Record = json.loads((_EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    return record


def _of(record: Record, program: bytes) -> Record:
    """`record`, said to be of `program`."""
    changed = copy.deepcopy(record)
    digest = filesystem.sha256_bytes(program)
    changed["model"] |= {"file": "given.pte", "sha256": digest, "bytes": len(program)}
    for row in changed["provenance"]["inputs"]:
        if row["role"] == "model":
            row |= {"file": "given.pte", "sha256": digest, "bytes": len(program)}
    return changed


def _damaged(choice: random.Random, record: Record) -> Record:
    """Up to three members of `record` with values that they should not have."""
    changed = copy.deepcopy(record)
    for _ in range(choice.randint(1, 3)):
        part: Any = changed
        while True:
            keys = list(part) if isinstance(part, dict) else list(range(len(part)))
            if not keys:
                break
            key = choice.choice(keys)
            if isinstance(part[key], (dict, list)) and part[key] and choice.random() < 0.8:
                part = part[key]
                continue
            part[key] = copy.deepcopy(choice.choice(_VALUES))
            break
    return changed


def _files(choice: random.Random) -> dict[str, bytes]:
    program = golden(choice.choice(_PROGRAMS))
    if choice.random() < 0.5:
        program = mutated(choice, program)
    run, compiled = _of(_example("run-ds_cnn"), program), _of(_example("compile-ds_cnn"), program)
    run["operators"] = [
        {"instruction": number, "kind": choice.choice(_CALLS), "name": "given"}
        for number in sorted(choice.choices(range(12), k=choice.randint(0, 12)))
    ]
    if choice.random() < 0.5:
        run = _damaged(choice, run)
    if choice.random() < 0.5:
        compiled = _damaged(choice, compiled)
    texts = {"given.run": run, "given.compile": compiled}
    return {"given.pte": program, **{name: json.dumps(record).encode() for name, record in texts.items()}}


def _lay(folder: Path, files: dict[str, bytes]) -> Path:
    """The folder of the run."""
    run = filesystem.make_directory(folder / "given")
    for name, given in (
        ("given.pte", "given.pte"),
        ("run.json", "given.run"),
        ("given.compile.json", "given.compile"),
    ):
        (run / name).write_bytes(files[given])
    return run


def _probe(context: Context, choice: random.Random) -> Probe:
    files = _files(choice)

    def call(folder: Path) -> None:
        record = profile_command.profile_of_run(_lay(folder, files), timeout_s=_PROBE_S)
        problems = validation.record_problems(record.to_json())
        assert not problems, problems

    return Probe("profile of a run", files, call)


def _case(context: Context, choice: random.Random) -> Case:
    lines = [
        "mkdir given && cp given.pte given && cp given.run given/run.json",
        "cp given.compile given/given.compile.json",
        f"exec {shlex.join([*context.command, 'profile', 'given', '-o', 'out'])}",
    ]
    return Case("profile of a run", _files(choice), argv=("sh", "-c", "\n".join(lines)), limits=_LIMITS)


KIND = Kind("profiles", _case, _probe)
