"""What one operation's registers are decoded to, or refused for."""

from collections.abc import Mapping

import pytest

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import UnsupportedCommand
from ethosu_sdk.npu.operation import BlockOp
from ethosu_sdk.npu.program import segment
from tests.unit.npu.streams import GLOBAL_SCALE, NATURAL, Setting, operands, precision, stream

SHAPE = (3, 4, 5)
PER_CHANNEL: dict[str, Setting] = {"OFM_PRECISION": precision(8, ofm=True)}


def feature_maps(bits: int, extra: int) -> dict[str, Setting]:
    """Registers that operations of both command sets need: IFM, IFM2 and OFM, and the format of the sums."""
    return {
        **operands((0x100, 0x300, 0x200), SHAPE, bits, extra),
        "IFM_DEPTH_M1": SHAPE[2] - 1,
        "ACC_FORMAT": 0,
    }


def block_op(registers: Mapping[str, Setting], opcode: int, mode: int, config: NpuConfig) -> BlockOp:
    """The one operation of a stream, which is no DMA."""
    (op,) = segment(stream((registers, opcode, mode)), config).operations
    assert isinstance(op, BlockOp)
    return op


def u55(changes: Mapping[str, Setting] | None = None, bits: int = 8) -> dict[str, Setting]:
    """Registers of which every kind of operation of Ethos-U55 can be made, with OFM_SCALE."""
    return {
        **feature_maps(bits, GLOBAL_SCALE | NATURAL),
        "OFM_SCALE": (1, 0),
        "WEIGHT_BASE": 0x40,
        "WEIGHT_LENGTH": 48,
        "SCALE_BASE": 0x90,
        "SCALE_LENGTH": 50,
        **(changes or {}),
    }


def refused(
    registers: Mapping[str, Setting], opcode: int, mode: int, config: NpuConfig, reason: str | None = None
) -> tuple[str, int | None]:
    """The name and the value that an operation is refused for, at the operation's place, in a message with both."""
    copies: dict[str, Setting] = {"DMA0_SRC": 0, "DMA0_DST": 0, "DMA0_LEN": 1}
    data = stream(({**copies, **registers}, opcode, mode))
    with pytest.raises(UnsupportedCommand, match=reason) as raised:
        segment(data, config)
    error = raised.value
    assert error.offset == len(data) - 8
    assert f"{error.value:#x}" in error.message
    assert str(error.offset) in error.message
    return error.name, error.value
