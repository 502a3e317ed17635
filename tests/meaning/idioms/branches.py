"""Choices: torch.where and its kin, by values, by inputs and by what is constant."""

from __future__ import annotations

from tests.meaning.idiom import Idiom, truth, uniform

_LINEAR = "self.f, self.g = nn.Linear(8, 8), nn.Linear(8, 8)"
# No value is near 0: on which side it lies does not depend on rounding.
_APART = ("(torch.rand(4, 8) * 0.75 + 0.25) * (torch.rand(4, 8) - 0.5).sign()",)


def _branch(
    name: str,
    body: str,
    inputs: tuple[str, ...] = _APART,
    init: str = _LINEAR,
    lost: str = "",
    **slots: tuple[str, ...],
) -> Idiom:
    return Idiom("branches", name, body, inputs, init, slots, lost=lost)


IDIOMS = (
    _branch(
        "where, by the sign",
        "return torch.where(x > 0, $yes, $no)",
        lost="return $yes",
        yes=("self.f(x)", "x", "2 * x", "x.sqrt()"),
        no=("self.g(x)", "x * -0.5", "torch.zeros_like(x)"),
    ),
    _branch(
        "where, a number",
        "return torch.where($test, $value)",
        test=("x > 0", "x < 0", "x.abs() > 0.6"),
        value=("x, 0.0", "1.0, x", "x, -1.0", "0.5, -x"),
    ),
    _branch(
        "where, by an input",
        "return torch.where(b, self.f(x), $no)",
        (uniform(4, 8), truth(4, 8)),
        no=("self.g(x)", "-x", "x * 0"),
        lost="return self.f(x)",
    ),
    _branch(
        "where, by a row",
        "return torch.where(b, self.f(x), self.g(x))",
        (uniform(4, 8), truth(4, 1)),
        lost="return self.f(x)",
    ),
    _branch(
        "where in where",
        "return torch.where(x > 0, torch.where(b > 0, self.f(x), x), $no)",
        (*_APART, *_APART),
        no=("-x", "self.g(x)", "b"),
        lost="return self.f(x)",
    ),
    _branch(
        "where, a constant mask",
        "return torch.where(self.m, self.f(x), $no)",
        init=f"{_LINEAR}\nself.register_buffer('m', torch.arange(8) % 2 == 0)",
        no=("-x", "self.g(x)", "torch.tensor(0.5)"),
        lost="return self.f(x)",
    ),
    _branch(
        "a mask times values",
        "return $end",
        end=(
            "x * (x > 0)",
            "self.f(x) * (x > 0)",
            "(x > 0).float() * 2 - 1",
            "x * (x > 0) + self.g(x) * (x <= 0)",
        ),
    ),
    _branch(
        "clamped",
        "return self.f(x).$end",
        end=("clamp(-0.2, 0.3)", "clamp(min=0.1)", "clamp_max(0.2)", "clamp(0, 6)", "clip(-0.1, 0.5)"),
    ),
    _branch(
        "the larger and the smaller",
        "return torch.$op(self.f(x), $other)",
        op=("maximum", "minimum", "fmax"),
        other=("self.g(x)", "x", "torch.tensor(0.1)"),
    ),
    _branch(
        "signs",
        "return $end",
        end=(
            "x.sign()",
            "x.abs() * x",
            "torch.copysign(self.f(x).abs() + 0.2, x)",
            "x.sign() * x.abs().sqrt()",
        ),
    ),
    _branch(
        "by the shape", "if x.shape[0] $op 4:\n    return self.f(x)\nreturn self.g(x)", op=("==", ">", "!=")
    ),
    _branch(
        "by an attribute",
        "return self.f(x) if self.use else self.g(x)",
        init=f"{_LINEAR}\nself.use = $use",
        use=("True", "False"),
    ),
    _branch("by the values, in Python", "if x.sum() > 0:\n    return self.f(x)\nreturn self.g(x)"),
    _branch("cond", "return torch.cond(x.sum() > 0, lambda a: a * 2, lambda a: a * -0.5, (x,))"),
    _branch(
        "a loop of layers",
        "for i in range($count):\n    x = torch.relu(self.f(x)) - 0.5 * x\nreturn x",
        count=("2", "3"),
    ),
    _branch(
        "two thresholds",
        "return torch.where((x > -0.1) $op (b > 0.1), x, b)",
        (*_APART, *_APART),
        op=("&", "|"),
    ),
    _branch(
        "masked fill",
        "return $end",
        end=(
            "self.f(x).masked_fill(x > 0, 0.7)",
            "x.masked_fill(x < 0, -1.0)",
            "self.f(x).masked_fill(self.f(x).abs() > 9, 0.0)",
        ),
    ),
    _branch(
        "a piecewise line",
        "return torch.where(x < 0, x * 0.1, torch.where(x < 0.5, x, 0.5 + (x - 0.5) * 0.25))",
        (uniform(4, 8),),
    ),
)
