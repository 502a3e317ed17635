"""What records are made of: parts and kinds, and the parts that several kinds have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar, dataclass_transform

import msgspec
from msgspec import Meta


class _PartMeta(msgspec.StructMeta):
    """Members stand in the order of the JSON, whether they may be absent or not: all are given by name. Lists whose
    type is Distinct are checked."""

    def __new__(
        cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> _PartMeta:
        lists = [key for key, kind in namespace.get("__annotations__", {}).items() if "Distinct" in str(kind)]
        if lists:
            namespace["__post_init__"] = lambda part: _require_distinct(part, lists)
        return super().__new__(cls, name, bases, namespace, kw_only=True, **options)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Part(msgspec.Struct, metaclass=_PartMeta, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A JSON object of a record. A member that is None is absent from the JSON. A comment ``#:``, above a member or
    behind it, is its description in the JSON Schema (scripts/schemas). `together` is what its JSON Schema says of
    several members at once; `__post_init__` refuses what that refuses."""

    together: ClassVar[dict[str, Any]] = {}

    def to_json(self) -> dict[str, Any]:
        """The object as JSON has it, with its members in the order of the class."""
        content: dict[str, Any] = _with_lists(msgspec.to_builtins(self))
        return content


def _with_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_lists(part) for key, part in value.items()}
    return [_with_lists(part) for part in value] if isinstance(value, tuple) else value


def require(holds: bool, problem: str) -> None:
    """ValueError with `problem` for a part whose members do not go together; msgspec adds where it is."""
    if not holds:
        raise ValueError(problem)


def require_any(part: Part) -> None:
    require(any(getattr(part, name) is not None for name in part.__struct_fields__), "it has no members")


def _require_distinct(part: Part, names: list[str]) -> None:
    lists = (getattr(part, name) or () for name in names)
    require(all(len({*rows}) == len(rows) for rows in lists), "an item occurs twice in a list")


Content = TypeVar("Content", bound=Part)


class RecordKind(msgspec.Struct, Generic[Content], frozen=True):
    """A kind of record: the class of its content, and the rules that a JSON Schema cannot state. `file` is the name
    that it has in a folder of results, `*` standing for the model's name; empty for records that are only printed.
    `role` is what a manifest calls it."""

    content: type[Content]
    rules: tuple[Callable[[Content], Iterable[str]], ...] = ()
    file: str = ""
    role: str = ""

    @property
    def schema(self) -> str:
        return str(self.content.__struct_config__.tag)

    def name(self, model: str) -> str:
        """The file name of the record on `model`."""
        return self.file.replace("*", model)

    def convert(self, record: dict[str, Any]) -> Content:
        """The content of `record`, which its schema admits. ValueError for a number that no whole number can be."""
        # JSON Schema takes 2.0 for a whole number. Text stays text: no member is a number or a text, but for those
        # that are both.
        return msgspec.convert(record, self.content, strict=False)


# Types of members.

Item = TypeVar("Item")
Some = Annotated[tuple[Item, ...], Meta(min_length=1)]
Distinct = Annotated[tuple[Item, ...], Meta(extra_json_schema={"uniqueItems": True})]
DistinctSome = Annotated[tuple[Item, ...], Meta(min_length=1, extra_json_schema={"uniqueItems": True})]

Text = Annotated[str, Meta(min_length=1)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Created = Annotated[
    str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(Z|[+-]\d{2}:\d{2})$", description="RFC 3339")
]
Pointer = Annotated[str, Meta(pattern="^/")]

Count = Annotated[int, Meta(ge=0)]
PositiveCount = Annotated[int, Meta(ge=1)]
Number = int | float
Amount = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]
PositiveAmount = Annotated[int, Meta(gt=0)] | Annotated[float, Meta(gt=0)]
Share = Annotated[int, Meta(ge=0, le=1)] | Annotated[float, Meta(ge=0, le=1)]
Cosine = Annotated[int, Meta(ge=-1, le=1)] | Annotated[float, Meta(ge=-1, le=1)]

