"""profile.json: ``profile/1``, from a run, its program and what `compile` knew of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk import provenance, pte
from ethosu_sdk.npu.timing.system_config import SystemConfig
from ethosu_sdk.records import Record, kinds
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.run import Operator, Run
from ethosu_sdk.results import host_facts, program_files, target_record
from ethosu_sdk.simulators import MODELLED
from ethosu_sdk.steps.profile import cpu_rows, npu_rows, phases, profile_time, totals
from ethosu_sdk.steps.profile.npu_rows import DelegateProfile
from ethosu_sdk.steps.run import memory_timing
from ethosu_sdk.steps.shared.systems import Priced
from ethosu_sdk.steps.shared.time_line import CpuClock, Facts
from ethosu_sdk.targets import Target

_NO_COMPILE_RECORD = (
    "there is no {name} beside the program: names in the model and Vela's estimates are in it"
)
_OF_ANOTHER_METHOD = (
    "{name} is of another program, or has Vela's estimates of its first method, not of {method}"
)
_NO_SYSTEM = (
    "the memories of {target.system_config} with {target.memory_mode} are not known here; cycles and traffic are for "
    "{system.name} with {system.memory_mode}. --vela-config FILE.ini gives the file that it was compiled with"
)
_NO_BURSTS = (
    "the operations of a command stream are not known, or the system configuration has no MEMORY_burst_length of a "
    "data beat or more"
)
_VELA = "ethos-u-vela"


@dataclass(frozen=True)
class ProfileFacts:
    """A run (its record and that record's file), its program, and the compile record where there is one.

    `priced` is the system that cycles are for (None: no NPU), `clock_hz` the clock that was asked for; None takes the
    system's, where that is known. `cpu_clock` is the CPU's, `prefill` the number of steps of a sequence's
    first phase.
    """

    path: Path
    program: pte.Pte
    run: Run
    run_file: Path
    priced: Priced | None
    compiled: Compilation | None
    compiled_file: Path
    clock_hz: float | None
    cpu_clock: CpuClock
    prefill: int | None = None


@dataclass(frozen=True)
class _Call:
    """An instruction that computes, and the entries of its calls in the run record."""

    index: int
    instruction: pte.KernelCall | pte.DelegateCall
    ran: Sequence[Operator]

    @property
    def calls(self) -> int:
        """How often it ran in the first inference."""
        return len(self.ran)


def make(facts: ProfileFacts) -> Record:
    """The record of a profile."""
    target = facts.program.target()
    plan = facts.program.plan(facts.run.model.entry)
    priced = facts.priced
    system = None if priced is None else memory_timing.of_run(facts.run, priced.system)
    delegates = {} if system is None else _delegates(plan, system)
    calls = _calls(plan, facts.run)
    rows = npu_rows.with_jobs(_rows(calls, plan, delegates, facts.compiled), facts.run.pieces or ())
    sums = totals.Sums(
        rows=rows,
        ran=_ran(calls),
        delegates=list(delegates.values()),
        compiled=facts.compiled,
        cpu=facts.run.cpu,
    )
    clock = _clock(facts)
    run = facts.run.to_json()
    parts = totals.parts(sums, None if clock is None else clock["hz"])
    time, no_time = profile_time.member(_time_facts(facts, calls, parts), parts, rows)
    return {
        **provenance.header(kinds.PROFILE.schema, facts.run.status, _inputs(facts), _tools(facts)),
        "model": run["model"],
        **target_record.members(target),
        **({} if priced is None else {"priced": priced.part()}),
        "board": facts.run.board,
        "simulator": run["simulator"],
        **({} if clock is None else {"clock": clock}),
        "operations": [{"index": index, **row} for index, row in enumerate(rows)],
        **parts,
        **phases.member(facts.run, facts.prefill),
        **time,
        "unavailable": [
            *_unavailable(facts, target, system, delegates, rows, parts["memories"]),
            *no_time,
        ],
        "host": host_facts.host(),
    }


def _time_facts(facts: ProfileFacts, calls: Sequence[_Call], parts: Record) -> Facts:
    """The run with the profile's own cycles of each delegate, which are for the profile's system."""
    modelled = {
        row["index"]: metric["value"]
        for row in parts["delegates"]
        for metric in row["cycles"]
        if metric["source"] == MODELLED
    }
    jobs = {
        call.index: modelled[call.instruction.delegate_index]
        for call in calls
        if isinstance(call.instruction, pte.DelegateCall) and call.instruction.delegate_index in modelled
    }
    return Facts(facts.run, facts.priced, facts.cpu_clock, facts.clock_hz, jobs)


def _inputs(facts: ProfileFacts) -> list[Record]:
    files = [("run", facts.run_file)]
    if facts.compiled is not None:
        files.append(("compile", facts.compiled_file))
    return [
        *program_files.entries(facts.path, facts.program),
        *(provenance.file_entry(role, path) for role, path in files),
    ]


def _tools(facts: ProfileFacts) -> list[Record]:
    """The tools of the run, and the Vela that made the estimates."""
    compiled = () if facts.compiled is None else facts.compiled.provenance.tools
    vela = [row.to_json() for row in compiled if row.name == _VELA]
    return [*(row.to_json() for row in facts.run.provenance.tools), *vela]


def _clock(facts: ProfileFacts) -> Record | None:
    """The clock that was asked for, else that of the system; none where that stands in for an unknown one."""
    if facts.clock_hz is not None:
        return {"hz": facts.clock_hz, "source": "--clock-mhz"}
    if facts.priced is None or facts.priced.areas is None:
        return None
    system = facts.priced.system
    return {"hz": system.clock_hz, "source": f"core_clock of {system.name} in {system.source}"}


def _delegates(plan: pte.ExecutionPlan, system: SystemConfig) -> dict[int, DelegateProfile]:
    found = (npu_rows.read(index, row, system) for index, row in enumerate(plan.delegates))
    return {row.index: row for row in found if row is not None}


def _calls(plan: pte.ExecutionPlan, run: Run) -> list[_Call]:
    """The kernel and delegate calls of the first inference in the order of their first run."""
    instructions = plan.instructions
    ran: defaultdict[int, list[Operator]] = defaultdict(list)
    for row in run.operators:
        ran[row.instruction].append(row)
    return [
        _Call(index, instruction, entries)
        for index, entries in ran.items()
        if index < len(instructions)
        and isinstance(instruction := instructions[index], (pte.KernelCall, pte.DelegateCall))
    ]


def _ran(calls: Sequence[_Call]) -> dict[int, list[Operator]]:
    """The entries of each delegate's calls, which may be of several instructions."""
    found: defaultdict[int, list[Operator]] = defaultdict(list)
    for call in calls:
        if isinstance(call.instruction, pte.DelegateCall):
            found[call.instruction.delegate_index] += call.ran
    return found


def _rows(
    calls: Sequence[_Call],
    plan: pte.ExecutionPlan,
    delegates: dict[int, DelegateProfile],
    compiled: Compilation | None,
) -> Iterator[Record]:
    known = {} if compiled is None else {row.index: row for row in compiled.delegates}
    for call in calls:
        place = {"instruction": call.index, "calls": call.calls}
        if isinstance(call.instruction, pte.KernelCall):
            yield {**place, **cpu_rows.row(call.instruction, plan, call.ran, compiled)}
        elif (found := delegates.get(call.instruction.delegate_index)) is not None:
            for row in npu_rows.rows(found, known.get(found.index)):
                yield {**place, **row}


def _unavailable(
    facts: ProfileFacts,
    target: Target | None,
    system: SystemConfig | None,
    delegates: dict[int, DelegateProfile],
    rows: Sequence[Record],
    memories: Sequence[Record],
) -> Iterator[Record]:
    if target is None or system is None:
        yield target_record.without_npu("/target")
    elif facts.priced is not None and facts.priced.areas is None:
        yield {"path": "/system", "reason": _NO_SYSTEM.format(target=target, system=system)}
    if facts.compiled is None:
        reason = _OF_ANOTHER_METHOD if facts.compiled_file.is_file() else _NO_COMPILE_RECORD
        names = {"name": facts.compiled_file.name, "method": facts.run.model.entry}
        yield {"path": "/vela", "reason": reason.format(**names)}
    for found in delegates.values():
        if found.reason:
            yield {"path": f"/delegates/{found.index}/operations", "reason": found.reason}
    for index, memory in enumerate(memories):
        if "bursts" not in memory:
            yield {"path": f"/memories/{index}/bursts", "reason": _NO_BURSTS}
    if any(row["runs_on"] == "CPU" and "instructions" not in row for row in rows):
        reasons = [row.reason for row in facts.run.unavailable if row.path == "/cpu/instructions"]
        reason = (
            reasons[0] if reasons else "the run did not count them: `profile MODEL` makes a run that does"
        )
        yield {"path": "/totals/cpu/instructions", "reason": reason}
    yield from _no_cpu_cycles(facts.run)
    cycles = (row.npu_cycles for row in facts.run.operators)
    if not any(row is not None and row.source == "measured" for row in cycles):
        yield {"path": "/totals/npu/cycles/measured", "reason": "no hardware and no FVP ran the program"}


def _no_cpu_cycles(run: Run) -> Iterator[Record]:
    for row in run.unavailable:
        if row.path == "/cpu/cycles" and run.cpu.cycles is None:
            yield {"path": "/totals/cpu/cycles", "reason": row.reason}
