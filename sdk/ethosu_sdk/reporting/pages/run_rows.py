"""Facts of a run as rows: what shaped its figures, figures that decide, accuracy, memory, sources and origins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import DelegateCall, KernelCall, Tensor
from ethosu_sdk.records import answers, common, compile_words, kinds, profile, run_facts, wording
from ethosu_sdk.records.build import Build, Pool
from ethosu_sdk.records.common import ProvenanceInput, ProvenanceTool, Use
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.debug import Debug, Distance, Layer
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Memory, ReferenceOutput, Run, RunState
from ethosu_sdk.records.sequences import Generate
from ethosu_sdk.records.time_line import TimeLine, headline
from ethosu_sdk.reporting.pages.report_inputs import ReportInputs


def accuracy_view(inputs: ReportInputs) -> dict[str, Any]:
    """Rows of the outputs and of the layers, with the findings of `debug`; empty if no record has them."""
    found, debug = inputs.run.reference, inputs.record(Debug)
    return {
        "reference": reference_words(inputs),
        "outputs": [
            (
                row.index,
                row.elements,
                row.equal,
                "" if row.max_abs_error is None else f"{row.max_abs_error:.4g}",
                "equal" if row.equal == row.elements else _db(row),
            )
            for row in (found.outputs if found is not None else ())
        ],
        "layers": [_layer(row) for row in (debug.layers if debug is not None else ())],
        "findings": list(_findings(debug)) if debug is not None else [],
    }


def reference_words(inputs: ReportInputs) -> str:
    """Which model's outputs those of the run are beside: `compile` keeps those of the model that it lowers."""
    compiled = inputs.record(Compilation)
    if compiled is None:
        return "the model in PyTorch"
    if words := answers.interpreted(compiled):
        return words
    is_quantised = compiled.prequantized or compiled.options.quantize != "none"
    return f"the {'quantised' if is_quantised else 'floating-point'} model in PyTorch"


def _layer(row: Layer) -> tuple[Any, ...]:
    operator = row.tosa.operator if row.tosa is not None else ""
    return (
        row.index,
        row.tensor,
        ", ".join(filter(None, (operator, common.source_place(row.source)))),
        row.dtype,
        "" if row.range is None else f"{row.range.used_share:.0%}",
        *(
            "" if found is None else _db(found) if found.differing else "equal"
            for found in (row.quantised, row.float)
        ),
        row.reason or "",
    )


def _db(row: Distance | ReferenceOutput) -> str:
    return f"{row.sqnr_db:.1f} dB" if row.sqnr_db is not None else ""


def _findings(debug: Debug) -> Iterator[str]:
    for row in debug.comparisons:
        against = f"{row.layers:,} layers beside the {row.against} model"
        for step, words in (
            (row.first_break, "the first that breaks is"),
            (row.largest_drop, "the largest drop is in"),
        ):
            if step is not None:
                yield f"{against}: {words} {step.layer} ({step.tensor})"
        if row.first_break is None:
            yield f"{against}: none breaks"
    for advice in debug.advice:
        yield f"layer {advice.layer}: {advice.remedy} ({advice.sqnr_db:.1f} dB by itself)"


_ROLES = {
    "data": "data files",
    "code": "code of the firmware",
    "firmware": "data and stack of the firmware",
    "harness": "harness: the inputs of the run",
}


def memory_rows(run: Run, built: Build | None) -> list[dict[str, Any]]:
    """The memories of the board, each before what lies in it. Of a record that does not say that, the simulator's
    regions, then pools, with the share that is used: as the firmware counted it, else as `build` laid it out."""
    uses = run_facts.memory_of_board(run)
    if not uses:
        return _region_rows(run.memory, built)
    found = []
    for total in run_facts.memory_totals(run.memory.uses or ()):
        found.append(_memory_row("memory", total.name, total.used_bytes, total.size_bytes))
        for row in uses:
            if row.memory == total.name:
                name = _ROLES.get(row.role, row.role.replace("_", " "))
                found.append(_memory_row(f"in {row.memory}", name, row.used_bytes, row.size_bytes))
    return found


