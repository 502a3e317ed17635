"""Small graphs in PyTorch: rows without a key, buffers that share memory, and where rounding is no excuse."""

import math
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.compile.stage_comparison import Trials, within_rounding
from tests.tables import each

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

KEYS = 4


def scores(torch: Any) -> Any:
    generator = torch.Generator().manual_seed(3)
    return torch.rand(1, KEYS, KEYS, generator=generator) + 0.5


def padding(torch: Any, keys: int) -> Any:
    """A Boolean mask that keeps the first `keys` keys of every row."""
    return (torch.arange(KEYS) < keys).expand(1, 1, KEYS)


def attention(kind: str) -> Any:
    """A module of scores and a Boolean mask, True where a key is kept."""
    import torch

    def added(value: float) -> Any:
        return lambda x, keep: torch.softmax(x + torch.zeros(keep.shape).masked_fill(~keep, value), -1)

    lower = torch.ones(KEYS, KEYS, dtype=torch.bool).tril()
    causal = torch.zeros(KEYS, KEYS).masked_fill(~lower, -math.inf)
    empty = torch.zeros(KEYS, KEYS)
    empty[3] = -100.0
    empty[0, 1] = -100.0
    compute = {
        "added": added(-1e4),
        "filled": lambda x, keep: torch.softmax(x.masked_fill(~keep, -1e9), -1),
        "built in": lambda x, keep: torch.nn.functional.scaled_dot_product_attention(x, x, x, keep),
        "built in, added": lambda x, keep: torch.nn.functional.scaled_dot_product_attention(
            x, x, x, torch.zeros(keep.shape).masked_fill(~keep, -math.inf)
        ),
        "causal and added": lambda x, keep: torch.softmax(
            x + causal + torch.zeros(keep.shape).masked_fill(~keep, -1e4), -1
        ),
        "constant with an empty row": lambda x, keep: torch.softmax(x + empty, -1) + 0.0 * keep.sum(),
    }[kind]

    class Net(torch.nn.Module):
        def forward(self, x: Any, keep: Any) -> Any:
            return compute(x, keep)

    return Net().eval()


@each(
    ("kind", "is_rewritten"),
    [
        ("added", True),
        ("filled", True),
        ("built in", True),
        ("built in, added", True),
        ("causal and added", True),
        ("constant with an empty row", False),
    ],
)
@each("keys", [3, 0])
def test_a_row_without_a_key_gives_what_pytorch_gives(kind: str, is_rewritten: bool, keys: int) -> None:
    import torch

    from ethosu_sdk.compile.rewrite import attention_masks

    net, x = attention(kind), scores(torch)
    samples = [(x, padding(torch, 3)), (x, padding(torch, 2))]
    program = attention_masks.place_masks(torch.export.export(net, samples[0]), samples)
    names = {str(node.target) for node in program.graph.nodes}
    assert is_rewritten != any("softmax" in name or "scaled_dot" in name for name in names)
    inputs = (x, padding(torch, keys))
    rounding = 1e-3 if keys == 0 else 1e-6  # PyTorch's sums with -1e4 are multiples of 2^-10
    torch.testing.assert_close(program.module()(*inputs), net(*inputs), rtol=1e-5, atol=rounding)


# --- Buffers of one storage are one state only where their bytes overlap.


def test_halves_of_a_tensor_share_nothing_and_views_do() -> None:
    import torch

    from ethosu_sdk.base.errors import InputError
    from ethosu_sdk.compile import model_state

    class Net(torch.nn.Module):
        def __init__(self, one: torch.Tensor, other: torch.Tensor) -> None:
            super().__init__()
            self.register_buffer("one", one)
            self.register_buffer("other", other)

    whole = torch.zeros(2, 8)
    written = ["one", "other"]
    assert model_state.settled(Net(*whole.unbind(0)), written, lambda _: None) == written
    assert model_state.settled(Net(whole, whole), written, lambda _: None) == ["other"]
    with pytest.raises(InputError, match="'one' and 'other' share memory"):
        model_state.settled(Net(whole, whole[1:]), written, lambda _: None)
    with pytest.raises(InputError, match="share memory"):
        model_state.settled(Net(whole[:, :5], whole[:, 3:]), written, lambda _: None)


# --- The chain's comparison where rounding is no excuse.


@pytest.mark.parametrize("candidate", [[np.nan, 1.0, 2.0], [0.9, 1.0, 2.0]])
def test_values_that_the_graph_itself_loses_are_a_difference(candidate: list[float]) -> None:
    import torch

    def rows(values: list[float]) -> list[tuple[torch.Tensor]]:
        return [(torch.tensor(values),)]

    base = rows([np.nan, 1.0, 2.0])
    _, found = within_rounding(
        rows([0.0, 1.0, 2.0]), rows(candidate), lambda: Trials(base, [base, rows([np.nan, 1.0, 2.000001])])
    )
    assert found is not None
    assert "1 element not finite, but finite in the model" in found.text
