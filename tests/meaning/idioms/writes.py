"""In-place writes: through views, on inputs, by index, and the same without a write."""

from __future__ import annotations

from tests.meaning.idiom import Idiom, truth, uniform

_MATRIX = ("self.f = nn.Linear(8, 8)", "y = self.f(x)", (uniform(4, 8),), "(4, 8)")
_IMAGE = ("self.f = nn.Conv2d(3, 8, 3, padding=1)", "y = self.f(x)", (uniform(1, 3, 6, 6),), "(1, 8, 6, 6)")
_ACTIVATED = ("self.f = nn.Linear(8, 8)", "y = torch.tanh(self.f(x))", (uniform(4, 8),), "(4, 8)")
_INPUT = ("self.f = nn.Linear(8, 8)", "y = x", (uniform(4, 8),), "(4, 8)")

_MATRIX_VIEWS = (
    "y[:, :4]",
    "y[:, 2:3]",
    "y[1]",
    "y[1:3]",
    "y[:, ::2]",
    "y[..., -3:]",
    "y[1:3, 2:6]",
    "y[:, :4][1:]",
    "y[None, 1:3]",
    "y.t()[:4]",
    "y.t()[2:6, 1:]",
    "y.transpose(0, 1)[2:5]",
    "y.chunk(2, 1)[0]",
    "y.split(3, 1)[1]",
    "y.unbind(0)[1]",
    "y.view(8, 4)[:5]",
    "y.view(-1)[5:20]",
    "y.reshape(2, 2, 8)[0]",
    "y.flatten()[8:24]",
    "y.unsqueeze(0)[:, 2:]",
    "y.narrow(1, 2, 4)",
    "y.select(0, 2)",
    "y.permute(1, 0)[3:]",
    "y.unflatten(1, (2, 4))[:, 0]",
    "y.detach()[:, :4]",
    "y.swapaxes(0, 1)[:5]",
    "y.view_as(y)[2:]",
    "y",
)
_IMAGE_VIEWS = (
    "y[:, :4]",
    "y[:, 1:3]",
    "y[..., 2:5]",
    "y[:, :, 1:5, 1:5]",
    "y.permute(0, 2, 3, 1)[..., :4]",
    "y.chunk(2, 1)[1]",
    "y.view(1, 8, 36)[:, :, :20]",
    "y.flatten(2)[..., ::2]",
    "y.squeeze(0)[:5]",
    "y.unsqueeze(2)[:, 3:]",
    "y.movedim(1, -1)[..., 4:]",
    "y.view(1, 2, 4, 6, 6)[:, 0]",
)
# A statement, and what it makes of the elements of y that it writes.
_WRITES = (
    ("$view.mul_(-2.0)", "y * -2.0"),
    ("$view.add_(1.5)", "y + 1.5"),
    ("$view.sub_(1.25)", "y - 1.25"),
    ("$view.div_(-0.5)", "y / -0.5"),
    ("$view.neg_()", "-y"),
    ("$view.fill_(1.5)", "torch.full_like(y, 1.5)"),
    ("$view.copy_($view * -1.5)", "y * -1.5"),
    ("$view.copy_(torch.tensor(-1.25))", "torch.full_like(y, -1.25)"),
    ("$view.sigmoid_().add_(0.5)", "y.sigmoid() + 0.5"),
    ("$view.clamp_(0.75, 1.0)", "y.clamp(0.75, 1.0)"),
    ("$view.exp_()", "y.exp()"),
    ("$view.masked_fill_($view < 2.0, -1.5)", "torch.where(y < 2.0, -1.5, y)"),
    ("v = $view\nv += 1.5", "y + 1.5"),
    ("v = $view\nv *= -1.0\nv -= 0.5", "-y - 0.5"),
    ("$view[...] = 1.5", "torch.full_like(y, 1.5)"),
    ("$view[...] = $view.sigmoid() * 2 - 0.5", "y.sigmoid() * 2 - 0.5"),
    ("$view[...] = $view * -1.5", "y * -1.5"),
    ("torch.neg($view, out=$view)", "-y"),
)
_ENDS = ("return y", "return y * 2 - 0.5", "return self.g(y)")


