"""Shapes: no axes at all, layers without a batch, broadcasts, axes of size 1, many axes."""

from __future__ import annotations

from tests.meaning.idiom import Idiom, uniform

_ROWS = (uniform(4, 8),)


def _shape(
    name: str,
    body: str,
    inputs: tuple[str, ...] = _ROWS,
    init: str = "pass",
    lost: str = "",
    **slots: tuple[str, ...],
) -> Idiom:
    return Idiom("shapes", name, body, inputs, init, slots, lost=lost)


def _unbatched(
    name: str, init: str, *shape: int, body: str = "return self.f(x)", **slots: tuple[str, ...]
) -> Idiom:
    return _shape(f"{name} without a batch", body, (uniform(*shape),), f"self.f = {init}", **slots)


IDIOMS = (
    _shape(
        "an output without axes",
        "y = x * 2 + 0.5\nreturn y.$reduce",
        reduce=(
            "sum()",
            "mean()",
            "max()",
            "norm()",
            "abs().mean()",
            "amin()",
            "square().sum()",
            "std()",
            "square().mean().sqrt()",
            "sum(1).amax()",
            "flatten()[3]",
        ),
    ),
    _shape(
        "a loss",
        "return F.$loss",
        (uniform(4, 8), uniform(4, 8)),
        loss=(
            "mse_loss(x, b)",
            "l1_loss(x, b)",
            "smooth_l1_loss(x, b)",
            "cosine_similarity(x, b).mean()",
            "huber_loss(x, b)",
        ),
    ),
    _shape(
        "outputs with and without axes",
        "y = self.f(x)\nreturn $end",
        init="self.f = nn.Linear(8, 8)",
        end=(
            "y, y.mean()",
            "y.sum(), y",
            "y.amax(), y.amin()",
            "y - y.mean(), y.mean()",
            "{'y': y, 'energy': y.square().sum()}",
        ),
    ),
    _shape("an input without axes", "return x $op b", (uniform(4, 8), uniform()), op=("*", "+", "-")),
    _shape("two inputs without axes", "return x $op b", (uniform(), uniform()), op=("*", "+", "-")),
    _shape(
        "one element",
        "return $end",
        (uniform(1),),
        "self.f = nn.Linear(1, 4)",
        end=("self.f(x)", "x * 2", "x.expand(4) + 1", "x.sum()"),
    ),
    _unbatched("a linear layer", "nn.Linear(8, 4)", 8),
    _unbatched("a network", "nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))", 8),
    _unbatched("conv1d", "nn.Conv1d(4, 8, 3$more)", 4, 10, more=("", ", padding=1", ", stride=2")),
    _unbatched(
        "conv2d",
        "nn.Conv2d(3, 4, 3$more)",
        3,
        8,
        8,
        more=("", ", padding=1", ", stride=2", ", padding='same'"),
    ),
    _unbatched("conv_transpose2d", "nn.ConvTranspose2d(3, 4, 2, stride=2)", 3, 4, 4),
    _unbatched(
        "pooling",
        "nn.$pool",
        3,
        8,
        8,
        pool=("MaxPool2d(2)", "AvgPool2d(2)", "AdaptiveAvgPool2d(1)", "AdaptiveAvgPool2d((2, 4))"),
    ),
    _unbatched(
        "pooling, 1 axis", "nn.$pool", 3, 8, pool=("MaxPool1d(2)", "AvgPool1d(2)", "AdaptiveAvgPool1d(2)")
    ),
    _unbatched("layer norm", "nn.LayerNorm(8)", 8),
    _unbatched("GRU", "nn.GRU(8, 8)", 3, 8, body="return self.f(x)[0]"),
    _unbatched("softmax", "nn.Softmax(-1)", 8, body="return self.f(x * 3)"),
    _unbatched(
        "attention", "nn.MultiheadAttention(8, 2)", 4, 8, body="return self.f(x, x, x, need_weights=False)[0]"
    ),
    _shape(
        "conv2d, even kernel, same",
        "return self.f(x)",
        (uniform(1, 3, 9, 8),),
        "self.f = nn.Conv2d(3, 4, $size, padding='same')",
        size=("4", "2", "(2, 3)", "(4, 3)"),
    ),
    _shape(
        "conv1d, even kernel, same",
        "return self.f(x)",
        (uniform(1, 3, 9),),
        "self.f = nn.Conv1d(3, 4, $size, padding='same')",
        size=("4", "2"),
    ),
    _shape(
        "a batch",
        "return self.f(x)",
        (uniform(3, 3, 8, 8),),
        "self.f = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), $next)",
        next=(
            "nn.ReLU()",
            "nn.MaxPool2d(2)",
            "nn.BatchNorm2d(4)",
            "nn.Flatten()",
            "nn.AvgPool2d(2), nn.Flatten(), nn.Linear(64, 4)",
        ),
    ),
    _shape(
        "broadcast",
        "return x $op b",
        (uniform(4, 8), "$other"),
        op=("+", "*", "-"),
        other=(
            "torch.rand(8) * 2 - 1",
            "torch.rand(4, 1) * 2 - 1",
            "torch.rand(1, 8) * 2 - 1",
            "torch.rand(1) * 2 - 1",
            "torch.rand(2, 4, 8) * 2 - 1",
        ),
    ),
    _shape("broadcast both ways", "return x $op b", (uniform(4, 1), uniform(1, 8)), op=("+", "*", "-", "@")),
    _shape(
        "broadcast over images",
        "return x $op b",
        (uniform(1, 4, 5, 6), "$other"),
        op=("+", "*"),
        other=(
            "torch.rand(1, 4, 1, 1) * 2 - 1",
            "torch.rand(4, 1, 1) * 2 - 1",
            "torch.rand(6) * 2 - 1",
            "torch.rand(1, 1, 5, 6) * 2 - 1",
            "torch.rand(5, 1) * 2 - 1",
        ),
    ),
    _shape(
        "axes of size 1",
        "return $end",
        (uniform(1, 1, 8, 1),),
        end=(
            "x.squeeze() * 2",
            "x.squeeze(-1) + x.squeeze(1)",
            "x.expand(1, 3, 8, 4) * 2",
            "x.mean((1, 3)) * 3",
            "x.transpose(1, 2) * 2",
            "x.sum(0) - 0.5",
            "x.view(8) * -1",
            "x.permute(3, 2, 1, 0) * 2",
        ),
    ),
    _shape(
        "an image of one element",
        "return self.f(x)",
        (uniform(1, 4, 1, 1),),
        "self.f = nn.Sequential(nn.Conv2d(4, 8, $conv), nn.ReLU(), nn.Conv2d(8, 4, 1))",
        conv=("1", "3, padding=1"),
    ),
    _shape(
        "one channel",
        "return self.f(x)",
        (uniform(1, 1, 8, 8),),
        "self.f = nn.Conv2d(1, $out, 3, padding=1)",
        out=("1", "4"),
    ),
    _shape(
        "many axes",
        "return $end",
        (uniform(1, 2, 2, 3, 4),),
        end=(
            "x.permute(0, 4, 2, 1, 3) * 2",
            "x.sum((1, 3)) * 0.5",
            "x.flatten(2) + 1",
            "x.mean(-1)",
            "x.transpose(1, 4).contiguous() - 0.5",
            "x.reshape(4, 12) * 2",
            "x * x.mean((2, 3, 4), keepdim=True)",
        ),
    ),
    _shape(
        "six axes",
        "y = x.view(1, 4, 4, 2, 4, 2)\nreturn y.$end",
        (uniform(1, 4, 8, 8),),
        end=(
            "mean((3, 5))",
            "permute(0, 1, 3, 5, 2, 4).reshape(1, 16, 4, 4)",
            "amax((3, 5))",
            "permute(0, 2, 4, 1, 3, 5).flatten(3)",
        ),
    ),
    _shape("an empty slice", "return torch.cat([x, x[:, :0]], 1) * 2"),
    _shape(
        "keepdim",
        "return x $op x.$reduce(1, keepdim=True)",
        op=("-", "*"),
        reduce=("mean", "sum", "amax", "amin"),
    ),
    _shape(
        "outer product",
        "return $end",
        (uniform(4), uniform(6)),
        end=("torch.outer(x, b)", "x[:, None] * b", "torch.einsum('i,j->ij', x, b)"),
    ),
    _shape(
        "reshapes",
        "return $end * 2",
        end=(
            "x.reshape(2, 2, 8).transpose(0, 1).reshape(4, 8)",
            "x.t().reshape(4, 8)",
            "x.unfold(1, 4, 2)",
            "x.flatten().view(8, 4)",
            "x.view(4, 2, 4).transpose(1, 2).flatten(1)",
            "x.unflatten(0, (2, 2)).movedim(2, 0)",
            "torch.atleast_3d(x)",
            "x.ravel()[None]",
        ),
    ),
)
