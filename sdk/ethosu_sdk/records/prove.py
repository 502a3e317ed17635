"""``prove/1``, from which schemas/prove.v1.schema.json is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from ethosu_sdk.records import common as c, rules
from ethosu_sdk.records.common import Derived, Part, RecordKind
from ethosu_sdk.records.run import Device

Status = Literal["pass", "fail"]


class ProvedOutput(Part):
    """An output, element by element against the reference."""

    index: c.Count
    status: Status
    elements: c.Count
    differing: c.Count  #: elements of other bits
    first: c.Count | None = None  #: the first of them, in the order of the elements; absent when none differs
    found: c.Text | None = None  #: its value
    expected: c.Text | None = None


class ProvedCounter(Part):
    """A PMU event of one inference. A modelled one must be that of the NPU model; a measured one stands beside it."""

    event: c.Text
    status: Literal["equal", "differs", "beside"]
    source: c.Source
    value: c.Count
    modelled: c.Count


class ProvedOperation(Part):
    """An NPU job of one operation, or of several that are not parted."""

    delegate: c.Count
    offsets: tuple[c.Count, ...]  #: in the command stream; none where it is not cut
    source: c.Source
    cycles: c.Count
    modelled: c.Count


class ProvedModel(Part):
    """A program of the conformance set. `problem` is why it did not run, or not to its end."""

    name: c.Text
    status: Status
    folder: c.Text | None = None  #: of the run, from the record's folder
    reference: c.Text | None = None  #: that of the reference
    problem: c.Text | None = None
    outputs: tuple[ProvedOutput, ...]
    counters: tuple[ProvedCounter, ...]
    operations: tuple[ProvedOperation, ...]


class Prove(Derived[Status], tag_field="schema", tag="prove/1"):
    """Whether a runner computes and counts what its references do."""

    runner: c.Text  #: the simulator, or the device's place
    #: what gave the expected outputs and modelled counters
    reference_runner: Literal["host", "qemu"]
    target: c.Target | None = None
    board: c.Text
    simulator: c.Simulator | None = None  #: absent when nothing ran
    device: Device | None = None
    models: c.Some[ProvedModel]
    host: c.Host


def status_follows_models(record: Prove) -> Iterator[str]:
    """One program that is not proved fails all; one output or counter fails its program."""
    for row in record.models:
        wrong = any(part.status == "fail" for part in row.outputs)
        wrong |= any(part.status == "differs" for part in row.counters)
        if (row.status == "fail") != (row.problem is not None or wrong):
            yield f"{row.name} is '{row.status}', which its outputs and counters are not"
    if (record.status == "fail") != any(row.status == "fail" for row in record.models):
        yield f"the programs are not all '{record.status}'"


def differences_are_counted(record: Prove) -> Iterator[str]:
    """An output fails exactly when elements of it differ; a counter differs when it is modelled and another."""
    for row in record.models:
        for part in row.outputs:
            if (part.status == "fail") != (part.differing > 0) or part.differing > part.elements:
                yield f"{row.name}: output {part.index} is '{part.status}' with {part.differing} differing elements"
        for own in row.counters:
            expected = "equal" if own.value == own.modelled else "differs"
            if own.status != ("beside" if own.source == "measured" else expected):
                yield f"{row.name}: {own.event} is '{own.status}'"


KIND = RecordKind(
    Prove,
    (rules.files_stay_in_the_folder, status_follows_models, differences_are_counted),
    file="prove.json",
    role="proof",
)
