"""Negative controls: a model with a fault must fail the comparison that the right one passes.

Without them, an oracle that is never reached or inputs that never matter would go unnoticed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from ethosu_sdk import npu
from ethosu_sdk.npu import execute, ops, weight_cache
from ethosu_sdk.npu.operation import BlockOp, Rounding
from ethosu_sdk.npu.program import segment
from ethosu_sdk.npu.tables import command_types
from ethosu_sdk.npu.vela_blocks import parse
from tests.conformance.comparison import differing_elements
from tests.conformance.conftest import Corpus
from tests.conformance.selection import Pair
from tests.conformance.tosa_operators import NUMERIC
from tests.oracles.tosa import TosaModel

pytestmark = pytest.mark.torch

# One configuration of a core and one of several per generation of the command stream.
TARGETS = ("ethos-u55-128", "ethos-u65-512", "ethos-u85-256", "ethos-u85-2048")

right_shift_round = ops.shift_round
right_arrange = weight_cache.arrange
right_scaling = ops.ChannelScaling.of_scales


@dataclass(frozen=True)
class Comparison:
    """A delegate, and how much of its outputs differs between the two models."""

    payload: bytes
    tosa: bytes
    oracle: TosaModel
    int32_range: tuple[int, int]

    def differing(self, payload: bytes | None = None) -> float:
        """The part of the elements that differ, with another payload if one is given."""
        program = npu.load(payload or self.payload)
        differing, total = differing_elements(program, self.tosa, self.oracle, self.int32_range)
        return differing / total


@pytest.fixture
def comparison(corpus: Corpus, tosa: TosaModel, pair: Pair) -> Comparison:
    """The one delegate of the test's parameter `pair`."""
    (delegate,) = corpus(pair)
    return Comparison(delegate.payload, delegate.tosa, tosa, pair.int32_range)


def on_targets(group: str, *models: str) -> Any:
    """The parameter `pair`: each model on each of TARGETS."""
    pairs = [Pair(group, model, target) for model in models for target in TARGETS]
    return pytest.mark.parametrize("pair", pairs, ids=str)


def truncating(values: Any, shift: Any, rounding: Rounding, sign_of: Any = None, early: int = 0) -> Any:
    """Rounding towards minus infinity."""
    return values >> np.asarray(shift, np.int64)


def half_away_from_zero(
    values: Any, shift: Any, rounding: Rounding, sign_of: Any = None, early: int = 0
) -> Any:
    """Ties away from zero: differs from half up for negative ties alone."""
    rounded = right_shift_round(np.abs(values), shift, Rounding.NATURAL)
    return np.where(values < 0, -rounded, rounded)


def single_round(values: Any, shift: Any, rounding: Rounding, sign_of: Any = None, early: int = 0) -> Any:
    """DOUBLE taken for NATURAL."""
    return right_shift_round(values, shift, Rounding.NATURAL)


def in_one_place(monkeypatch: pytest.MonkeyPatch, rounding: Any) -> None:
    """The model rounds with `rounding`, and nowhere in a quicker way."""
    monkeypatch.setattr(ops, "shift_round", rounding)
    monkeypatch.setattr(ops.ChannelScaling, "holds", lambda *arguments: False)


def quickly_truncating(bias: Any, scale: Any, shift: Any, rounding: Rounding, zero_point: int) -> Any:
    """The quick output stage without the half that it adds before the shift."""
    found = right_scaling(bias, scale, shift, rounding, zero_point)
    found.steps[2] -= np.where(shift > 0, np.int64(1) << np.maximum(shift - 1, 0), 0)
    return found


def flipped(*arguments: Any) -> Any:
    """Kernels turned by half a turn."""
    return right_arrange(*arguments)[:, ::-1, ::-1]


def with_one_added_to(register: str, payload: bytes) -> bytes:
    """The payload with one added to every setting of a command's parameter."""
    blocks = parse(payload)
    generation = npu.NpuConfig.from_word(blocks.config_word).generation
    opcode = next(row.opcode for row in command_types(generation).values() if row.name == f"SET_{register}")
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


@on_targets("networks", "digits_cnn", "inverted_residual", "mlp")
def test_truncation_is_noticed(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    assert comparison.differing() == 0
    in_one_place(monkeypatch, truncating)
    assert comparison.differing() > 0.1


@on_targets("networks", "digits_cnn", "inverted_residual")
def test_truncation_of_the_quick_output_stage_is_noticed(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ops.ChannelScaling, "of_scales", quickly_truncating)
    monkeypatch.setattr(
        execute, "_channel_scaling", execute._channel_scaling.__wrapped__
    )  # which keeps what it found
    assert comparison.differing() > 0.1


@on_targets("networks", "digits_cnn", "inverted_residual")
def test_flipped_kernels_are_noticed(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_cache, "arrange", flipped)
    assert comparison.differing() > 1 / 3


@pytest.mark.parametrize("register", ["IFM_ZERO_POINT", "OFM_ZERO_POINT"])
@on_targets("networks", "digits_cnn")
def test_another_zero_point_is_noticed(comparison: Comparison, register: str) -> None:
    assert comparison.differing(with_one_added_to(register, comparison.payload)) > 0.1


@on_targets(
    NUMERIC,
    "rescale_int8_int8_single_round_31",
    "convolution_ties",
    "depthwise_ties",
    "add_ties",
    "rescale_per_channel",
)
def test_ties_away_from_zero_are_noticed(comparison: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    """What random models cannot tell apart: these graphs do."""
    in_one_place(monkeypatch, half_away_from_zero)
    assert comparison.differing() > 0


@on_targets(
    NUMERIC,
    "rescale_int8_int8_double_round_33",
    "rescale_int32_int16_double_round_35",
    "convolution_double_round",
    "depthwise_double_round",
)
def test_single_for_double_rounding_is_noticed(
    comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_one_place(monkeypatch, single_round)
    assert comparison.differing() > 0


@pytest.mark.parametrize("byte", [0, 5])
@on_targets("networks", "digits_cnn")
def test_another_bias_or_scale_is_noticed(comparison: Comparison, byte: int) -> None:
    """The first channel's entry of the first convolution: the bias from byte 0 on, what scales it from byte 5 on."""
    blocks = parse(comparison.payload)
    config = npu.NpuConfig.from_word(blocks.config_word)
    rows = segment(bytes(blocks.command_stream), config).operations
    scales = next(op.scales for op in rows if isinstance(op, BlockOp) and op.scales)
    damaged = bytearray(blocks.weights)
    damaged[scales.streams[0].address + byte + 2] ^= 0x10
    assert comparison.differing(comparison.payload.replace(bytes(blocks.weights), bytes(damaged))) > 0