Source = Annotated[
    Literal["measured", "modelled", "estimated", "counted"],
    Meta(
        description="measured: FVP or hardware counter; modelled: the SDK's NPU model, or executed blocks and "
        "LLVM's model of the processor; estimated: Vela; counted: instructions that QEMU executed"
    ),
]
Dtype = Literal["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


# Parts that several kinds of record have.


class Tool(Part):
    name: Literal["ethosu-sdk"]
    version: Text
    git: Text | None = None


class ProvenanceInput(Part):
    role: Text
    file: Text
    bytes: Count | None = None
    sha256: Sha256
    #: The file is not as the manifest beside it lists it; the user let it be read all the same
    loose: Literal[True] | None = None


class ProvenanceTool(Part):
    name: Text
    version: Text
    sha256: Sha256 | None = None


class Provenance(Part):
    inputs: tuple[ProvenanceInput, ...]
    tools: tuple[ProvenanceTool, ...]


class Unavailable(Part):
    path: Pointer
    reason: Text


UnavailableMembers = Annotated[
    tuple[Unavailable, ...], Meta(description="JSON pointers of members that are not known, and why")
]

Status = TypeVar("Status", bound=str)


class Document(Part, Generic[Status]):
    """What opens every record: how it ended, and when and by what it was written."""

    status: Status
    created: Created
    tool: Tool


class Derived(Document[Status]):
    """A record that says which files and tools shaped it."""

    provenance: Provenance


class FileDigest(Part):
    file: Text
    sha256: Sha256


class Model(Part):
    file: Text
    sha256: Sha256
    bytes: Count
    entry: Text


class Target(Part):
    npu: Literal["ethos-u55", "ethos-u65", "ethos-u85"]
    macs: Literal[32, 64, 128, 256, 512, 1024, 2048]
    system_config: Text
    memory_mode: Text

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
    cache_bytes: Count | None = None  #: of the cache, where the memory mode limits it


class SystemMemory(Part):
    axi: Literal[0, 1]
    name: Text
    ports: PositiveCount
    bytes_per_cycle: PositiveAmount  #: per NPU cycle, of all ports together
    read_latency_cycles: Count
    write_latency_cycles: Count
    burst_bytes: PositiveCount
    max_reads: PositiveCount  #: under way per port
    max_writes: PositiveCount


class System(Part):
    """What the NPU's clock and memories are."""

    name: Text  #: of the system configuration
    memory_mode: Text
    #: the Vela configuration file that says it: vela.ini with the version of Vela, or the name of the user's
    #: own
    source: Text
    sha256: Sha256  #: of that file
    clock_hz: PositiveAmount  #: of the NPU
    areas: SystemAreas  #: which AXI interface the memory mode has each kind of data at
    #: those that the memory mode uses
    memories: Annotated[tuple[SystemMemory, ...], Meta(min_length=1, max_length=2)]


class Priced(Part):
    """The system that modelled cycles are for, before timing adapters."""

    compiled_for: bool  #: whether this is the system that the program was compiled for
    system: System

    @property
    def caveat(self) -> str:
        """The words for a total that is not for the program's own system; empty for one that is."""
        return "" if self.compiled_for else f"for {self.system.name}, not the system you compiled for"


class Tensor(Part):
    index: Count
    shape: tuple[Count, ...]
    dtype: Dtype
    name: Text | None = None  #: in a model whose inputs and outputs have names, such as a .tflite


class Use(Part):
    name: Text
    used_bytes: Count
    size_bytes: Count


class Metric(Part):
    value: Amount
    unit: Text
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
    code_bytes: Count | None = None  #: cache lines of code of which the inference had executed nothing before
    constant_bytes: Count | None = None  #: read from the model's constants
    arena_bytes: Count | None = None  #: read from and written to the pools

    together: ClassVar[dict[str, Any]] = {"minProperties": 1}

    def __post_init__(self) -> None:
        require_any(self)


class CpuPart(Part):
    #: runtime: the interpreter. kernel: the operator on the CPU. copy_in, copy_out: a delegate's inputs and
    #: outputs. driver_start, driver_stop: before and after the NPU's job. interrupt: the NPU's. start_up,
    #: report, after: before, between and after the parts of the first inference. run: all of the run
    part: CpuPartName
    instructions: Metric
    cycles: Metric
    moved: Moved | None = None  #: what the part moves, in bytes: each tensor once, a copy's twice


class Host(Part):
    system: Text
    machine: Text
    python: Text


class Counter(Part):
    event: Text
    id: Count
    value: Count
    unit: Text
    source: Source
    bytes: Count | None = None


class Segment(Part):
    address: Count
    bytes: PositiveCount
    sha256: Sha256


class Loaded(Part):
    """What was read back of the ELF from the board's memory before the first instruction; absent, with the reason,
    from a simulator that does not show it."""

    #: the segments were, byte for byte, those of the file with the digest elf_sha256
    status: Literal["compared"]
    segments: Some[Segment]


class VerdictCheck(Part):
    name: Text
    status: Literal["pass", "fail"]
    detail: Text


class Verdict(Part):
    status: Literal["pass", "fail"]
    checks: Some[VerdictCheck]


class Limits(Part):
    time_s: PositiveAmount | None = None
    memory_bytes: PositiveCount | None = None


class SourceLine(Part):
    """Where in the model this comes from, as far as torch recorded it."""

    #: relative to the folder of the model's file, or to the folder of installed packages; never one of
    #: torch's
    file: Text | None = None
    line: PositiveCount | None = None
    function: Text | None = None  #: the function of that line, with its class
    #: the installed package that the file belongs to; absent for the user's own files
    package: Text | None = None
    module: str | None = None  #: name below the model as in named_modules(), empty for the model itself
    module_type: Text | None = None

    together: ClassVar[dict[str, Any]] = {
        "minProperties": 1,
        "dependentRequired": {
            "file": ["line"],
            "line": ["file"],
            "function": ["file"],
            "package": ["file"],
            "module_type": ["module"],
        },
    }

    def __post_init__(self) -> None:
        known = self.file is not None
        require(known or self.module is not None, "neither a file nor a module is named")
        require(known == (self.line is not None), "a file is named without a line, or a line without a file")
        require(
            known or self.function is self.package is None, "a function or package is named without a file"
        )
        require(self.module is not None or self.module_type is None, "a type is named without its module")

    @property
    def words(self) -> str:
        """The place in an error: ``net.py, line 7, in Block.forward, module 'layers.2.conv'``, or the module."""
        module = f"module '{self.module}'" if self.module else ""
        if self.file is None:
            return f"{module} ({self.module_type})" if module else str(self.module_type)
        line = f"{self.file}, line {self.line}"
        line += f", in {self.function}" if self.function else ""
        return f"{line}, {module}" if module else line


class Estimate(Part):
    name: Text
    value: Number
    unit: Text
    source: Literal["estimated"]


class Simulator(Part):
    name: Literal["qemu", "fvp", "host"]
    version: Text
    fidelity: Text


class VelaOperation(Part):
    operator: Text
    name: Text | None = None


class TosaOperation(Part):
    index: Count  #: of the operator in the TOSA graph's block
    operator: Text
    tensor: Text | None = None  #: its first output


class Delegation(Part):
    operator: Text
    delegated: Count
    not_delegated: Count


# Where in the model something comes from, as text; empty where it is not known.


def source_module(source: SourceLine | None) -> str:
    """The module's path, such as ``layers.2.conv``."""
    return (source.module or "") if source is not None else ""


def source_text(source: SourceLine | None) -> str:
    """File and line."""
    return f"{source.file}:{source.line}" if source is not None and source.file is not None else ""


def source_function(source: SourceLine | None) -> str:
    """The line and its function, such as ``model.py:31 in Block.forward``."""
    inside = f" in {source.function}" if source is not None and source.function else ""
    return source_text(source) + inside


def source_name(source: SourceLine | None) -> str:
    """The module's path, else the line: a short name."""
    return source_module(source) or source_text(source)


def source_place(source: SourceLine | None) -> str:
    """All that is known, such as ``model.py:31 in Block.forward (layers.2.conv)``."""
    written, path = source_function(source), source_module(source)
    return f"{written} ({path})" if written and path else written or path
