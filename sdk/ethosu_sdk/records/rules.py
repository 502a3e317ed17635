"""Rules that several kinds of record share. Each returns the problems that it finds, a sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any, Protocol

from ethosu_sdk.records.common import Model, Priced, Provenance, Simulator, System, Target, Unavailable

# Members of runs and profiles with figures of the simulator.
_OWN_FIGURES = (
    *("npu", "cpu", "operators", "pieces", "second_opinion"),
    *("operations", "delegates", "totals"),
)


if TYPE_CHECKING:

    class _Json(Protocol):
        def to_json(self) -> dict[str, Any]: ...

    class _WithUnavailable(_Json, Protocol):
        @property
        def unavailable(self) -> tuple[Unavailable, ...]: ...

    class _OfAModel(Protocol):
        @property
        def model(self) -> Model: ...

        @property
        def provenance(self) -> Provenance: ...

    class _OfASimulator(_Json, Protocol):
        @property
        def simulator(self) -> Simulator: ...

    class _WithPrice(Protocol):
        @property
        def priced(self) -> Priced | None: ...

        @property
        def target(self) -> Target | None: ...

    class _Use(Protocol):
        @property
        def name(self) -> str: ...

        @property
        def used_bytes(self) -> int: ...

        @property
        def size_bytes(self) -> int: ...


def unavailable_is_absent(record: _WithUnavailable) -> list[str]:
    """What is listed as unavailable must not be in the record as well."""
    content = record.to_json()
    return [f"{row.path} is listed and present" for row in record.unavailable if _has(content, row.path)]


def _has(value: Any, pointer: str) -> bool:
    for part in pointer.strip("/").split("/"):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return False
    return True


def model_is_that_of_the_provenance(record: _OfAModel) -> list[str]:
    """The model that the record names is the one that was read."""
    digests = {row.sha256 for row in record.provenance.inputs if row.role == "model"}
    if digests and digests != {record.model.sha256}:
        return ["the model's SHA-256 is not that of the model among the inputs of the provenance"]
    return []


def files_stay_in_the_folder(record: _Json) -> list[str]:
    """Files are named by their path from the record's folder, and lie in it; the model's source need not, and of what
    shaped the result the record has the name alone."""
    return [
        f"{path} leaves the record's folder: {value[:80]!r}"
        for path, value in texts(record.to_json())
        if (path.endswith(("/file", "/path")) or path.split("/")[-2] == "files")
        and not path.startswith("/unavailable")
        and not path.endswith("/source/file")
        and (leaves(value) if not path.startswith("/provenance/") else "/" in value)
    ]


def leaves(name: str) -> bool:
    """Whether `name`, of a file in a record's folder, could lead out of it on some system."""
    path = PurePosixPath(name)
    windows = "\\" in name or PureWindowsPath(name).drive != ""
    return path.is_absolute() or ".." in path.parts or windows


def measured_on_the_fvp_alone(record: _OfASimulator) -> list[str]:
    """QEMU and the host run the NPU model: what they say is modelled."""
    name = record.simulator.name
    if name == "fvp":
        return []
    content = record.to_json()
    rows = texts({key: content[key] for key in _OWN_FIGURES if key in content})
    return [
        f"{path} is 'measured' on {name}"
        for path, value in rows
        if (path.rpartition("/")[2], value) == ("source", "measured")
    ]


def texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a record, with its JSON pointer."""
    if isinstance(value, str):
        yield path, value
        return
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in rows:
        yield from texts(part, f"{path}/{key}")


def overflows(rows: tuple[_Use, ...]) -> list[str]:
    """No region or pool holds more than its size."""
    return [
        f"{row.name} uses {row.used_bytes} of {row.size_bytes} bytes"
        for row in rows
        if row.used_bytes > row.size_bytes
    ]


def priced_is_a_system(record: _WithPrice) -> list[str]:
    """The system that was priced is whole; that of the target bears its names."""
    if record.priced is None:
        return []
    return system_problems(record.priced.system, record.target if record.priced.compiled_for else None)


def system_problems(system: System, target: Target | None) -> list[str]:
    """Each kind of data is in one of the memories, which are listed once; the names are those of `target`."""
    listed, areas = [row.axi for row in system.memories], system.areas
    found = []
    if sorted(listed) != sorted({areas.constants, areas.arena, areas.cache}):
        found.append(
            f"the system's memories are at AXI {listed}, which is not where its memory mode has things"
        )
    names = (system.name, system.memory_mode)
    if target is not None and names != (target.system_config, target.memory_mode):
        found.append(f"the system is {' with '.join(names)}, the target another")
    return found
