"""A row of the tables in `idioms/`: a way to write a model, with slots that are filled in turn."""

from __future__ import annotations

import itertools
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

# A mix as users have it. Each word is the value of `--quantize`.
USUAL = ("int8", "int8", "int8", "int16", "none")
QUANTISED = ("int8", "int8", "int8", "int16")
WHOLE = ("none", "int8")  # models of whole numbers: there is nothing to quantise

FORGOTTEN = "forgotten"  # as `lost`: the model as it is, made anew for each sample


@dataclass(frozen=True, eq=False)
class Idiom:
    """One way to write a model.

    `forward` and `init` are bodies of the methods, `inputs` are expressions that draw one input each; the arguments
    of `forward` are x, b, c and d. A slot is a name in `slots` with its values, written ``$name`` in the texts, or
    several names separated by commas with a tuple of values for each choice. `lost` is the body of a `forward` that
    has lost the idiom: the judge must tell the two apart. `examples` replaces the line that makes the example inputs.
    """

    family: str
    name: str
    forward: str
    inputs: tuple[str, ...] = ("torch.rand(1, 8) * 2 - 1",)
    init: str = ""
    slots: Mapping[str, tuple[str | tuple[str, ...], ...]] = field(default_factory=dict)
    lost: str = ""
    quantize: tuple[str, ...] = USUAL
    header: str = ""
    examples: str = "example_inputs = draw()"
    weight: int = 1  # how often it is taken while others are taken once

    def variants(self) -> Iterator[dict[str, str]]:
        """Every way to fill the slots."""
        names = [[name.strip() for name in key.split(",")] for key in self.slots]
        for choice in itertools.product(*self.slots.values()):
            values = [(value,) if isinstance(value, str) else value for value in choice]
            yield {
                name: text
                for group, texts in zip(names, values, strict=True)
                for name, text in zip(group, texts, strict=True)
            }


def filled(text: str, slots: Mapping[str, str]) -> str:
    """`text` with its slots filled; a slot's value may hold slots."""
    while "$" in text:
        text = string.Template(text).substitute(slots)
    return text


def uniform(*shape: int) -> str:
    """The expression for values between -1 and 1: calibration sees their whole range."""
    return f"torch.rand{tuple(shape)} * 2 - 1" if shape else "torch.rand(()) * 2 - 1"


def whole(*shape: int, low: int = 0, high: int = 8, dtype: str = "int64") -> str:
    """The expression for whole numbers."""
    kind = "" if dtype == "int64" else f", dtype=torch.{dtype}"
    return f"torch.randint({low}, {high}, {tuple(shape)}{kind})"


def truth(*shape: int) -> str:
    """The expression for truth values."""
    return f"torch.rand{tuple(shape)} > 0.5"
