"""`profile` of a bare command stream: what its operations take with the memories of a system; nothing runs."""

from __future__ import annotations

from pathlib import Path

from msgspec import convert

from ethosu_sdk.analysis import profile_rows, profile_totals
from ethosu_sdk.analysis.options import ProfileOptions
from ethosu_sdk.analysis.profile_rows import Call
from ethosu_sdk.analysis.profile_totals import Sums
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.targets import Target
from ethosu_sdk.compile import pricing_system, vela_program
from ethosu_sdk.compile.pricing_system import PricingSystem
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.program import cop1, vela_output
from ethosu_sdk.program.execution_plan import DelegateCall
from ethosu_sdk.records import provenance, result_files
from ethosu_sdk.records.common import Model, Priced, Unavailable
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Cpu, Operator
from ethosu_sdk.records.time_line import Clock
from ethosu_sdk.run.options import RunOptions

_NOT_RUN = f"nothing ran: {cop1.NO_WEIGHTS}"
_NO_CPU = "a command stream is the NPU's part alone: what the CPU does around it is not known"
_NO_ESTIMATE = "a command stream has no record of its compilation"


def check_options(path: Path, run_options: RunOptions, options: ProfileOptions) -> None:
    """UsageError for options that need a run of the stream at `path`."""
    given = {
        "--split": options.split,
        "--prefill": options.prefill,
        "--inputs": run_options.inputs,
        "--data": run_options.data,
        "--steps": run_options.steps,
        "--feed": run_options.feed,
        "--method": run_options.method,
        "--board": run_options.board,
        "--cpu-clock-mhz": run_options.cpu_clock_mhz,
        "--memory-timing": run_options.memory_timing != RunOptions().memory_timing,
        "--allow-spill": run_options.allow_spill,
    }
    for name in (name for name, value in given.items() if value):
        raise UsageError(
            f"{name} needs a run, and {path.name} cannot run: {cop1.NO_WEIGHTS}", f"leave {name} out"
        )


def profile_of_stream(
    path: Path, compile_options: CompileOptions, clock_mhz: float | None
) -> tuple[Target, Profile]:
    """The NPU and record of the stream at `path`, priced with the system of `compile_options` or the default.

    A system that is named is taken to be the one that the stream was compiled for.
    """
    program = cop1.read(path)
    target = vela_program.target_of(path, vela_output.config_word(program), compile_options)
    system = pricing_system.system_for_options(target, compile_options)
    is_named = vela_program.names_a_system(compile_options)
    plan = program.plan()
    found = profile_rows.read_delegate(0, plan.delegates[0], system)
    assert found is not None, "a stream is an Ethos-U's"
    if found.stream is None:
        raise InputError(f"{path.name} cannot be priced: {found.reason}")
    entry = Operator(instruction=0, kind="delegate", name=plan.delegates[0].id)
    call = Call(0, DelegateCall(0, ()), [entry])
    rows = profile_rows.profiled_operations([call], plan, {0: found}, None, ())
    sums = Sums(rows, {0: [entry]}, [found], (profile_totals.delegate_totals(found, [entry], None),))
    clock = Clock(hz=system.clock_hz, source=f"core_clock of {system.name} in {system.source}")
    if clock_mhz is not None:
        clock = Clock(hz=clock_mhz * 1e6, source="--clock-mhz")
    reasons = {
        "/board": _NOT_RUN,
        "/simulator": _NOT_RUN,
        "/target": "a bare command stream does not say which system it was compiled for",
        "/time": _NO_CPU,
        "/totals/cpu/cycles": _NO_CPU,
        "/vela": _NO_ESTIMATE,
    }
    content = Profile(
        status="pass",
        **provenance.origin(result_files.program_entries(path, program), []),
        model=Model(file=path.name, sha256=program.sha256, bytes=program.size, entry=plan.name),
        priced=convert(PricingSystem(system, is_named, system.areas).part(), Priced),
        clock=clock,
        operations=rows,
        delegates=sums.delegates,
        memories=profile_totals.memory_totals(sums, clock.hz),
        totals=profile_totals.inference_totals(sums, Cpu(), clock.hz),
        unavailable=tuple(Unavailable(path=place, reason=text) for place, text in reasons.items()),
        host=provenance.this_host(),
    )
    return target, content
