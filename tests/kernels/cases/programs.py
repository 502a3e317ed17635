"""The programs that hold the cases: for each what it lowers, and the operators that it keeps undecomposed."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import kept
from tests.kernels.cases.cortex_m import cortex_m_cases
from tests.kernels.cases.elementwise import elementwise_cases
from tests.kernels.cases.layers import layer_cases
from tests.kernels.cases.movement import movement_cases
from tests.kernels.cases.preserved import KEPT, OPERATORS, kept_cases, preserved_cases
from tests.kernels.cases.reductions import reduction_cases
from tests.kernels.interpreter.cases import exact_families, number_cases
from tests.kernels.interpreter.lowered import Lowered, lowered
from tests.kernels.interpreter.models import LOWERING, Case

_HERE = Path(__file__).parent
_TOGETHER = ("bitwise", "logical", "upsample", "pad", "quantize", "dequantize")


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
        "exact": Group({name: case for cases in exact_families().values() for name, case in cases.items()}),
        "numbers": Group(number_cases(), dim_order=False),
    }


def families() -> dict[str, list[tuple[str, str]]]:
    """Groups and names of the cases of each operator, or of operators that are tested together, by their names."""
    together = {name: family for family, cases in exact_families().items() for name in cases}
    found: dict[str, dict[tuple[str, str], str]] = {}
    for group, rows in groups().items():
        for name in rows.cases:
            operator, _, variant = name.partition("/")
            operator = operator if variant else together[name] if group == "exact" else group
            kind = operator.partition("_")[0]
            family = kind if kind in _TOGETHER else operator.removesuffix("_nhwc")
            found.setdefault(family, {})[group, name] = operator
    return {"+".join(dict.fromkeys(row.values())): list(row) for row in found.values()}


@functools.cache
def lowered_group(name: str) -> Lowered:
    """The program of a group, lowered once and kept."""
    group = groups()[name]
    interpreter = (_HERE.with_name("interpreter") / f"{name}.py" for name in ("cases", "lowered", "models"))
    sources = [*_HERE.glob("*.py"), *interpreter, *LOWERING]
    place = kept.shared("kernels", sources) / name
    return lowered(
        group.cases, dim_order=group.dim_order, preserve=group.preserve, eager=group.eager, place=place
    )
