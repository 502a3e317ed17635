"""From the words of a command stream to commands, registers, and what both command sets say alike of an operation."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from ethosu_sdk.base.targets import Generation
from ethosu_sdk.npu import errors
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import CommandError, UnsupportedCommand
from ethosu_sdk.npu.operation import (
    ElementwiseMode,
    FeatureMap,
    Kernel,
    Kind,
    Mode,
    Operand,
    Output,
    ScaleStreams,
    Shape,
    Stream,
    WeightStreams,
)
from ethosu_sdk.npu.tables import CommandType, command_types

_MOST_BYTES = 1 << 24  # a hundred times what large models have


@dataclass(frozen=True)
class Command:
    """A decoded command: `bits` is its one word, or its two words with the second in bits 63:32.

    `offset` is in bytes from the start of the stream.
    """

    offset: int
    type: CommandType
    bits: int

    def field(self, name: str) -> int:
        """The value of one field, unsigned."""
        return self.type.field_of[name].value_in(self.bits)

    def describe(self) -> str:
        """One line of a disassembly."""
        values = " ".join(f"{field.name}={field.value_in(self.bits):#x}" for field in self.type.fields)
        return f"{self.offset:#06x}  NPU_{self.type.name:<24} {values}".rstrip()


def commands(stream: bytes | memoryview, generation: Generation, start: int = 0) -> Iterator[Command]:
    """The commands of a stream of little-endian 32-bit words, from byte `start` (whole words) to its end.

    Raises CommandError for an opcode that does not exist and for a stream that ends inside a command.
    """
    if len(stream) > _MOST_BYTES:
        raise CommandError(f"the stream has {len(stream):,} bytes, more than {_MOST_BYTES:,},", _MOST_BYTES)
    if len(stream) % 4:
        raise CommandError(f"the stream has {len(stream)} bytes, not whole words", len(stream))
    words = struct.iter_unpack(
        "<I", memoryview(stream)[start // 4 * 4 :]
    )  # a stream of branches has many starts
    types = command_types(generation)
    offset = start // 4 * 4
    for (word,) in words:
        errors.check()
        form = word >> 14 & 3  # 0: one word, 1: two
        count = 2 if form == 1 else 1
        row = types.get((count, word & 0x3FF)) if form <= 1 else None
        if row is None:
            raise CommandError(f"unknown command {word:#010x}", offset)
        second = next(words, None) if count == 2 else (0,)
        if second is None:
            raise CommandError("the stream ends inside a command", offset)
        yield Command(offset, row, word | second[0] << 32)
        offset += 4 * count


_ADDRESS_BITS = 40
# (activation_type, activation_precision) → elements
_DTYPES = {(0, 0): "<u1", (1, 0): "<i1", (0, 1): "<u2", (1, 1): "<i2", (1, 2): "<i4", (1, 3): "<i8"}
_FEATURE_MAPS = ("IFM", "IFM2", "OFM")

# Registers that Vela 5.1.0 leaves unset where they do not matter, and one that no result depends on; they read as 0.
# Any other register that an operation needs must have been set.
MAY_BE_UNSET = frozenset(
    {
        "AB_START",
        "ACTIVATION",
        "IFM_UPSCALE",
        "IFM_REGION",
        "IFM2_REGION",
        "OFM_REGION",
        "IFM_DEPTH_M1",
        "IFM_ZERO_POINT",
        "IFM2_ZERO_POINT",
        "OFM_ZERO_POINT",
        "IFM_PAD_TOP",
        "IFM_PAD_LEFT",
        "IFM_PAD_RIGHT",
        "IFM_PAD_BOTTOM",
        "KERNEL_STRIDE",
        "KERNEL_WIDTH_M1",
        "KERNEL_HEIGHT_M1",
        "OPA_SCALE",
        "OPB_SCALE",
        "WEIGHT_REGION",
        "WEIGHT_FORMAT",
        *(f"WEIGHT{core}_{part}" for core in (1, 2, 3) for part in ("BASE", "LENGTH")),
        "SCALE_REGION",
        "SCALE1_BASE",
        "SCALE1_LENGTH",
        "BLOCKDEP",
        "DMA0_SRC_REGION",
        "DMA0_DST_REGION",
        "DMA0_IDX_REGION",
        *(f"{name}_BASE{tile}" for name in _FEATURE_MAPS for tile in range(4)),
        *(f"{name}_STRIDE_{axis}" for name in _FEATURE_MAPS for axis in "YXC"),
        *(f"{name}_{size}_M1" for name in _FEATURE_MAPS for size in ("HEIGHT0", "HEIGHT1", "WIDTH0")),
    }
)

Values = tuple[tuple[str, Command], ...]
T = TypeVar("T")


def signed(value: int, bits: int) -> int:
    """`value` of `bits` bits, read as two's complement."""
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


