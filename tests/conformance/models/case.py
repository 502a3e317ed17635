"""What a model of the corpus is, and short ways to write one.

Nothing here imports torch: the child process that lowers the models (lower.py) hands it in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Shape = tuple[int, ...]
Make = Callable[[Any], Any]

BOTH = ("u55", "u85")
U85 = ("u85",)
BRANCHES = "int8 branches"
# Beyond it TOSA leaves it open what a sum or product of two int32 values gives.
INT32_RANGE = (-(1 << 14), (1 << 14) - 1)


@dataclass(frozen=True)
class Integers:
    """An integer input of a model, low to high: indices or data."""

    shape: Shape
    low: int = INT32_RANGE[0]
    high: int = INT32_RANGE[1]
    dtype: str = "int32"


@dataclass(frozen=True)
class Case:
    """A model.

    `make(torch)` builds it. `inputs` are the shapes of its float inputs, or Integers. `quantize` is as in
    ethosu_sdk.compile.quantizing: "none" for integer models, and BRANCHES for models with torch.cond or loops.
    `profiles` are those whose NPUs have its operators. `int32_range` limits the int32 inputs of its delegates.
    `flags` are added to Vela's.
    """

    make: Make
    inputs: tuple[Shape | Integers, ...]
    quantize: str = "int8"
    profiles: tuple[str, ...] = BOTH
    int32_range: tuple[int, int] = INT32_RANGE
    flags: tuple[str, ...] = ()


def function(forward: Callable[..., Any]) -> Make:
    """A model without parameters; `forward(torch, *inputs)` computes it."""

    def make(torch: Any) -> Any:
        class Function(torch.nn.Module):
            def forward(self, *inputs: Any) -> Any:
                return forward(torch, *inputs)

        return Function()

    return make


def layers(*parts: Callable[[Any], Any]) -> Make:
    """A chain of layers, each made by `part(torch.nn)`."""
    return lambda torch: torch.nn.Sequential(*(part(torch.nn) for part in parts))


def graph(parts: Callable[[Any], dict[str, Any]], forward: Callable[..., Any]) -> Make:
    """A model with layers that are no chain: `parts(torch.nn)` names them; `forward(torch, self, *inputs)`."""

    def make(torch: Any) -> Any:
        class Network(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                for name, part in parts(torch.nn).items():
                    setattr(self, name, part)

            def forward(self, *inputs: Any) -> Any:
                return forward(torch, self, *inputs)

        return Network()

    return make
