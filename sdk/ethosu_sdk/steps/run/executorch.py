"""`run --runtime executorch`: the program on Arm's prebuilt runner, with ExecuTorch's own runtime and kernels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ethosu_sdk import provenance, pte, runtimes, simulators
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.errors import UsageError
from ethosu_sdk.evidence import kit_evidence, kit_log
from ethosu_sdk.evidence.kit_evidence import KitEvidence, KitExpected
from ethosu_sdk.evidence.kit_log import Moved
from ethosu_sdk.evidence.repeats import Plan
from ethosu_sdk.evidence.verdict import Check
from ethosu_sdk.records import Record
from ethosu_sdk.results import locations, target_record
from ethosu_sdk.runtimes import Placed, Runner
from ethosu_sdk.simulators import SimulationRequest, Simulator, SimulatorOptions
from ethosu_sdk.steps import build_command
from ethosu_sdk.steps.run import inputs as run_inputs, loaded as run_loaded
from ethosu_sdk.steps.run.execution import Execution, NpuFacts, instructions, npu_part
from ethosu_sdk.steps.run.inputs import Samples
from ethosu_sdk.steps.run.options import EXECUTORCH, RunOptions
from ethosu_sdk.steps.run.repeats import Repeated
from ethosu_sdk.steps.shared import board
from ethosu_sdk.targets import Target

_ROLE = "runner"
_END = b"\x04"  # the runner's last character; it goes on in a loop
_DONE = "1 inference completed without an error, metrics complete, program and outputs read back from memory"


@dataclass(frozen=True)
class Ready:
    """What is to run, and what the runner must say of it."""

    program: pte.Pte
    runner: Runner
    elf: Path
    simulator: Simulator
    placed: Placed
    expected: KitExpected
    target: Target


def execute(
    path: Path, program: pte.Pte, samples: Samples, options: RunOptions, uart_log: Path, reporter: Reporter
) -> Execution:
    """Run `samples`, one set, on Arm's runner; what it prints goes to `uart_log`. Raises as the two steps do."""
    return run(prepare(path, program, samples, options), samples, options, uart_log, reporter)


def run(ready: Ready, samples: Samples, options: RunOptions, uart_log: Path, reporter: Reporter) -> Execution:
    """Run what is `ready`. SimulationError, with the last lines, for a run without complete evidence."""
    version = ready.simulator.version()
    request = SimulationRequest(
        elf=ready.elf,
        images=ready.placed.images,
        target=ready.target,
        timeout_s=options.timeout_s,
        idle_timeout_s=options.idle_timeout_s,
        uart_log=uart_log,
        end_marks=(_END,),
        read_back=ready.placed.read_back,
        compare_loaded=True,
    )
    with reporter.stage(f"running 1 inference on Arm's runner on {ready.simulator.name}"):
        result = ready.simulator.run(request)
    in_memory, written = result.memory
    found = kit_evidence.gather(result.uart, in_memory, written, ready.expected)
    if result.npu_jobs is not None:
        kit_evidence.check_jobs(found, [job.cycles for job in result.npu_jobs])
    loaded = run_loaded.part(ready.runner.sha256, result.loaded)
    return _execution(ready, samples, found, version, options, loaded)


def prepare(path: Path, program: pte.Pte, samples: Samples, options: RunOptions) -> Ready:
    """Everything for a run of the `.pte` at `path`.

    UsageError and BuildError for what the runner cannot do; ToolError without its package or its simulator.
    """
    npu, target = program.npu(), program.target()
    runner = runtimes.runner_for(npu)
    simulator = _simulator(runner, npu, options)
    simulator.version()  # one that is missing is named before anything is built
    if samples.count * options.repeat > 1:
        raise UsageError(
            f"Arm's runner makes one inference in a boot, {samples.count * options.repeat} were asked for",
            "give one set of inputs, and no --repeat",
        )
    plan = program.plan()
    given = [
        run_inputs.physical_bytes(array, tensor)
        for array, tensor in zip(samples.inferences[0], plan.input_tensors(), strict=True)
    ]
    placed = runtimes.place(runner, plan, locations.content(path, program), given)
    elf = runtimes.executable(runner)
    chosen = target or Target(npu or runner.npus[0], runner.default_macs, system_config="", memory_mode="")
    expected = KitExpected(
        sha256=program.sha256,
        program_address=runner.program.address,
        method=pte.ENTRY,
        macs=chosen.macs,
        inputs=tuple(map(len, given)),
        outputs=tuple(row.nbytes for row in plan.output_tensors()),
        read=Moved(len(given), sum(map(len, given)), runner.inputs.address),
        copied=Moved(len(plan.outputs), placed.outputs_bytes, runner.outputs.address),
        operators=tuple(row.full_name for row in plan.operators),
        delegates={
            number: plan.delegates[row.delegate_index].id
            for number, row in enumerate(plan.instructions)
            if isinstance(row, pte.DelegateCall)
        },
        blank=placed.blank,
    )
    return Ready(program, runner, elf, simulator, placed, expected, chosen)


