"""`run --simulator host`: ExecuTorch's own runtime on this machine, Ethos-U delegates on the NPU model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy.typing as npt

from ethosu_sdk import cache, provenance, pte, simulators
from ethosu_sdk.commands import build, run_inputs
from ethosu_sdk.commands.reporter import Reporter
from ethosu_sdk.commands.run_execution import Execution, NpuFacts, metric, npu_part
from ethosu_sdk.commands.run_inputs import Samples
from ethosu_sdk.commands.run_options import HOST, RunOptions
from ethosu_sdk.errors import UsageError
from ethosu_sdk.records import Record
from ethosu_sdk.report.verdict import Check

_FIDELITY = (
    "functional: ExecuTorch's own runtime and kernels on this machine, NPU arithmetic is exact, NPU cycles modelled; "
    "no board, no firmware"
)
_NO_BOARD = "nothing runs on a board"
_PACKAGE = "executorch"
_KINDS = {
    pte.KernelCall: "kernel",
    pte.DelegateCall: "delegate",
    pte.MoveCall: "move",
    pte.JumpFalseCall: "jump",
    pte.FreeCall: "free",
}


def execute(
    path: Path, program: pte.Pte, samples: Samples, options: RunOptions, reporter: Reporter
) -> Execution:
    """Run `samples` on the host runtime. Raises ToolError without a compiler or the executorch package."""
    # Here and not above: NumPy comes with it, and a command's --help must not wait for that.
    from ethosu_sdk.simulators import host
    from ethosu_sdk.simulators.host.npu_model import NpuModel

    if options.board is not None:
        raise UsageError("the host simulator has no board", "leave --board out")
    target = program.target()
    events = simulators.choose_events(target.npu if target else None, options.events)
    with reporter.stage("building the host runner (the first time only)"):
        runner = host.build_runner(cache.directory("host-runner"))
    model = NpuModel(_system(program))
    first_calls = 0
    outputs: list[tuple[npt.NDArray[Any], ...]] = []
    with (
        reporter.stage(f"running {samples.count} inference(s) on the host"),
        host.open_pte(runner, path, model, method=build.ENTRY, timeout_s=options.timeout_s) as runtime,
    ):
        for inference in samples.inferences:
            outputs.append(tuple(runtime.run(inference)))
            first_calls = first_calls or len(model.calls)
    npu, unavailable = _npu(program, model, first_calls, events)
    version = provenance.package_version(_PACKAGE) or "unknown"
    return Execution(
        outputs=run_inputs.stack(tuple(outputs), samples.stacked),
        done=Check("every inference ended", True, f"{samples.count} inference(s) ended without an error"),
        board=HOST,
        simulator={"name": HOST, "version": version, "fidelity": _FIDELITY},
        provenance_inputs=[provenance.file_entry("host-runner", runner)],
        tools=[provenance.tool_entry(_PACKAGE, version)],
        npu=npu,
        memory={"regions": [], "pools": []},
        operators=_operators(program, npu),
        unavailable=[{"path": "/cpu/cycles", "reason": _NO_BOARD}, *unavailable],
    )


def _system(program: pte.Pte) -> Any:
    from ethosu_sdk.npu import system_config

    target = program.target()
    return target and system_config.known(target.npu, target.system_config, target.memory_mode)


def _npu(
    program: pte.Pte, model: Any, first_calls: int, events: tuple[int, ...]
) -> tuple[Record | None, list[Record]]:
    from ethosu_sdk.npu import NpuConfig
    from ethosu_sdk.simulators.host.npu_model import event_totals

    target = program.target()
    if target is None:
        return None, [{"path": "/npu", "reason": build.NO_TARGET}]
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


def _operators(program: pte.Pte, npu: Record | None) -> list[Record]:
    """The program's instructions, in the order of the file; which of them a jump leaves out is not recorded."""
    plan = program.plan(build.ENTRY)
    rows: list[Record] = []
    for number, instruction in enumerate(plan.instructions):
        name = instruction.kind
        if isinstance(instruction, pte.KernelCall):
            name = plan.operators[instruction.op_index].full_name
        elif isinstance(instruction, pte.DelegateCall):
            name = plan.delegates[instruction.delegate_index].id
        rows.append({"instruction": number, "kind": _KINDS[type(instruction)], "name": name})
    delegates = [row for row in rows if row["kind"] == "delegate"]
    if npu is not None and len(delegates) == 1:
        delegates[0]["npu_cycles"] = metric(npu["cycles"]["value"], "cycles")
    return rows
