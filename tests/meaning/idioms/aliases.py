"""Aliases: one tensor in several places, among inputs, outputs and weights."""

from __future__ import annotations

from tests.meaning.idiom import Idiom, uniform

_LINEAR = "self.f = nn.Linear(8, 8)"
_TWO = (uniform(1, 8), uniform(1, 8))
_THREE = (*_TWO, uniform(1, 8))
_ROWS = (uniform(4, 8),)


def _alias(
    name: str,
    body: str,
    inputs: tuple[str, ...] = _ROWS,
    init: str = _LINEAR,
    lost: str = "",
    examples: str = "",
    **slots: tuple[str, ...],
) -> Idiom:
    given = {"examples": examples} if examples else {}
    return Idiom("aliases", name, body, inputs, init, slots, lost=lost, **given)


IDIOMS = (
    _alias(
        "one example twice",
        "return $end",
        _TWO,
        "self.f = nn.Linear(8, 8, bias=False)",
        "x = b\nreturn $end",
        "first, _ = draw()\nexample_inputs = (first, first)",
        end=("x - 2 * b", "self.f(x) - b", "torch.cat([x, b], 1)", "x * b + x", "torch.maximum(x, -b)"),
    ),
    _alias(
        "one example thrice",
        "return x $a b $c c",
        _THREE,
        "pass",
        "x = b = c\nreturn x $a b $c c",
        "first, _, _ = draw()\nexample_inputs = (first, first, first)",
        a=("-", "+"),
        c=("*", "- 2 *"),
    ),
    _alias(
        "two examples of three are one",
        "return x - 2 * c + 3 * b",
        _THREE,
        "pass",
        "b = x\nreturn x - 2 * c + 3 * b",
        "first, _, third = draw()\nexample_inputs = (first, first, third)",
    ),
    _alias(
        "examples that share memory",
        "return $end",
        (uniform(4, 8), uniform(4, 4)),
        "pass",
        "b = x[:, :4]\nreturn $end",
        "first, _ = draw()\nexample_inputs = (first, first[:, :4])",
        end=("torch.cat([x, b * -2], 1)", "x[:, 4:] - b"),
    ),
    _alias(
        "one example twice, one is written",
        "$write\nreturn x - b",
        _TWO,
        "pass",
        "b = x\nreturn x - b",
        "first, _ = draw()\nexample_inputs = (first, first)",
        write=("x = x * 2", "x.mul_(2.0)", "b[:, :4] = 0.5"),
    ),
    _alias(
        "an output is an input", "return $end", end=("x, self.f(x)", "self.f(x), x", "x", "self.f(x), x, x")
    ),
    _alias(
        "an output is a view of an input",
        "return self.f(x), x$view",
        view=("[:, :4]", ".t()", ".view(2, 16)", "[1]", ".unsqueeze(0)", ".detach()", ".contiguous()"),
    ),
    _alias(
        "inputs pass through swapped", "return b, x", (uniform(1, 8), uniform(1, 8)), "pass", "return x, b"
    ),
    _alias(
        "one output twice",
        "y = self.f(x)\nreturn $end",
        end=("y, y", "y, y * 2, y", "y, y + 0", "y, y.clone()", "y, y.detach()"),
    ),
    _alias(
        "outputs that overlap",
        "y = self.f(x)\nreturn $end",
        lost="y = self.f(x) * 0\nreturn $end",
        end=(
            "y, y[:, :4]",
            "y[:, :5], y[:, 3:]",
            "y, y.view(2, 16)",
            "y, y.t()",
            "y[0], y[1], y",
            "y, y.unsqueeze(0)",
            "y.view(-1), y.permute(1, 0)",
            "y[1:], y[:-1]",
        ),
    ),
    _alias(
        "parts of one tensor",
        "y = self.f(x)\n$parts",
        lost="y = self.f(x).flip(1)\n$parts",
        parts=(
            "return y.chunk(2, 1)",
            "return y.split(3, 1)",
            "return y.unbind(0)",
            "a, b = y.chunk(2, 1)\nreturn b, a",
            "return tuple(y[:, i : i + 2] for i in range(4))",
            "return torch.tensor_split(y, 3, 1)",
        ),
    ),
    _alias(
        "outputs swapped by name",
        "a = self.f(x)\nb = torch.relu(x)\nreturn b, a",
        lost="return self.f(x), torch.relu(x)",
    ),
    _alias(
        "an output written afterwards",
        "y = self.f(x)\nz = y$view\ny.mul_(2.0).add_(0.5)\nreturn z, y",
        lost="y = self.f(x)\nreturn y$view, y * 2 + 0.5",
        view=("[:, :4]", ".view(2, 16)", ".t()", "[1]", ""),
    ),
    _alias(
        "an output kept before a write",
        "y = self.f(x)\nz = $copy\ny.mul_(2.0).add_(0.5)\nreturn z, y",
        lost="y = self.f(x) * 2 + 0.5\nreturn y, y",
        copy=("y.clone()", "y * 1", "y + 0", "torch.clone(y)", "y.detach().clone()"),
    ),
    _alias(
        "a name bound again",
        "y = self.f(x)\nz = y\ny = y * -2 + 0.5\nreturn z, y",
        lost="y = self.f(x) * -2 + 0.5\nreturn y, y",
    ),
    _alias(
        "nothing in evaluation",
        "return $end",
        init="self.d = nn.Dropout(0.5)\nself.i = nn.Identity()",
        end=("self.d(x)", "self.i(x)", "self.d(self.i(x)), x * 2", "self.d(x) + x"),
    ),
    _alias(
        "a constant output",
        "return $end",
        init=f'{_LINEAR}\nself.register_buffer("k", torch.linspace(-1, 1, 8))',
        end=(
            "self.f(x), self.k",
            "self.k, self.f(x)",
            "self.f(x), self.k * 2",
            "self.f(x), torch.ones(2, 2)",
            "self.f(x), self.f.weight",
        ),
    ),
    _alias(
        "an input that nobody reads",
        "return $end",
        _TWO,
        end=("self.f(x)", "self.f(b)", "b * 2", "x * 2 - 1"),
    ),
    _alias(
        "tied weights",
        "return F.linear(torch.relu(self.f(x)), self.f.weight.t())",
        lost="return self.f(torch.relu(self.f(x)))",
    ),
    _alias(
        "one layer twice",
        "return self.f($first(self.f(x)))",
        lost="return self.f(x)",
        first=("torch.relu", "torch.tanh", ""),
    ),
    _alias(
        "one parameter in two modules",
        "return self.f(x) - self.g(torch.relu(x))",
        init="self.f, self.g = nn.Linear(8, 8), nn.Linear(8, 8)\nself.g.weight = self.f.weight",
        lost="return self.f(x)",
    ),
    _alias(
        "one tensor as both operands",
        "y = self.f(x)\nreturn $end",
        lost="return self.f(x)",
        end=(
            "y * y",
            "y + y",
            "torch.cat([y, y], 1)",
            "y @ y.t()",
            "torch.stack([y, y])",
            "y - y * 2",
            "torch.maximum(y, y) * 3",
        ),
    ),
    _alias(
        "a residual written in place",
        "y = self.f(x)\ny $op x\nreturn y",
        lost="return self.f(x)",
        op=("+=", "-=", "*="),
    ),
    _alias("an input added to in place", "x $op self.f(x)\nreturn x", lost="return x", op=("+=", "-=")),
    _alias(
        "an expanded tensor",
        "y = self.f(x)[:1].expand(4, 8)\nreturn y $op x",
        lost="return self.f(x) $op x",
        op=("+", "-", "*"),
    ),
)
