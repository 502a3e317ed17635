"""``script-result/1``: schemas/script-result.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import Derived, FileDigest, Host, Model, Number
from ethosu_sdk.records.kind import Part, RecordKind


class Call(Part):
    """Inferences of a method in a row."""

    method: str
    steps: int
    folder: str
    status: Literal["pass", "fail"]
    run_sha256: str
    first_step_npu_cycles: int | None = None


class Script(Derived[Literal["pass", "fail"]], tag_field="schema", tag="script-result/1"):
    """What `ethosu-sdk run --script` did."""

    model: Model
    script: FileDigest
    board: str
    calls: tuple[Call, ...]
    wall_time_s: Number
    host: Host


def status_follows_the_calls(record: Script) -> list[str]:
    """A script passes when all of its calls do."""
    expected = "pass" if all(row.status == "pass" for row in record.calls) else "fail"
    return (
        []
        if record.status == expected
        else [f"the calls say '{expected}', the record says '{record.status}'"]
    )


def folders_stay_inside(record: Script) -> list[str]:
    """The folder of each call lies below that of the script."""
    expected = [f"calls/{number}-{row.method}" for number, row in enumerate(record.calls)]
    return (
        [] if [row.folder for row in record.calls] == expected else ["a call has another folder than its own"]
    )


KIND = RecordKind(
    Script,
    (rules.files_stay_in_the_folder, status_follows_the_calls, folders_stay_inside),
    file="script.json",
    role="record of the script",
)
