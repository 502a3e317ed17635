"""Many cases in one program: what the firmware's interpreter and ExecuTorch's host runtime make of it."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.program import pte
from tests import kept
from tests.kernels.interpreter.models import Array, Case, HostRuntime, lower, run_eagerly, stored_inputs
from tests.kernels.interpreter.runner import Interpreter

Pairs = dict[str, list[tuple[Array, Array]]]


def by_case(cases: Mapping[str, Case], found: Sequence[Array], expected: Sequence[Array]) -> Pairs:
    """Each case's outputs, beside those of the oracle."""
    pairs = list(zip(found, expected, strict=True))
    ends = list(itertools.accumulate(case.outputs for case in cases.values()))
    assert ends[-1] == len(pairs)
    return {
        name: pairs[end - case.outputs : end] for (name, case), end in zip(cases.items(), ends, strict=True)
    }


@dataclass(frozen=True)
class Lowered:
    """One program whose method computes all cases, its inputs in memory order, and the oracle's outputs."""

    cases: Mapping[str, Case]
    program: bytes
    inputs: list[Array]
    expected: list[Array]

    @property
    def called(self) -> set[str]:
        """The operators that the program calls."""
        return set(pte.parse(self.program).plan().called_operators())

    def pairs(self, interpreter: Interpreter) -> Pairs:
        """Each case's outputs by the interpreter, beside the oracle's."""
        run = interpreter.run(self.program, "forward", self.inputs)
        assert run.status == "ok", run.reason
        return by_case(self.cases, run.outputs, self.expected)


def lowered(
    cases: Mapping[str, Case],
    *,
    dim_order: bool = True,
    preserve: Sequence[str] = (),
    eager: bool = False,
    place: Path | None = None,
) -> Lowered:
    """The cases as one program; `dim_order` and `preserve` as in `edge_program`, `eager` as in `Group`.

    It is kept in the folder `place`.
    """
    methods = list(cases.values())

    def make() -> tuple[bytes, list[Array]]:
        program = lower({"forward": methods}, dim_order=dim_order, preserve=preserve)
        return program, run_eagerly(methods) if eager else HostRuntime(program).run("forward", methods)

    program, expected = make() if place is None else kept.made_once(place, make)
    return Lowered(cases, program, stored_inputs(methods), expected)