class RegisterFile:
    """The register file of the command stream. Commands set it; nothing else changes it."""

    def __init__(self, config: NpuConfig, values: Values = (), *, executable: bool = True) -> None:
        """`executable` False also takes what this model can price but not execute."""
        self._config = config
        self._executable = executable
        self._commands: dict[str, Command] = dict(values)

    def set(self, command: Command) -> None:
        """Carry out a SET command."""
        self._commands[command.type.register] = command

    @property
    def values(self) -> Values:
        """Everything that is set: what a new register file can start from."""
        return tuple(self._commands.items())

    def at(self, offset: int) -> Registers:
        """What is set now, for the operation at byte `offset` of the stream: to be read before the next SET."""
        return Registers(offset, self._config, self._executable, self._commands)


@dataclass(frozen=True)
class Registers:
    """The registers as the operation at byte `offset` finds them; errors name that place.

    A view of the register file, not a copy: a copy for each operation would show in the time of decoding.
    """

    offset: int
    config: NpuConfig
    executable: bool
    commands: Mapping[str, Command]

    def _get(self, register: str) -> Command | None:
        command = self.commands.get(register)
        if command is None and register not in MAY_BE_UNSET:
            raise CommandError(f"the operation needs {register}, which was never set,", self.offset)
        return command

    def field(self, register: str, name: str) -> int:
        """A field, unsigned. CommandError when it was never set and must be."""
        command = self._get(register)
        return 0 if command is None else command.field(name)

    def size(self, register: str) -> int:
        """The value of a register that holds its size minus one (``…_M1``)."""
        command = self._get(register)
        return 1 if command is None else command.type.fields[0].value_in(command.bits) + 1

    def address(self, register: str) -> int:
        """A 40-bit address or stride, signed: reversed feature maps have negative strides."""
        command = self._get(register)
        if command is None:
            return 0
        return signed(command.field("addr_hi") << 32 | command.field("addr_lo"), _ADDRESS_BITS)

    def choose(self, register: str, name: str, choices: Mapping[int, T], reason: str) -> T:
        """What a field's value stands for. UnsupportedCommand, with `reason`, for a value not in `choices`."""
        value = self.field(register, name)
        if value not in choices:
            raise self.unsupported(register, reason)
        return choices[value]

    def unsupported(self, register: str, reason: str = "") -> UnsupportedCommand:
        """The error for a register whose value the model does not execute."""
        command = self.commands.get(register)
        value = 0 if command is None else command.bits >> (32 if command.type.words == 2 else 16)
        return UnsupportedCommand(f"SET_{register}", self.offset, value, reason)


@dataclass(frozen=True)
class Accumulator:
    """Bits of the accumulators, what they start from (if not 0), whether their sums are written, and their first bank
    of the shared RAM."""

    bits: int
    from_ifm2: bool = False
    continues: bool = False
    is_partial: bool = False
    bank: int = 0


class Family(Protocol):
    """How one command set's registers describe an operation, where it differs from the other's."""

    modes: dict[Kind, frozenset[Mode]]

    def chain(self, registers: Registers, prefix: str) -> int | None: ...

    def output(self, registers: Registers, kind: Kind, mode: Mode | None, dtype: np.dtype[Any]) -> Output: ...

    def operands(self, registers: Registers, mode: Mode) -> tuple[Operand, ...]: ...

    def weights(self, registers: Registers) -> WeightStreams: ...

    def scales(self, registers: Registers, accumulator_bits: int) -> ScaleStreams: ...

    def accumulator(self, registers: Registers, kind: Kind) -> Accumulator: ...

    def micro_block(self, registers: Registers) -> Shape: ...

    def divides(self, registers: Registers) -> bool: ...