def _written(name: str, base: tuple[str, str, tuple[str, ...], str], views: tuple[str, ...]) -> list[Idiom]:
    """A table of views and writes on one base, and the same without a write."""
    init, made, inputs, shape = base
    linear = shape == "(4, 8)"
    after = "self.g = nn.Linear(8, 4)" if linear else "self.g = nn.Conv2d(8, 4, 1)"
    mask = f'y = torch.zeros({shape}, dtype=torch.bool)\n$view.fill_(True)\nself.register_buffer("mask", y)'
    slots = {"view": views, "write, value": _WRITES, "end": _ENDS}
    return [
        Idiom(
            "writes",
            f"write to {name}",
            f"{made}\n$write\n$end",
            inputs,
            f"{init}\n{after}",
            slots,
            lost=f"{made}\n$end",
            weight=8,
        ),
        Idiom(
            "writes",
            f"no write, {name}",
            f"{made}\ny = torch.where(self.mask, $value, y)\n$end",
            inputs,
            f"{init}\n{after}\n{mask}",
            slots,
            lost=f"{made}\n$end",
            weight=2,
        ),
    ]


_LINEAR = "self.f = nn.Linear(8, 8)"
_ROWS = (uniform(4, 8),)


def _matrix(
    name: str,
    write: str,
    slots: dict[str, tuple[str, ...]] | None = None,
    init: str = "",
    inputs: tuple[str, ...] = _ROWS,
) -> Idiom:
    return Idiom(
        "writes",
        name,
        f"y = self.f(x)\n{write}\nreturn y",
        inputs,
        f"{_LINEAR}\n{init}".strip(),
        slots or {},
        lost="return self.f(x)",
    )


