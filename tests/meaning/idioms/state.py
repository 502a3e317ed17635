"""State: what a model keeps from one inference to the next, in every form that PyTorch runs."""

from __future__ import annotations

from tests.meaning.idiom import FORGOTTEN, QUANTISED, Idiom, uniform, whole

_STEP = (uniform(1, 8),)
_LINEAR = "self.f = nn.Linear(8, 8)"
_BUFFER = f'{_LINEAR}\nself.register_buffer("s", $start)'
_STARTS = ("torch.zeros(1, 8)", "torch.full((1, 8), 0.75)", "torch.linspace(-1, 1, 8).view(1, 8)")
_NEXT = (
    "self.s * 0.8 + h",
    "self.s * -0.75 + h * 0.5",
    "torch.tanh(self.s + h)",
    "torch.maximum(self.s * 0.5, h)",
)
_RING = f'{_LINEAR}\nself.register_buffer("s", torch.zeros(1, 4, 8))'
_ENDS = ("return self.s.mean(1)", "return self.s.flatten(1)", "return (self.s * self.w).sum(1)")
_WEIGHTS = '\nself.register_buffer("w", torch.tensor([0.5, -1.0, 0.75, 1.5]).view(1, 4, 1))'


def _kept(name: str, body: str, init: str = _BUFFER, starts: tuple[str, ...] = _STARTS) -> Idiom:
    """A vector that is kept, in one form of assignment; without it, the state stays at its start."""
    return Idiom(
        "state",
        name,
        f"h = self.f(x)\n{body}\nreturn $end",
        _STEP,
        init,
        {"start": starts, "next": _NEXT, "end": ("n * 2", "n - h", "self.f(n * 3) - h * 0.5")},
        lost=FORGOTTEN,
    )


def _ring(name: str, write: str, init: str = _RING) -> Idiom:
    return Idiom(
        "state",
        name,
        f"h = self.f(x)\n{write}\n$end",
        _STEP,
        init + _WEIGHTS,
        {"end": _ENDS},
        lost=FORGOTTEN,
    )


def _plain(name: str, body: str, init: str, **slots: tuple[str, ...]) -> Idiom:
    return Idiom("state", name, body, _STEP, init, slots, lost=FORGOTTEN)


