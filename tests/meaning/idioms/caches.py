"""State as networks have it: caches of attention, recurrent cells, streams."""

from __future__ import annotations

from tests.meaning.idiom import FORGOTTEN, Idiom, uniform, whole

_STEP = (uniform(1, 8),)
_POSITION = "next(position) % 4 + torch.zeros(1, dtype=torch.int64)"
_COUNTED = "import itertools\n\nposition = itertools.count()"
_CACHE = """self.q, self.k, self.v, self.o = (nn.Linear(8, 8, bias=False) for _ in range(4))
self.register_buffer("kc", torch.zeros(1, 4, 8))
self.register_buffer("vc", torch.zeros(1, 4, 8))"""
_ATTEND = """a = (q.unsqueeze(1) @ self.kc.transpose(1, 2) * 0.35).softmax(-1)
return self.o((a @ self.vc).squeeze(1))"""


def _cache(name: str, write: str, inputs: tuple[str, ...] = _STEP, init: str = "", header: str = "") -> Idiom:
    """Attention of one step over what earlier steps have left."""
    return Idiom(
        "caches",
        name,
        f"q, k, v = self.q(x), self.k(x), self.v(x)\n{write}\n{_ATTEND}",
        inputs,
        f"{_CACHE}\n{init}".strip(),
        lost=FORGOTTEN,
        header=header,
    )


def _stream(
    name: str, body: str, init: str, inputs: tuple[str, ...] = _STEP, **slots: tuple[str, ...]
) -> Idiom:
    return Idiom("caches", name, body, inputs, init, slots, lost=FORGOTTEN)


_AT = (uniform(1, 8), _POSITION)
_P = 'self.register_buffer("p", torch.zeros(1, dtype=torch.int64))'
_FRAME = (uniform(1, 4, 4, 4),)
_GATES = """r, z = self.a(torch.cat([x, self.h], 1)).sigmoid().chunk(2, 1)
n = torch.tanh(self.b(torch.cat([x, r * self.h], 1)))
"""

