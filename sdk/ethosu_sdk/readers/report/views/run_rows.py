"""Facts of a run as rows: what shaped its figures, the figures that decide, and the counts behind them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple

from ethosu_sdk.readers.report.inputs import Inputs
from ethosu_sdk.readers.report.views import accuracy
from ethosu_sdk.records.common import Use
from ethosu_sdk.records.parts.time_line import TimeLine, headline
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.tables import generate_rows, systems, times

_BAND = "cycles: "  # in front of the error band, in what a record says of its simulator's fidelity
_DIGITS = 12  # of a digest


class Row(NamedTuple):
    """A fact by name; with a `value` where it is a number, of which two runs have a difference."""

    name: str
    text: str
    value: float | None = None


def model(inputs: Inputs) -> str:
    """The name of the program."""
    return PurePath(inputs.run.model.file).stem


def target(inputs: Inputs) -> str:
    """The NPU and its MACs, or the processor alone; empty where no record has them."""
    found, compiled = inputs.run.target, inputs.compiled
    if found is not None:
        return found.name
    return (compiled.core or "") if compiled is not None else ""


def time_of(inputs: Inputs) -> TimeLine | None:
    """The time of an inference on the system that the program was compiled for: of the profile, or of the run."""
    return headline(_timed(inputs))


def _timed(inputs: Inputs) -> Run | Profile:
    profile = inputs.profile
    return profile if profile is not None and profile.time is not None else inputs.run


def settings(inputs: Inputs) -> Iterator[Row]:
    """What the figures depend on: program, target, board, clocks, simulator, and how it was compiled."""
    run, time = inputs.run, time_of(inputs)
    yield Row("model", model(inputs))
    if run.model.entry != "forward":
        yield Row("method", run.model.entry)
    for row in run.provenance.inputs:
        if row.role == "data":
            yield Row("data file", f"{row.file} ({row.bytes:,} bytes)")
    if target(inputs):
        yield Row("target", target(inputs))
    if run.target is not None:
        yield Row("system configuration", run.target.system_config)
        yield Row("memory mode", run.target.memory_mode)
    if time is not None:
        yield Row("time is for", time.place)
    yield from _clocks(inputs)
    if run.priced is not None:
        yield Row("NPU cycles are", systems.line(run.priced))
    yield from _compiled(inputs)
    yield Row("simulated board", run.board)
    yield Row("simulator", f"{run.simulator.name} {run.simulator.version}")
    yield Row("fidelity", run.simulator.fidelity.partition(f"; {_BAND}")[0])
    yield Row("inferences", f"{run.inferences:,}")
    yield Row("inputs", ", ".join(f"SHA-256 {row.sha256[:_DIGITS]}…" for row in run.inputs) or "none")
    yield Row("SDK", " ".join(filter(None, (run.tool.version, run.tool.git))))


def _clocks(inputs: Inputs) -> Iterator[Row]:
    profile, time = inputs.profile, _timed(inputs).time
    found = {} if time is None else {"CPU clock": time.clocks.cpu, "NPU clock": time.clocks.npu}
    if time is None and profile is not None:
        found = {"NPU clock": profile.clock}
    for name, clock in found.items():
        if clock is not None:
            yield Row(name, f"{clock.hz / 1e6:,g} MHz ({clock.source})")


def _compiled(inputs: Inputs) -> Iterator[Row]:
    """The options of the compilation, and the compiler of the NPU's program."""
    record = inputs.compiled
    if record is None:
        return
    options = record.options
    is_quantised = options.quantize not in (None, "none")
    per = f" per {options.quantize_per}" if options.quantize_per is not None and is_quantised else ""
    yield Row("quantisation", f"{options.quantize or 'none'}{per}")
    yield Row("inputs and outputs", options.io)
    if not options.delegate:
        yield Row("operators on the NPU", "none: --no-delegate")
    if options.fallback is not None:
        yield Row("kernels of the CPU", options.fallback)
    if options.vela_flags:
        yield Row("Vela's options", " ".join(options.vela_flags))
    yield Row("calibration", f"{record.calibration.samples:,} samples ({record.calibration.source})")
    if inputs.run.target is not None:
        yield from (Row("Vela", row.version) for row in record.provenance.tools if "vela" in row.name.lower())


