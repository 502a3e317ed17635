"""The figures at the top: the verdict, what ran where, how fast, and with how much memory."""

from __future__ import annotations

from collections.abc import Iterator

from ethosu_sdk.readers.report.inputs import Inputs
from ethosu_sdk.records.common import Use
from ethosu_sdk.records.profile import Profile, Totals
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.time_line import headline
from ethosu_sdk.tables import systems, times

_MILLION = 1e6
_BAND = "cycles: "  # in front of the error band, in what a record says of its simulator's fidelity


def cards(inputs: Inputs) -> list[dict[str, str]]:
    """The few figures that are read first: name, text and a note each."""
    run, profile = inputs.run, inputs.profile
    found = [{"name": "verdict", "text": run.verdict.status, "note": _checks(run)}]
    cycles = run.npu.cycles if run.npu is not None else None
    if cycles is not None:
        found.append(
            {"name": "NPU cycles", "text": f"{cycles.value:,}", "note": _note(inputs, cycles.source)}
        )
    time = headline(profile if profile is not None and profile.time is not None else run)
    if time is not None:
        text, note = times.milliseconds(time.total.duration_s), times.line(time)
        found.append({"name": "inference", "text": text, "note": note})
    elif profile is not None and profile.headline:
        row = profile.headline[0]
        text, note = f"{row.inferences_per_s:,.1f}", f"the NPU alone, {_clock(profile)}, {row.source}"
        found.append({"name": "inferences/s", "text": text, "note": note})
    fullest = max(_regions(run), key=lambda row: row.used_bytes / row.size_bytes, default=None)
    if fullest is not None:
        text = f"{fullest.used_bytes / fullest.size_bytes:.0%}"
        found.append({"name": f"{fullest.name} used", "text": text, "note": _used(fullest)})
    return found


def _note(inputs: Inputs, source: str) -> str:
    """What cycles are worth, and that they are for another system than the program's where they are."""
    caveat = inputs.run.priced.caveat if inputs.run.priced is not None else ""
    return "; ".join(text for text in (caveat, _believed(inputs.run, source)) if text)


def rows(inputs: Inputs) -> list[tuple[str, str]]:
    """All figures of the summary, by name."""
    run, profile = inputs.run, inputs.profile
    of_profile = [] if profile is None else [*_speed(profile), *_work(profile.totals)]
    timed = profile if profile is not None and profile.time is not None else run
    return [*_what(run), *_time(timed), *_cycles(run), *of_profile, *_memory(run)]


def _what(run: Run) -> Iterator[tuple[str, str]]:
    yield "verdict", run.verdict.status
    yield "model", f"{run.model.file} ({run.model.bytes:,} bytes)"
    if run.target is not None:
        yield "target", f"{run.target.npu}-{run.target.macs}"
        yield "system configuration", run.target.system_config
        yield "memory mode", run.target.memory_mode
    yield "board", run.board
    yield "simulator", f"{run.simulator.name} {run.simulator.version}"
    yield "fidelity", run.simulator.fidelity.partition(f"; {_BAND}")[0]
    yield "inferences", f"{run.inferences:,}"


def _time(record: Run | Profile) -> Iterator[tuple[str, str]]:
    for name, text in times.rows(record):
        yield name or "clock", text


def _cycles(run: Run) -> Iterator[tuple[str, str]]:
    if run.npu is not None and run.npu.cycles is not None:
        cycles = run.npu.cycles
        yield "NPU cycles", f"{cycles.value:,} ({_believed(run, cycles.source)})"
    if run.priced is not None:
        yield "NPU cycles are", systems.line(run.priced)


def _speed(profile: Profile) -> Iterator[tuple[str, str]]:
    if profile.clock is not None:
        yield "NPU clock", f"{_clock(profile)} ({profile.clock.source})"
    if profile.priced is not None:
        yield "the profile is", systems.line(profile.priced)
    words = profile.caveat or "the NPU alone"
    for row in profile.totals.speed or ():
        yield (
            f"speed ({row.source})",
            f"{row.inferences_per_s:,.1f} inferences/s, {row.inference_s * 1e3:,.3f} ms each: {words}",
        )


def _work(totals: Totals) -> Iterator[tuple[str, str]]:
    yield "NPU operations", f"{totals.npu.operations:,}"
    yield "MACs", f"{totals.npu.macs:,}"
    ideal = totals.npu.macs_per_cycle.ideal
    for source, value in totals.npu.macs_per_cycle.known():
        share = f" ({value / ideal:.1%} of {ideal})" if ideal else ""
        yield f"MACs per cycle ({source})", f"{value:,.1f}{share}"
    yield "CPU operators", f"{totals.cpu.operators:,}"
    counted = totals.cpu.instructions
    if counted is not None:
        yield "CPU instructions", f"{counted.value:,} ({counted.source})"
    if totals.cpu.cycles is not None:
        yield "CPU cycles", f"{totals.cpu.cycles.value:,} ({totals.cpu.cycles.source})"


def _memory(run: Run) -> Iterator[tuple[str, str]]:
    for row in _regions(run):
        yield f"{row.name} used", _used(row)


def _regions(run: Run) -> list[Use]:
    return [row for row in run.memory.regions if row.size_bytes]


def _used(row: Use) -> str:
    return f"{row.used_bytes:,} of {row.size_bytes:,} bytes"


def _believed(run: Run, source: str) -> str:
    """Where cycles come from, with the error band that the record quotes for modelled ones."""
    band = run.simulator.fidelity.partition(_BAND)[2]
    return f"{source}, {band}" if band and source == "modelled" else source


def _checks(run: Run) -> str:
    checks = run.verdict.checks
    passed = sum(row.status == "pass" for row in checks)
    return f"{passed} of {len(checks)} checks passed"


def _clock(profile: Profile) -> str:
    return f"{profile.clock.hz / _MILLION:,.0f} MHz" if profile.clock is not None else "clock not known"
