"""`run --simulator host`: ExecuTorch's own runtime on this machine, Ethos-U delegates on the NPU model."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ethosu_sdk import cache, provenance, pte, simulators
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.errors import UsageError
from ethosu_sdk.evidence.repeats import Plan, changes
from ethosu_sdk.evidence.verdict import Check
from ethosu_sdk.files import hashing
from ethosu_sdk.npu.timing.system_config import SystemConfig
from ethosu_sdk.records import Record
from ethosu_sdk.results import target_record
from ethosu_sdk.steps.run import inputs as run_inputs, state as run_state
from ethosu_sdk.steps.run.execution import Execution, NpuFacts, instructions, npu_part
from ethosu_sdk.steps.run.inputs import Samples
from ethosu_sdk.steps.run.options import EXECUTORCH, HOST, OWN, RunOptions
from ethosu_sdk.steps.run.repeats import Repeated

_FIDELITY = (
    "functional: ExecuTorch's own runtime and kernels on this machine, NPU arithmetic is exact, NPU cycles modelled; "
    "no board, no firmware"
)
_NO_BOARD = "nothing runs on a board"
_PACKAGE = "executorch"


def execute(
    path: Path,
    program: pte.Pte,
    samples: Samples,
    options: RunOptions,
    reporter: Reporter,
    memories: SystemConfig | None,
) -> Execution:
    """Run `samples` on the host runtime. Raises ToolError without a compiler or the executorch package.

    `memories` are those that modelled cycles are for, by default the target's.
    """
    # Here and not above: NumPy comes with it, and a command's --help must not wait for that.
    from ethosu_sdk.npu import deadline
    from ethosu_sdk.simulators import host
    from ethosu_sdk.simulators.host.npu_model import NpuModel

    _refuse_options_of_boards(options)
    events = simulators.choose_events(program.npu(), options.events)
    with reporter.stage("building the host runner (the first time only)"):
        runner = host.build_runner(cache.directory_or_own(host.CACHE_PART))
    model = NpuModel(memories or _system(program))
    state = run_state.of_repeats(program.plan(), samples, options.repeat, options.keep_state)
    plan = Plan(samples.count, options.repeat, state=state)
    with (
        reporter.stage(f"running {plan.inferences} inference(s) on the host"),
        deadline.until(time.monotonic() + options.timeout_s),
        contextlib.ExitStack() as stack,
    ):

        def start() -> host.HostRuntime:
            stack.close()
            opened = host.open_pte(runner, path, model, method=pte.ENTRY, timeout_s=options.timeout_s)
            return stack.enter_context(opened)

        ran = _run_all(start, model, samples, plan)
    npu, unavailable = _npu(program, model, ran.calls[0], events)
    version = provenance.package_version(_PACKAGE) or "unknown"
    return Execution(
        outputs=run_inputs.stack(tuple(ran.outputs), samples.stacked),
        done=Check("every inference ended", True, f"{plan.inferences} inference(s) ended without an error"),
        board=HOST,
        board_reason=_NO_BOARD,
        runtime={"name": EXECUTORCH, "version": version},
        simulator={
            "name": HOST,
            "version": version,
            "fidelity": _FIDELITY + simulators.cycles_band(program.npu()),
        },
        provenance_inputs=[provenance.file_entry("host-runner", runner)],
        tools=[provenance.tool_entry(_PACKAGE, version)],
        npu=npu,
        memory={"regions": [], "pools": []},
        operators=instructions(program, npu),
        unavailable=[{"path": "/cpu/cycles", "reason": _NO_BOARD}, *unavailable],
        repeated=_repeated(plan, ran, model),
    )


def _refuse_options_of_boards(options: RunOptions) -> None:
    if options.board is not None:
        raise UsageError("the host simulator has no board", "leave --board out")
    if options.resident:
        raise UsageError("the host simulator has no firmware", "leave --resident out")
    if options.runtime != OWN:
        raise UsageError(
            "--runtime chooses what runs on a board, and the host simulator has none",
            "leave --runtime out: it runs ExecuTorch's own runtime",
        )
    if options.fast or options.simulated_limit_s is not None:
        raise UsageError("--fast and --simulated-limit are for the FVP", "leave them out")


@dataclass
class _Ran:
    """What all inferences gave: outputs of the first repeat of each set, digests and NPU calls of every one."""

    outputs: list[tuple[npt.NDArray[Any], ...]]
    digests: list[dict[int, object]]
    calls: list[int]  # up to the end of each inference


def _run_all(start: Callable[[], Any], model: Any, samples: Samples, plan: Plan) -> _Ran:
    """`start` loads the program anew, with the state that it brings."""
    ran, runtime = _Ran([], [], []), start()
    for inference in range(plan.inferences):
        if inference and plan.state == run_state.RESET:
            runtime = start()
        outputs = tuple(runtime.run(samples.inferences[inference // plan.repeats]))
        if plan.first(inference) == inference:
            ran.outputs.append(outputs)
        ran.digests.append({i: (a.shape, hashing.sha256_bytes(a.tobytes())) for i, a in enumerate(outputs)})
        ran.calls.append(len(model.calls))
    return ran


def _repeated(plan: Plan, ran: _Ran, model: Any) -> Repeated:
    """Counters are compared by the call of a delegate within its inference."""
    starts = [0, *ran.calls[:-1]]
    counted = [dict(enumerate(model.calls[start:end])) for start, end in zip(starts, ran.calls, strict=True)]
    return Repeated(plan, changes(plan, ran.digests), changes(plan, counted))


def _system(program: pte.Pte) -> Any:
    from ethosu_sdk.npu.timing import system_config

    target = program.target()
    return target and system_config.known(target.npu, target.system_config, target.memory_mode)


def _npu(
    program: pte.Pte, model: Any, first_calls: int, events: tuple[int, ...]
) -> tuple[Record | None, list[Record]]:
    from ethosu_sdk.npu import NpuConfig
    from ethosu_sdk.simulators.host.npu_model import event_totals

    target = program.target()
    if target is None:
        return None, [target_record.without_npu("/npu")]
    config = NpuConfig.for_target(target.npu, target.macs)
    first = model.calls[:first_calls]
    facts = NpuFacts(
        npu=target.npu,
        identity={"id": config.id_word, "config": config.config_word},
        delegate_calls=len(model.calls),
        cycles=sum(counters.total_cycles for counters in first),
        totals={event: (value, False) for event, value in event_totals(target.npu, events, first).items()},
    )
    return npu_part(facts, events)
