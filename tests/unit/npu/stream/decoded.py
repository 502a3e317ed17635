"""What one operation's registers are decoded to, or refused for."""

from collections.abc import Mapping

import pytest

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.errors import UnsupportedCommand
from ethosu_sdk.npu.operation import BlockOp
from ethosu_sdk.npu.program import segment
from tests.unit.npu.streams import Setting, operands, precision, stream

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


def refused(
    registers: Mapping[str, Setting], opcode: int, mode: int, config: NpuConfig
) -> tuple[str, int | None]:
    """The name and the value that an operation is refused for, at the operation's place."""
    copies: dict[str, Setting] = {"DMA0_SRC": 0, "DMA0_DST": 0, "DMA0_LEN": 1}
    data = stream(({**copies, **registers}, opcode, mode))
    with pytest.raises(UnsupportedCommand) as raised:
        segment(data, config)
    assert raised.value.offset == len(data) - 8
    return raised.value.name, raised.value.value
