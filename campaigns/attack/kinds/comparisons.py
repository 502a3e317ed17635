"""Comparisons that nobody asked for: damaged records, policies of any text, manifests of other folders."""

import copy
import functools
import json
import random
from pathlib import Path
from typing import Any

from campaigns.attack import damage
from campaigns.attack.case import Case, Context, Kind, Probe
from campaigns.attack.process import Ended
from ethosu_sdk.base import filesystem, json_text
from ethosu_sdk.records import bundle, kinds, validation
from ethosu_sdk.reporting.compare import compare_command
from ethosu_sdk.reporting.compare.options import CompareOptions
from ethosu_sdk.reporting.compare.policies import DEFAULT_POLICY
from ethosu_sdk.reporting.summary_command import markdown
from tests.places import ROOT

_EXAMPLES = ROOT / "schemas" / "examples" / "valid"
_RECORDS = (
    "run-ds_cnn",
    "run-add-timed",
    "profile-digits_cnn",
    "compile-digits_cnn-evaluated",
    "build-ds_cnn",
)
_MANIFEST = "bundle-digits_cnn"
_NUMBERS = (0, 1, 5, 1 << 31, 1 << 62, 10**300, 10**390, 1e308, 1e-308, 0.1)
_TEXTS = ("", "x", "\x1b[2J", "[bold]", "|", "../x", "a" * 300)
_ALLOW = (
    "model",
    "target",
    "system_config",
    "memory_mode",
    "board",
    "simulator",
    "runtime",
    "inputs",
    "versions",
)
_LINES = (
    '[metrics."npu.*"]\ntolerance_percent = 1\n',
    '[metrics."*"]\nbetter = "inform"\n',
    'allow = ["model"]\n',
    '[metrics."outputs.*"]\nmissing = "ignore"\n',
    '[operators."*"."cycles.*"]\ntolerance_percent = 1\n',
    '[operators."CONV2D@*"."traffic.*"]\nbetter = "equal"\ntolerance = 1e15\n',
    "tolerance = 1e999\n",
    "x = 1\n",
    "[[metrics]]\n",
)

Record = dict[str, Any]


@functools.cache
def _example(name: str) -> bytes:
    return (_EXAMPLES / f"{name}.json").read_bytes()


def _changed(choice: random.Random, content: bytes) -> bytes:
    """Up to four numbers and texts of a record are others; most of what comes is valid."""
    record: Record = json.loads(content)
    leaves: list[tuple[Any, Any]] = []
    todo: list[Any] = [record]
    while todo:
        part = todo.pop()
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            if isinstance(value, (dict, list)):
                todo.append(value)
                if isinstance(value, list) and value:
                    leaves.append((part, key))
            else:
                leaves.append((part, key))
    for part, key in choice.sample(leaves, choice.randint(0, 4)):
        value = part[key]
        if isinstance(value, list):
            part[key] = choice.choice((value[1:], value + copy.deepcopy(value[-1:]), []))
        elif isinstance(value, str):
            part[key] = choice.choice(_TEXTS)
        else:
            part[key] = choice.choice(_NUMBERS)
    return json.dumps(record).encode()


def _policy(choice: random.Random) -> bytes:
    if choice.random() < 0.3:
        return damage.damaged(choice, DEFAULT_POLICY.read_bytes())
    return "".join(choice.choices(_LINES, k=choice.randint(0, 4))).encode()


def _files(choice: random.Random) -> dict[str, bytes]:
    name = choice.choice(_RECORDS)
    manifest = _changed(choice, _example(_MANIFEST))
    if choice.random() < 0.3:
        manifest = damage.damaged(choice, manifest)
    return {
        "given.before": _changed(choice, _example(name)),
        "given.after": _changed(choice, _example(name)),
        "given.policy": _policy(choice),
        "given.manifest": manifest,
    }


def _probe(context: Context, choice: random.Random) -> Probe:
    files, allowed = _files(choice), tuple(choice.sample(_ALLOW, choice.randint(0, len(_ALLOW))))
    if choice.random() < 0.2:
        return Probe("validate a folder", files, _validate)
    policy = choice.random() < 0.5

    def call(folder: Path) -> None:
        options = CompareOptions(policy=folder / "given.policy" if policy else None, allow=allowed)
        record = compare_command.compare_paths([folder / "given.before", folder / "given.after"], {}, options)
        content = json.loads(json_text.dumps(record.to_json()))
        assert not validation.record_problems(content), validation.record_problems(content)
        assert compare_command.compare_tables(record)
        assert markdown(content)

    return Probe("compare two records", files, call)


def _validate(folder: Path) -> None:
    place = filesystem.make_directory(folder / "given")
    (place / bundle.MANIFEST_NAME).write_bytes((folder / "given.manifest").read_bytes())
    manifest = bundle.read_manifest(place)
    # Nothing of what it lists is there.
    assert manifest is not None
    assert len(bundle.folder_problems(place, manifest)) >= len(manifest.files)


def _case(context: Context, choice: random.Random) -> Case:
    as_json = choice.random() < 0.5
    words = ["compare", "given.before", "given.after", "-o", "out", *(("--json",) if as_json else ())]
    words += [word for name in choice.sample(_ALLOW, choice.randint(0, 9)) for word in ("--allow", name)]
    words += ["--policy", "given.policy"] if choice.random() < 0.5 else []

    def judge(ended: Ended, folder: Path) -> list[str]:
        written = (folder / "out" / kinds.COMPARE.file).is_file()
        if ended.code in (0, 7) and not written:
            return ["a comparison without its record"]
        return validation.record_problems(json.loads(ended.out)) if as_json and ended.code in (0, 7) else []

    return Case("compare two records", _files(choice), words, judge=judge)


KIND = Kind("comparisons", _case, _probe)
