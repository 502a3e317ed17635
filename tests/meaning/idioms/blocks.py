"""Blocks of networks that people deploy."""

from __future__ import annotations

from tests.meaning.idiom import Idiom, uniform, whole

_IMAGE = (uniform(1, 4, 8, 8),)
_SEQUENCE = (uniform(1, 6, 8),)
_SIGNAL = (uniform(1, 4, 16),)


def _block(
    name: str, body: str, inputs: tuple[str, ...], init: str, lost: str = "", **slots: tuple[str, ...]
) -> Idiom:
    return Idiom("blocks", name, body, inputs, init, slots, lost=lost)


IDIOMS = (
    _block(
        "residual",
        "return $end",
        _IMAGE,
        "self.f = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), "
        "nn.Conv2d(4, 4, 3, padding=1))",
        "return self.f(x)",
        end=(
            "torch.relu(x + self.f(x))",
            "x + self.f(x)",
            "x + 0.5 * self.f(x)",
            "F.relu(self.f(x) + x, inplace=True)",
        ),
    ),
    _block(
        "residual, added to",
        "y = self.f(x)\ny += x\nreturn self.r(y)",
        _IMAGE,
        "self.f, self.r = nn.Conv2d(4, 4, 3, padding=1), nn.ReLU(inplace=True)",
        "return self.r(self.f(x))",
    ),
    _block(
        "inverted residual",
        "return x + self.p(self.d(self.e(x)))",
        _IMAGE,
        "self.e = nn.Sequential(nn.Conv2d(4, 16, 1), nn.$act)\n"
        "self.d = nn.Sequential(nn.Conv2d(16, 16, 3, padding=1, groups=16), nn.$act)\n"
        "self.p = nn.Conv2d(16, 4, 1)",
        act=("ReLU6(inplace=True)", "Hardswish(inplace=True)", "SiLU()"),
    ),
    _block(
        "squeeze and excite",
        "return x * self.s(x)",
        _IMAGE,
        "self.s = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 2, 1), nn.ReLU(), nn.Conv2d(2, "
        "4, 1), nn.$gate)",
        "return x",
        gate=("Sigmoid()", "Hardsigmoid()"),
    ),
    _block(
        "U-Net",
        "a = torch.relu(self.a(x))\nb = torch.relu(self.b(F.max_pool2d(a, 2)))\n"
        "return self.c(torch.cat([a, self.u(b)], 1))",
        _IMAGE,
        "self.a, self.b, self.c = nn.Conv2d(4, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1), "
        "nn.Conv2d(8, 2, 1)\nself.u = $up",
        "a = torch.relu(self.a(x))\nreturn self.c(torch.cat([a, a], 1))",
        up=(
            "nn.ConvTranspose2d(8, 4, 2, stride=2)",
            "nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(8, 4, 1))",
        ),
    ),
    _block(
        "feature pyramid",
        "a = self.a(x)\nb = self.b(a)\nreturn $end",
        _IMAGE,
        "self.a, self.b = nn.Conv2d(4, 4, 3, 2, 1), nn.Conv2d(4, 4, 3, 2, 1)",
        "a = b = self.a(x)\nreturn $end",
        end=("a, b", "[a + F.interpolate(b, size=a.shape[2:]), b]", "{'p1': a, 'p2': b}"),
    ),
    _block(
        "dense block",
        "for f in self.fs:\n    x = torch.cat([x, torch.relu(f(x))], 1)\nreturn x",
        _IMAGE,
        "self.fs = nn.ModuleList(nn.Conv2d(4 * i, 4, 3, padding=1) for i in range(1, $n))",
        n=("3", "4"),
    ),
    _block(
        "attention",
        "q, k, v = self.p(x).chunk(3, -1)\n$score\nreturn self.o(a @ v)",
        _SEQUENCE,
        "self.p, self.o = nn.Linear(8, 24), nn.Linear(8, 8)",
        "q, k, v = self.p(x).chunk(3, -1)\nreturn self.o(v)",
        score=(
            "a = (q @ k.transpose(1, 2) * 2).softmax(-1)",
            "a = (q @ k.mT * 2 + torch.full((6, 6), -9.0).triu(1)).softmax(-1)",
            "a = (q @ k.mT * 2).masked_fill(torch.ones(6, 6, dtype=torch.bool).triu(1), -9.0).softmax(-1)",
            "a = torch.einsum('bid,bjd->bij', q, k).mul(2).softmax(-1)",
        ),
    ),
    _block(
        "attention of torch",
        "q, k, v = (t.view(1, 6, 2, 4).transpose(1, 2) for t in self.p(x).chunk(3, -1))\n"
        "y = F.scaled_dot_product_attention(q, k, v$how)\nreturn self.o(y.transpose(1, 2).flatten(2))",
        _SEQUENCE,
        "self.p, self.o = nn.Linear(8, 24), nn.Linear(8, 8)",
        how=("", ", is_causal=True", ", scale=1.0"),
    ),
    _block(
        "multi-head attention",
        "return self.a($qkv$how)[0]",
        _SEQUENCE,
        "self.a = nn.MultiheadAttention(8, 2, batch_first=True)",
        qkv=("x, x, x", "x, x, x * 2"),
        how=("", ", need_weights=False"),
    ),
    _block(
        "multi-head attention with weights",
        "return self.a(x, x, x)",
        _SEQUENCE,
        "self.a = nn.MultiheadAttention(8, 2, batch_first=True)",
    ),
    _block(
        "transformer layer",
        "return self.t(x)",
        _SEQUENCE,
        "self.t = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True$how)",
        how=("", ", norm_first=True", ", activation='gelu'"),
    ),
    _block(
        "transformer by hand",
        "a = (self.q(x) @ self.k(x).mT * 2).softmax(-1)\nx = self.n(x + a @ self.v(x))\n"
        "return x + self.g(torch.relu(self.f(x)))",
        _SEQUENCE,
        "self.q, self.k, self.v = (nn.Linear(8, 8) for _ in range(3))\n"
        "self.n, self.f, self.g = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)",
        "return self.n(x)",
    ),
    _block(
        "mixer",
        "x = x + self.t(x.transpose(1, 2)).transpose(1, 2)\nreturn x + self.c(x)",
        _SEQUENCE,
        "self.t, self.c = (nn.Sequential(nn.Linear(n, 8), nn.GELU(), nn.Linear(8, n)) for n in (6, 8))",
        "return x",
    ),
    _block(
        "gated units",
        "a, b = self.f(x).chunk(2, -1)\nreturn self.g($gate)",
        _SEQUENCE,
        "self.f, self.g = nn.Linear(8, 32), nn.Linear(16, 8)",
        "return self.g(self.f(x)[..., :16])",
        gate=("a * b.sigmoid()", "F.silu(a) * b", "F.gelu(a) * b", "torch.tanh(a) * torch.sigmoid(b)"),
    ),
    _block(
        "recurrent",
        "return self.r(x)$which",
        _SEQUENCE,
        "self.r = nn.$cell(8, 8, batch_first=True$more)",
        which=("[0]", "[0][:, -1]", "[1]", ""),
        cell=("GRU", "LSTM", "RNN"),
        more=("", ", bidirectional=True", ", num_layers=2"),
    ),
    _block(
        "recurrent, by steps",
        "h = torch.zeros(1, 8)\nfor t in range(6):\n    h = self.c(x[:, t], h)\nreturn h",
        _SEQUENCE,
        "self.c = nn.$cell(8, 8)",
        "return self.c(x[:, 0], torch.zeros(1, 8))",
        cell=("GRUCell", "RNNCell"),
    ),
    _block(
        "temporal convolutions",
        "return self.f(x)$end",
        _SIGNAL,
        "self.f = nn.Sequential(nn.ConstantPad1d((2, 0), 0.0), nn.Conv1d(4, 8, 3), nn.ReLU(), "
        "nn.ConstantPad1d((4, 0), 0.0), nn.Conv1d(8, 4, 3, dilation=2))",
        end=("", " + x", "[..., -1]"),
    ),
    _block(
        "keyword spotter",
        "return self.o(torch.relu(self.d(torch.relu(self.c(x)))).mean((2, 3)))",
        (uniform(1, 1, 12, 10),),
        "self.c, self.d, self.o = nn.Conv2d(1, 8, (4, 4), 2, 1), nn.Conv2d(8, 8, 3, padding=1, "
        "groups=8), nn.Linear(8, 4, bias=False)",
    ),
    _block(
        "autoencoder",
        "return self.d(self.e(x))",
        (uniform(4, 16),),
        "self.e = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))\n"
        "self.d = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 16, bias=False))",
    ),
    _block(
        "detector head",
        "y = self.c(x)\nboxes, scores = y[:, :4], y[:, 4:]\nreturn $end",
        _IMAGE,
        "self.c = nn.Conv2d(4, 7, 1)",
        "y = -self.c(x)\nboxes, scores = y[:, :4], y[:, 4:]\nreturn $end",
        end=(
            "boxes.flatten(2).mT, scores.flatten(2).mT.sigmoid()",
            "{'boxes': boxes, 'scores': scores.sigmoid()}",
            "torch.cat([boxes.exp(), scores.sigmoid()], 1)",
            "boxes * 0.5, scores.softmax(1)",
        ),
    ),
    _block(
        "two inputs joined",
        "return self.o(torch.cat([torch.relu(self.a(x)).mean((2, 3)), self.f(b)], 1))",
        (uniform(1, 4, 8, 8), uniform(1, 8)),
        "self.a, self.f, self.o = nn.Conv2d(4, 8, 3), nn.Linear(8, 8), nn.Linear(16, 4)",
    ),
    _block(
        "text classifier",
        "return self.o(torch.relu(self.c(self.e(x).mT)).amax(2))",
        (whole(1, 8),),
        "self.e, self.c, self.o = nn.Embedding(8, 8), nn.Conv1d(8, 8, 3), nn.Linear(8, 4)",
    ),
    _block(
        "positions added",
        "return self.f(x + self.p[:, : x.shape[1]])",
        _SEQUENCE,
        "self.p = nn.Parameter(torch.rand(1, 10, 8) * 2 - 1)\nself.f = nn.Linear(8, 8)",
        "return self.f(x)",
    ),
    _block(
        "rotary positions",
        "a, b = x.chunk(2, -1)\nreturn torch.cat([a * self.c - b * self.s, a * self.s + b * self.c], -1)",
        _SEQUENCE,
        "t = torch.arange(6.0)[:, None] * torch.tensor([1.0, 0.5, 0.25, 0.1])\n"
        "self.register_buffer('c', t.cos())\nself.register_buffer('s', t.sin())",
        "return x",
    ),
    _block(
        "class token",
        "y = torch.cat([self.t.expand(1, -1, -1), x], 1)\nreturn self.f(y)$end",
        _SEQUENCE,
        "self.t, self.f = nn.Parameter(torch.rand(1, 1, 8)), nn.Linear(8, 8)",
        end=("", "[:, 1:]"),
    ),
    _block(
        "patches",
        "return self.p(x).flatten(2).mT",
        _IMAGE,
        "self.p = nn.Conv2d(4, 8, $size, $size)",
        size=("4", "2"),
    ),
    _block(
        "windows",
        "y = x.view(1, 4, 2, 4, 2, 4).permute(0, 2, 4, 3, 5, 1).reshape(4, 16, 4)\nreturn self.f(y)",
        _IMAGE,
        "self.f = nn.Linear(4, 4)",
    ),
    _block(
        "ensemble",
        "return $end",
        _IMAGE,
        "self.a, self.b = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 3, padding=1)",
        "return self.a(x)",
        end=(
            "(self.a(x) + self.b(x)) / 2",
            "torch.stack([self.a(x), self.b(x)]).mean(0)",
            "torch.maximum(self.a(x), self.b(x))",
        ),
    ),
    _block(
        "a module in a function",
        "return self.act(self.f(x))",
        _IMAGE,
        "self.f, self.act = nn.Conv2d(4, 4, 3), $act",
        act=("F.relu", "torch.tanh", "lambda t: t * t.sigmoid()"),
    ),
)
