"""Negative controls: a model with a fault must fail the comparison that the right one passes.

Without them, an oracle that is never reached or inputs that never matter would go unnoticed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ethosu_sdk import npu
from ethosu_sdk.npu import execute, output
from ethosu_sdk.npu.operation import BlockOp, Rounding
from ethosu_sdk.npu.program import operations
from ethosu_sdk.npu.tables import command_types
from ethosu_sdk.vela_blocks import parse
from tests.conformance.comparison import differing_elements
from tests.conformance.conftest import Corpus
from tests.conformance.tosa_graphs import NUMERIC
from tests.oracles.tosa import TosaModel

pytestmark = pytest.mark.torch

MACS = 128

right_shift_round = output.shift_round
right_arrange = execute.arrange


def truncating(values: Any, shift: Any, rounding: Rounding, sign_of: Any = None) -> Any:
    """Rounding towards minus infinity."""
    return values >> np.asarray(shift, np.int64)


def half_away_from_zero(values: Any, shift: Any, rounding: Rounding, sign_of: Any = None) -> Any:
    """Ties away from zero: differs from half up for negative ties alone."""
    rounded = right_shift_round(np.abs(values), shift, Rounding.NATURAL)
    return np.where(values < 0, -rounded, rounded)


def single_round(values: Any, shift: Any, rounding: Rounding, sign_of: Any = None) -> Any:
    """DOUBLE taken for NATURAL."""
    return right_shift_round(values, shift, Rounding.NATURAL)


def flipped(*arguments: Any) -> Any:
    """Kernels turned by half a turn."""
    return right_arrange(*arguments)[:, ::-1, ::-1]


def with_one_added_to(register: str, payload: bytes) -> bytes:
    """The payload with one added to every setting of a command's parameter."""
    opcode = next(row.opcode for row in command_types("u55").values() if row.name == f"SET_{register}")
    blocks = parse(payload)
    stream = bytearray(blocks.command_stream)
    changed = 0
    position = 0
    while position < len(stream):
        word = int.from_bytes(stream[position : position + 4], "little")
        if word & 0xC3FF == opcode:
            word = word & 0xFFFF | (word + 0x1_0000) & 0xFFFF_0000
            stream[position : position + 4] = word.to_bytes(4, "little")
            changed += 1
        position += 8 if word & 0xC000 else 4
    assert changed
    return payload.replace(bytes(blocks.command_stream), bytes(stream))


@pytest.mark.parametrize("model", ["digits_cnn", "inverted_residual", "mlp"])
def test_truncation_is_noticed(
    corpus: Corpus, tosa: TosaModel, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    (delegate,) = corpus("networks", model)
    assert differing_elements(delegate.payloads[MACS], delegate.tosa, tosa)[0] == 0
    monkeypatch.setattr(output, "shift_round", truncating)
    differing, total = differing_elements(delegate.payloads[MACS], delegate.tosa, tosa)
    assert differing > total / 10


@pytest.mark.parametrize("model", ["digits_cnn", "inverted_residual"])
def test_flipped_kernels_are_noticed(
    corpus: Corpus, tosa: TosaModel, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    (delegate,) = corpus("networks", model)
    monkeypatch.setattr(execute, "arrange", flipped)
    differing, total = differing_elements(delegate.payloads[MACS], delegate.tosa, tosa)
    assert differing > total / 3


@pytest.mark.parametrize("register", ["IFM_ZERO_POINT", "OFM_ZERO_POINT"])
def test_another_zero_point_is_noticed(corpus: Corpus, tosa: TosaModel, register: str) -> None:
    (delegate,) = corpus("networks", "digits_cnn")
    payload = with_one_added_to(register, delegate.payloads[MACS])
    differing, total = differing_elements(payload, delegate.tosa, tosa)
    assert differing > total / 10


@pytest.mark.parametrize(
    ("fault", "graph"),
    [
        (half_away_from_zero, "rescale_int8_int8_single_round_31"),
        (half_away_from_zero, "convolution_ties"),
        (half_away_from_zero, "depthwise_ties"),
        (half_away_from_zero, "add_ties"),
        (single_round, "rescale_int8_int8_double_round_33"),
        (single_round, "rescale_int32_int8_double_round_40"),
        (single_round, "convolution_double_round"),
        (single_round, "depthwise_double_round"),
    ],
)
def test_other_ties_are_noticed(
    corpus: Corpus, tosa: TosaModel, monkeypatch: pytest.MonkeyPatch, fault: Any, graph: str
) -> None:
    """What random models cannot tell apart: these graphs do."""
    (delegate,) = corpus(NUMERIC, graph)
    monkeypatch.setattr(output, "shift_round", fault)
    assert differing_elements(delegate.payloads[MACS], delegate.tosa, tosa)[0] > 0


@pytest.mark.parametrize("byte", [0, 5])
def test_another_bias_or_scale_is_noticed(corpus: Corpus, tosa: TosaModel, byte: int) -> None:
    """The first channel's entry of the first convolution: bias from byte 0 on, scale from byte 5 on."""
    (delegate,) = corpus("networks", "digits_cnn")
    payload = delegate.payloads[MACS]
    blocks = parse(payload)
    program = operations(bytes(blocks.command_stream), npu.NpuConfig.for_target("ethos-u55", MACS))
    scales = next(op.scales for op in program.operations if isinstance(op, BlockOp) and op.scales)
    damaged = bytearray(blocks.weights)
    damaged[scales.address + byte + 2] ^= 0x10
    payload = payload.replace(bytes(blocks.weights), bytes(damaged))
    assert differing_elements(payload, delegate.tosa, tosa)[0] > 0
