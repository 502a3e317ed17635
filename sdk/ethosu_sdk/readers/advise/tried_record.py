"""The trials of a record: what was changed, before and after, what became of the outputs; the best first."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator

from msgspec import convert

from ethosu_sdk.readers.advise.advice import (
    COMPUTING_OPERATORS,
    CPU_CYCLES,
    FLASH,
    NPU_CYCLES,
    SRAM,
    TIME,
    TOTAL_CYCLES,
    Metric,
)
from ethosu_sdk.readers.advise.facts import Facts
from ethosu_sdk.records.advice import Figure, Outputs, SimulatorName, Trial, Tried
from ethosu_sdk.records.common import Source
from ethosu_sdk.results import compile_again, trial_verdict
from ethosu_sdk.results.trials import Candidate, Distance, Measured, Outcome, Tries

_UNJUDGED = (
    "the CPU computes other operators, and its cycles were not counted: a run on QEMU (`ethosu-sdk advise MODEL "
    "--try`) counts them"
)
_TOO_LARGE = "it does not fit the memory of the board"
_OTHER_SHAPES = "the outputs have other shapes"
_NO_FLOAT = "the model in floating point gave no outputs to compare with"


def make(facts: Facts, tries: Tries) -> Tried:
    """What a record has of `tries` on the program of `facts`."""
    before = tries.before
    ranked = sorted(tries.outcomes, key=lambda row: trial_verdict.rank(before, tries.exact, row))
    return Tried(
        judged_by=trial_verdict.judge_of(before),
        simulator=convert(tries.simulator, SimulatorName),
        fits=before.fits,
        trials=tuple(_trial(facts, tries, row) for row in ranked),
        left=tries.left,
    )


def _trial(facts: Facts, tries: Tries, outcome: Outcome) -> Trial:
    candidate = outcome.candidate
    state = trial_verdict.state(tries.before, tries.exact, outcome)
    saved = trial_verdict.gain(tries.before, outcome)
    return Trial(
        name=candidate.name,
        kind=candidate.kind,
        change=candidate.change,
        parts=candidate.parts,
        state=state,
        command=_command(facts, candidate),
        code=candidate.lines or None,
        figures=() if outcome.measured is None else tuple(_figures(tries.before, outcome.measured)),
        gain=None if saved is None else round(saved, 6),
        fits=None if outcome.measured is None else outcome.measured.fits,
        outputs=None if outcome.measured is None else _outputs(tries.exact, outcome),
        reason=_reason(outcome, state) or None,
        limits=candidate.limits,
    )


def _reason(outcome: Outcome, state: str) -> str:
    if outcome.reason:
        return outcome.reason
    if outcome.measured is not None and not outcome.measured.fits:
        return _TOO_LARGE
    return _UNJUDGED if state == "unjudged" else ""


def _command(facts: Facts, candidate: Candidate) -> str | None:
    """The command line that compiles the program with the options of `candidate`; None where it has none."""
    options = dict(candidate.options)
    if not options:
        return None
    record = facts.compiled
    flags = options.pop("vela_flags", None)
    per = options.pop("quantize_per", None)
    words = shlex.split(compile_again.command(record, *compile_again.files(record), **options))
    if flags is not None:
        words = [row for row in words if not row.startswith("--extra-vela-flag")]
        words += [f"--extra-vela-flag={row}" for row in flags]
    if per is not None:
        if "--quantize-per" in words:
            place = words.index("--quantize-per")
            del words[place : place + 2]
        words += ["--quantize-per", per]
    return shlex.join(words)


def _figures(before: Measured, after: Measured) -> Iterator[Figure]:
    yield from _figure(TIME, before.time_ms, after.time_ms, "modelled")
    yield from _figure(NPU_CYCLES, before.npu_cycles, after.npu_cycles, "modelled")
    yield from _figure(CPU_CYCLES, before.cpu_cycles, after.cpu_cycles, "modelled")
    yield from _figure(TOTAL_CYCLES, _total(before), _total(after), "modelled")
    yield from _figure(SRAM, before.sram_bytes, after.sram_bytes)
    yield from _figure(FLASH, before.flash_bytes, after.flash_bytes)
    yield from _figure(COMPUTING_OPERATORS, sum(before.cpu_calls.values()), sum(after.cpu_calls.values()))


def _total(row: Measured) -> int | None:
    return None if row.cpu_cycles is None else (row.npu_cycles or 0) + row.cpu_cycles


def _figure(
    metric: Metric, before: float | None, after: float | None, source: Source | None = None
) -> Iterator[Figure]:
    if after is not None:
        yield Figure(metric=metric.name, unit=metric.unit, before=before, after=after, source=source)


def _outputs(exact: Distance | None, outcome: Outcome) -> Outputs:
    return Outputs(
        state=trial_verdict.outputs_state(exact, outcome),
        text=_words(exact, outcome),
        sqnr_before_db=_finite(exact),
        sqnr_after_db=_finite(outcome.exact),
    )


def _finite(distance: Distance | None) -> float | None:
    known = distance is not None and math.isfinite(distance.sqnr_db)
    return round(distance.sqnr_db, 2) if known and distance is not None else None


def _words(exact: Distance | None, outcome: Outcome) -> str:
    changed = outcome.changed
    if changed is None:
        return outcome.why_no_distance or _OTHER_SHAPES
    if changed.equal == changed.elements:
        return "every output is equal"
    text = f"{changed.elements - changed.equal:,} of {changed.elements:,} output elements differ"
    if exact is None or outcome.exact is None:
        return f"{text}; {outcome.why_no_distance or _NO_FLOAT}"
    return f"{text}; SQNR to floating point {_db(exact)} → {_db(outcome.exact)}"


def _db(distance: Distance) -> str:
    return f"{round(distance.sqnr_db, 2):.1f} dB"  # as the record has it
