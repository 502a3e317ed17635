"""Parts that several kinds of record have."""

from __future__ import annotations

from typing import Literal

from ethosu_sdk.records.kind import Part

Number = int | float
Source = Literal["measured", "modelled", "estimated", "counted"]


Dtype = Literal["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


class Tool(Part):
    name: Literal["ethosu-sdk"]
    version: str
    git: str | None = None


class ProvenanceInput(Part):
    role: str
    file: str
    bytes: int | None = None
    sha256: str
    loose: Literal[True] | None = None


class ProvenanceTool(Part):
    name: str
    version: str
    sha256: str | None = None


class Provenance(Part):
    inputs: tuple[ProvenanceInput, ...]
    tools: tuple[ProvenanceTool, ...]


class Unavailable(Part):
    path: str
    reason: str


class Model(Part):
    file: str
    sha256: str
    bytes: int
    entry: str


class Target(Part):
    npu: Literal["ethos-u55", "ethos-u65", "ethos-u85"]
    macs: Literal[32, 64, 128, 256, 512, 1024, 2048]
    system_config: str
    memory_mode: str


class Tensor(Part):
    index: int
    shape: tuple[int, ...]
    dtype: Dtype


class Use(Part):
    name: str
    used_bytes: int
    size_bytes: int


class Metric(Part):
    value: Number
    unit: str
    source: Source


class Host(Part):
    system: str
    machine: str
    python: str


class Counter(Part):
    event: str
    id: int
    value: int
    unit: str
    source: Source
    bytes: int | None = None


class Segment(Part):
    address: int
    bytes: int
    sha256: str


class Loaded(Part):
    status: Literal["compared"]
    segments: tuple[Segment, ...]


class SourceLine(Part):
    file: str | None = None
    line: int | None = None
    function: str | None = None
    package: str | None = None
    module: str | None = None
    module_type: str | None = None


class Estimate(Part):
    name: str
    value: Number
    unit: str
    source: Literal["estimated"]


class Simulator(Part):
    name: Literal["qemu", "fvp", "host"]
    version: str
    fidelity: str


class VelaOperation(Part):
    operator: str
    name: str | None = None


class TosaOperation(Part):
    index: int
    operator: str
    tensor: str | None = None


class Delegation(Part):
    operator: str
    delegated: int
    not_delegated: int