IDIOMS = (
    _kept("a buffer, bound again", "n = $next\nself.s = n"),
    _kept("a buffer, copy_", "n = $next\nself.s.copy_(n)"),
    _kept("a buffer, all assigned", "n = $next\nself.s[...] = n"),
    _kept("a buffer, halves assigned", "n = $next\nself.s[:, :4] = n[:, :4]\nself.s[:, 4:] = n[:, 4:]"),
    _kept("a buffer, .data =", "n = $next\nself.s.data = n"),
    _kept("a buffer, .data.copy_", "n = $next\nself.s.data.copy_(n)"),
    _kept("a buffer, detach().copy_", "n = $next\nself.s.detach().copy_(n)"),
    _kept("a buffer, mul_().add_()", "self.s.mul_(0.5).add_(h)\nn = self.s"),
    _kept("a buffer, added to", "self.s *= 0.5\nself.s += h\nn = self.s"),
    _kept("a buffer, lerp_", "n = self.s.lerp_(h, 0.4) * 2"),
    _kept("a buffer, view written", "n = $next\nself.s.view(2, 4).copy_(n.view(2, 4))"),
    _kept("a buffer, transposed and written", "n = $next\nself.s.t().copy_(n.t())"),
    _kept("a buffer, read before and after", "a = self.s * 2\nself.s.mul_(0.5).add_(h)\nn = a - self.s"),
    _kept("a buffer, written twice", "self.s.mul_(0.5)\nself.s.add_(h)\nn = self.s * 1.5\nself.s.sub_(0.25)"),
    _kept(
        "a buffer that is not persistent",
        "n = $next\nself.s.copy_(n)",
        f'{_LINEAR}\nself.register_buffer("s", $start, persistent=False)',
    ),
    _kept("a plain attribute, copy_", "n = $next\nself.s.copy_(n)", f"{_LINEAR}\nself.s = $start"),
    _kept("a plain attribute, bound again", "n = $next\nself.s = n", f"{_LINEAR}\nself.s = $start"),
    _kept("a plain attribute, add_", "self.s.mul_(0.5).add_(h)\nn = self.s", f"{_LINEAR}\nself.s = $start"),
    _kept(
        "a parameter, .data", "n = $next\nself.s.data.copy_(n)", f"{_LINEAR}\nself.s = nn.Parameter($start)"
    ),
    _kept(
        "a parameter, no_grad",
        "n = $next\nwith torch.no_grad():\n    self.s.copy_(n)",
        f"{_LINEAR}\nself.s = nn.Parameter($start)",
    ),
    _kept(
        "a parameter without gradient",
        "n = $next\nself.s.copy_(n)",
        f"{_LINEAR}\nself.s = nn.Parameter($start, requires_grad=False)",
    ),
    _kept("a list", "n = self.l[0] * 0.8 + h\nself.l[0] = n", f"{_LINEAR}\nself.l = [$start]"),
    _kept("a dict", "n = self.d['s'] * 0.8 + h\nself.d['s'] = n", f"{_LINEAR}\nself.d = {{'s': $start}}"),
    _kept(
        "a tensor in a list, copy_",
        "n = self.l[0] * 0.8 + h\nself.l[0].copy_(n)",
        f"{_LINEAR}\nself.l = [$start]",
    ),
    _plain(
        "a list that grows",
        "h = self.f(x)\nself.l.append(h)\nreturn sum(self.l[-3:])",
        f"{_LINEAR}\nself.l = []",
    ),
    _plain(
        "a Python counter",
        "self.n += 1\nreturn self.f(x) $by self.n",
        f"{_LINEAR}\nself.n = 0",
        by=("*", "+"),
    ),
    _plain(
        "a Python flag",
        "y = self.f(x) * (1.0 if self.first else -1.0)\nself.first = False\nreturn y",
        f"{_LINEAR}\nself.first = True",
    ),
    _plain(
        "a counter",
        "self.n += 1\nreturn self.f(x) * self.n$cast",
        f'{_LINEAR}\nself.register_buffer("n", torch.tensor($zero))',
        zero=("0", "0, dtype=torch.int32", "0.0"),
        cast=("", ".float()", ".to(torch.float32)"),
    ),
    _plain(
        "a counter that is an output",
        "self.n.add_($step)\nreturn self.f(x), self.n$copy",
        f'{_LINEAR}\nself.register_buffer("n", torch.zeros(1, dtype=torch.$dtype))',
        step=("1", "3"),
        copy=(".clone()", "", " * 2"),
        dtype=("int64", "int32", "float32"),
    ),
    _plain(
        "a counter that wraps",
        "self.n.copy_((self.n + 1) % 3)\nreturn self.f(x) * (self.n.float() - 1)",
        f'{_LINEAR}\nself.register_buffer("n", torch.zeros(1, dtype=torch.$dtype))',
        dtype=("int64", "int32"),
    ),
    _plain(
        "fill_",
        "y = self.f(x) * self.s\nself.s.fill_($value)\nreturn y",
        f'{_LINEAR}\nself.register_buffer("s", torch.ones(1, 8))',
        value=("-0.5", "2.0"),
    ),
    _plain(
        "zero_",
        "y = self.f(x) + self.s\nself.s.zero_()\nreturn y",
        f'{_LINEAR}\nself.register_buffer("s", torch.full((1, 8), 1.5))',
    ),
    _plain(
        "zero_, then add_",
        "y = self.f(x) + 2 * self.s\nself.s.zero_().add_(x)\nreturn y",
        f'{_LINEAR}\nself.register_buffer("s", torch.full((1, 8), 1.5))',
    ),
    _plain(
        "the difference to the last step",
        "h = self.f(x)\nd = h - self.s\n$write\nreturn d",
        f'{_LINEAR}\nself.register_buffer("s", torch.zeros(1, 8))',
        write=(
            "self.s.copy_(h)",
            "self.s = h",
            "self.s[:] = h",
            "self.s[0] = h[0]",
            "self.s.zero_().add_(h)",
        ),
    ),
    _plain(
        "the last input",
        "y = self.f(self.s) + x * 0.5\n$write\nreturn y",
        f'{_LINEAR}\nself.register_buffer("s", torch.zeros(1, 8))',
        write=("self.s.copy_(x)", "self.s = x.clone()", "self.s = x", "self.s[:, :] = x"),
    ),
    _plain(
        "state that is an output",
        "h = self.f(x)\nself.s.mul_(0.5).add_(h)\nreturn $end",
        f'{_LINEAR}\nself.register_buffer("s", torch.ones(1, 8))',
        end=("self.s", "self.s.clone()", "self.s[:, :]", "self.s.view(2, 4)"),
    ),
    _plain(
        "a switch by state",
        "y = torch.where(self.on, self.f(x), -2 * x)\nself.on.logical_or_(x.sum() > -9)\nreturn y",
        f'{_LINEAR}\nself.register_buffer("on", torch.tensor(False))',
    ),
    _plain(
        "where the input is positive",
        "self.s.copy_(torch.where(x > 0, x, self.s))\nreturn self.s * 2",
        f'{_LINEAR}\nself.register_buffer("s", torch.full((1, 8), -1.0))',
    ),
    _plain(
        "the running sum and its count",
        "self.total += self.f(x)\nself.count += 1\nreturn self.total / self.count",
        f'{_LINEAR}\nself.register_buffer("total", torch.zeros(1, 8))\n'
        f'self.register_buffer("count", torch.tensor(0.0))',
    ),
    _plain(
        "a running maximum",
        "self.s.copy_(torch.maximum(self.s, x))\nreturn self.s - x",
        f'{_LINEAR}\nself.register_buffer("s", torch.full((1, 8), -1.0))',
    ),
    _ring("a ring, slice assignment", "self.s[:, :-1] = self.s[:, 1:].clone()\nself.s[:, -1] = h"),
    _ring("a ring, copy_ to slices", "self.s[:, :-1].copy_(self.s[:, 1:].clone())\nself.s[:, -1].copy_(h)"),
    _ring("a ring, roll", "self.s.copy_(torch.roll(self.s, -1, 1))\nself.s[:, -1] = h"),
    _ring("a ring, cat and bind", "self.s = torch.cat([self.s[:, 1:], h.unsqueeze(1)], 1)"),
    _ring("a ring, cat and copy_", "self.s.copy_(torch.cat([self.s[:, 1:], h.unsqueeze(1)], 1))"),
    _ring("a ring, cat and [:]", "self.s[:] = torch.cat([self.s[:, 1:], h[:, None]], 1)"),
    _ring(
        "a ring, index_copy_",
        "self.s.index_copy_(1, self.p, h.unsqueeze(1))\nself.p.copy_((self.p + 1) % 4)",
        f'{_RING}\nself.register_buffer("p", torch.zeros(1, dtype=torch.int64))',
    ),
    _ring(
        "a ring, index by a buffer",
        "self.s[:, self.p] = h.unsqueeze(1)\nself.p.add_(1).remainder_(4)",
        f'{_RING}\nself.register_buffer("p", torch.zeros(1, dtype=torch.int64))',
    ),
    _ring(
        "a ring, plain attribute",
        "self.s = torch.cat([self.s[:, 1:], h[:, None]], 1)",
        f"{_LINEAR}\nself.s = torch.zeros(1, 4, 8)",
    ),
    _ring(
        "a ring, mask",
        "self.s.copy_(torch.where(self.m, h.unsqueeze(1), self.s))\nself.m.copy_(torch.roll(self.m, 1, 1))",
        f'{_RING}\nself.register_buffer("m", (torch.arange(4) == 0).view(1, 4, 1))',
    ),
    Idiom(
        "state",
        "one module twice",
        "return self.c(self.c(x)$between)",
        _STEP,
        "self.c = Cell()",
        {"between": ("", " * -1.5", " + x"), "write": ("self.s.copy_(n)", "self.s = n", "self.s[:] = n")},
        lost=FORGOTTEN,
        header="class Cell(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        '        self.register_buffer("s", torch.ones(1, 8))\n\n    def forward(self, x):\n'
        "        n = self.s * 0.5 + x\n        $write\n        return n",
    ),
    Idiom(
        "state",
        "two modules of a class",
        "return self.a(x) - self.c(-2 * x)",
        _STEP,
        "self.a = Cell()\nself.c = Cell()",
        {"write": ("self.s.copy_(n)", "self.s = n", "self.s[:] = n")},
        lost=FORGOTTEN,
        header="class Cell(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        '        self.register_buffer("s", torch.ones(1, 8))\n\n    def forward(self, x):\n'
        "        n = self.s * 0.5 + x\n        $write\n        return n",
    ),
    Idiom(
        "state",
        "modules in a list",
        "for c in self.c:\n    x = c(x)\nreturn x",
        _STEP,
        "self.c = nn.ModuleList(Cell() for _ in range($count))",
        {"count": ("2", "3")},
        lost=FORGOTTEN,
        header="class Cell(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        '        self.register_buffer("s", torch.ones(1, 8))\n\n    def forward(self, x):\n'
        "        self.s.mul_(0.5).add_(x)\n        return self.s.clone()",
    ),
    Idiom(
        "state",
        "a scalar by input",
        "self.n.add_(b)\nreturn x * self.n",
        (uniform(1, 8), whole(1, high=3)),
        'self.register_buffer("n", torch.zeros(1, dtype=torch.int64))',
        lost=FORGOTTEN,
        quantize=QUANTISED,
    ),
)
