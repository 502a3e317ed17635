"""``script-result/1``, from which schemas/script-result.v1.schema.json is made."""

from __future__ import annotations

from typing import Annotated, Literal

from ethosu_sdk.records import rules
from ethosu_sdk.records.common import (
    Amount,
    Count,
    Derived,
    FileDigest,
    Host,
    Model,
    PositiveCount,
    Sha256,
    Some,
    Text,
)
from ethosu_sdk.records.kind import Part, RecordKind, about


class Call(Part):
    """Inferences of a method in a row."""

    method: Text
    steps: Annotated[PositiveCount, about("inferences that it may have; a feed can end it earlier")]
    folder: Annotated[
        Text, about("where the record and the outputs of the call are, from the folder of this record")
    ]
    status: Literal["pass", "fail"]
    run_sha256: Annotated[Sha256, about("of the call's run.json")]
    first_step_npu_cycles: Annotated[
        Count | None, about("modelled or measured, as the call's record says")
    ] = None


class Script(Derived[Literal["pass", "fail"]], tag_field="schema", tag="script-result/1"):
    """What `ethosu-sdk run --script` did."""

    model: Annotated[Model, about("its entry is the method of the first call")]
    script: FileDigest
    board: Annotated[Text, about("the board that the calls ran on in one boot, or host")]
    calls: Some[Call]
    wall_time_s: Amount
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
