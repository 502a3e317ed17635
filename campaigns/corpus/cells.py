"""The cells of the corpus: an architecture on a target, and what came out."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

TARGETS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")  # one of each family
# with options of `run`: the firmware with every kernel, so that none is built for each program
SIMULATORS = {"qemu": ("--resident",), "host": ()}

RAN, DIFFERS, REFUSED, CAUGHT, FAILED = "ran", "differs", "refused", "caught", "failed"


@dataclass(frozen=True)
class Cell:
    """An architecture, by name, on a target."""

    name: str
    target: str

    def __str__(self) -> str:
        return f"{self.name}-{self.target}"


@dataclass(frozen=True)
class Outcome:
    """What a cell shows.

    `verdict` is RAN (compiled, checked, run on both simulators, outputs equal), DIFFERS (`differing` of `elements`
    are not within the bounds of the kernels involved), REFUSED (`step` ended with `exit_code` and `message`, one of
    the SDK's own errors), CAUGHT (the same, where the SDK's own comparison found a wrong result) or FAILED (a crash,
    a hang, a traceback). `allowance` names the operators whose bounds were
    needed where the outputs are not equal bit for bit, and `distance` is how far apart they are. `cpu` are the
    operators on the CPU but for conversions, with their calls.
    """

    verdict: str
    step: str = ""
    exit_code: int = 0
    message: str = ""
    hint: str = ""
    delegates: int = 0
    cpu: tuple[tuple[str, int], ...] = ()
    elements: int = 0
    differing: int = 0
    distance: float = 0.0
    allowance: tuple[str, ...] = ()
    quantisation_db: float | None = None  # float → quantised, the output that is farthest apart
    execution_db: float | None = None  # quantised → executed likewise; None when all are equal
    seconds: float = 0.0
    commit: str = ""  # of the SDK that filled the cell

    def to_json(self) -> dict[str, Any]:
        """The outcome as JSON values; :meth:`from_json` is the way back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Outcome:
        """The outcome that :meth:`to_json` wrote."""
        cpu = tuple((name, calls) for name, calls in data["cpu"])
        return cls(**{**data, "cpu": cpu, "allowance": tuple(data["allowance"])})