def _memory_row(kind: str, name: str, used: int, size: int | None) -> dict[str, Any]:
    share = {"share": 0.0, "percent": ""} if size is None else _share(used, size)
    return {"kind": kind, "name": name, "used": used, "size": "not public" if size is None else size, **share}


def _region_rows(memory: Memory, built: Build | None) -> list[dict[str, Any]]:
    laid = () if built is None else built.memory.pools
    regions, counted = {row.name: row.region for row in laid}, {row.name for row in memory.pools}
    pools: list[Use | Pool] = [*memory.pools, *(row for row in laid if row.name not in counted)]
    named: list[tuple[str, Use | Pool]] = [("region", row) for row in memory.regions]
    named += [(f"pool in {regions[row.name]}" if row.name in regions else "pool", row) for row in pools]
    return [_memory_row(kind, row.name, row.used_bytes, row.size_bytes) for kind, row in named]


def traffic_rows(memories: Sequence[profile.Memory]) -> list[dict[str, Any]]:
    """Each memory of the NPU: bytes of an inference, and what of its bandwidth that takes."""
    return [
        {
            "name": row.memory,
            "port": row.port,
            "read": row.read_bytes,
            "written": row.write_bytes,
            "average": _rate(row.average_bytes_per_s),
            "peak": _rate(row.peak_bytes_per_s),
            **_share(row.average_bytes_per_s or 0, row.peak_bytes_per_s or 0),
        }
        for row in memories
    ]


def _rate(bytes_per_s: float | None) -> str:
    return "" if bytes_per_s is None else f"{bytes_per_s / 1e9:,.2f} GB/s"


def state_rows(kept: RunState | None) -> list[tuple[Any, ...]]:
    """Name, shape, type, bytes and memory of each tensor that goes from one inference to the next."""
    return [
        (row.name, wording.shape_text(row.shape), row.dtype, row.bytes, row.memory)
        for row in (kept.tensors if kept is not None else ())
    ]


def _share(part: float, whole: float) -> dict[str, Any]:
    share = min(1.0, part / whole) if whole else 0.0
    return {"share": share, "percent": wording.percent_text(share)}


def planned_rows(program: pte.Pte | None) -> list[dict[str, Any]]:
    """The tensors of the planned buffers by place."""
    if program is None:
        return []
    plan = program.plan()
    uses: dict[int, list[int]] = {}
    for number, instruction in enumerate(plan.instructions):
        if isinstance(instruction, KernelCall | DelegateCall):
            for index in instruction.args:
                uses.setdefault(index, []).append(number)
    tensors = ((index, value) for index, value in enumerate(plan.values) if isinstance(value, Tensor))
    found = [
        {
            "value": index,
            "buffer": value.allocation.memory_id,
            "offset": value.allocation.offset,
            "bytes": value.nbytes,
            "shape": wording.shape_text(value.sizes),
            "first": "input" if index in plan.inputs else next(iter(uses.get(index, ())), ""),
            "last": "output" if index in plan.outputs else next(reversed(uses.get(index, ())), ""),
        }
        for index, value in tensors
        if value.allocation is not None
    ]
    return sorted(found, key=lambda row: (row["buffer"], row["offset"]))


CYCLE_SOURCES = ("estimated", "modelled", "measured")


def source_rows(profile: Profile | None) -> list[dict[str, Any]]:
    """Rows with a cell for each source; empty where nothing is known."""
    known = [(name, cells) for name, cells in _figures(profile) if cells]
    if not known or profile is None:
        return []
    if profile.vela_version:
        made_by = {"estimated": f"Vela {profile.vela_version}", "modelled": "the SDK's NPU model"}
        known.insert(0, ("made by", made_by))
    texts = ((name, [cells.get(source, "") for source in CYCLE_SOURCES]) for name, cells in known)
    return [{"name": name, "cells": cells} for name, cells in texts]


