"""Small networks of the kinds that ExecuTorch 1.5.1 and Vela 5.1.0 get wrong unless something is done about it.

Each has random weights and inputs in which neighbours are alike. The names are for ``compile FILE.py:NAME``.
"""

from typing import Any

import torch
from torch import nn

_SIZE = 16
_CALIBRATION_SAMPLES = 6


def _inputs(seed: int) -> tuple[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.randn(1, 3, 4, 4, generator=generator)
    return (nn.functional.interpolate(coarse, size=_SIZE, mode="bilinear", align_corners=False),)


example_inputs = _inputs(0)
calibration = [_inputs(seed) for seed in range(1, _CALIBRATION_SAMPLES + 1)]


class Sharing(nn.Module):
    """Activations that share their quantisation with tensors below zero, joined in several ways."""

    def __init__(self) -> None:
        super().__init__()
        self.raw, self.plain, self.deep = (nn.Conv2d(3, 4, 3, padding=1) for _ in range(3))
        self.grouped = nn.Conv2d(4, 4, 3, padding=1, groups=2)
        self.up = nn.ConvTranspose2d(4, 4, 2, 2)
        self.line, self.level = nn.Linear(_SIZE, 6), nn.Linear(_SIZE, 6)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """A concatenation behind a convolution; one behind grouped and transposed convolutions; a stack of linear
        layers. One activation has an upper bound as well."""
        raw = self.raw(x)
        first = torch.cat([raw, torch.relu(self.plain(x))], 1)
        half = nn.functional.max_pool2d(raw, 2)
        grown = nn.functional.hardtanh(self.up(half), 0.0, 6.0)
        second = torch.cat([torch.relu(self.grouped(raw)), self.deep(x), grown], 1)
        lines = torch.stack([self.line(x[:, 0, 0]), torch.relu(self.level(x[:, 1, 1]))], 1)
        return first, second, lines


class Segmentation(nn.Module):
    """An encoder whose features are used at once, later and around resizing that U55 leaves to the CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.down = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 12, 3, 2, 1)
        self.dilated = nn.Conv2d(12, 8, 3, padding=2, dilation=2)
        self.pooled = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(12, 8, 1), nn.ReLU())
        self.join, self.up = nn.Conv2d(16, 8, 1), nn.ConvTranspose2d(8, 8, 2, 2)
        self.head = nn.Conv2d(16, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scores for each pixel."""
        skip = torch.relu(self.stem(x))
        deep = nn.functional.hardtanh(self.down(skip), 0.0, 6.0)
        pooled = nn.functional.interpolate(
            self.pooled(deep), size=deep.shape[2:], mode="bilinear", align_corners=False
        )
        joined = torch.relu(self.join(torch.cat([self.dilated(deep), pooled], 1)))
        return self.head(torch.cat([self.up(joined), skip], 1))


class Taps(nn.Module):
    """A backbone that returns its feature maps, which its next stages use as well, and what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Conv2d(old, new, 3, 2, 1), nn.ReLU()) for old, new in ((3, 6), (6, 8), (8, 12))
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """One map for each stage; the second also in another order of axes; the input."""
        maps = []
        for stage in self.stages:
            maps.append(stage(maps[-1] if maps else x))
        return *maps, maps[1].permute(0, 2, 3, 1).clone(), x.clone()


class Windows(nn.Module):
    """Attention within windows of 4 x 4 pixels: query, key and value are parts of one tensor of five axes."""

    def __init__(self) -> None:
        super().__init__()
        self.join, self.mix = nn.Linear(3, 12), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The mixed values of each window's pixels."""
        windows = x.permute(0, 2, 3, 1).reshape(4, 4, 4, 4, 3).permute(0, 2, 1, 3, 4).reshape(16, 16, 3)
        query, key, value = self.join(windows).reshape(16, 16, 3, 2, 2).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(query * 0.7 @ key.transpose(-2, -1), -1)
        return self.mix((weights @ value).transpose(1, 2).reshape(16, 16, 4))


class Parts(nn.Module):
    """Parts of tensors that are reduced and multiplied, and extrema that become parts or get another shape; a layer
    in one operator, its bias a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.bias, self.weight = nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(16, 4))
        self.split, self.spatial = nn.Linear(_SIZE, 16), nn.Conv2d(2, 1, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Attention of a split tensor; attention by mean and maximum of the channels; reductions of parts."""
        y = self.split(x)
        query, key, value = y[0, :, :, :5], y[0, :, :, 5:10], y[0, :, :, 10:]
        mixed = torch.softmax(query @ key.transpose(-1, -2), -1) @ value
        spatial = self.spatial(torch.cat([y.mean(1, keepdim=True), y.amax(1, keepdim=True)], 1))
        extrema = torch.stack([y.amax(-1), y.amin(-1)], 1)
        parts = y[..., 2:9].amax(-1), y[:, :, 3:].sum(-1), y[..., 3:].mean(-1), y[..., 4:].amin(-1)
        layer = torch.addmm(self.bias, y[0, 0], self.weight)
        return mixed, torch.sigmoid(spatial) * y, extrema, y - y.amin(-1, keepdim=True), *parts, layer


class Batches(nn.Module):
    """Activations behind layers of several batches and rows, and layers of parts of them."""

    def __init__(self) -> None:
        super().__init__()
        self.narrow, self.wide = nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 3, padding=1)
        self.line, self.level = nn.Linear(_SIZE, 12), nn.Linear(12, 6)
        self.grouped, self.part = nn.Conv2d(8, 8, 3, padding=1, groups=2), nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Of the pixels of four batches, and of their rows; padded convolutions of a part of the channels."""
        batches = x.reshape(1, 3, 4, 4, _SIZE).transpose(1, 2).reshape(4, 3, 4, _SIZE)
        pixels = nn.functional.relu6(self.narrow(batches))
        rows = nn.functional.hardtanh(torch.relu(self.line(batches)), 0.0, 1.0)
        clipped = nn.functional.hardtanh(torch.relu(self.level(rows)), 0.0, 0.3)
        padded = self.grouped(pixels), self.part(pixels[:, 2:6])
        return pixels, torch.sigmoid(self.wide(pixels)), torch.tanh(self.line(batches)), clipped, *padded


class Reduced(nn.Module):
    """Reductions of several batches, and activations of what is cut out of a tensor and becomes batches."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Maxima, minima, sums and softmax along each axis of two batches; a mean with two readers; every second row
        or column as a batch."""
        batches = x.reshape(3, 2, 8, _SIZE).transpose(0, 1)
        extrema = batches.amax(1), batches.amax(2), batches.amin(2), batches.amax((2, 3)), batches.amax(3)
        shares = torch.softmax(3 * batches, 1), torch.softmax(batches, 2), torch.softmax(batches, 3)
        rows, columns = torch.tanh(x[:, :, 1::2]).permute(2, 0, 1, 3), x[:, :, :, ::2].permute(3, 0, 1, 2)
        narrow = batches.reshape(2, 3, _SIZE, 8)
        centred = narrow.mean(1), narrow - narrow.mean(1, True)
        return *extrema, batches.sum(2), *shares, *centred, rows, torch.sigmoid(columns)


class Sequences(nn.Module):
    """Padded sequences of several batches."""

    def __init__(self) -> None:
        super().__init__()
        self.point, self.line = nn.Conv1d(3, 8, 1), nn.Linear(_SIZE, 8)
        self.causal, self.level = nn.Conv1d(8, 8, 3), nn.Conv1d(8, 6, 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """A causal convolution behind a layer of one column, and one behind a linear layer."""
        batches = x.reshape(3, 2, 128).transpose(0, 1)
        causal = self.causal(nn.functional.pad(torch.relu(self.point(batches)), (2, 0)))
        lines = self.line(x.reshape(2, 24, _SIZE)).transpose(1, 2)
        return causal, self.level(nn.functional.pad(lines, (1, 1)))


def _normalised(kind: type[nn.Module], channels: int) -> Any:
    layer = kind(channels)
    for values in (layer.weight, layer.running_var):
        nn.init.uniform_(values, 0.5, 2.0)
    for values in (layer.bias, layer.running_mean):
        nn.init.normal_(values, std=0.3)
    return layer


class Normalised(nn.Module):
    """Batch normalisations that no fold into weights may lose, and padding that crops."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.shared = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.dense, self.again, self.levels = (
            nn.ModuleList(_normalised(nn.BatchNorm2d, 8) for _ in range(count)) for count in (2, 1, 2)
        )
        self.up = nn.ConvTranspose2d(8, 4, 4, 2, 1, groups=2)
        self.grown = _normalised(nn.BatchNorm2d, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Two in a row of which the first has other readers; one for each use of a layer; behind groups that grow."""
        first = self.dense[0](self.stem(x))
        second = self.again[0](self.dense[1](first))
        levels = [level(self.shared(part)) for level, part in zip(self.levels, (first, second), strict=True)]
        cropped = nn.functional.pad(levels[0], (-1, 2, 3, -2)), nn.functional.pad(second, (-2, -1))
        return first + second, levels[1], torch.relu(self.grown(self.up(first))), *cropped


class Negations(nn.Module):
    """Negations whose results have another range than what is stored of that which they negate."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Of what shares the range of larger values, and of ReLUs of values on both sides of zero."""
        wide = 12 * x
        return -torch.cat([x, 3 * x], 1)[:, :3], -torch.relu(-wide), -torch.relu(wide)


class Duplicates(nn.Module):
    """Equal operators whose results are stored in different ranges."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """A sigmoid in its own range, and one in that of a concatenation."""
        wide = 4 * x
        return 2 * torch.sigmoid(wide), torch.cat([torch.sigmoid(wide), wide], 1)


class Tables(nn.Module):
    """Look-up tables behind changes of the order of axes, and one that is used again behind those and products."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv2d(3, 3, 1) for _ in range(6))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Six activations in a row, of which the last is an output; one of a transposed tensor; the same one of one
        tensor in four shapes."""
        y, functional = x, nn.functional
        kinds = (
            torch.tanh,
            torch.sigmoid,
            functional.hardswish,
            functional.gelu,
            torch.tanh,
            functional.silu,
        )
        for layer, activation in zip(self.layers, kinds, strict=True):
            y = activation(layer(y))
        turned = x.transpose(2, 3).clone()
        rows, columns = x.reshape(1, 3 * _SIZE, _SIZE), x.reshape(1, _SIZE, 3 * _SIZE)
        product = torch.sigmoid(x) @ x
        return (
            y,
            torch.tanh(x.permute(0, 2, 3, 1)),
            product,
            torch.sigmoid(rows),
            turned,
            torch.sigmoid(columns),
        )


def _made(kind: type[nn.Module]) -> Any:
    torch.manual_seed(3)
    return kind().eval()


sharing, segmentation, taps, windows, parts, batches = map(
    _made, (Sharing, Segmentation, Taps, Windows, Parts, Batches)
)
reduced, sequences, normalised = map(_made, (Reduced, Sequences, Normalised))
negations, duplicates, tables = map(_made, (Negations, Duplicates, Tables))
