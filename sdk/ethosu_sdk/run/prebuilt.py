"""`run --runtime executorch`: the program on Arm's prebuilt runner, with ExecuTorch's own runtime and kernels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec import Struct

from ethosu_sdk.base import tools
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import Target
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.firmware_build import program_checks
from ethosu_sdk.program.execution_plan import DelegateCall
from ethosu_sdk.program.output_comparison import Check
from ethosu_sdk.records import provenance, result_files
from ethosu_sdk.records.common import Unavailable, Use
from ethosu_sdk.records.run import Adapted as AdaptedPart, AdaptedOperator, Memory, Npu, Runtime
from ethosu_sdk.run import cpu_time, execution, input_values, kit_log
from ethosu_sdk.run.evidence import raise_job_failure
from ethosu_sdk.run.job import UART_NAME, RunJob
from ethosu_sdk.run.kit_log import KitEvidence, KitExpected, KitMoves
from ethosu_sdk.run.options import EXECUTORCH, RunOptions
from ethosu_sdk.run.repeats import Repeated, RepeatPlan
from ethosu_sdk.simulate import arm_runners, simulators
from ethosu_sdk.simulate.arm_runners import Adapted, Placed, PrebuiltRunner
from ethosu_sdk.simulate.program_board import AUTO, BoardAndSimulator
from ethosu_sdk.simulate.simulation import SimulationRequest, SimulationResult, Simulator
from ethosu_sdk.simulate.simulators import SimulatorOptions

_END = b"\x04"  # the runner's last character; it goes on in a loop
_DONE = "1 inference completed without an error, metrics complete, program and outputs read back from memory"


class PreparedRun(Struct, frozen=True):
    """A job as Arm's runner takes it, and what the runner must report."""

    job: RunJob
    runner: PrebuiltRunner
    elf: Path
    adapted: Adapted
    simulator: Simulator
    version: str
    placed: Placed
    expected: KitExpected
    target: Target
    no_cpu_cycles: str  # why there are none


def choose(npu: str | None, options: RunOptions) -> BoardAndSimulator:
    """The board of Arm's runner for programs that use `npu` (None: no NPU), and the simulator that has it. UsageError
    when there is no such runner, or `options` ask for another board or simulator."""
    runner = arm_runners.runner_for(npu)
    programs = npu or "programs without an NPU"
    if options.board not in (None, runner.board):
        raise UsageError(
            f"Arm's runner for {programs} is built for {runner.board}, not {options.board}",
            "leave --board out",
        )
    if options.simulator not in (AUTO, *runner.simulators):
        raise UsageError(
            f"Arm's runner for {programs} runs on {' or '.join(runner.simulators)}, not on {options.simulator}",
            "leave --runtime out: the SDK's own firmware runs the program",
        )
    simulator = runner.simulators[0] if options.simulator == AUTO else options.simulator
    return BoardAndSimulator(runner.board, simulator, "the board that Arm's runner is built for")


def execute(job: RunJob, reporter: Reporter) -> execution.Execution:
    """Run `job`, which has one set of inputs, on Arm's runner."""
    return run(prepare(job), job.folder / UART_NAME, reporter)


def prepare(job: RunJob) -> PreparedRun:
    """Everything for a run of `job`. UsageError, BuildError or ToolError for what cannot be done."""
    plan, inferences = job.plan, job.samples.count * job.options.repeat
    runner = arm_runners.runner_for(job.npu)
    simulator_options = SimulatorOptions(
        memories=job.memories, streams=program_checks.reach_of_streams([plan])
    )
    simulator = simulators.create_simulator(
        job.choice.simulator, job.npu, simulator_options, job.choice.board
    )
    version = simulator.version()  # a missing simulator is reported before anything is built
    if inferences > 1:
        raise UsageError(
            f"Arm's runner makes one inference per boot, but {inferences} were requested",
            "give one set of inputs, and leave --repeat out",
        )
    raw_inputs = [
        input_values.physical_bytes(array, tensor)
        for array, tensor in zip(job.samples.inferences[0], plan.input_tensors(), strict=True)
    ]
    content = result_files.pte_content(job.path, job.program)
    adapted = arm_runners.adapted_program(job.program, plan)
    if adapted.operators:
        plan, content = adapted.program.plan(plan.name), bytes(adapted.program.data)
    placed = arm_runners.placed_inference(runner, plan, content, raw_inputs)
    elf = arm_runners.runner_executable(runner)
    target = job.target or Target(runner.npus[0], runner.default_macs, system_config="", memory_mode="")
    expected = KitExpected(
        sha256=adapted.program.sha256,
        program_address=runner.program.address,
        method=job.plan.name,
        macs=target.macs,
        inputs=tuple(map(len, raw_inputs)),
        outputs=tuple(row.nbytes for row in plan.output_tensors()),
        read=KitMoves(len(raw_inputs), sum(map(len, raw_inputs)), runner.inputs.address),
        copied=KitMoves(len(plan.outputs), placed.outputs_bytes, runner.outputs.address),
        operators=tuple(row.full_name for row in plan.operators),
        delegates={
            number: plan.delegates[row.delegate_index].id
            for number, row in enumerate(plan.instructions)
            if isinstance(row, DelegateCall)
        },
        blank=placed.blank,
    )
    no_cpu_cycles = cpu_time.no_counts(simulator, wanted=job.options.cpu_cycles)
    return PreparedRun(job, runner, elf, adapted, simulator, version, placed, expected, target, no_cpu_cycles)


