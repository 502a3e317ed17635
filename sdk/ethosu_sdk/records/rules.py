"""Rules that several kinds of record share. Each gives the problems that it finds, a sentence each. They take a
record of any kind that has the members of which they speak."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from ethosu_sdk.records.common import System, Target

# Members of runs and profiles with figures of the simulator.
_OWN_FIGURES = ("npu", "cpu", "operators", "pieces", "second_opinion", "operations", "delegates", "totals")


def wrong_status(record: Any, expected: str, who_says: str) -> Iterator[str]:
    """The problem of a record whose status is not the `expected` one."""
    if record.status != expected:
        yield f"{who_says} '{expected}', the record says '{record.status}'"


def unavailable_is_absent(record: Any) -> Iterator[str]:
    """What is listed as unavailable must not be in the record as well."""
    content = record.to_json()
    for row in record.unavailable:
        if _has(content, row.path):
            yield f"{row.path} is listed and present"


def _has(value: Any, pointer: str) -> bool:
    for part in pointer.strip("/").split("/"):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return False
    return True


def model_is_that_of_the_provenance(record: Any) -> Iterator[str]:
    """The model that the record names is the one that was read."""
    digests = {row.sha256 for row in record.provenance.inputs if row.role == "model"}
    if digests and digests != {record.model.sha256}:
        yield "the model's SHA-256 is not that of the model among the inputs of the provenance"


def files_stay_in_the_folder(record: Any) -> Iterator[str]:
    """Files are named by their path from the record's folder, and lie in it; the model's source need not, and of what
    shaped the result the record has the name alone."""
    for path, value in _texts(record.to_json()):
        is_name = path.endswith(("/file", "/path")) or path.split("/")[-2] == "files"
        if not is_name or path.startswith("/unavailable") or path.endswith("/source/file"):
            continue
        if leaves(value) if not path.startswith("/provenance/") else "/" in value:
            yield f"{path} leaves the record's folder: {value[:80]!r}"


def leaves(name: str) -> bool:
    """Whether `name`, of a file in a record's folder, could lead out of it on some system."""
    path = PurePosixPath(name)
    windows = "\\" in name or PureWindowsPath(name).drive != ""
    return path.is_absolute() or ".." in path.parts or windows


def measured_on_the_fvp_alone(record: Any) -> Iterator[str]:
    """QEMU and the host run the NPU model: what they say is modelled. Without a simulator nothing was measured. A
    device that is hardware, or stands for the FVP, has counters of its own."""
    name = "nothing" if record.simulator is None else record.simulator.name
    device = getattr(record, "device", None)
    has_counters = name == "fvp" or (
        device is not None and (device.kind == "hardware" or (device.simulator or "").startswith("fvp "))
    )
    content = {} if has_counters else record.to_json()
    for path, value in _texts({key: content[key] for key in _OWN_FIGURES if key in content}):
        if (path.rpartition("/")[2], value) == ("source", "measured"):
            yield f"{path} is 'measured' on {name}"


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a record, with its JSON pointer."""
    if isinstance(value, str):
        yield path, value
        return
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in rows:
        yield from _texts(part, f"{path}/{key}")


def use_fits_size(record: Any) -> Iterator[str]:
    """No region or pool holds more than its size."""
    for row in (*record.memory.regions, *record.memory.pools):
        if row.used_bytes > row.size_bytes:
            yield f"{row.name} uses {row.used_bytes} of {row.size_bytes} bytes"


def priced_is_a_system(record: Any) -> Iterator[str]:
    """The system that was priced is whole; that of the target bears its names."""
    if record.priced is not None:
        target = record.target if record.priced.compiled_for else None
        yield from system_problems(record.priced.system, target)


def system_problems(system: System, target: Target | None) -> Iterator[str]:
    """Each kind of data is in one of the memories, which are listed once; the names are those of `target`."""
    listed, areas = [row.axi for row in system.memories], system.areas
    if sorted(listed) != sorted({areas.constants, areas.arena, areas.cache}):
        yield f"the system's memories are at AXI {listed}, which is not where its memory mode has things"
    names = (system.name, system.memory_mode)
    if target is not None and names != (target.system_config, target.memory_mode):
        yield f"the system is {' with '.join(names)}, the target another"
