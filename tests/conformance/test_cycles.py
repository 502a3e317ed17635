"""The cycle estimate, made from the command stream alone, against the one that Vela makes for its layers.

In memory mode Sram_Only the figures are compared as they stand; where weights are copied before their use, with the
waiting that Vela adds (vela_layers.py).
"""

from __future__ import annotations

import pytest

from ethosu_sdk.npu.system_config import memory_map
from ethosu_sdk.targets import parse_target, target_names
from tests.conformance.conftest import Corpus
from tests.conformance.cycle_comparison import DEVIATIONS, compare, deviation_of
from tests.conformance.selection import FULL, FULL_ONLY, Pair
from tests.conformance.targets import executorch_target
from tests.conformance.vela_layers import compiled, with_waiting

pytestmark = pytest.mark.torch

NETWORKS = [("networks", name) for name in ("digits_cnn", "inverted_residual", "resnet_block")]
SINGLE = [
    *(
        ("convolutions", name)
        for name in (
            "conv_5x3_stride_2",
            "conv_stride_3",
            "conv_dilated",
            "conv_grouped",
            "conv_10x11",
            "conv_deep",
            "conv_int16",
            "conv_transposed",
            "depthwise_3x3",
            "linear",
        )
    ),
    ("elementwise", "arithmetic"),
    ("elementwise", "arithmetic_int32"),
    ("pools", "max_pool"),
    ("pools", "average_pool"),
]
VARIANTS = [("convolutions", "conv_1d"), ("convolutions", "linear_int16"), ("networks", "lstm_step_int16")]


def chosen() -> list[Pair]:
    """The networks on every configuration; in the quick set the other models each on two, that change."""
    names = target_names()
    found = [Pair(*model, name) for model in NETWORKS for name in names]
    for index, model in enumerate([*SINGLE, *VARIANTS] if FULL else SINGLE):
        own = names if FULL else (names[index % 6], names[6 + index % 5])
        found += [Pair(*model, name) for name in own]
    return found


@pytest.mark.parametrize("pair", chosen(), ids=str)
def test_layers_cost_what_vela_says(corpus: Corpus, pair: Pair) -> None:
    (delegate,) = corpus(pair)
    assert compare(parse_target(pair.target, memory_mode="Sram_Only"), delegate.tosa)


# On Ethos-U85 ExecuTorch compiles for Sram_Only: compared above. On Ethos-U65 most layers of the small models wait
# behind a transposition.
DEFAULTS = [
    pair
    for pair in chosen()
    if pair.target.startswith("ethos-u55")
    or (pair.target.startswith("ethos-u65") and pair.group == "networks")
]


@pytest.mark.parametrize("pair", DEFAULTS, ids=str)
def test_layers_cost_what_vela_says_where_weights_are_copied(corpus: Corpus, pair: Pair) -> None:
    (delegate,) = corpus(pair)
    assert compare(executorch_target(pair.target), delegate.tosa)


@pytest.mark.parametrize(
    "name", [name for name, row in DEVIATIONS.items() if FULL or row.example.model not in FULL_ONLY]
)
def test_deviations_exist(corpus: Corpus, name: str) -> None:
    """So that one that is gone is noticed."""
    pair = DEVIATIONS[name].example
    target = executorch_target(pair.target)
    (delegate,) = corpus(pair)
    system = memory_map(target.npu, target.system_config, target.memory_mode)
    layers = with_waiting(compiled(target, system, delegate.tosa), system)
    deviating = [
        (ours, layer.price)
        for layer, ours in layers
        if deviation_of(layer, target) == name and ours is not None
    ]
    assert any(ours != price for ours, price in deviating)