def _simulator(runner: Runner, npu: str | None, options: RunOptions) -> Simulator:
    if options.resident:
        raise UsageError("Arm's runner takes every program as it is", "leave --resident out")
    if options.board not in (None, runner.board):
        raise UsageError(
            f"Arm's runner for {npu or 'programs without an NPU'} is built for {runner.board}, not {options.board}",
            "leave --board out",
        )
    wish = options.simulator
    if not runner.simulators or wish not in (board.AUTO, *runner.simulators):
        having = " and ".join(runner.simulators) or "no simulator of the SDK"
        raise UsageError(
            f"Arm's runner for {npu or 'programs without an NPU'} runs on {runner.board}, which {having} "
            f"{'has' if not runner.simulators else 'can give it'}",
            "leave --runtime out: the SDK's own firmware runs the program",
        )
    name = runner.simulators[0] if wish == board.AUTO else wish
    wanted = SimulatorOptions(fast=options.fast, simulated_limit_s=options.simulated_limit_s)
    return simulators.create(name, npu, wanted, runner.board)


def _execution(
    ready: Ready, samples: Samples, found: KitEvidence, version: str, options: RunOptions, loaded: Record
) -> Execution:
    simulator, log = ready.simulator, found.log
    npu, unavailable = _npu(ready, found, options)
    package = runtimes.package_name()
    return Execution(
        outputs=run_inputs.stack((_outputs(ready, found),), samples.stacked),
        done=Check("the evidence of Arm's runner is complete", True, _DONE),
        board=ready.runner.board,
        board_reason="the board that Arm's runner is built for",
        runtime={
            "name": EXECUTORCH,
            "version": f"evaluation kit {log.facts.get('kit_version', 'unknown')}",
            **loaded,
        },
        simulator={
            "name": simulator.name,
            "version": version,
            "fidelity": simulator.fidelity(ready.program.npu()),
        },
        provenance_inputs=[provenance.file_entry(_ROLE, ready.elf, ready.runner.sha256)],
        tools=[
            provenance.tool_entry(package, provenance.package_version(package) or "unknown"),
            provenance.tool_entry(simulator.name, version),
        ],
        npu=npu,
        memory={
            "regions": [],
            "pools": [build_command.use(name, used, size) for name, (used, size) in log.pools.items()],
        },
        operators=instructions(ready.program, npu),
        unavailable=[
            {"path": "/cpu/cycles", "reason": simulator.figures.no_cpu_cycles},
            *run_loaded.unavailable(loaded),
            *unavailable,
        ],
        repeated=Repeated(Plan(1, 1)),
    )


def _outputs(ready: Ready, found: KitEvidence) -> tuple[npt.NDArray[Any], ...]:
    tensors = ready.program.plan().output_tensors()
    return tuple(
        run_inputs.logical(np.frombuffer(content, tensor.dtype), tensor)
        for content, tensor in zip(found.outputs, tensors, strict=True)
    )


def _npu(ready: Ready, found: KitEvidence, options: RunOptions) -> tuple[Record | None, list[Record]]:
    from ethosu_sdk.npu import NpuConfig

    target = ready.program.target()
    if target is None:
        return None, [target_record.without_npu("/npu")]
    events = simulators.choose_events(target.npu, options.events)
    counted = kit_log.events(found.counters)
    table = simulators.events(target.npu)
    config = NpuConfig.for_target(target.npu, target.macs)
    facts = NpuFacts(
        npu=target.npu,
        identity={"id": config.id_word, "config": config.config_word},
        delegate_calls=len(found.log.delegates),
        cycles=kit_log.cycles(found.counters),
        totals={row: (counted[table[row].name], False) for row in events if table[row].name in counted},
    )
    return npu_part(facts, events, ready.simulator.figures)
