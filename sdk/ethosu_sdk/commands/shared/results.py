"""Records in a folder of results: where commands leave them, and which of them belong together."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ethosu_sdk import records, schema
from ethosu_sdk.commands.shared import bundle
from ethosu_sdk.records import Record

RUN, PROFILE, BUILD = "run-result/1", "profile/1", "build-result/1"
COMPILE, COMPARE, VERIFY = "compile-result/1", "compare/1", "verify-result/1"
DEBUG, INSPECT, ERROR = "debug/1", "inspect-result/1", "error/1"
DEBUG_NAME = "debug.json"
# Schema → the name of the file in a folder of results, those first that say what a folder is about.
_NAMES = {
    RUN: "run.json",
    PROFILE: "profile.json",
    BUILD: "build.json",
    COMPILE: "*.compile.json",
    COMPARE: "compare.json",
    DEBUG: DEBUG_NAME,
}


def read(path: Path) -> Record:
    """The record at `path`. InputError when it is not valid: somebody may have changed it by hand."""
    record = records.read_json(path)
    schema.check(record, str(path))
    return record


def present(folder: Path, kinds: Collection[str]) -> list[Path]:
    """Where records of `kinds` lie in `folder`. InputError when its manifest does not agree with one of them."""
    patterns = (pattern for kind, pattern in _NAMES.items() if kind in kinds)
    found = [path for pattern in patterns for path in sorted(folder.glob(pattern)) if path.is_file()]
    bundle.check(folder, [path.name for path in found])
    return found


def is_of_run(profile: Record, run: Path) -> bool:
    """Whether `profile` was made from the record of a run at `run`."""
    digest = records.sha256_file(run)
    return any(row["role"] == "run" and row["sha256"] == digest for row in profile["provenance"]["inputs"])