def feature_map(registers: Registers, prefix: str, chain: int | None) -> FeatureMap:
    """The feature map `prefix` (IFM, IFM2 or OFM), in memory or in the chaining buffer `chain`."""
    precision = f"{prefix}_PRECISION"
    kind = registers.field(precision, "activation_type"), registers.field(precision, "activation_precision")
    if kind not in _DTYPES:
        raise registers.unsupported(precision, "element type")
    dtype = np.dtype(_DTYPES[kind])
    bricks = registers.choose(precision, "activation_format", {0: False, 1: True}, "feature map format")
    zero_point = registers.field(f"{prefix}_ZERO_POINT", "zero_point")
    base0, base1, base2, base3 = (registers.address(f"{prefix}_BASE{tile}") for tile in range(4))
    return FeatureMap(
        region=registers.field(f"{prefix}_REGION", "region"),
        bases=(base0, base1, base2, base3),
        height0=registers.size(f"{prefix}_HEIGHT0_M1"),
        height1=registers.size(f"{prefix}_HEIGHT1_M1"),
        width0=registers.size(f"{prefix}_WIDTH0_M1"),
        stride_y=registers.address(f"{prefix}_STRIDE_Y"),
        stride_x=registers.address(f"{prefix}_STRIDE_X"),
        stride_c=registers.address(f"{prefix}_STRIDE_C"),
        dtype=dtype,
        bricks=bricks,
        zero_point=signed(zero_point, 16) if dtype.kind == "i" else zero_point,
        chain=chain,
    )


def kernel_of(registers: Registers) -> Kernel:
    """The kernel; the registers hold its dilated size."""

    def stride(name: str) -> int:
        return registers.field("KERNEL_STRIDE", name)

    if stride("decomposition"):
        raise registers.unsupported("KERNEL_STRIDE", "4x4 decomposition")
    dilation_y, dilation_x = stride("dilation_y") + 1, stride("dilation_x") + 1
    return Kernel(
        height=(registers.size("KERNEL_HEIGHT_M1") - 1) // dilation_y + 1,
        width=(registers.size("KERNEL_WIDTH_M1") - 1) // dilation_x + 1,
        stride_y=(stride("stride_y_lsb") | stride("stride_y_msb") << 1) + 1,
        stride_x=(stride("stride_x_lsb") | stride("stride_x_msb") << 1) + 1,
        dilation_y=dilation_y,
        dilation_x=dilation_x,
        part_kernel_first=bool(stride("weight_order")),
    )


def clip_limits(registers: Registers, dtype: np.dtype[Any]) -> tuple[int, int]:
    """ACTIVATION_MIN and ACTIVATION_MAX, 16 bits each, signed as `dtype` is."""
    low = registers.field("ACTIVATION_MIN", "clip_boundary")
    high = registers.field("ACTIVATION_MAX", "clip_boundary")
    return (signed(low, 16), signed(high, 16)) if dtype.kind == "i" else (low, high)


def scale_of(registers: Registers, mode: Mode | None, scale: int) -> int:
    """What the accumulators are multiplied by, where the register says `scale`.

    Products of 32-bit elements have no bits left for it: they are only shifted. Vela multiplies by the scale itself,
    as a constant operand, where it matters.
    """
    is_wide = registers.field("IFM_PRECISION", "activation_precision") == 2
    return 1 if mode is ElementwiseMode.MUL and is_wide else scale


def streams_of(registers: Registers, prefixes: tuple[str, ...], region: str) -> tuple[Stream, ...]:
    """What `prefix`_BASE and `prefix`_LENGTH name in a region: the first and the others that are not empty."""
    first, *others = (
        Stream(
            registers.field(f"{region}_REGION", "region"),
            registers.address(f"{prefix}_BASE"),
            registers.field(f"{prefix}_LENGTH", "length"),
        )
        for prefix in prefixes
    )
    return (first, *(stream for stream in others if stream.length))
