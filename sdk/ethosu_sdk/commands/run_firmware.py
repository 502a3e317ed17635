"""`run` on a simulated board: build the firmware, run it, take its evidence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from ethosu_sdk import provenance, pte, simulators
from ethosu_sdk.commands import build, run_inputs
from ethosu_sdk.commands.build import Built
from ethosu_sdk.commands.reporter import Reporter
from ethosu_sdk.commands.run_execution import Execution, NpuFacts, metric, npu_part
from ethosu_sdk.commands.run_inputs import Samples
from ethosu_sdk.commands.run_options import RunOptions
from ethosu_sdk.errors import UsageError
from ethosu_sdk.records import Record
from ethosu_sdk.report import evidence, input_image, uart
from ethosu_sdk.report.evidence import Evidence, PmuSample
from ethosu_sdk.report.protocol import INPUT_IMAGE_SYMBOL
from ethosu_sdk.report.verdict import Check
from ethosu_sdk.simulators import SimulationRequest, Simulator

UART_NAME = "uart.log"
_IDLE_LIMIT_S = 30.0
_NO_CPU_CYCLES = "the simulator is functional: it does not model the time that the CPU takes"
RawInputs = tuple[tuple[bytes, ...], ...]  # of each inference, as the program keeps them in memory


def execute(
    path: Path, program: pte.Pte, samples: Samples, options: RunOptions, folder: Path, reporter: Reporter
) -> Execution:
    """Run `samples` in one boot of the firmware for the `.pte` at `path`; results go to `folder`."""
    target = program.target()
    events = simulators.choose_events(target.npu if target else None, options.events)
    built = build.build_in(path, program, options.board, folder, reporter, samples.count)
    raw = _raw_inputs(built, samples)
    simulator = simulators.create(options.simulator)
    with reporter.stage(f"running {samples.count} inference(s) on {simulator.name}"):
        result = simulator.run(_request(built, raw, options, events, folder))
    found = evidence.gather(uart.parse(result.uart), _expected(built, raw), result.exit_code)
    return _execution(built, samples, found, simulator, events)


def _request(
    built: Built, raw: RawInputs, options: RunOptions, events: Sequence[int], folder: Path
) -> SimulationRequest:
    image = input_image.encode(raw, events)
    symbol = built.firmware.symbols[INPUT_IMAGE_SYMBOL]
    if len(image) > symbol.bytes:
        raise UsageError(
            f"{len(raw)} inferences need {len(image):,} bytes of inputs, there are {symbol.bytes:,}",
            "run them in several parts",
        )
    target = built.program.target()
    return SimulationRequest(
        elf=built.firmware.elf,
        images=((symbol.address, image),),
        npu=target.npu if target else "",
        macs=target.macs if target else 0,
        timeout_s=options.timeout_s,
        idle_timeout_s=min(_IDLE_LIMIT_S, options.timeout_s),
        uart_log=folder / UART_NAME,
        with_npu=target is not None,
        system_config=target.system_config if target else "",
        memory_mode=target.memory_mode if target else "",
    )


def _raw_inputs(built: Built, samples: Samples) -> RawInputs:
    tensors = built.program.plan(build.ENTRY).input_tensors()
    return tuple(
        tuple(run_inputs.physical_bytes(array, tensor) for array, tensor in zip(row, tensors, strict=True))
        for row in samples.inferences
    )


def _expected(built: Built, raw: RawInputs) -> evidence.Expected:
    return evidence.Expected(
        model_sha256=built.program.sha256,
        model_bytes=built.program.size,
        board=built.firmware.board,
        inferences=raw,
        outputs=len(built.program.plan(build.ENTRY).outputs),
    )


def _execution(
    built: Built, samples: Samples, found: Evidence, simulator: Simulator, events: Sequence[int]
) -> Execution:
    target, firmware, version = built.program.target(), built.firmware, simulator.version()
    npu, unavailable = _npu(built, found, events)
    done = f"{samples.count} inference(s) reported done, every record complete, CRCs and model SHA-256 match"
    return Execution(
        outputs=_logical_outputs(built, found, samples),
        done=Check("the firmware's evidence is complete", True, done),
        board=firmware.board,
        simulator={
            "name": simulator.name,
            "version": version,
            "fidelity": simulator.fidelity(target.npu if target is not None else ""),
        },
        provenance_inputs=[provenance.file_entry("firmware", firmware.elf, firmware.elf_sha256)],
        tools=[*build.tool_rows(), provenance.tool_entry(simulator.name, version)],
        npu=npu,
        memory={
            "regions": built.record["memory"]["regions"],
            "pools": [build.use(row["name"], row["used_bytes"], row["size_bytes"]) for row in found.memory],
        },
        operators=_operators(found),
        unavailable=[{"path": "/cpu/cycles", "reason": _NO_CPU_CYCLES}, *unavailable],
    )


def _logical_outputs(built: Built, found: Evidence, samples: Samples) -> list[npt.NDArray[Any]]:
    tensors = built.program.plan(build.ENTRY).output_tensors()
    arrays = tuple(
        tuple(run_inputs.logical(array, tensor) for array, tensor in zip(row, tensors, strict=True))
        for row in found.outputs
    )
    return run_inputs.stack(arrays, samples.stacked)


def _operators(found: Evidence) -> list[Record]:
    cycles = {row.instruction: row.cycles for row in found.pmu if row.inference == 0}
    rows: list[Record] = []
    for row in found.operators:
        entry: Record = {"instruction": row.instruction, "kind": row.kind, "name": row.name}
        if row.instruction in cycles:
            entry["npu_cycles"] = metric(cycles[row.instruction], "cycles")
        rows.append(entry)
    return rows


def _npu(built: Built, found: Evidence, events: Sequence[int]) -> tuple[Record | None, list[Record]]:
    target = built.program.target()
    if found.npu is None or target is None:
        return None, [{"path": "/npu", "reason": build.NO_TARGET}]
    first = [row for row in found.pmu if row.inference == 0]
    facts = NpuFacts(
        npu=target.npu,
        identity={name: found.npu[name] for name in ("id", "config")},
        delegate_calls=found.delegate_calls,
        cycles=sum(row.cycles for row in first) if first else None,
        totals=_totals(first),
    )
    return npu_part(facts, events)


def _totals(samples: Sequence[PmuSample]) -> dict[int, tuple[int, bool]]:
    """Event number → (sum over the delegate calls of one inference, whether any counter overflowed)."""
    found: dict[int, tuple[int, bool]] = {}
    for sample in samples:
        for index, (event, value) in enumerate(sample.counters):
            total, overflowed = found.get(event, (0, False))
            found[event] = (total + value, overflowed or bool(sample.overflow >> index & 1))
    return found
