"""Models of some length to compile, for compile_times.py: each function gives a module and its example inputs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

Model = tuple[nn.Module, tuple[Tensor, ...]]


class Block(nn.Module):
    """Self-attention and a feed-forward layer, both with a norm before and a skip around them."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_layers = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.mix = (nn.Linear(width, width) for _ in range(4))
        self.layers = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        batch, steps, width = x.shape
        normed = self.before_attention(x)
        query, key, value = (
            layer(normed).view(batch, steps, self.heads, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        weights = torch.softmax(query @ key.transpose(-2, -1) * (width // self.heads) ** -0.5, -1)
        x = x + self.mix((weights @ value).transpose(1, 2).reshape(batch, steps, width))
        return x + self.layers(self.before_layers(x))


class Recurrent(nn.Module):
    """A GRU and a classifier of its last state."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(10, 32, batch_first=True)
        self.classes = nn.Linear(32, 12)

    def forward(self, x: Tensor) -> Tensor:
        return self.classes(self.cell(x)[0][:, -1])


def transformer() -> Model:
    """Two blocks over 16 steps of 32 features."""
    torch.manual_seed(0)
    return nn.Sequential(Block(32, 2), Block(32, 2), nn.Flatten(), nn.Linear(512, 10)), (
        torch.randn(1, 16, 32),
    )


def small() -> Model:
    """One layer."""
    torch.manual_seed(0)
    return nn.Linear(16, 8), (torch.randn(1, 16),)


def gru() -> Model:
    """A GRU that unrolls into 49 steps."""
    torch.manual_seed(0)
    return Recurrent(), (torch.randn(1, 49, 10),)