def _figures(profile: Profile | None) -> Iterator[tuple[str, dict[str, str]]]:
    if profile is None:
        return
    totals = profile.totals
    yield "NPU cycles of an inference", {row.source: f"{row.value:,}" for row in totals.npu.cycles}
    if len(profile.delegates) > 1:
        for row in profile.delegates:
            name = f"delegate {row.index}, cycles of a call"
            yield name, {part.source: f"{part.value:,}" for part in row.cycles}
    yield "MACs per cycle", {key: f"{value:,.1f}" for key, value in totals.npu.macs_per_cycle.known()}
    speed = profile.headline
    yield "time of the NPU alone", {row.source: f"{row.inference_s * 1e3:,.3f} ms" for row in speed}
    if not totals.cpu.operators:
        yield "inferences per second", {row.source: f"{row.inferences_per_s:,.1f}" for row in speed}
    tera = "tera-operations per second of the NPU"
    yield tera, {row.source: f"{row.tera_operations_per_s:,.4f}" for row in speed}


def vela_rows(profile: Profile | None) -> list[dict[str, Any]]:
    """Everything that Vela estimated of each delegate."""
    found = []
    for row in profile.vela or () if profile is not None else ():
        texts = [{"name": part.name, "text": f"{part.value:,}", "unit": part.unit} for part in row.estimates]
        found.append({"delegate": row.delegate, "estimates": texts})
    return found


def origins_view(inputs: ReportInputs) -> dict[str, Any]:
    """Records, files and tools, each once."""
    files: dict[tuple[str, str], ProvenanceInput] = {}
    tools: dict[tuple[str, str], ProvenanceTool] = {}
    for record in inputs.records.values():
        for row in record.provenance.inputs:
            files.setdefault((row.role, row.sha256), row)
        for tool in record.provenance.tools:
            tools.setdefault((tool.name, tool.version), tool)
    return {
        "records": [
            {
                "kind": kind,
                "schema": kinds.schema(record),
                "created": record.created,
                "tool": f"{record.tool.name} {record.tool.version}"
                + (f" ({record.tool.git})" if record.tool.git is not None else ""),
            }
            for kind, record in inputs.records.items()
        ],
        "files": list(files.values()),
        "tools": list(tools.values()),
        "manifest": inputs.manifest.files if inputs.manifest is not None else (),
    }


