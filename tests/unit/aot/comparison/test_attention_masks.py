"""Rows without a key: what PyTorch gives for them is what the rewritten graph gives, or the graph stays as it is.

The samples that decide have no such row where it comes at run time. PyTorch executes both graphs, in float.
"""

import math
from typing import Any

import pytest

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


@pytest.mark.parametrize(
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
@pytest.mark.parametrize("keys", [3, 0])
def test_a_row_without_a_key_gives_what_pytorch_gives(kind: str, is_rewritten: bool, keys: int) -> None:
    import torch

    from ethosu_sdk.aot.equivalents import attention_masks

    net, x = attention(kind), scores(torch)
    samples = [(x, padding(torch, 3)), (x, padding(torch, 2))]
    program = attention_masks.place(torch.export.export(net, samples[0]), samples)
    names = {str(node.target) for node in program.graph.nodes}
    assert is_rewritten != any("softmax" in name or "scaled_dot" in name for name in names)
    inputs = (x, padding(torch, keys))
    rounding = 1e-3 if keys == 0 else 1e-6  # PyTorch's sums with -1e4 are multiples of 2^-10
    torch.testing.assert_close(program.module()(*inputs), net(*inputs), rtol=1e-5, atol=rounding)
