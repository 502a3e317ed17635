"""Outputs: dictionaries, named tuples, nests, several dtypes, places instead of values."""

from __future__ import annotations

from tests.meaning.idiom import Idiom, uniform

_ROWS = (uniform(4, 8),)
_SCORES = (
    "(torch.rand(4, 8) * 0.1 - 0.5).scatter(1, torch.randint(0, 8, (4, 1)), 0.9)",
)  # with a clear winner
_APART = ("torch.stack([torch.randperm(8) for _ in range(4)]) / 4 - 0.9",)  # no two values of a row are near
_TWO = "self.f, self.g = nn.Linear(8, 8), nn.Linear(8, 4)"
_MADE = "y, z = self.f(x), torch.relu(self.g(x))\n"


def _output(
    name: str,
    body: str,
    inputs: tuple[str, ...] = _ROWS,
    init: str = _TWO,
    lost: str = "",
    header: str = "",
    **slots: tuple[str, ...],
) -> Idiom:
    return Idiom("outputs", name, body, inputs, init, slots, lost=lost, header=header)


IDIOMS = (
    _output(
        "a dictionary",
        f"{_MADE}return {{$end}}",
        lost=f"{_MADE}y = y * 0\nreturn {{$end}}",
        end=(
            "'y': y, 'z': z",
            "'z': z, 'y': y",
            "'b': y, 'a': z, 'c': y + 1",
            "'y': y",
            "'boxes': y, 'aux': {'z': z, 'sum': y.sum(1)}",
        ),
    ),
    _output(
        "a named tuple",
        f"{_MADE}return Found($end)",
        lost=f"{_MADE}y = y * 0\nreturn Found($end)",
        header="import collections\n\nFound = collections.namedtuple('Found', 'boxes scores')",
        end=("y, z", "z, y", "scores=y, boxes=z", "boxes=y, scores=z"),
    ),
    _output(
        "a typed named tuple",
        f"{_MADE}return Found($end)",
        lost=f"{_MADE}y = y * 0\nreturn Found($end)",
        header="import typing\n\n\nclass Found(typing.NamedTuple):\n    boxes: torch.Tensor\n"
        "    scores: torch.Tensor",
        end=("y, z", "scores=z, boxes=y"),
    ),
    _output(
        "an ordered dictionary",
        f"{_MADE}return collections.OrderedDict([('z', z), ('y', y)])",
        header="import collections",
        lost=f"{_MADE}return collections.OrderedDict([('z', z), ('y', z)])",
    ),
    _output(
        "lists and nests",
        f"{_MADE}return $end",
        lost=f"{_MADE}y, z = y * 0, z * 0\nreturn $end",
        end=("[y, z]", "(y, (z, y * 2))", "[y, {'z': z}]", "(z,)", "((y, z), [z * 2])", "[[y], [z]]"),
    ),
    _output(
        "something that is no tensor",
        f"{_MADE}return $end",
        end=("y, None", "y, 3", "{'y': y, 'n': 2.5}", "None, z", "y, True"),
    ),
    _output("one output in a tuple", f"{_MADE}return (y,)", lost=f"{_MADE}return (-y,)"),
    _output(
        "many outputs",
        "y = self.f(x)\nreturn $end",
        lost="y = self.f(x) * 0\nreturn $end",
        end=(
            "tuple(y * i for i in range(1, 7))",
            "tuple(y[i] for i in range(4))",
            "y, -y, y.relu(), y.abs(), y.tanh()",
        ),
    ),
    _output(
        "argmax",
        "y = self.f(x)\nreturn $end",
        _SCORES,
        "self.f = nn.Identity()",
        "y = -self.f(x)\nreturn $end",
        end=(
            "y.argmax(1)",
            "y.argmax(-1, keepdim=True)",
            "y, y.argmax(1)",
            "y.argmax(1), y.amax(1)",
            "torch.argmax(y * 2, 1)",
            "y.softmax(1).argmax(1)",
            "(-y).argmin(1)",
            "y.argmax(1).float()",
            "y.argmax(1).to(torch.int32)",
            "y.argmax()",
        ),
    ),
    _output(
        "argmax of an image",
        "return x.argmax(1)",
        ("(torch.rand(1, 4, 6, 6) * 0.1 - 0.5).scatter(1, torch.randint(0, 4, (1, 1, 6, 6)), 0.9)",),
        "pass",
        "return x.argmin(1)",
    ),
    _output(
        "max with places",
        "$find\nreturn $end",
        _SCORES,
        "pass",
        "$find\nvalue, index = value * 0, index * 0\nreturn $end",
        find=(
            "value, index = x.max(1)",
            "value, index = torch.max(x, 1)",
            "value, index = (-x).min(1)",
            "value, index = x.max(1, keepdim=True)",
        ),
        end=("value, index", "value", "index", "{'index': index, 'value': value}"),
    ),
    _output(
        "max, a named tuple",
        "return x.$call",
        _SCORES,
        "pass",
        call=("max(1)", "min(1)", "max(0)", "median(1)"),
    ),
    _output(
        "topk",
        "$find\nreturn $end",
        _APART,
        "pass",
        find=(
            "value, index = x.topk(3)",
            "value, index = torch.topk(x, 2, dim=1)",
            "value, index = x.topk(3, largest=False)",
        ),
        end=("value, index", "value", "index"),
    ),
    _output(
        "sort",
        "$find\nreturn $end",
        _APART,
        "pass",
        find=("value, index = x.sort(1)", "value, index = x.sort(descending=True)"),
        end=("value, index", "value", "index"),
    ),
    _output("argsort", "return x.argsort($how)", _APART, "pass", how=("1", "1, descending=True", "0")),
    _output(
        "values and truth",
        "y = self.f(x)\nreturn $end",
        (f"({uniform(4, 8)}).sign() * 0.75",),
        "self.f = nn.Identity()",
        "y = -self.f(x)\nreturn $end",
        end=(
            "y > 0",
            "y, y > 0",
            "y > 0, y * 2",
            "y <= 0",
            "(y > 0).float()",
            "(y > 0).any(1)",
            "(y > 0).all(1), y",
            "y >= 0, y < 0",
            "(y > 0).sum(1)",
        ),
    ),
    _output(
        "numbers of several kinds",
        "y = self.f(x)\nreturn $end",
        ("torch.randint(-3, 4, (4, 8)) * 0.3",),
        "self.f = nn.Identity()",
        end=(
            "y, (y * 3.4).to(torch.int32)",
            "(y * 3.4).long(), y",
            "y, (y * 3.4).int(), y > 0.1",
            "(y * 3.4).round().int()",
            "y.int(), y * 2",
        ),
    ),
    _output(
        "nonzero and unique",
        "return x.$call",
        ("torch.randint(0, 2, (4, 8)).float()",),
        "pass",
        call=("nonzero()", "unique()"),
    ),
    _output(
        "one-hot of the winner",
        "return F.one_hot(x.argmax(1), 8)$cast",
        _SCORES,
        "pass",
        "return F.one_hot(x.argmin(1), 8)$cast",
        cast=(".float()", "", " * 2.0"),
    ),
    _output(
        "looked up by the winner",
        "return self.e(x.argmax(1))",
        _SCORES,
        "self.e = nn.Embedding(8, 4)",
        "return self.e(x.argmin(1))",
    ),
)
