"""Parts that several kinds of record have."""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

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


Status = TypeVar("Status", bound=str)


class Document(Part, Generic[Status]):
    """What opens every record: how it ended, and when and by what it was written."""

    status: Status
    created: str
    tool: Tool


class Derived(Document[Status]):
    """A record that says which files and tools shaped it."""

    provenance: Provenance


class FileDigest(Part):
    file: str
    sha256: str


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

    @property
    def name(self) -> str:
        """As the command line spells it, such as ``ethos-u55-128``."""
        return f"{self.npu}-{self.macs}"

    @property
    def words(self) -> str:
        """The target with its configuration, for people."""
        return f"{self.name}, {self.system_config}, {self.memory_mode}"


class SystemAreas(Part):
    constants: Literal[0, 1]
    arena: Literal[0, 1]
    cache: Literal[0, 1]
    cache_bytes: int | None = None


class SystemMemory(Part):
    axi: Literal[0, 1]
    name: str
    ports: int
    bytes_per_cycle: Number
    read_latency_cycles: int
    write_latency_cycles: int
    burst_bytes: int
    max_reads: int
    max_writes: int


class System(Part):
    name: str
    memory_mode: str
    source: str
    sha256: str
    clock_hz: Number
    areas: SystemAreas
    memories: tuple[SystemMemory, ...]


class Priced(Part):
    compiled_for: bool
    system: System

    @property
    def caveat(self) -> str:
        """The words for a total that is not for the program's own system; empty for one that is."""
        return "" if self.compiled_for else f"for {self.system.name}, not the system you compiled for"


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


Core = Literal["cortex-m55", "cortex-m85"]


CpuPartName = Literal[
    "runtime",
    "kernel",
    "copy_in",
    "driver_start",
    "interrupt",
    "driver_stop",
    "copy_out",
    "start_up",
    "report",
    "after",
    "run",
]


class Moved(Part):
    code_bytes: int = 0
    constant_bytes: int = 0
    arena_bytes: int = 0


class CpuPart(Part):
    part: CpuPartName
    instructions: Metric
    cycles: Metric
    moved: Moved | None = None


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


class Check(Part):
    name: str
    status: Literal["pass", "fail"]
    detail: str


class Verdict(Part):
    status: Literal["pass", "fail"]
    checks: tuple[Check, ...]


class Limits(Part):
    time_s: Number | None = None
    memory_bytes: int | None = None


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