def unavailable_rows(inputs: ReportInputs) -> list[dict[str, str]]:
    """Figures that no record has, each with the reason. A record that another one lacked may be there by now."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for kind, record in inputs.records.items():
        for row in record.unavailable:
            if row.path.removeprefix("/") not in inputs.records:
                found.setdefault(
                    (row.path, row.reason), {"what": f"{kind}: {row.path}", "reason": row.reason}
                )
    return [*({"what": what, "reason": reason} for what, reason in inputs.missing.items()), *found.values()]


class FactRow(NamedTuple):
    """A fact by name; with a `value` where it is a number, of which two runs have a difference."""

    name: str
    text: str
    value: float | None = None


def model_name(inputs: ReportInputs) -> str:
    return PurePath(inputs.run.model.file).stem


def target_name(inputs: ReportInputs) -> str:
    """The NPU and its MACs, or the processor alone; empty where no record has them."""
    found, compiled = inputs.run.target, inputs.record(Compilation)
    if found is not None:
        return found.name
    return (compiled.core or "") if compiled is not None else ""


def time_of(inputs: ReportInputs) -> TimeLine | None:
    """The time of an inference on the system that the program was compiled for: of the profile, or of the run."""
    return headline(_timed(inputs))


def _timed(inputs: ReportInputs) -> Run | Profile:
    profile = inputs.profile
    return profile if profile is not None and profile.time is not None else inputs.run


def setting_rows(inputs: ReportInputs) -> Iterator[FactRow]:
    """What the figures depend on: program, target, board, clocks, simulator, and how it was compiled."""
    run, time = inputs.run, time_of(inputs)
    yield FactRow("model", model_name(inputs))
    if run.model.entry != "forward":
        yield FactRow("method", run.model.entry)
    for row in run.provenance.inputs:
        if row.role == "data":
            yield FactRow("data file", f"{row.file} ({row.bytes:,} bytes)")
    if target_name(inputs):
        yield FactRow("target", target_name(inputs))
    if run.target is not None:
        yield FactRow("system configuration", run.target.system_config)
        yield FactRow("memory mode", run.target.memory_mode)
    if time is not None:
        yield FactRow("time is for", time.place)
    yield from _clocks(inputs)
    if run.priced is not None:
        yield FactRow("NPU cycles are", wording.system_line(run.priced))
    yield from _compiled(inputs)
    yield FactRow("simulated board", run.board)
    yield FactRow("simulator", f"{run.simulator.name} {run.simulator.version}")
    yield FactRow("fidelity", run.simulator.fidelity.partition("; cycles: ")[0])
    yield FactRow("inferences", f"{run.inferences:,}")
    yield FactRow("inputs", ", ".join(f"SHA-256 {row.sha256[:12]}…" for row in run.inputs) or "none")
    yield FactRow("SDK", " ".join(filter(None, (run.tool.version, run.tool.git))))


def _clocks(inputs: ReportInputs) -> Iterator[FactRow]:
    profile, time = inputs.profile, _timed(inputs).time
    found = {} if time is None else {"CPU clock": time.clocks.cpu, "NPU clock": time.clocks.npu}
    if time is None and profile is not None:
        found = {"NPU clock": profile.clock}
    for name, clock in found.items():
        if clock is not None:
            yield FactRow(name, f"{clock.hz / 1e6:,g} MHz ({clock.source})")


def _compiled(inputs: ReportInputs) -> Iterator[FactRow]:
    """The options of the compilation, and the compiler of the NPU's program."""
    record = inputs.record(Compilation)
    if record is None:
        return
    options = record.options
    is_quantised = options.quantize not in (None, "none")
    per = f" per {options.quantize_per}" if options.quantize_per is not None and is_quantised else ""
    yield FactRow("quantisation", f"{options.quantize or 'none'}{per}")
    yield FactRow("inputs and outputs", options.io)
    if not options.delegate:
        yield FactRow("operators on the NPU", "none: --no-delegate")
    if record.rewrites:
        yield FactRow("rewritten", compile_words.rewrite_words(record.rewrites))
    if record.refinements:
        yield FactRow("refined", compile_words.refinement_words(record.refinements))
    if options.fallback is not None:
        yield FactRow("kernels of the CPU", options.fallback)
    if options.vela_flags:
        yield FactRow("Vela's options", " ".join(options.vela_flags))
    yield FactRow("calibration", f"{record.calibration.samples:,} samples ({record.calibration.source})")
    for tool in record.provenance.tools:
        if inputs.run.target is not None and "vela" in tool.name.lower():
            yield FactRow("Vela", tool.version)


def decisive_rows(inputs: ReportInputs) -> Iterator[FactRow]:
    """The figures that two runs are compared by, the most important first. The page of one run has each elsewhere."""
    run, profile = inputs.run, inputs.profile
    yield FactRow("verdict", run.verdict.status)
    yield from _time(_timed(inputs))
    yield from _accuracy(inputs)
    if time_of(inputs) is None:
        yield from _cycles(run)
    generated = inputs.record(Generate)
    phases = None if generated is None else generated.time
    for name, phase in {} if phases is None else {"prefill": phases.prefill, "decode": phases.decode}.items():
        if phase.tokens_per_s is not None:
            yield FactRow(f"{name} (tokens/s)", f"{phase.tokens_per_s:,.1f}", phase.tokens_per_s)
    for row in used_memories(run):
        if row.used_bytes:
            yield FactRow(f"{row.name} used", used_share(row), row.used_bytes)
    if profile is not None:
        for part in profile.totals.speed or ():
            text = f"{part.inference_s * 1e3:,.3f} ms: {profile.caveat or 'the NPU alone'}"
            yield FactRow(f"time of the NPU ({part.source})", text, part.inference_s)
        ideal = profile.totals.npu.macs_per_cycle.ideal
        for source, value in profile.totals.npu.macs_per_cycle.known():
            share = f" ({value / ideal:.1%} of {ideal})" if ideal else ""
            yield FactRow(f"MACs per cycle ({source})", f"{value:,.1f}{share}", value)


