"""run.json: from the evidence of a run to its record, and the record's summary for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt
from rich.console import Group
from rich.markup import escape
from rich.table import Table

from ethosu_sdk import provenance, records, simulators
from ethosu_sdk.commands import build, host_facts
from ethosu_sdk.commands.build import Built
from ethosu_sdk.commands.compile import target_part
from ethosu_sdk.commands.run_inputs import Samples, stack
from ethosu_sdk.records import Record
from ethosu_sdk.report.evidence import Evidence, PmuSample
from ethosu_sdk.report.verdict import Check
from ethosu_sdk.simulators import Simulator

_SCHEMA = "run-result/1"
_NO_CPU_CYCLES = "the simulator is functional: it does not model the time that the CPU takes"
_MODELLED = "modelled"


@dataclass(frozen=True)
class RunFacts:
    """Everything that goes into run.json."""

    path: Path
    built: Built
    samples: Samples
    outputs: Sequence[npt.NDArray[Any]]
    outputs_file: str
    checks: Sequence[Check]
    evidence: Evidence
    simulator: Simulator
    events: Sequence[int]
    wall_time_s: float


def make(facts: RunFacts) -> Record:
    """The record of a run."""
    status = "pass" if all(check.passed for check in facts.checks) else "fail"
    target = facts.built.program.target()
    version = facts.simulator.version()
    npu, unavailable = _npu(facts)
    if target is None:
        unavailable.append({"path": "/target", "reason": build.NO_TARGET})
    inputs = [provenance.file_entry("model", facts.path, facts.built.program.sha256)]
    firmware = facts.built.firmware
    inputs.append(provenance.file_entry("firmware", firmware.elf, firmware.elf_sha256))
    tools = [*build.tool_rows(), provenance.tool_entry(facts.simulator.name, version)]
    return {
        **provenance.header(_SCHEMA, status, inputs, tools),
        "model": build.model_part(facts.path, facts.built.program),
        **({"target": target_part(target)} if target is not None else {}),
        "board": facts.built.firmware.board,
        "simulator": {
            "name": facts.simulator.name,
            "version": version,
            "fidelity": facts.simulator.fidelity,
        },
        "inferences": facts.samples.count,
        "inputs": [
            {**_tensor(index, array), "source": facts.samples.source}
            for index, array in enumerate(stack(facts.samples.inferences, facts.samples.stacked))
        ],
        "outputs": [
            {**_tensor(index, array), "name": f"output{index}", "file": facts.outputs_file}
            for index, array in enumerate(facts.outputs)
        ],
        "verdict": {
            "status": status,
            "checks": [
                {"name": check.name, "status": "pass" if check.passed else "fail", "detail": check.detail}
                for check in facts.checks
            ],
        },
        **({"npu": npu} if npu is not None else {}),
        "cpu": {},
        "memory": {
            "regions": facts.built.record["memory"]["regions"],
            "pools": [
                build.use(row["name"], row["used_bytes"], row["size_bytes"]) for row in facts.evidence.memory
            ],
        },
        "operators": _operators(facts.evidence),
        "unavailable": [{"path": "/cpu/cycles", "reason": _NO_CPU_CYCLES}, *unavailable],
        "wall_time_s": round(facts.wall_time_s, 3),
        "host": host_facts.host(),
    }


def _tensor(index: int, array: npt.NDArray[Any]) -> Record:
    return {
        "index": index,
        "shape": list(array.shape),
        "dtype": array.dtype.name,
        "sha256": records.sha256_bytes(array.tobytes()),
    }


def _operators(evidence: Evidence) -> list[Record]:
    cycles = {row.instruction: row.cycles for row in evidence.pmu if row.inference == 0}
    return [
        {
            "instruction": row.instruction,
            "kind": row.kind,
            "name": row.name,
            **(
                {"npu_cycles": _metric(cycles[row.instruction], "cycles")}
                if row.instruction in cycles
                else {}
            ),
        }
        for row in evidence.operators
    ]


def _metric(value: int, unit: str) -> Record:
    return {"value": value, "unit": unit, "source": _MODELLED}


def _npu(facts: RunFacts) -> tuple[Record | None, list[Record]]:
    """The `npu` object and what of it is unavailable; counters are those of the first inference."""
    evidence, target = facts.evidence, facts.built.program.target()
    if evidence.npu is None or target is None:
        return None, [{"path": "/npu", "reason": build.NO_TARGET}]
    first = [row for row in evidence.pmu if row.inference == 0]
    npu: Record = {
        "id": evidence.npu["id"],
        "config": evidence.npu["config"],
        "delegate_calls": evidence.delegate_calls,
        "counters": [],
    }
    unavailable: list[Record] = []
    if first:
        npu["cycles"] = _metric(sum(row.cycles for row in first), "cycles")
    table = simulators.events(target.npu)
    totals = _totals(first)
    for event in facts.events:
        row = table[event]
        if not row.modelled or event not in totals:
            reason = "the NPU model cannot know it" if not row.modelled else "the counter was not reported"
            unavailable.append({"path": f"/npu/counters/{row.name}", "reason": reason})
            continue
        value, overflowed = totals[event]
        if overflowed:
            unavailable.append({"path": f"/npu/counters/{row.name}", "reason": "the counter overflowed"})
            continue
        entry = {"event": row.name, "id": event, "value": value, "unit": row.unit, "source": _MODELLED}
        npu["counters"].append(entry | ({"bytes": value * row.beat_bytes} if row.beat_bytes else {}))
    return npu, unavailable


def _totals(samples: Sequence[PmuSample]) -> Mapping[int, tuple[int, bool]]:
    """Event number → (sum over the delegate calls of one inference, whether any counter overflowed)."""
    found: dict[int, tuple[int, bool]] = {}
    for sample in samples:
        for index, (event, value) in enumerate(sample.counters):
            total, overflowed = found.get(event, (0, False))
            found[event] = (total + value, overflowed or bool(sample.overflow >> index & 1))
    return found


def summary(record: Record, folder: Path) -> Group:
    """The run for people: verdict, outputs, NPU, memory, where the files lie."""
    head = Table(box=None, show_header=False, pad_edge=False)
    colour = "green" if record["status"] == "pass" else "red"
    head.add_row("verdict", f"[bold {colour}]{record['status']}[/bold {colour}]")
    for check in record["verdict"]["checks"]:
        head.add_row("", f"{check['status']}: {escape(check['name'])} ({escape(check['detail'])})")
    simulator = record["simulator"]
    head.add_row(
        "ran on", f"{record['board']}, {simulator['name']} {simulator['version']} ({simulator['fidelity']})"
    )
    head.add_row("inferences", str(record["inferences"]))
    for row in record["outputs"]:
        head.add_row(row["name"], f"{row['dtype']}{row['shape']}, sha256 {row['sha256'][:16]}…")
    _npu_rows(head, record)
    on_cpu = [row["name"] for row in record["operators"] if row["kind"] == "kernel"]
    head.add_row("on the CPU", escape(", ".join(dict.fromkeys(on_cpu))) or "nothing")
    head.add_row("files", escape(str(folder)))
    return Group(head, build.memory_table(record["memory"]["regions"], "memory"))


def _npu_rows(table: Table, record: Record) -> None:
    npu = record.get("npu")
    if npu is None:
        return
    if "cycles" in npu:
        cycles = npu["cycles"]
        table.add_row("NPU cycles", f"{cycles['value']:,} per inference ({cycles['source']})")
    for row in npu["counters"]:
        size = f" = {row['bytes']:,} bytes" if "bytes" in row else ""
        table.add_row("", f"{row['event']} {row['value']:,} {row['unit']}{size}")
    prefix = "/npu/counters/"
    for row in record["unavailable"]:
        if row["path"].startswith(prefix):
            table.add_row("", f"{row['path'].removeprefix(prefix)} unavailable: {escape(row['reason'])}")