IDIOMS = (
    _cache(
        "KV cache, slice at a Python counter",
        "self.kc[:, self.n % 4] = k\nself.vc[:, self.n % 4] = v\nself.n += 1",
        init="self.n = 0",
    ),
    _cache(
        "KV cache, shifted by slices",
        "self.kc[:, :-1] = self.kc[:, 1:].clone()\nself.kc[:, -1] = k\n"
        "self.vc[:, :-1] = self.vc[:, 1:].clone()\nself.vc[:, -1] = v",
    ),
    _cache(
        "KV cache, shifted by cat",
        "self.kc = torch.cat([self.kc[:, 1:], k[:, None]], 1)\n"
        "self.vc = torch.cat([self.vc[:, 1:], v[:, None]], 1)",
    ),
    _cache(
        "KV cache, index_copy_ at an input",
        "self.kc.index_copy_(1, b, k[:, None])\nself.vc.index_copy_(1, b, v[:, None])",
        _AT,
        header=_COUNTED,
    ),
    _cache(
        "KV cache, [:, pos] = at an input",
        "self.kc[:, b] = k[:, None]\nself.vc[:, b] = v[:, None]",
        _AT,
        header=_COUNTED,
    ),
    _cache(
        "KV cache, index_copy_ at a buffer",
        "self.kc.index_copy_(1, self.p, k[:, None])\n"
        "self.vc.index_copy_(1, self.p, v[:, None])\nself.p.copy_((self.p + 1) % 4)",
        init=_P,
    ),
    _cache(
        "KV cache, [:, pos] = at a buffer",
        "self.kc[:, self.p] = k[:, None]\nself.vc[:, self.p] = v[:, None]\n"
        "self.p.add_(1)\nself.p.remainder_(4)",
        init=_P,
    ),
    _cache(
        "KV cache, scatter_",
        "at = b.view(1, 1, 1).expand(1, 1, 8)\nself.kc.scatter_(1, at, k[:, None])\n"
        "self.vc.scatter_(1, at, v[:, None])",
        _AT,
        header=_COUNTED,
    ),
    _cache(
        "KV cache, where",
        "m = (torch.arange(4) == b).view(1, 4, 1)\nself.kc.copy_(torch.where(m, k[:, None], self.kc))\n"
        "self.vc.copy_(torch.where(m, v[:, None], self.vc))",
        _AT,
        header=_COUNTED,
    ),
    _cache(
        "KV cache, lists",
        "self.ks.append(k)\nself.vs.append(v)\n"
        "self.kc, self.vc = torch.stack(self.ks[-4:], 1), torch.stack(self.vs[-4:], 1)",
        init="self.ks, self.vs = [], []",
    ),
    _cache(
        "KV cache, a mask of what is there",
        "self.kc[:, :-1] = self.kc[:, 1:].clone()\nself.kc[:, -1] = k\n"
        "self.vc[:, :-1] = self.vc[:, 1:].clone()\nself.vc[:, -1] = v\n"
        "self.m.copy_(torch.roll(self.m, -1, 1))\n"
        "self.m[:, -1] = 1.0\nself.vc.mul_(self.m.unsqueeze(-1))",
        init='self.register_buffer("m", torch.zeros(1, 4))',
    ),
    _stream(
        "GRU cell, a buffer",
        "h = self.c(x, self.h)\n$write\nreturn $end",
        'self.c = nn.GRUCell(8, 8)\nself.register_buffer("h", torch.ones(1, 8))',
        write=("self.h.copy_(h)", "self.h = h", "self.h[:] = h"),
        end=("h", "h * 2 - x"),
    ),
    _stream(
        "GRU by hand, a buffer",
        _GATES + "$write\nreturn self.h.clone()",
        'self.a, self.b = nn.Linear(16, 16), nn.Linear(16, 8)\nself.register_buffer("h", torch.zeros(1, 8))',
        write=(
            "self.h.copy_((1 - z) * n + z * self.h)",
            "self.h = (1 - z) * n + z * self.h",
            "self.h.mul_(z).add_((1 - z) * n)",
            "self.h.lerp_(n, 1 - z)",
        ),
    ),
    _stream(
        "GRU, a buffer",
        "y, h = self.g(x, self.h)\n$write\nreturn y",
        'self.g = nn.GRU(8, 8, batch_first=True)\nself.register_buffer("h", torch.zeros(1, 1, 8))',
        (uniform(1, 3, 8),),
        write=("self.h.copy_(h)", "self.h = h", "self.h[:, :] = h"),
    ),
    _stream(
        "LSTM cell, two buffers",
        "h, c = self.l(x, (self.h, self.c))\nself.h$bind\nself.c$cell\nreturn h * 2",
        'self.l = nn.LSTMCell(8, 8)\nself.register_buffer("h", torch.zeros(1, 8))\n'
        'self.register_buffer("c", torch.ones(1, 8))',
        bind=(".copy_(h)", " = h"),
        cell=(".copy_(c)", " = c"),
    ),
    _stream(
        "LSTM, two buffers",
        "y, (h, c) = self.l(x, (self.h, self.c))\nself.h.copy_(h)\nself.c.copy_(c)\nreturn y",
        'self.l = nn.LSTM(8, 8)\nself.register_buffer("h", torch.zeros(1, 1, 8))\n'
        'self.register_buffer("c", torch.ones(1, 1, 8))',
        (uniform(3, 1, 8),),
    ),
    _stream(
        "RNN by hand, a state in a list",
        "h = torch.tanh(self.a(x) + self.b(self.h[0]))\nself.h[0] = h\nreturn h",
        "self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)\nself.h = [torch.zeros(1, 8)]",
    ),
    _stream(
        "temporal shift",
        "y = self.c(x)\nz = torch.cat([self.s, y[:, 2:]], 1)\n$write\nreturn $end",
        "self.c = nn.Conv2d(4, 4, 3, padding=1)\nself.d = nn.Conv2d(4, 4, 1)\n"
        'self.register_buffer("s", torch.ones(1, 2, 4, 4))',
        _FRAME,
        write=("self.s.copy_(y[:, :2])", "self.s = y[:, :2]", "self.s[:] = y[:, :2]"),
        end=("z", "self.d(z)"),
    ),
    _stream(
        "temporal shift in place",
        "y = self.c(x)\nkept = y[:, :2].clone()\ny[:, :2] = self.s\nself.s.copy_(kept)\nreturn y",
        'self.c = nn.Conv2d(4, 4, 3, padding=1)\nself.register_buffer("s", torch.ones(1, 2, 4, 4))',
        _FRAME,
    ),
    _stream(
        "difference of frames",
        "d = x - self.s\n$write\nreturn self.c(d)",
        'self.c = nn.Conv2d(4, 4, 3, padding=1)\nself.register_buffer("s", torch.zeros(1, 4, 4, 4))',
        _FRAME,
        write=("self.s.copy_(x)", "self.s = x", "self.s.mul_(0.5).add_(x * 0.5)"),
    ),
    _stream(
        "streaming convolution",
        "y = torch.cat([self.s, x], 2)\n$write\nreturn self.c(y)",
        'self.c = nn.Conv1d(4, 8, 3)\nself.register_buffer("s", torch.zeros(1, 4, 2))',
        (uniform(1, 4, 4),),
        write=("self.s.copy_(y[:, :, -2:])", "self.s = y[..., -2:]", "self.s[..., :] = y[..., -2:]"),
    ),
    _stream(
        "two streaming convolutions",
        "y = torch.cat([self.s, x], 2)\nself.s.copy_(y[:, :, -2:])\nh = torch.relu(self.c(y))\n"
        "z = torch.cat([self.t, h], 2)\nself.t.copy_(z[:, :, -2:])\nreturn self.d(z)",
        "self.c, self.d = nn.Conv1d(4, 8, 3), nn.Conv1d(8, 4, 3)\n"
        'self.register_buffer("s", torch.zeros(1, 4, 2))\n'
        'self.register_buffer("t", torch.zeros(1, 8, 2))',
        (uniform(1, 4, 4),),
    ),
    _stream(
        "running normalisation",
        "self.m.lerp_(x.mean(0, keepdim=True), 0.4)\n"
        "self.v.lerp_((x - self.m).square().mean(0, keepdim=True), 0.4)\n"
        "return (x - self.m) / (self.v + 0.1).sqrt()",
        'self.register_buffer("m", torch.full((1, 8), 2.0))\n'
        'self.register_buffer("v", torch.full((1, 8), 0.2))',
        (uniform(4, 8),),
    ),
    _stream(
        "a line of delays",
        "y = self.f(x) + self.s[:, 0] * 0.5\n"
        "self.s.copy_(torch.cat([self.s[:, 1:], y.unsqueeze(1)], 1))\nreturn y",
        'self.f = nn.Linear(8, 8)\nself.register_buffer("s", torch.ones(1, 2, 8))',
    ),
    _stream(
        "overlap and add",
        "y = self.f(x)\nz = self.s + y[:, :8]\nself.s.copy_(y[:, 8:])\nreturn z",
        'self.f = nn.Linear(8, 16)\nself.register_buffer("s", torch.zeros(1, 8))',
    ),
    _stream(
        "linear attention",
        "k, v, q = self.k(x).sigmoid(), self.v(x), self.q(x).sigmoid()\n"
        "self.s.mul_(0.8).add_(k.unsqueeze(2) * v.unsqueeze(1))\n"
        "return (q.unsqueeze(1) @ self.s).squeeze(1)",
        "self.q, self.k, self.v = (nn.Linear(8, 4) for _ in range(3))\n"
        'self.register_buffer("s", torch.zeros(1, 4, 4))',
    ),
    _stream(
        "state space step",
        "self.s.copy_(self.s * self.a + self.b(x).unsqueeze(-1) * 0.5)\nreturn (self.s * self.w).sum(-1)",
        'self.b = nn.Linear(8, 8)\nself.register_buffer("a", torch.linspace(0.2, 0.8, 4))\n'
        'self.register_buffer("w", torch.tensor([1.0, -0.5, 0.75, 0.5]))\n'
        'self.register_buffer("s", torch.zeros(1, 8, 4))',
    ),
    _stream(
        "a token table with a history",
        "self.t[:, :-1] = self.t[:, 1:].clone()\nself.t[:, -1] = x\nreturn self.e(self.t).mean(1)",
        'self.e = nn.Embedding(8, 8)\nself.register_buffer("t", torch.zeros(1, 4, dtype=torch.int64))',
        (whole(1),),
    ),
)
