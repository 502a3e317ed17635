"""The programs that hold the cases: for each what it lowers, and the operators that it keeps undecomposed."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.kernels.cases.cortex_m import cortex_m_cases
from tests.kernels.cases.elementwise import elementwise_cases
from tests.kernels.cases.layers import layer_cases
from tests.kernels.cases.movement import movement_cases
from tests.kernels.cases.preserved import KEPT, OPERATORS, kept_cases, preserved_cases
from tests.kernels.cases.reductions import reduction_cases
from tests.kernels.interpreter.cases import exact_cases, number_cases
from tests.kernels.interpreter.lowered import Lowered, lowered
from tests.kernels.interpreter.models import Case


@dataclass(frozen=True)
class Group:
    """The cases of one program."""

    cases: Mapping[str, Case]
    dim_order: bool = True
    preserve: Sequence[str] = ()
    eager: bool = False  # the oracle is PyTorch: the host runtime lacks the operators


def groups() -> dict[str, Group]:
    """All programs of the kernels' tests but those of a single case."""
    decomposed = {
        "elementwise": Group(elementwise_cases()),
        "reductions": Group(reduction_cases()),
        "movement": Group(movement_cases()),
        "layers": Group(layer_cases()),
    }
    every = {name: case for group in decomposed.values() for name, case in group.cases.items()}
    return {
        **decomposed,
        "kept": Group(kept_cases(every), preserve=sorted(set(KEPT.values()))),
        "preserved": Group(preserved_cases(), dim_order=False, preserve=OPERATORS),
        "cortex_m": Group(cortex_m_cases(), eager=True),
    }


def earlier_groups() -> dict[str, Group]:
    """The programs of test_kernels.py."""
    return {"exact": Group(exact_cases()), "numbers": Group(number_cases(), dim_order=False)}


@functools.cache
def lowered_group(name: str) -> Lowered:
    """The program of a group, lowered once in a process."""
    group = {**groups(), **earlier_groups()}[name]
    return lowered(group.cases, dim_order=group.dim_order, preserve=group.preserve, eager=group.eager)
