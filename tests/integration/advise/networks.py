"""Small networks of five kinds, in one file; the sixth is of the zoo."""

from __future__ import annotations

NETWORKS = """
import torch
from torch import nn


def _conv(i, o, size=3, **more):
    return nn.Sequential(nn.Conv2d(i, o, size, padding=size // 2, **more), nn.ReLU())


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = _conv(3, 8), _conv(8, 16), _conv(16, 16)
        self.pool = nn.MaxPool2d(2)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear")
        self.d, self.e, self.head = _conv(32, 8), _conv(16, 8), nn.Conv2d(8, 2, 1)

    def forward(self, x):
        a = self.a(x)
        b = self.b(self.pool(a))
        x = self.d(torch.cat([self.up(self.c(self.pool(b))), b], 1))
        return self.head(self.e(torch.cat([self.up(x), a], 1)))


class Inverted(nn.Module):
    def __init__(self, width, wide):
        super().__init__()
        self.expand, self.project = _conv(width, wide, 1), nn.Conv2d(wide, width, 1)
        self.depthwise = _conv(wide, wide, groups=wide)

    def forward(self, x):
        return x + self.project(self.depthwise(self.expand(x)))


class MobileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = _conv(3, 16, stride=2)
        self.blocks = nn.Sequential(*(Inverted(16, 64) for _ in range(2)))
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(16, 10)

    def forward(self, x):
        return self.fc(self.pool(self.blocks(self.stem(x))).flatten(1))


class Transformer(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed, self.head = nn.Linear(16, width), nn.Linear(width, 4)
        self.norm = nn.LayerNorm(width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        x = self.embed(x)
        y = self.norm(x)
        weights = torch.softmax(self.q(y) @ self.k(y).transpose(1, 2) / 32**0.5, -1)
        return self.head(x + self.out(weights @ self.v(y)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.fc = nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 4)

    def forward(self, x):
        return self.fc(self.lstm(x)[0][:, -1])


class Large(nn.Module):
    # Its first feature maps are larger than the SRAM of the board.
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = _conv(3, 32), _conv(32, 32), nn.Conv2d(32, 8, 3, stride=2)

    def forward(self, x):
        return self.c(self.b(self.a(x)))


def _made(kind, *shape):
    torch.manual_seed(3)
    return kind().eval(), (torch.randn(shape),)


def unet():
    return _made(UNet, 1, 3, 32, 32)


def mobilenet():
    return _made(MobileNet, 1, 3, 48, 48)


def transformer():
    return _made(Transformer, 1, 24, 16)


def lstm():
    return _made(Recurrent, 1, 2, 8)


def large():
    return _made(Large, 1, 3, 224, 224)
"""
