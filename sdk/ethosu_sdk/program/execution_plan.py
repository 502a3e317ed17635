"""What a `.pte` holds, as plain values. Words are those of ExecuTorch's schema (schema/program.fbs)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.npu.vela_blocks import VelaBlocks

ETHOSU_BACKEND = "EthosUBackend"
ENTRY = "forward"  # the method that ExecuTorch calls a model's


@dataclass(frozen=True)
class Header:
    """The file's head. Without an extended header the program is the whole file and there are no segments."""

    extended: bool
    program_bytes: int
    segment_base: int  # bytes from the start of the file
    segment_bytes: int  # 0 when the file does not state it


@dataclass(frozen=True)
class Segment:
    """A piece of data outside of the program; `offset` is in bytes from the start of the file."""

    offset: int
    size: int


@dataclass(frozen=True)
class Allocation:
    """Where the memory plan puts a tensor: `memory_id` counts the planned buffers from 1."""

    memory_id: int
    offset: int


@dataclass(frozen=True)
class Tensor:
    """A tensor value. `dim_order` lists the dimensions from the outermost to the innermost in memory. `data` is a
    constant's value or the initial state of a planned tensor, where the file holds one. `external_name` is the key of
    data that the program refers to by name; it may lie in a data file (`.ptd`)."""

    dtype: str  # NumPy's name where there is one, such as "float32"
    element_bytes: int
    sizes: tuple[int, ...]
    dim_order: tuple[int, ...]
    dynamism: str  # "STATIC", "DYNAMIC_BOUND" (sizes are upper bounds) or "DYNAMIC_UNBOUND"
    data_buffer_idx: int
    allocation: Allocation | None
    data: memoryview | None = field(repr=False)
    name: str
    external_name: str

    kind = "Tensor"

    @property
    def nbytes(self) -> int:
        """Size of the (largest) value in bytes."""
        return math.prod(self.sizes) * self.element_bytes

    @property
    def is_constant(self) -> bool:
        """Whether the value is part of the model and never written."""
        return self.allocation is None and (self.data is not None or bool(self.external_name))


@dataclass(frozen=True)
class Scalar:
    """A value of kind Null, Int, Bool, Double or String."""

    kind: str
    value: int | bool | float | str | None


@dataclass(frozen=True)
class List:
    """A list. IntList, TensorList and OptionalTensorList hold indices of values; -1 means None."""

    kind: str
    items: tuple[int, ...] | tuple[float, ...] | tuple[bool, ...]


Value = Tensor | Scalar | List


@dataclass(frozen=True)
class Operator:
    """An operator that the program calls on the CPU."""

    name: str
    overload: str

    @property
    def full_name(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name


@dataclass(frozen=True)
class Delegate:
    """A part of the program that another backend runs. `vela` is the decoded payload of an Ethos-U delegate.
    `payload_offset` is in bytes from the start of the file. `payload` is whole: blocks that the program has elsewhere
    are in it."""

    id: str
    payload_offset: int
    payload: memoryview = field(repr=False)
    compile_specs: Mapping[str, bytes]
    vela: VelaBlocks | None = field(repr=False)


@dataclass(frozen=True)
class KernelCall:
    """Call of operator number `op_index` with the values `args`; the output is among them."""

    op_index: int
    args: tuple[int, ...]
    kind = "KernelCall"


@dataclass(frozen=True)
class DelegateCall:
    """Call of delegate number `delegate_index` with the values `args`: inputs, then outputs."""

    delegate_index: int
    args: tuple[int, ...]
    kind = "DelegateCall"


@dataclass(frozen=True)
class MoveCall:
    """Copy of one value (of a tensor: the reference, not the data) into another."""

    move_from: int
    move_to: int
    kind = "MoveCall"


@dataclass(frozen=True)
class JumpFalseCall:
    """Jump to an instruction of the same chain when a value is false."""

    cond_value_index: int
    destination_instruction: int
    kind = "JumpFalseCall"


@dataclass(frozen=True)
class FreeCall:
    """Release of a dynamic tensor's memory."""

    value_index: int
    kind = "FreeCall"


Instruction = KernelCall | DelegateCall | MoveCall | JumpFalseCall | FreeCall


@dataclass(frozen=True)
class Chain:
    """Instructions that run one after the other."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True)
class ExecutionPlan:
    """One method. `inputs` and `outputs` are indices of `values`. `non_const_buffer_sizes[memory_id]` is the size of
    a planned buffer in bytes; entry 0 is not used."""

    name: str
    values: tuple[Value, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    chains: tuple[Chain, ...]
    operators: tuple[Operator, ...]
    delegates: tuple[Delegate, ...]
    non_const_buffer_sizes: tuple[int, ...]

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """The instructions of all chains (all known programs have one)."""
        return tuple(instruction for chain in self.chains for instruction in chain.instructions)

    def input_tensors(self) -> tuple[Tensor, ...]:
        return self._tensors(self.inputs)

    @property
    def is_stateful(self) -> bool:
        """Whether the method writes to tensors of its own whose first values are in the file."""
        return bool(self.state_tensors())

    def state_tensors(self) -> tuple[Tensor, ...]:
        """The tensors of the method that keep their values from one inference to the next, each once."""
        found: dict[Allocation, Tensor] = {}
        for value in self.values:
            if isinstance(value, Tensor) and value.allocation is not None and value.data is not None:
                found.setdefault(value.allocation, value)
        return tuple(found.values())

    def output_tensors(self) -> tuple[Tensor, ...]:
        return self._tensors(self.outputs)

    def check_backends(self) -> None:
        """InputError when the method delegates to anything but an Ethos-U."""
        foreign = sorted({row.id for row in self.delegates} - {ETHOSU_BACKEND})
        if foreign:
            raise InputError(
                f"the program delegates to {', '.join(foreign)}, which no Ethos-U board has",
                "compile it for an Ethos-U target",
            )

    def _tensors(self, indices: tuple[int, ...]) -> tuple[Tensor, ...]:
        values = (self.values[index] for index in indices)
        return tuple(value for value in values if isinstance(value, Tensor))

    def called_operators(self) -> dict[str, int]:
        """Number of calls of each operator by its full name, in order of the first call."""
        calls: dict[str, int] = {}
        for instruction in self.instructions:
            if isinstance(instruction, KernelCall):
                name = self.operators[instruction.op_index].full_name
                calls[name] = calls.get(name, 0) + 1
        return calls


# ExecuTorch 1.5.1 plans state that methods share into this buffer (exir/passes/memory_planning_pass.py,
# run_multimethod), and all else into the one before.
SHARED_ID = 2
WORK_ID = 1


def shares_state(plans: Sequence[ExecutionPlan]) -> bool:
    """Whether each of the methods has a second planned buffer, of one size, and nothing in the first that lasts."""
    sizes = [row.non_const_buffer_sizes for row in plans]
    return (
        len(plans) > 1
        and all(len(row) == SHARED_ID + 1 for row in sizes)
        and len({row[SHARED_ID] for row in sizes}) == 1
        and sizes[0][SHARED_ID] > 0
        and not any(
            isinstance(value, Tensor)
            and value.allocation is not None
            and value.allocation.memory_id == WORK_ID
            and value.data is not None
            for row in plans
            for value in row.values
        )
    )