def _time(record: Run | Profile) -> Iterator[FactRow]:
    time = record.time
    if time is None:
        return
    words = wording.time_sentence(time)
    if headline(record) is not None:
        yield FactRow("inference", words, time.total.duration_s)
    elif record.priced is not None:
        yield FactRow("at those clocks", f"{words}, {record.priced.caveat}", time.total.duration_s)
    yield FactRow("time of the CPU", wording.milliseconds(time.sums.cpu_s), time.sums.cpu_s)
    yield FactRow("time of the NPU", wording.milliseconds(time.sums.npu_s), time.sums.npu_s)


def _accuracy(inputs: ReportInputs) -> Iterator[FactRow]:
    reference = inputs.run.reference
    for row in reference.outputs if reference is not None else ():
        beside = f"beside {reference_words(inputs)}"
        text = f"equal {beside}" if row.equal == row.elements else f"SQNR {row.sqnr_db:.1f} dB {beside}"
        if row.sqnr_db is None and row.equal != row.elements:
            text = f"{row.equal:,} of {row.elements:,} elements equal {beside}"
        yield FactRow(f"output {row.index}", text)


def count_rows(inputs: ReportInputs) -> Iterator[FactRow]:
    """What else the records count: generated tokens, cycles, MACs, operators, instructions."""
    run, profile, time = inputs.run, inputs.profile, time_of(inputs)
    yield from _generated(inputs)
    yield FactRow("size of the program", f"{run.model.bytes:,} bytes", run.model.bytes)
    if time is not None:
        yield from (FactRow("one after the other", words) for words in wording.inference_rate(time))
        yield from _cycles(run)
    if profile is None:
        return
    if profile.priced is not None and profile.priced != run.priced:
        yield FactRow("the profile is", wording.system_line(profile.priced))
    totals = profile.totals
    if totals.npu.operations:
        yield FactRow("NPU operations", f"{totals.npu.operations:,}", totals.npu.operations)
        yield FactRow("MACs", f"{totals.npu.macs:,}", totals.npu.macs)
    yield FactRow("CPU operators", f"{totals.cpu.operators:,}", totals.cpu.operators)
    counted = totals.cpu.instructions
    if counted is not None:
        yield FactRow("CPU instructions", f"{counted.value:,} ({counted.source})", counted.value)
    cycles = totals.cpu.cycles
    if cycles is not None:
        waits = "" if profile.time is None or profile.time.waits is None else ", without waits for memory"
        yield FactRow("CPU cycles", f"{cycles.value:,} ({cycles.source}{waits})", cycles.value)


def _generated(inputs: ReportInputs) -> Iterator[FactRow]:
    record = inputs.record(Generate)
    if record is None:
        return
    yield from (FactRow(name, words) for name, words in wording.generate_rows(record))
    if record.text is not None:
        yield FactRow("text", f"{record.text.prompt}{record.text.generated}")
    elif record.tokens:
        yield FactRow("generated", " ".join(map(str, record.tokens)))


def _cycles(run: Run) -> Iterator[FactRow]:
    if run.npu is not None and run.npu.cycles is not None:
        cycles = run.npu.cycles
        yield FactRow("NPU cycles", f"{cycles.value:,} ({believed_source(run, cycles.source)})", cycles.value)


def used_memories(run: Run) -> list[Use]:
    """What is used of the memories of the board, without the harness; of older records, of the simulator's."""
    totals = run_facts.memory_totals(run.memory.uses or ()) or run.memory.regions
    return [
        Use(name=row.name, used_bytes=row.used_bytes, size_bytes=row.size_bytes)
        for row in totals
        if row.size_bytes
    ]


def used_share(row: Use) -> str:
    return f"{row.used_bytes:,} of {row.size_bytes:,} bytes"


def believed_source(run: Run, source: str) -> str:
    """Where cycles come from, with the error band that the record quotes for modelled ones."""
    band = run.simulator.fidelity.partition("cycles: ")[2]
    return f"{source}, {band}" if band and source == "modelled" else source
