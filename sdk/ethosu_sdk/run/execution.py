"""What one execution of a program gave, whatever executed it: the parts of run.json that depend on that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import numpy.typing as npt
from msgspec import Struct

from ethosu_sdk.base.errors import SimulationError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.program.execution_plan import DelegateCall, ExecutionPlan, KernelCall
from ethosu_sdk.program.output_comparison import Check
from ethosu_sdk.program.protocol import INSTRUCTION_KINDS
from ethosu_sdk.records.common import Loaded, Metric, Segment, Simulator, Source, Unavailable
from ethosu_sdk.records.run import (
    Cpu,
    Device,
    Memory,
    Npu,
    NpuCounter,
    Operator,
    Piece,
    Runtime,
    SecondOpinion,
)
from ethosu_sdk.run.repeats import Repeated
from ethosu_sdk.run.sequences import StepResult
from ethosu_sdk.simulate import simulators
from ethosu_sdk.simulate.simulation import (
    MODEL_FIGURES,
    MODELLED,
    Figures,
    LoadedElf,
    Simulator as SimulatorProtocol,
)

Kind = Literal["kernel", "delegate", "move", "jump", "free"]
_KINDS = {call: cast(Kind, kind) for kind, call in INSTRUCTION_KINDS.items()}


class Execution(Struct, frozen=True, kw_only=True):
    """A complete execution (`done`). `outputs` have logical shapes, several inferences a leading axis."""

    outputs: Sequence[npt.NDArray[Any]]
    done: Check
    runtime: Runtime
    simulator: Simulator
    provenance_inputs: Sequence[Record]
    tools: Sequence[Record]
    npu: Npu | None
    memory: Memory
    operators: tuple[Operator, ...]
    unavailable: Sequence[Unavailable]
    repeated: Repeated
    steps: Sequence[StepResult] = ()
    state: Sequence[bytes] = ()  # what is in each of its tensors at the end, where that was asked for
    cpu: Cpu = Cpu()
    checks: Sequence[Check] = ()  # beside those of the repeats
    pieces: tuple[Piece, ...] = ()  # counters of each piece of the command streams, where they were cut
    notes: Sequence[str] = ()  # where the firmware does not do what the memory mode says, and the like
    built: Sequence[str] = ()  # what the firmware's build wrote into the folder of results
    device: Device | None = None  # on a wire
    second_opinion: SecondOpinion | None = None
    opinion_checks: Sequence[Check] = ()


def metric(value: int, unit: str, source: str = MODELLED) -> Metric:
    """A figure of the NPU model, or of another `source`."""
    return Metric(value=value, unit=unit, source=cast(Source, source))


def npu_part(
    npu: str,
    events: Sequence[int],
    figures: Figures = MODEL_FIGURES,
    *,
    identity: tuple[int, int],
    delegate_calls: int,
    cycles: int | None,
    totals: Mapping[int, tuple[int, bool]],
) -> tuple[Npu, list[Unavailable]]:
    """The record's `npu`, and what of it is unavailable. `identity` is the words ID and CONFIG. `cycles` and
    `totals`, event number → (value, whether a counter overflowed), are sums over the delegate calls of the first
    inference, `delegate_calls` is of all inferences."""
    unavailable: list[Unavailable] = []
    if cycles is not None and figures.absent:
        unavailable.append(Unavailable(path="/npu/cycles", reason=figures.absent))
        cycles = None
    counters, table = [], simulators.pmu_events(npu)
    for event in events:
        row = table[event]
        value, overflowed = totals.get(event, (None, False))
        if figures.absent:
            reason = figures.absent
        elif not row.modelled and not figures.every_event:
            reason = row.reason
        elif value is None:
            reason = "the counter was not reported"
        elif overflowed:
            reason = "the counter overflowed"
        else:
            size = value * row.beat_bytes if row.beat_bytes else None
            source = cast(Source, figures.source)
            counters.append(
                NpuCounter(event=row.name, id=event, value=value, unit=row.unit, source=source, bytes=size)
            )
            continue
        unavailable.append(Unavailable(path=f"/npu/counters/{row.name}", reason=reason))
    part = Npu(
        id=identity[0],
        config=identity[1],
        delegate_calls=delegate_calls,
        counters=tuple(counters),
        cycles=None if cycles is None else metric(cycles, "cycles", figures.source),
    )
    return part, unavailable


def simulator_part(
    simulator: SimulatorProtocol, version: str, npu: str | None, macs: int | None
) -> Simulator:
    name = cast(Literal["qemu", "fvp", "device"], simulator.name)
    return Simulator(name=name, version=version, fidelity=simulator.fidelity(npu, macs))


def instructions(plan: ExecutionPlan, npu: Npu | None) -> tuple[Operator, ...]:
    """The instructions of a method, in the order of the file; which of them a jump leaves out is not recorded."""
    is_only = sum(isinstance(row, DelegateCall) for row in plan.instructions) == 1
    rows = []
    for number, instruction in enumerate(plan.instructions):
        name, cycles = instruction.kind, None
        if isinstance(instruction, KernelCall):
            name = plan.operators[instruction.op_index].full_name
        elif isinstance(instruction, DelegateCall):
            name = plan.delegates[instruction.delegate_index].id
            if npu is not None and npu.cycles is not None and is_only:
                cycles = metric(int(npu.cycles.value), "cycles")
        rows.append(Operator(instruction=number, kind=_KINDS[instruction.kind], name=name, npu_cycles=cycles))
    return tuple(rows)


def compared_elf(sha256: str, loaded: LoadedElf | None) -> Loaded | None:
    """What was read back of the ELF with this digest, if anything. SimulationError when another one was loaded."""
    if loaded is None:
        return None
    if loaded.sha256 != sha256:
        raise SimulationError(
            f"the ELF file changed between its build and its run: its SHA-256 is {loaded.sha256}, not {sha256}",
            "run it again; another command may be writing to the same folder",
        )
    rows = (Segment(address=row.address, bytes=row.size_bytes, sha256=row.sha256) for row in loaded.segments)
    return Loaded(status="compared", segments=tuple(rows))


def loaded_unavailable(loaded: Loaded | None) -> list[Unavailable]:
    if loaded is not None:
        return []
    return [
        Unavailable(path="/runtime/loaded", reason="the simulator does not show its memory before the run")
    ]