def decisive(inputs: Inputs) -> Iterator[Row]:
    """The figures that two runs are compared by, the most important first. The page of one run has each elsewhere."""
    run, profile = inputs.run, inputs.profile
    yield Row("verdict", run.verdict.status)
    yield from _time(_timed(inputs))
    yield from _accuracy(inputs)
    if time_of(inputs) is None:
        yield from _cycles(run)
    yield from _tokens_per_second(inputs)
    for row in regions(run):
        if row.used_bytes:
            yield Row(f"{row.name} used", used(row), row.used_bytes)
    if profile is not None:
        for part in profile.totals.speed or ():
            text = f"{part.inference_s * 1e3:,.3f} ms: {profile.caveat or 'the NPU alone'}"
            yield Row(f"time of the NPU ({part.source})", text, part.inference_s)
        ideal = profile.totals.npu.macs_per_cycle.ideal
        for source, value in profile.totals.npu.macs_per_cycle.known():
            share = f" ({value / ideal:.1%} of {ideal})" if ideal else ""
            yield Row(f"MACs per cycle ({source})", f"{value:,.1f}{share}", value)


def _time(record: Run | Profile) -> Iterator[Row]:
    time = record.time
    if time is None:
        return
    if headline(record) is not None:
        yield Row("inference", times.line(time), time.total.duration_s)
    elif record.priced is not None:
        yield Row("at those clocks", f"{times.line(time)}, {record.priced.caveat}", time.total.duration_s)
    yield Row("time of the CPU", times.milliseconds(time.sums.cpu_s), time.sums.cpu_s)
    yield Row("time of the NPU", times.milliseconds(time.sums.npu_s), time.sums.npu_s)


def _accuracy(inputs: Inputs) -> Iterator[Row]:
    reference = inputs.run.reference
    for row in reference.outputs if reference is not None else ():
        beside = f"beside {accuracy.reference(inputs)}"
        text = f"equal {beside}" if row.equal == row.elements else f"SQNR {row.sqnr_db:.1f} dB {beside}"
        if row.sqnr_db is None and row.equal != row.elements:
            text = f"{row.equal:,} of {row.elements:,} elements equal {beside}"
        yield Row(f"accuracy of output {row.index}", text)


def _tokens_per_second(inputs: Inputs) -> Iterator[Row]:
    time = inputs.generated.time if inputs.generated is not None else None
    for name, part in {} if time is None else {"prefill": time.prefill, "decode": time.decode}.items():
        if part.tokens_per_s is not None:
            yield Row(f"{name} (tokens/s)", f"{part.tokens_per_s:,.1f}", part.tokens_per_s)


def counts(inputs: Inputs) -> Iterator[Row]:
    """What else the records count: generated tokens, cycles, MACs, operators, instructions."""
    run, profile, time = inputs.run, inputs.profile, time_of(inputs)
    yield from _generated(inputs)
    yield Row("size of the program", f"{run.model.bytes:,} bytes", run.model.bytes)
    if time is not None:
        yield from (Row("one after the other", words) for words in times.rate(time))
        yield from _cycles(run)
    if profile is None:
        return
    if profile.priced is not None and profile.priced != run.priced:
        yield Row("the profile is", systems.line(profile.priced))
    totals = profile.totals
    if totals.npu.operations:
        yield Row("NPU operations", f"{totals.npu.operations:,}", totals.npu.operations)
        yield Row("MACs", f"{totals.npu.macs:,}", totals.npu.macs)
    yield Row("CPU operators", f"{totals.cpu.operators:,}", totals.cpu.operators)
    counted = totals.cpu.instructions
    if counted is not None:
        yield Row("CPU instructions", f"{counted.value:,} ({counted.source})", counted.value)
    cycles = totals.cpu.cycles
    if cycles is not None:
        waits = "" if profile.time is None or profile.time.waits is None else ", without waits for memory"
        yield Row("CPU cycles", f"{cycles.value:,} ({cycles.source}{waits})", cycles.value)


def _generated(inputs: Inputs) -> Iterator[Row]:
    record = inputs.generated
    if record is None:
        return
    yield from (Row(name, words) for name, words in generate_rows.rows(record))
    if record.text is not None:
        yield Row("text", f"{record.text.prompt}{record.text.generated}")
    elif record.tokens:
        yield Row("generated", " ".join(map(str, record.tokens)))


def _cycles(run: Run) -> Iterator[Row]:
    if run.npu is not None and run.npu.cycles is not None:
        cycles = run.npu.cycles
        yield Row("NPU cycles", f"{cycles.value:,} ({believed(run, cycles.source)})", cycles.value)


def regions(run: Run) -> list[Use]:
    """The memories of the board that have a size."""
    return [row for row in run.memory.regions if row.size_bytes]


def used(row: Use) -> str:
    """How much of a memory is used."""
    return f"{row.used_bytes:,} of {row.size_bytes:,} bytes"


def believed(run: Run, source: str) -> str:
    """Where cycles come from, with the error band that the record quotes for modelled ones."""
    band = run.simulator.fidelity.partition(_BAND)[2]
    return f"{source}, {band}" if band and source == "modelled" else source
