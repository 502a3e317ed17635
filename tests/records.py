"""Records in tests: those of files, those that commands print, and the examples of the schemas."""

import json
from pathlib import Path
from typing import Any

from ethosu_sdk.records import kinds, validation
from tests.integration.cli import Outcome
from tests.places import ROOT

Record = dict[str, Any]
EXAMPLES = ROOT / "schemas" / "examples" / "valid"


def read(path: Path) -> Record:
    """The record in a file."""
    record: Record = json.loads(path.read_text(encoding="utf-8"))
    return record


def valid(path: Path) -> Record:
    """The same, when it is as its schema says."""
    record = read(path)
    assert validation.record_problems(record) == []
    return record


def example(name: str) -> Record:
    """The record of an example of a schema."""
    return read(EXAMPLES / f"{name}.json")


def run_by_executorch() -> Record:
    """The record of a run by ExecuTorch's own runtime in Arm's runner."""
    record = example("run-add-timed")
    del record["second_opinion"]
    record["runtime"] = {"name": "executorch", "version": "evaluation kit 25.12.0"}
    record["memory"] = {
        "regions": [],
        "pools": [
            {"name": "method_pool", "used_bytes": 677, "size_bytes": 2097152},
            {"name": "temp_pool", "used_bytes": 66, "size_bytes": 33554432},
        ],
    }
    return record


def content(name: str) -> Any:
    """The same as the object of its class."""
    return kinds.content(example(name))


def printed(outcome: Outcome, code: int = 0) -> Record:
    """The valid record that a command printed which ended with `code`."""
    assert outcome.code == code, outcome.err
    record: Record = json.loads(outcome.out)
    assert validation.record_problems(record) == []
    return record
