"""`ethosu-sdk advise`: suggest changes to a program, based on the records of its run; advice.json: ``advice/1``."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar, get_args

from msgspec import convert
from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.base import filesystem, json_text
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.records import bundle, kinds, provenance, result_files, trials, validation, wording
from ethosu_sdk.records.advice import (
    Advice,
    CandidateKind,
    Change,
    CpuCall,
    Evidence,
    Figure,
    Item,
    Judge,
    Outputs,
    SilentRule,
    SimulatorName,
    Trial,
    Tried,
)
from ethosu_sdk.records.bundle import read_record
from ethosu_sdk.records.common import RecordKind, Source, Unavailable
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.debug import Debug
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run_facts import ProgramFacts
from ethosu_sdk.records.trials import Candidate, Distance, Measured, Outcome, Tries
from ethosu_sdk.reporting.advise import advice_facts, cpu_rules
from ethosu_sdk.reporting.advise.advice_facts import (
    COMPILE,
    COMPUTING_OPERATORS,
    CPU_CYCLES,
    DEBUG,
    FLASH,
    NPU_CYCLES,
    SRAM,
    TIME,
    TOTAL_CYCLES,
    Facts,
    Metric,
)
from ethosu_sdk.reporting.advise.advice_rules import AdviceVerdict, judge_facts
from ethosu_sdk.reporting.advise.candidates import candidates_of

_UNJUDGED = (
    "the CPU computes other operators, and its cycles were not counted: a run on QEMU (`ethosu-sdk advise MODEL "
    "--try`) counts them"
)
_TOO_LARGE = "it does not fit the memory of the board"
_OTHER_SHAPES = "the outputs have other shapes"
_NO_FLOAT = "the model in floating point gave no outputs to compare with"


def make_tried(facts: Facts, tries: Tries) -> Tried:
    """What a record has of `tries` on the program of `facts`."""
    before = tries.before
    ranked = sorted(tries.outcomes, key=lambda row: trials.ranked_trials(before, tries.exact, row))
    return Tried(
        judged_by=trials.judge_of(before),
        simulator=convert(tries.simulator, SimulatorName),
        fits=before.fits,
        trials=tuple(_trial(facts, tries, row) for row in ranked),
        left=tries.left,
    )


def _trial(facts: Facts, tries: Tries, outcome: Outcome) -> Trial:
    candidate = outcome.candidate
    state = trials.trial_state(tries.before, tries.exact, outcome)
    saved = trials.trial_gain(tries.before, outcome)
    return Trial(
        name=candidate.name,
        kind=candidate.kind,
        change=candidate.change,
        parts=candidate.parts,
        state=state,
        command=_command(facts, candidate),
        code=candidate.lines or None,
        figures=() if outcome.measured is None else tuple(_trial_figures(tries.before, outcome.measured)),
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
    words = shlex.split(
        result_files.recompile_command(record, *result_files.recompile_files(record), **options)
    )
    if flags is not None:
        words = [row for row in words if not row.startswith("--extra-vela-flag")]
        words += [f"--extra-vela-flag={row}" for row in flags]
    if per is not None:
        if "--quantize-per" in words:
            place = words.index("--quantize-per")
            del words[place : place + 2]
        words += ["--quantize-per", per]
    return shlex.join(words)


def _trial_figures(before: Measured, after: Measured) -> Iterator[Figure]:
    yield from _trial_figure(TIME, before.time_ms, after.time_ms, "modelled")
    yield from _trial_figure(NPU_CYCLES, before.npu_cycles, after.npu_cycles, "modelled")
    yield from _trial_figure(CPU_CYCLES, before.cpu_cycles, after.cpu_cycles, "modelled")
    yield from _trial_figure(TOTAL_CYCLES, _total(before), _total(after), "modelled")
    yield from _trial_figure(SRAM, before.sram_bytes, after.sram_bytes)
    yield from _trial_figure(FLASH, before.flash_bytes, after.flash_bytes)
    yield from _trial_figure(
        COMPUTING_OPERATORS, sum(before.cpu_calls.values()), sum(after.cpu_calls.values())
    )


def _total(row: Measured) -> int | None:
    return None if row.cpu_cycles is None else (row.npu_cycles or 0) + row.cpu_cycles


def _trial_figure(
    metric: Metric, before: float | None, after: float | None, source: Source | None = None
) -> Iterator[Figure]:
    if after is not None:
        yield Figure(metric=metric.name, unit=metric.unit, before=before, after=after, source=source)


def _outputs(exact: Distance | None, outcome: Outcome) -> Outputs:
    return Outputs(
        state=trials.outputs_state(exact, outcome),
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


RECORD_NAME = kinds.ADVICE.file


def make_advice_record(
    facts: Facts, verdict: AdviceVerdict, files: Sequence[tuple[str, Path]], tries: Tries | None = None
) -> Advice:
    """The record. `files` are what it was made from, each with its role; `tries` are what came of changes."""
    profile = facts.profile
    inputs = [provenance.file_entry(*row) for row in files]
    tools = [row.to_json() for row in profile.provenance.tools]
    return Advice(
        status="done",
        **provenance.origin(inputs, tools),
        model=profile.model,
        target=profile.target,
        advice=verdict.advice,
        cpu=cpu_rules.cpu_call_lines(facts) if facts.compilation is not None else None,
        tried=None if tries is None else make_tried(facts, tries),
        silent=verdict.silent,
        unavailable=tuple(
            Unavailable(path=f"/{kind}", reason=facts.missing[kind])
            for kind in (COMPILE, DEBUG)
            if kind in facts.missing
        ),
        host=provenance.this_host(),
    )


_BY_OTHERS = ("smaller", "closer")
_COSTS: dict[Judge, str] = {
    "fit": "cycles",
    "time of an inference": "time",
    "NPU and CPU cycles": "cycles",
    "NPU cycles": "NPU cycles",
}
_HELPS = ("better", "smaller", "closer")
STATES = {
    "better": "better",
    "smaller": "smaller",
    "closer": "closer to floating point",
    "same": "no gain",
    "worse": "worse",
    "broken": "outputs break",
    "unjudged": "not judged",
    "failed": "failed",
}
JUDGES = {
    "fit": "whether it fits the memory of the board, then by its cycles",
    "time of an inference": "the time of an inference",
    "NPU and CPU cycles": "NPU and CPU cycles together, since the clock of the CPU is not known",
    "NPU cycles": "NPU cycles, since those of the CPU were not counted",
}


def tried_tables(tried: Tried) -> list[RenderableType]:
    """A table for each change that helps, the best first; then a line for each of the others."""
    head = f"tried on {tried.simulator}, judged by {JUDGES[tried.judged_by]}"
    parts: list[RenderableType] = [head, ""]
    found = [row for row in tried.trials if trial_helps(row)]
    for number, row in enumerate(found, start=1):
        parts += [_pairs(f"{number}. {trial_title(row, tried)}", trial_pairs(row)), ""]
    if not found:
        parts += ["no change that was tried helps", ""]
    others = [(row.name, _other(row)) for row in tried.trials if not trial_helps(row)]
    others += [(name, "not tried: it was stopped before") for name in tried.left]
    return [*parts, _pairs("tried, and not advised", others)] if others else parts[:-1]


def trial_helps(row: Trial) -> bool:
    """Whether a change is advised."""
    return row.state in _HELPS


def trial_title(row: Trial, tried: Tried) -> str:
    """The change, and what it brought."""
    gain = "" if row.gain is None else f" {-row.gain:+.1%}"
    if tried.judged_by == "fit" and row.fits:
        return f"{row.name}: it fits,{gain} cycles" if gain else f"{row.name}: it fits"
    if row.state in _BY_OTHERS:
        cost = "" if row.gain is None else f", {_COSTS[tried.judged_by]}{gain}"
        return f"{row.name}: {_brought(row)}{cost}"
    return f"{row.name}: {STATES[row.state]}{gain}"


def _brought(row: Trial) -> str:
    """What a change brought that saves no time: bytes, or decibels."""
    outputs = row.outputs
    if row.state == "closer" and outputs is not None and outputs.sqnr_after_db is not None:
        before = "" if outputs.sqnr_before_db is None else f" instead of {outputs.sqnr_before_db:.1f} dB"
        return f"SQNR {outputs.sqnr_after_db:.1f} dB{before}"
    saved = [
        f"{figure.metric} {figure.after / figure.before - 1:+.1%}"
        for figure in row.figures
        if figure.metric in ("SRAM", "flash") and figure.before and figure.after < figure.before
    ]
    return ", ".join(saved) if saved else STATES[row.state]


def trial_pairs(row: Trial) -> Iterator[tuple[str, str]]:
    """A trial as names and texts."""
    yield "change", row.change
    if row.command is not None:
        yield "do", row.command
    for line in row.code or ():
        yield "write", line
    for figure in row.figures:
        if figure.before != figure.after:
            yield "got", _trial_figure_text(figure)
    if row.outputs is not None:
        yield "outputs", f"{row.outputs.state}: {row.outputs.text}"
    for limit in row.limits:
        yield "but", limit


def cpu_table(rows: Sequence[CpuCall]) -> Table:
    """A few lines for each operator on the CPU."""
    found: list[tuple[str, str]] = []
    for row in rows:
        calls = f" ({row.calls} calls)" if row.calls > 1 else ""
        found.append((row.name + calls, row.where or "place not known"))
        found += [(f"  {name}", text) for name, text in cpu_pairs(row)]
    return _pairs("on the CPU", found)


def cpu_pairs(row: CpuCall) -> Iterator[tuple[str, str]]:
    """Why an operator is on the CPU, what it costs and what replaces it, as names and texts."""
    yield "why", row.why
    if row.constraint is not None:
        yield "taken", row.constraint
    if row.cycles is not None:
        border = f", and {row.border_cycles:,} for its borders" if row.border_cycles else ""
        yield "costs", f"{row.cycles:,} CPU cycles (modelled){border}"
    elif row.instructions is not None:
        yield "costs", f"{row.instructions:,} instructions (counted)"
    if row.replacement is not None:
        yield "instead", row.replacement
    if row.results is not None:
        yield "results", row.results


def _pairs(title_text: str, rows: Sequence[tuple[str, str]] | Iterator[tuple[str, str]]) -> Table:
    table = Table(title=escape(title_text), title_justify="left", box=None, show_header=False, pad_edge=False)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(escape(name), escape(text))
    return table


def _other(row: Trial) -> str:
    if row.fits is False and row.reason is not None and row.state != "broken":
        return row.reason
    gain = "" if row.gain is None else f" ({-row.gain:+.1%})"
    outputs = f"; {row.outputs.text}" if row.outputs is not None and row.state == "broken" else ""
    reason = f": {row.reason}" if row.reason is not None else ""
    return f"{STATES[row.state]}{gain}{outputs}{reason}"


def was_tried(item: Item, tried: Tried | None) -> bool:
    """Whether the command line or the lines of an advice were tried."""
    return tried is not None and any(
        (row.command is not None and row.command == item.command)
        or (row.code is not None and row.code == item.code)
        for row in tried.trials
        if len(row.parts) == 1
    )


def _trial_figure_text(row: Figure) -> str:
    source = f" ({row.source})" if row.source is not None else ""
    share = f", {row.after / row.before - 1:+.1%}" if row.before else ""
    before = "unknown" if row.before is None else _number(row.before)
    unit = "" if row.metric.endswith(row.unit) or row.unit == "calls" else f" {row.unit}"
    return f"{row.metric} {before} → {_number(row.after)}{unit}{share}{source}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"


def advice_tables(record: Advice, folder: Path) -> list[RenderableType]:
    """What was tried, the best first; a table for each advice, what saves most first; a line for each operator on the
    CPU; the rules that are silent."""
    parts: list[RenderableType] = []
    if record.tried is not None:
        parts += [*tried_tables(record.tried), ""]
    advice = [row for row in record.advice if not was_tried(row, record.tried)]
    if advice and record.tried is not None:
        parts += ["estimated by the rules, and not tried:", ""]
    for number, row in enumerate(advice, start=1):
        parts += [_advice(number, row), ""]
    if not advice and record.tried is None:
        parts += ["no rule has advice", ""]
    if record.cpu:
        parts += [cpu_table(record.cpu), ""]
    return [*parts, _silent(record.silent), "", f"files  {escape(str(folder))}"]


def _advice(number: int, row: Item) -> Table:
    table = Table(
        title=escape(f"{number}. {advice_title(row)}"),
        title_justify="left",
        box=None,
        show_header=False,
        pad_edge=False,
    )
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in advice_pairs(row):
        table.add_row(name, escape(text))
    return table


def advice_title(row: Item) -> str:
    """The rule of an advice, what it is about, and the first gain."""
    where = f" ({row.where})" if row.where is not None else ""
    return f"{row.rule}{where}: {_change_text(row.gains[0])}"


def advice_pairs(row: Item) -> Iterator[tuple[str, str]]:
    """An advice as names and texts."""
    yield "seen", row.finding
    for figure in row.evidence:
        yield "evidence", _figure_text(figure)
    if row.command is not None:
        yield "do", row.command
    for line in row.code or ():
        yield "write", line
    for change in row.gains:
        yield "gain", f"{_change_text(change)}: {change.how}"
    for change in row.costs:
        yield "cost", f"{_change_text(change)}: {change.how}"
    for limit in row.limits:
        yield "but", limit


def _figure_text(figure: Evidence) -> str:
    source = f" ({figure.source})" if figure.source is not None else ""
    return f"{figure.name}: {wording.number_texts(figure.value)[0]} {figure.unit}{source}"


def _change_text(change: Change) -> str:
    before, after = change.before, change.after
    texts = wording.number_texts(before, after)
    unit = "" if change.metric.endswith(change.unit) or change.unit == "calls" else f" {change.unit}"
    share = f", {(after - before) / abs(before):+.1%}" if before and change.unit != "dB" else ""
    source = f"{change.source} → expected" if change.source is not None else "expected"
    return f"{change.metric} {' → '.join(texts)}{unit} ({source}{share})"


def _silent(rows: Sequence[SilentRule]) -> Table:
    table = Table(title="silent rules", title_justify="left", box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(escape(row.rule), escape(row.reason))
    return table


About = TypeVar("About", Compilation, Debug)

_NO_COMPILE = "there is no record of `compile` beside the program: `ethosu-sdk advise MODEL` makes one"
_VALIDATE = "make the run again; `ethosu-sdk validate RUN_DIR` names records that were changed"
_NO_DEBUG = f"there is no {kinds.DEBUG.file} beside the run: `ethosu-sdk debug MODEL -o RUN_DIR` makes one"


@dataclass(frozen=True)
class AdviceInputs:
    """What is judged: a `profile`, written to `folder`, with the folder of its run, the program and its facts."""

    folder: Path
    run_folder: Path
    pte: Path
    profile: Profile
    program: ProgramFacts


def kinds_of_changes(names: str | None) -> tuple[CandidateKind, ...]:
    """The kinds of changes in the list `names`; all without one. UsageError for a name that is none."""
    known: tuple[CandidateKind, ...] = get_args(CandidateKind)
    wanted = known if names is None else tuple(word.strip() for word in names.split(","))
    for word in wanted:
        if word not in known:
            raise UsageError(f"there are no changes of the kind '{word}'", suggestion(word, known))
    return tuple(row for row in known if row in wanted)


def wanted_candidates(inputs: AdviceInputs, wanted: Sequence[CandidateKind]) -> tuple[Candidate, ...]:
    """What can be tried of the `wanted` kinds. InputError without a record of `compile`."""
    found, _ = _facts(inputs)
    if found.compilation is None:
        raise InputError(f"nothing can be tried: {found.missing[advice_facts.COMPILE]}")
    return tuple(row for row in candidates_of(found, judge_facts(found).advice) if row.kind in wanted)


def advise(inputs: AdviceInputs, reporter: Reporter, tries: Tries | None = None) -> Advice:
    """Judge a profiled program, with what came of `tries`; the record that was written."""
    found, files = _facts(inputs)
    try:
        record = make_advice_record(found, judge_facts(found), files, tries)
    except OverflowError as error:  # JSON has numbers without end, floats do not
        raise InputError("a number in a record of the run is too large to be judged", _VALIDATE) from error
    content = record.to_json()
    validation.check_record(content, "the advice")
    with filesystem.locked_folder(inputs.folder), bundle.writing_folder(inputs.folder, "advise") as add:
        json_text.write_json(inputs.folder / RECORD_NAME, content)
        add(RECORD_NAME)
    reporter.show(*advice_tables(record, inputs.folder))
    reporter.emit(content)
    return record


def _facts(inputs: AdviceInputs) -> tuple[advice_facts.Facts, list[tuple[str, Path]]]:
    """The facts of a profiled program, and the files that they are from."""
    compiled_file = result_files.compile_record_path(inputs.pte)
    debug_file = inputs.run_folder / kinds.DEBUG.file
    compiled, why = _read(compiled_file, kinds.COMPILE, inputs, _NO_COMPILE)
    debug, why_not = _read(debug_file, kinds.DEBUG, inputs, _NO_DEBUG)
    missing = {advice_facts.COMPILE: why, advice_facts.DEBUG: why_not}
    found = advice_facts.facts_of(inputs.program, inputs.profile, compiled, debug, missing)
    files = [("model", inputs.pte), ("profile", inputs.folder / kinds.PROFILE.file)]
    files += [("compile", compiled_file)] if compiled is not None else []
    files += [("debug", debug_file)] if debug is not None else []
    return found, files


def _read(path: Path, kind: RecordKind[About], inputs: AdviceInputs, absent: str) -> tuple[About | None, str]:
    """The record of `kind` at `path`, or why there is none. InputError when it is not what it says."""
    if not path.is_file():
        return None, absent
    record = read_record(path)
    if not isinstance(record, kind.content):
        raise InputError(
            f"{path} is a {kinds.schema(record)}, not a {kind.schema}",
            "give the folder of a run as it was made",
        )
    if record.model.sha256 != inputs.profile.model.sha256:
        return None, f"{path.name} is about another program"
    return record, ""
