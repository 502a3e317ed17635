"""The command stream's registers: they keep their values from operation to operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import CommandError, UnsupportedCommand
from ethosu_sdk.npu.stream.decode import Command

_ADDRESS_BITS = 40
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
        return 1 if command is None else command.type.fields[0].of(command.bits) + 1

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
