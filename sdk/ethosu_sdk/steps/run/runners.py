"""The table of runners, the options that each refuses, and the choice of a runner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.errors import UsageError
from ethosu_sdk.steps.run import firmware, host, prebuilt, second_opinion
from ethosu_sdk.steps.run.execution import Execution
from ethosu_sdk.steps.run.job import RunJob
from ethosu_sdk.steps.run.options import BOTH, EXECUTORCH, FVP, HOST, OWN, RUNTIMES, SIMULATORS, RunOptions
from ethosu_sdk.steps.shared.board import AUTO, Choice
from ethosu_sdk.targets import suggestion

_DEFAULTS = RunOptions()
_QEMU = "qemu"
_OUT = "leave it out"


@dataclass(frozen=True)
class Refusal:
    """A member of RunOptions that a runner does not have, and the error when it is given."""

    option: str
    message: str
    hint: str

    def concerns(self, options: RunOptions) -> bool:
        """Whether `options` have another value than the default."""
        return bool(getattr(options, self.option) != getattr(_DEFAULTS, self.option))


@dataclass(frozen=True)
class Runner:
    """A way to run a program, for the values of --runtime and --simulator that select it.

    `choose` names the board and the simulator for an NPU (None: no NPU), `execute` runs a job there.
    """

    runtimes: Sequence[str]
    simulators: Sequence[str]
    choose: Callable[[str | None, RunOptions], Choice]
    execute: Callable[[RunJob, Reporter], Execution]
    refusals: Sequence[Refusal]

    def refusal(self, options: RunOptions) -> Refusal | None:
        """The first of the `refusals` that concerns `options`."""
        return next((row for row in self.refusals if row.concerns(options)), None)


def _no_simulated_time(reason: str) -> tuple[Refusal, ...]:
    return (
        Refusal("fast", f"--fast is for the FVP: {reason}", _OUT),
        Refusal("simulated_limit_s", f"--simulated-limit is for the FVP: {reason}", _OUT),
    )


_ON_QEMU = _no_simulated_time("QEMU does not simulate time")
_ON_FVP = (
    Refusal(
        "memory_timing",
        "the FVP has timing adapters of its own, which a firmware sets",
        "leave --memory-timing out",
    ),
)
_ON_HOST = (
    Refusal("board", "the host simulator has no board", "leave --board out"),
    Refusal("resident", "the host simulator has no firmware", "leave --resident out"),
    Refusal("data_memory", "the host simulator has no board's memory", "leave --data-memory out"),
    Refusal(
        "runtime",
        "--runtime chooses what runs on a board, but the host simulator has no board",
        "leave --runtime out: the host simulator runs ExecuTorch's own runtime",
    ),
    Refusal("split", "--split runs on the SDK's own firmware", "leave --simulator out"),
    *_no_simulated_time("the host simulator does not simulate time"),
)
_ON_PREBUILT = (
    Refusal("data_memory", "--data-memory is for the SDK's own firmware", "leave --data-memory out"),
    Refusal(
        "resident",
        "--resident is for the SDK's own firmware: Arm's runner is not built for a program",
        "leave --resident out",
    ),
    Refusal("split", "--split runs on the SDK's own firmware", "leave --runtime out"),
    Refusal("memory_timing", "--memory-timing is for the SDK's own firmware", "leave --runtime out"),
    *_no_simulated_time("Arm's runner runs on QEMU, which does not simulate time"),
)

# The table. Where several rows fit the options, the simulator that `choose` names decides.
RUNNERS = (
    Runner((OWN,), (AUTO, _QEMU), firmware.choose, firmware.execute, _ON_QEMU),
    Runner((OWN,), (AUTO, FVP), firmware.choose, firmware.execute, _ON_FVP),
    Runner((EXECUTORCH,), (AUTO, _QEMU, FVP), prebuilt.choose, prebuilt.execute, _ON_PREBUILT),
    Runner((BOTH,), (AUTO, _QEMU, FVP), second_opinion.choose, second_opinion.execute, _ON_PREBUILT),
    Runner(RUNTIMES, (HOST,), host.choose, host.execute, _ON_HOST),
)


def check(options: RunOptions) -> None:
    """UsageError for a --simulator or --runtime that does not exist, and for an option that no runner of both has."""
    for name, value, known in (
        ("simulator", options.simulator, SIMULATORS),
        ("runtime", options.runtime, RUNTIMES),
    ):
        if value not in known:
            raise UsageError(f"unknown {name} '{value}'", suggestion(value, known))
    _refuse(_fitting(options), options)


def refuse_data_files(options: RunOptions) -> None:
    """UsageError for a runner that takes a program without data files alone."""
    if options.resident:
        raise UsageError("--resident takes no program with data files (.ptd)", "leave --resident out")
    if options.runtime != OWN:
        raise UsageError(
            f"--runtime {options.runtime} takes no program with data files (.ptd): Arm's runner has no room for them",
            "leave --runtime out, or use --simulator host",
        )


def choose(options: RunOptions, npu: str | None) -> tuple[Runner, Choice]:
    """The runner of a program that uses `npu` (None: no NPU), the board and the simulator.

    `options` have passed :func:`check`. UsageError for what the runner does not have.
    """
    fitting = _fitting(options)
    choice = fitting[0].choose(npu, options)
    runner = next(row for row in fitting if choice.simulator in row.simulators)
    _refuse([runner], options)
    return runner, choice


def _fitting(options: RunOptions) -> list[Runner]:
    return [row for row in RUNNERS if options.runtime in row.runtimes and options.simulator in row.simulators]


def _refuse(rows: Sequence[Runner], options: RunOptions) -> None:
    """UsageError when every one of the `rows` refuses an option."""
    refusals = [row.refusal(options) for row in rows]
    if refusals[0] is not None and all(refusals):
        raise UsageError(refusals[0].message, refusals[0].hint)
