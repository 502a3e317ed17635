"""Ten small networks with attention, slices, concatenations and transposes, as one model of ten inputs and outputs.

Their programs are right: what `debug` says of them must be so too.
"""

from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    """Self-attention of two heads."""

    def __init__(self) -> None:
        super().__init__()
        self.attn, self.fc = nn.MultiheadAttention(32, 2, batch_first=True), nn.Linear(32, 4)

    def forward(self, x: Any) -> Any:
        return self.fc(self.attn(x, x, x, need_weights=False)[0].mean(1))


class Transformer(nn.Module):
    """A block of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.block(x)[:, 0])


class Lstm(nn.Module):
    """Unrolled when it is exported."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.head = nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.lstm(x)[0][:, -1])


class UNet(nn.Module):
    """Two levels with a skip that is joined."""

    def __init__(self) -> None:
        super().__init__()
        self.enc, self.mid = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.up, self.dec = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 4, 3, padding=1)

    def forward(self, x: Any) -> Any:
        a = torch.relu(self.enc(x))
        m = torch.relu(self.mid(functional.max_pool2d(a, 2)))
        return self.dec(torch.cat([self.up(m), a], 1))


class SqueezeExcite(nn.Module):
    """Channels weighted by a second path."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.squeeze, self.excite = nn.Conv2d(8, 4, 1), nn.Conv2d(4, 8, 1)

    def forward(self, x: Any) -> Any:
        x = torch.relu(self.conv(x))
        s = functional.adaptive_avg_pool2d(x, 1)
        return x * torch.sigmoid(self.excite(torch.relu(self.squeeze(s))))


class Inception(nn.Module):
    """Four paths that are joined."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.three = nn.Conv2d(8, 4, 1), nn.Conv2d(8, 6, 3, padding=1)
        self.five, self.pool = nn.Conv2d(8, 2, 5, padding=2), nn.Conv2d(8, 4, 1)
        self.last = nn.Conv2d(16, 8, 1)

    def forward(self, x: Any) -> Any:
        pooled = self.pool(functional.max_pool2d(x, 3, 1, 1))
        return self.last(functional.relu(torch.cat([self.one(x), self.three(x), self.five(x), pooled], 1)))


class Shuffle(nn.Module):
    """Groups of channels that are exchanged."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(8, 8, 1, groups=2), nn.Conv2d(8, 8, 1, groups=2)

    def forward(self, x: Any) -> Any:
        x = torch.relu(self.first(x))
        n, c, h, w = x.shape
        x = x.view(n, 2, c // 2, h, w).transpose(1, 2).reshape(n, c, h, w)
        return self.second(x)


class Chunks(nn.Module):
    """Parts of a tensor that go on by themselves, and are joined in another order."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.part, self.last = (
            nn.Conv2d(4, 16, 1),
            nn.Conv2d(4, 4, 3, padding=1),
            nn.Conv2d(16, 4, 1),
        )

    def forward(self, x: Any) -> Any:
        a, b, c, d = self.wide(x).chunk(4, 1)
        b = torch.relu(self.part(b))
        c = c * torch.sigmoid(d)
        return self.last(torch.cat([d, a + b, c, b], 1))


class PixelShuffle(nn.Module):
    """Channels that become pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(4, 3, 3, padding=1)

    def forward(self, x: Any) -> Any:
        return self.last(torch.relu(functional.pixel_shuffle(self.first(x), 2)))


class Windows(nn.Module):
    """Attention in windows of 4 x 4, as in Swin."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.proj = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        n, h, w, c = x.shape
        x = torch.roll(x, (-2, -2), (1, 2))
        t = x.view(n, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
        q, k, v = self.qkv(t).reshape(-1, 16, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        t = (torch.softmax(q @ k.transpose(-2, -1) / 2, -1) @ v).transpose(1, 2).reshape(-1, 16, c)
        t = self.proj(t).view(n, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
        return torch.roll(t, (2, 2), (1, 2))


NETWORKS: dict[str, tuple[type[nn.Module], tuple[int, ...]]] = {
    "attention": (Attention, (1, 16, 32)),
    "transformer": (Transformer, (1, 8, 16)),
    "lstm": (Lstm, (1, 4, 6)),
    "unet": (UNet, (1, 3, 8, 8)),
    "squeeze_excite": (SqueezeExcite, (1, 3, 8, 8)),
    "inception": (Inception, (1, 8, 8, 8)),
    "shuffle": (Shuffle, (1, 8, 6, 6)),
    "chunks": (Chunks, (1, 4, 8, 8)),
    "pixel_shuffle": (PixelShuffle, (1, 3, 8, 8)),
    "windows": (Windows, (1, 8, 8, 8)),
}


class All(nn.Module):
    """All of them, side by side."""

    def __init__(self) -> None:
        super().__init__()
        for name, (network, _) in NETWORKS.items():
            self.add_module(name, network())

    def forward(self, *inputs: Any) -> tuple[Any, ...]:
        return tuple(network(x) for network, x in zip(self.children(), inputs, strict=True))


torch.manual_seed(0)
model = All().eval()
samples = [tuple(torch.randn(shape) for _, shape in NETWORKS.values()) for _ in range(3)]
example_inputs = samples[0]
calibration = samples