def run(request: PreparedRun, uart_log: Path, reporter: Reporter) -> execution.Execution:
    """Run what `request` has, printing to `uart_log`. SimulationError for a run without complete evidence."""
    simulator, options = request.simulator, request.job.options
    simulation = SimulationRequest(
        elf=request.elf,
        images=request.placed.images,
        target=request.target,
        timeout_s=options.timeout_s,
        idle_timeout_s=options.idle_timeout_s(request.job.path),
        uart_log=uart_log,
        end_marks=(_END,),
        read_back=request.placed.read_back,
        compare_loaded=True,
        marks=None if request.no_cpu_cycles else (),
        # It has an interrupt for each tick of a clock: so that two runs give the same.
        count_instructions=not request.no_cpu_cycles,
    )
    with reporter.stage(f"running 1 inference on Arm's runner on {simulator.name}"):
        result = simulator.run(simulation)
    raise_job_failure(result.npu_jobs)
    in_memory, written = result.memory
    evidence = kit_log.kit_evidence_of(result.uart, in_memory, written, request.expected)
    if result.npu_jobs is not None:
        kit_log.crosscheck_kit_jobs(evidence, [job.cycles for job in result.npu_jobs])
    return _execution(request, evidence, result)


def _execution(request: PreparedRun, evidence: KitEvidence, result: SimulationResult) -> execution.Execution:
    job, simulator, log = request.job, request.simulator, evidence.log
    npu, unavailable = _npu(request, evidence)
    loaded = execution.compared_elf(request.runner.sha256, result.loaded)
    cpu = cpu_time.cpu_time_of_other_firmware(result, job.core, request.no_cpu_cycles)
    package = arm_runners.runners_package()
    adapted = sum(row.calls for row in request.adapted.operators)
    outputs = tuple(
        input_values.logical_array(np.frombuffer(content, tensor.dtype), tensor)
        for content, tensor in zip(evidence.outputs, job.plan.output_tensors(), strict=True)
    )
    return execution.Execution(
        outputs=input_values.stacked((outputs,), job.samples.stacked),
        done=Check(
            "the evidence of Arm's runner is complete",
            True,
            _DONE + (f"; {adapted} calls adapted to the operators that the runner has" if adapted else ""),
        ),
        runtime=Runtime(
            name=EXECUTORCH,
            version=f"evaluation kit {log.facts.get('kit_version', 'unknown')}",
            elf_sha256=request.runner.sha256,
            loaded=loaded,
            adapted=_adapted(request.adapted),
        ),
        simulator=execution.simulator_part(simulator, request.version, job.npu, job.macs),
        provenance_inputs=[provenance.file_entry("runner", request.elf, request.runner.sha256)],
        tools=[
            provenance.tool_entry(package, tools.package_version(package) or "unknown"),
            provenance.tool_entry(simulator.name, request.version),
            *cpu.tools,
        ],
        npu=npu,
        memory=Memory(
            regions=(),
            pools=tuple(
                Use(name=name, used_bytes=used, size_bytes=size) for name, (used, size) in log.pools.items()
            ),
        ),
        operators=execution.instructions(job.plan, npu),
        cpu=cpu.part,
        unavailable=[*cpu.unavailable, *execution.loaded_unavailable(loaded), *unavailable],
        repeated=Repeated(RepeatPlan(1, 1)),
    )


def _adapted(adapted: Adapted) -> AdaptedPart | None:
    if not adapted.operators:
        return None
    rows = (
        AdaptedOperator(name=row.name, called=row.called, calls=row.calls, changes=tuple(row.changes))
        for row in adapted.operators
    )
    return AdaptedPart(program_sha256=adapted.program.sha256, operators=tuple(rows))


def _npu(request: PreparedRun, evidence: KitEvidence) -> tuple[Npu | None, list[Unavailable]]:
    from ethosu_sdk.npu.config import NpuConfig

    target, events = request.job.target, request.job.events
    if target is None:
        return None, [provenance.lacking_npu("/npu")]
    counted = kit_log.pmu_events(evidence.counters)
    table = simulators.pmu_events(target.npu)
    config = NpuConfig.for_target(target.npu, target.macs)
    return execution.npu_part(
        target.npu,
        events,
        request.simulator.figures,
        identity=(config.id_word, config.config_word),
        delegate_calls=len(evidence.log.delegates),
        cycles=evidence.counters.get(kit_log.TOTAL),
        totals={row: (counted[table[row].name], False) for row in events if table[row].name in counted},
    )