# None is so near zero that rounding gives it another sign.
_SIGNS = ("(torch.rand(4, 8) * 0.8 + 0.2) * torch.randn(4, 8).sign()",)
_INDEX = 'self.register_buffer("index", torch.tensor([0, 3, 5]))'
IDIOMS = (
    *_written("a matrix", _MATRIX, _MATRIX_VIEWS),
    *_written("an image", _IMAGE, _IMAGE_VIEWS),
    *_written("an activation", _ACTIVATED, _MATRIX_VIEWS),
    *_written("an input", _INPUT, _MATRIX_VIEWS),
    _matrix(
        "assign a number",
        "y[$where] = $value",
        {
            "where": (
                ":, 2",
                ":, 2:5",
                "1, 3",
                "..., ::3",
                "2",
                ":, -1",
                ":, [0, 3]",
                "[1, 2]",
                "[0, 1], [2, 3]",
            ),
            "value": ("1.5", "-1.0"),
        },
    ),
    _matrix(
        "assign a tensor",
        "y[$where] = $value",
        {
            "where, value": (
                (":, :4", "x[:, 4:] * 3"),
                (":, 2", "x.sum(1)"),
                ("1:3", "x[2:] - 2"),
                (":, [1, 6]", "x[:, :2] * 3"),
                ("0", "x[0] * -2"),
                ("..., :1", "x.mean(1, keepdim=True) * 5"),
                (":, 4:", "y[:, :4].relu() + 1"),
                ("2:", "y[:2].flip(0) * 2"),
            ),
        },
    ),
    _matrix(
        "assign by a mask",
        "y[$mask] = $value",
        {
            "mask": ("x > 0", "x < 0", "x > 0.1"),
            "value": ("-1.5", "2.0"),
        },
        inputs=_SIGNS,
    ),
    _matrix(
        "index_fill_",
        "y.index_fill_($axis, self.index, $value)",
        {
            "axis": ("1",),
            "value": ("-1.5", "2.0"),
        },
        _INDEX,
    ),
    _matrix(
        "index_copy_", "y.index_copy_(1, self.index, x[:, :3] * $factor)", {"factor": ("3", "-2")}, _INDEX
    ),
    _matrix("index_add_", "y.index_add_(1, self.index, x[:, :3] * $factor)", {"factor": ("3", "-2")}, _INDEX),
    _matrix(
        "scatter_",
        "y.scatter_(1, self.index.expand(4, 3), $value)",
        {
            "value": ("1.5", "x[:, :3] * 3"),
        },
        _INDEX,
    ),
    _matrix(
        "index_put_",
        "y.index_put_((self.index.clamp(max=3), self.index), $value)",
        {
            "value": ("torch.tensor(4.0)", "x[:3, 0] * 6"),
        },
        _INDEX,
    ),
    _matrix(
        "masked_fill_ by an input",
        "y.masked_fill_(x $sign 0, $value)",
        {
            "sign": (">", "<"),
            "value": ("1.5", "-2.0"),
        },
        inputs=_SIGNS,
    ),
    _matrix(
        "activations in place",
        "F.$call",
        {
            "call": (
                "relu_(y)",
                "leaky_relu_(y, -0.5)",
                "hardtanh_(y, 0.2, 0.4)",
                "elu_(y, 3.0)",
                "relu(y[:, :6], inplace=True)",
                "silu(y, inplace=True)",
                "hardswish(y, inplace=True)",
                "relu6(y[1:], inplace=True)",
                "dropout(y, 0.0, False, inplace=True).mul_(-1)",
            ),
        },
    ),
    _matrix(
        "two writes that overlap", "y[:, :5].mul_(2.0)\ny[:, 3:].add_($value)", {"value": ("1.0", "-1.5")}
    ),
    _matrix(
        "rows swapped",
        "t = y[$a].clone()\ny[$a] = y[$b]\ny[$b] = t",
        {
            "a, b": (("0", "3"), (":, :4", ":, 4:"), (":2", "2:")),
        },
    ),
    _matrix(
        "a write in a loop",
        "for i in range(1, $end):\n    y[:, i] = y[:, i - 1] * -0.9 + y[:, i]",
        {
            "end": ("4", "8"),
        },
    ),
    _matrix(
        "a write seen through an older view",
        "v = y$view\ny.mul_(-2.0).add_(0.5)\ny = v + x$view",
        {
            "view": ("[:, :4]", "[1:]", ".t()[2:6]", ".view(8, 4)"),
        },
    ),
    _matrix(
        "a write seen through another view",
        "a, b = y$one, y$two\na.add_(2.0)\ny = torch.cat([a, b], 1)",
        {
            "one, two": (("[:, :6]", "[:, 2:]"), ("[1:]", "[1:, 3:]"), (".view(4, 8)[:, 2:]", "[:, :5]")),
        },
    ),
    _matrix(
        "a copy is not written",
        "z = y.clone()\n$write\ny = z - 2 * y",
        {
            "write": ("y[:, :4].mul_(-1.0)", "z[:, :4] = 1.5", "y.fill_(0.75)", "z.t()[:5].add_(1.0)"),
        },
    ),
    Idiom(
        "writes",
        "YOLO head",
        "y = self.c(x).permute(0, 2, 3, 1)\ny[..., $xy] = y[..., $xy].sigmoid() * 2 - 0.5\n"
        "$wh\ny[..., 4:] = y[..., 4:].sigmoid()\nreturn $end",
        (uniform(1, 3, 4, 4),),
        "self.c = nn.Conv2d(3, 6, 1)",
        {
            "xy": ("0:2", ":2"),
            "wh": ("pass", "y[..., 2:4] = (y[..., 2:4].sigmoid() * 2) ** 2"),
            "end": ("y", "y.reshape(1, -1, 6)"),
        },
        lost="y = self.c(x).permute(0, 2, 3, 1)\nreturn $end",
    ),
    Idiom(
        "writes",
        "YOLO head with a grid",
        "y = self.c(x).view(1, 2, 6, 4, 4).permute(0, 1, 3, 4, 2).contiguous()\n"
        "y[..., :2] = (y[..., :2].sigmoid() * 2 - 0.5 + self.grid) * 0.25\n"
        "y[..., 2:4] = (y[..., 2:4].sigmoid() * 2) ** 2 * self.anchors\nreturn y.view(1, -1, 6)",
        (uniform(1, 3, 4, 4),),
        "self.c = nn.Conv2d(3, 12, 1)\n"
        "rows, columns = torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing='ij')\n"
        "self.register_buffer('grid', torch.stack((columns, rows), -1))\n"
        "self.register_buffer('anchors', torch.tensor([[0.4, 0.6], [0.9, 0.5]]).view(2, 1, 1, 2))",
        lost="return self.c(x).view(1, 2, 6, 4, 4).permute(0, 1, 3, 4, 2).reshape(1, -1, 6)",
    ),
    Idiom(
        "writes",
        "temporal shift in place",
        "y = x.clone()\ny[:, :-1, :2] = x[:, 1:, :2]\ny[:, 1:, 2:4] = x[:, :-1, 2:4]\n$end",
        (uniform(1, 4, 8),),
        "self.f = nn.Linear(8, 8)",
        {"end": ("return y", "return self.f(y)")},
        lost="y = x\n$end",
    ),
    Idiom(
        "writes",
        "a new tensor, filled",
        "y = torch.$new\ny[:, $where] = self.f(x)\nreturn y",
        _ROWS,
        _LINEAR,
        {"new": ("zeros(4, 12)", "ones(4, 12) * 0.5", "full((4, 12), -0.5)"), "where": ("2:10", "4:", ":8")},
        lost="return torch.$new + 0 * x.sum()",
    ),
    Idiom(
        "writes",
        "an input masked in place",
        "x.masked_fill_(b, $value)\nreturn $end",
        (uniform(4, 8), truth(4, 8)),
        _LINEAR,
        {"value": ("0.0", "-1.0", "2.0"), "end": ("x", "self.f(x)", "x * 2")},
        lost="return $end",
    ),
)
