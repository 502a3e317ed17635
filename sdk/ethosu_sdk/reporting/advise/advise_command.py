"""`ethosu-sdk advise`: suggest changes to a program, based on the records of its run; advice.json: ``advice/1``."""

from __future__ import annotations

import contextlib
import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar, get_args

from msgspec import convert
from msgspec.structs import replace
from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.base import filesystem, json_text
from ethosu_sdk.base.errors import InputError, SdkError, UsageError
from ethosu_sdk.base.plain_text import counted, cut
from ethosu_sdk.base.targets import suggestion
from ethosu_sdk.base.terminal import Ranked, Reporter, escape
from ethosu_sdk.records import bundle, kinds, provenance, result_files, trials, validation, wording
from ethosu_sdk.records.advice import (
    Advice,
    CandidateKind,
    Change,
    CpuCall,
    Figure,
    Item,
    Judge,
    Outputs,
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
from ethosu_sdk.records.time_line import headline
from ethosu_sdk.records.trials import Candidate, Measured, Outcome, Tries
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
from ethosu_sdk.reporting.advise.advice_rules import RULES, judge_facts
from ethosu_sdk.reporting.advise.candidates import candidates_of

About = TypeVar("About", Compilation, Debug)
_COSTS: dict[Judge, str] = {
    "fit": "cycles",
    "time of an inference": "time",
    "NPU and CPU cycles": "cycles",
    "NPU cycles": "NPU cycles",
}
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


_MOST_CHANGES = 4
_MOST_NAMES = 3
_LONGEST = 36  # text of a change in the table
_SHORT: dict[str, str] = {
    "NPU cycles": "NPU",
    "CPU instructions": "instructions",
    "operators that compute on the CPU": "CPU operators",
    "MACs per cycle that the NPU has": "MACs",
    "inputs and outputs": "bytes in and out",
}
_CHANGES = {rule.name: rule.change for rule in RULES}
_NEEDS: dict[CandidateKind, str] = {"target": "another NPU", "weights": "training"}
# The figure that stands for the time, the first that is known.
_TIMES = (TIME, TOTAL_CYCLES, NPU_CYCLES)


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
        raise InputError(f"nothing can be tried: {found.missing[COMPILE]}")
    return tuple(row for row in candidates_of(found, judge_facts(found).advice) if row.kind in wanted)


def advise(
    inputs: AdviceInputs, reporter: Reporter, tries: Tries | None = None, number: int | None = None
) -> Advice:
    """Judge a profiled program, with what came of `tries`; the record that was written. Of its changes, the one with
    `number` is shown alone."""
    found, files = _facts(inputs)
    try:
        record = _make_record(found, files, tries)
        if tries is None:
            record = replace(record, tried=_tried_before(inputs))
    except OverflowError as error:  # JSON has numbers without end, floats do not
        hint = "make the run again; `ethosu-sdk validate RUN_DIR` names records that were changed"
        raise InputError("a number in a record of the run is too large to be judged", hint) from error
    content = record.to_json()
    validation.check_record(content, "the advice")
    with filesystem.locked_folder(inputs.folder), bundle.writing_folder(inputs.folder, "advise") as add:
        json_text.write_json(inputs.folder / kinds.ADVICE.file, content)
        add(kinds.ADVICE.file)
    if number is not None:
        reporter.show(*change_tables(record, number), _after_a_change(inputs.folder))
    else:
        details = [*advice_tables(record), ""] if reporter.verbose else []
        reporter.show(*details, *answer(record, inputs.folder))
    reporter.emit(content)
    return record


def show_stored(folder: Path, number: int, reporter: Reporter) -> bool:
    """Show a change of the record that an earlier `advise` wrote to `folder`; whether there is one."""
    record = _stored(folder)
    if record is None:
        return False
    reporter.show(*change_tables(record, number), _after_a_change(folder))
    reporter.emit(record.to_json())
    return True


def _stored(folder: Path) -> Advice | None:
    path = folder / kinds.ADVICE.file
    try:
        record = read_record(path) if path.is_file() else None
    except InputError:  # it is written anew
        return None
    return record if isinstance(record, Advice) else None


def _tried_before(inputs: AdviceInputs) -> Tried | None:
    """What an earlier `advise --try` got for the same program with the same time; None without that."""
    old, time = _stored(inputs.folder), headline(inputs.profile)
    if old is None or old.tried is None or old.model.sha256 != inputs.profile.model.sha256:
        return None
    figures = [figure for row in old.tried.trials for figure in row.figures if figure.metric == TIME.name]
    now = 0.0 if time is None else time.total.duration_s * 1e3
    same = all(math.isclose(now, figure.before or 0.0, rel_tol=1e-6) for figure in figures)
    return old.tried if same and bool(figures) == (time is not None) else None


def _facts(inputs: AdviceInputs) -> tuple[Facts, list[tuple[str, Path]]]:
    compiled_file = result_files.compile_record_path(inputs.pte)
    debug_file = inputs.run_folder / kinds.DEBUG.file
    absent = "there is no record of `compile` beside the program: `ethosu-sdk advise MODEL` makes one"
    compiled, why = _read(compiled_file, kinds.COMPILE, inputs, absent)
    absent = f"there is no {kinds.DEBUG.file} beside the run: `ethosu-sdk debug MODEL -o RUN_DIR` makes one"
    debug, why_not = _read(debug_file, kinds.DEBUG, inputs, absent)
    missing = {COMPILE: why, DEBUG: why_not}
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
        message = f"{path} is a {kinds.schema(record)}, not a {kind.schema}"
        raise InputError(message, "give the folder of a run as it was made")
    if record.model.sha256 != inputs.profile.model.sha256:
        return None, f"{path.name} is about another program"
    return record, ""


def _make_record(facts: Facts, files: Sequence[tuple[str, Path]], tries: Tries | None) -> Advice:
    profile, verdict = facts.profile, judge_facts(facts)
    inputs = [provenance.file_entry(*row) for row in files]
    tools = [row.to_json() for row in profile.provenance.tools]
    tried = None
    if tries is not None:
        ranked = sorted(tries.outcomes, key=lambda row: trials.ranked_trials(tries.before, tries.exact, row))
        tried = Tried(
            judged_by=trials.judge_of(tries.before),
            simulator=convert(tries.simulator, SimulatorName),
            fits=tries.before.fits,
            trials=tuple(_trial(facts, tries, row) for row in ranked),
            left=tries.left,
        )
    return Advice(
        status="done",
        **provenance.origin(inputs, tools),
        model=profile.model,
        target=profile.target,
        advice=verdict.advice,
        cpu=cpu_rules.cpu_call_lines(facts) if facts.compilation is not None else None,
        tried=tried,
        silent=verdict.silent,
        unavailable=tuple(
            Unavailable(path=f"/{kind}", reason=facts.missing[kind])
            for kind in (COMPILE, DEBUG)
            if kind in facts.missing
        ),
        host=provenance.this_host(),
    )


def _trial(facts: Facts, tries: Tries, outcome: Outcome) -> Trial:
    candidate, measured, changed = outcome.candidate, outcome.measured, outcome.changed
    state = trials.trial_state(tries.before, tries.exact, outcome)
    saved = trials.trial_gain(tries.before, outcome)
    reason = outcome.reason
    if not reason and measured is not None and not measured.fits:
        reason = "it does not fit the memory of the board"
    elif not reason and state == "unjudged":
        how = "a run on QEMU (`ethosu-sdk advise MODEL --try`) counts them"
        reason = f"the CPU computes other operators, and its cycles were not counted: {how}"
    before_db, after_db = (
        round(row.sqnr_db, 2) if row is not None and math.isfinite(row.sqnr_db) else None
        for row in (tries.exact, outcome.exact)
    )
    if changed is None:
        text = outcome.why_no_distance or "the outputs have other shapes"
    elif changed.equal == changed.elements:
        text = "every output is equal"
    else:
        text = f"{changed.elements - changed.equal:,} of {changed.elements:,} output elements differ"
        if tries.exact is None or outcome.exact is None:
            no_float = "the model in floating point gave no outputs to compare with"
            text += f"; {outcome.why_no_distance or no_float}"
        else:
            ratios = (f"{round(row.sqnr_db, 2):.1f} dB" for row in (tries.exact, outcome.exact))
            text += f"; SQNR to floating point {' → '.join(ratios)}"
    state_of_outputs = trials.outputs_state(tries.exact, outcome)
    outputs = Outputs(state=state_of_outputs, text=text, sqnr_before_db=before_db, sqnr_after_db=after_db)
    return Trial(
        name=candidate.name,
        kind=candidate.kind,
        change=candidate.change,
        parts=candidate.parts,
        state=state,
        command=_command(facts, candidate),
        code=candidate.lines or None,
        figures=() if measured is None else tuple(_trial_figures(tries.before, measured)),
        gain=None if saved is None else round(saved, 6),
        fits=None if measured is None else measured.fits,
        outputs=None if measured is None else outputs,
        reason=reason or None,
        limits=candidate.limits,
    )


def _command(facts: Facts, candidate: Candidate) -> str | None:
    """The command line that compiles the program with the options of `candidate`; None where it has none."""
    options = dict(candidate.options)
    if not options:
        return None
    record = facts.compiled
    flags = options.pop("vela_flags", None)
    per = options.pop("quantize_per", None)
    files = result_files.recompile_files(record)
    words = shlex.split(result_files.recompile_command(record, *files, **options))
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
    def total(row: Measured) -> int | None:
        return None if row.cpu_cycles is None else (row.npu_cycles or 0) + row.cpu_cycles

    calls = [sum(row.cpu_calls.values()) for row in (before, after)]
    rows: tuple[tuple[Metric, float | None, float | None, Source | None], ...] = (
        (TIME, before.time_ms, after.time_ms, "modelled"),
        (NPU_CYCLES, before.npu_cycles, after.npu_cycles, "modelled"),
        (CPU_CYCLES, before.cpu_cycles, after.cpu_cycles, "modelled"),
        (TOTAL_CYCLES, total(before), total(after), "modelled"),
        (SRAM, before.sram_bytes, after.sram_bytes, None),
        (FLASH, before.flash_bytes, after.flash_bytes, None),
        (COMPUTING_OPERATORS, calls[0], calls[1], None),
    )
    for metric, old, new, source in rows:
        if new is not None:
            yield Figure(metric=metric.name, unit=metric.unit, before=old, after=new, source=source)


class Suggestion(NamedTuple):
    """A change to make: its cells in the table, and the title and rows of its details. `of` is the metric that the
    gain is of; empty where that is the one that all trials are judged by."""

    change: str
    figures: Mapping[str, tuple[float | None, float]]
    gain: str
    of: str
    outputs: str
    needs: str
    title: str
    pairs: Sequence[tuple[str, str]]


def suggestions(record: Advice) -> list[Suggestion]:
    """The changes that helped when they were tried, then those that the rules estimate; the best of each first."""
    tried = record.tried
    found = [_of_trial(row, tried) for row in tried.trials if trial_helps(row)] if tried is not None else []
    return found + [_of_rule(row) for row in record.advice if not was_tried(row, tried)]


def _of_trial(row: Trial, tried: Tried) -> Suggestion:
    change = " + ".join(row.parts)
    if len(change) > _LONGEST and len(row.parts) > 1:
        change = f"{row.parts[0]} + {len(row.parts) - 1} more"
    gain = "" if row.gain is None else wording.signed_percent(-100 * row.gain)
    return Suggestion(
        change,
        {figure.metric: (figure.before, figure.after) for figure in row.figures},
        "it fits" if tried.judged_by == "fit" and row.fits else gain,
        "",
        "" if row.outputs is None else row.outputs.state,
        _needs(row.command, row.code, row.kind),
        trial_title(row, tried),
        list(trial_pairs(row)),
    )


def _of_rule(row: Item) -> Suggestion:
    first = row.gains[0]
    figures: dict[str, tuple[float | None, float]] = {
        change.metric: (change.before, change.after) for change in (*row.gains, *row.costs)
    }
    gain = f"{wording.number_texts(first.after - first.before)[0]} {first.unit}"
    if first.before and first.unit != "dB":
        gain = wording.signed_percent(100 * (first.after - first.before) / abs(first.before))
    change = _CHANGES.get(row.rule, row.rule)
    where = f" ({row.where})" if row.where is not None else ""
    return Suggestion(
        change + where if len(change + where) <= _LONGEST else change,
        figures,
        gain,
        first.metric,
        "",
        _needs(row.command, row.code, "target" if row.rule == "smaller-target" else "program"),
        advice_title(row),
        list(advice_pairs(row)),
    )


def _needs(command: str | None, code: Sequence[str] | None, kind: CandidateKind) -> str:
    parts = ["option"] if command is not None else []
    return _NEEDS.get(kind, " + ".join([*parts, *(["code"] if code else [])]))


def answer(record: Advice, folder: Path) -> list[RenderableType]:
    """The changes in one table, the best first, what is on the CPU, and the next command."""
    found, tried = suggestions(record), record.tried
    metric = next((row for row in _TIMES if any(row.name in part.figures for part in found)), None)
    words = "estimated (--try runs them)" if tried is None else f"tried on {tried.simulator}"
    target = f" on {record.target.npu}-{record.target.macs}" if record.target is not None else ""
    head = f"{counted(len(found), 'change')} for {record.model.file}{target}" + (
        f", {words}" if found else ""
    )
    parts: list[RenderableType] = [escape(head)]
    if found:
        parts.append(_changes_table(found, metric))
    others = 0 if tried is None else len(tried.trials) + len(tried.left) - sum(map(trial_helps, tried.trials))
    rows = [("not advised", f"{counted(others, 'other change')} (-v)")] if others else []
    rows += [("on the CPU", _on_cpu(record.cpu))] if record.cpu else []
    place = shlex.quote(str(folder))
    rows.append(("next", f"ethosu-sdk advise {place} 1" if found else f"ethosu-sdk report {place}"))
    return [*parts, _pairs("", rows)]


def _changes_table(found: Sequence[Suggestion], metric: Metric | None) -> Table:
    time = "" if metric is None else str(metric.name)
    heading = ["time" if metric is TIME else time] if time else []
    judged = ["outputs"] if any(row.outputs for row in found) else []
    table = Ranked(box=None, pad_edge=False, drop=("needs", "SRAM"))
    for name in ["", "change", *heading, "gain", "SRAM", *judged, "needs"]:
        table.add_column(name, justify="right" if name in ["", "SRAM", *heading] else "left")

    def cell(row: Suggestion, name: str, side: int) -> str:
        value = row.figures[name][side] if name in row.figures else None
        if value is None:
            return ""
        return wording.milliseconds(value / 1e3) if name == TIME.name else _number(value)

    def before(name: str) -> str:
        return next((text for row in found if (text := cell(row, name, 0))), "")

    table.add_row("0", "as it is", *([before(time)] if time else []), "", before(SRAM.name))
    for number, row in enumerate(found[:_MOST_CHANGES], start=1):
        times = [cell(row, time, 1)] if time else []
        gain = row.gain if row.of in ("", time) else f"{row.gain} {_SHORT.get(row.of, row.of)}"
        outputs = [row.outputs or "not tried"] if judged else []
        cells = (cut(row.change, _LONGEST), *times, gain, cell(row, SRAM.name, 1), *outputs, row.needs)
        table.add_row(str(number), *map(escape, cells))
    if (left := len(found) - _MOST_CHANGES) > 0:
        table.add_row("", f"and {left} more: -v")
    return table


def _on_cpu(calls: Sequence[CpuCall]) -> str:
    """The operators that the NPU does not take, with their shares of the cycles, and of how many a replacement is
    known."""
    names, cycles = Counter[str](), Counter[str]()
    for row in calls:
        name = wording.short_operator(row.name)
        names[name] += row.calls
        cycles[name] += row.cycles or 0
    known = sum(row.calls for row in calls if row.replacement is not None)
    whole = cycles.total()
    order = sorted(names, key=lambda name: -cycles[name])
    shown = [f"{name} {wording.percent_text(cycles[name] / whole)}" if whole else name for name in order]
    more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
    return (
        f"{counted(names.total(), 'operator')}, {known} avoidable: {', '.join((*shown[:_MOST_NAMES], *more))}"
    )


def change_tables(record: Advice, number: int) -> list[RenderableType]:
    """All that is known of the change with that number. UsageError where there is none."""
    found = suggestions(record)
    if not 1 <= number <= len(found):
        known = f"there are 1 to {len(found)}" if found else "there are none"
        raise UsageError(f"there is no change {number}: {known}")
    row = found[number - 1]
    return [f"[bold]{number}. {escape(row.title)}[/bold]", _pairs("", row.pairs)]


def _after_a_change(folder: Path) -> RenderableType:
    place, model = shlex.quote(str(folder)), "MODEL"
    for path in sorted(folder.glob(kinds.COMPILE.name("*")))[:1]:
        with contextlib.suppress(SdkError):  # a damaged one has no name to give
            compiled = kinds.COMPILE.convert(bundle.read_raw_record(path))
            model = shlex.join((compiled.source, "--target", compiled.target_name))
    return _pairs("", [("next", f"ethosu-sdk run {model} -o after, then ethosu-sdk compare {place} after")])


def advice_tables(record: Advice) -> list[RenderableType]:
    """A table for each change, the best first, a line for each operator on the CPU, and the rules and trials that
    advise nothing."""
    parts: list[RenderableType] = []
    for number in range(1, len(suggestions(record)) + 1):
        parts += [*change_tables(record, number), ""]
    tried = record.tried
    if tried is not None:
        others = [(row.name, _other(row)) for row in tried.trials if not trial_helps(row)]
        others += [(name, "not tried: it was stopped before") for name in tried.left]
        parts += [_pairs("tried, and not advised", others), ""] if others else []
    if record.cpu:
        rows: list[tuple[str, str]] = []
        for call in record.cpu:
            calls = f" ({call.calls} calls)" if call.calls > 1 else ""
            rows.append((call.name + calls, call.where or "place not known"))
            rows += [(f"  {name}", text) for name, text in cpu_pairs(call)]
        parts += [_pairs("on the CPU", rows), ""]
    return [*parts, _pairs("silent rules", ((row.rule, row.reason) for row in record.silent), no_wrap=True)]


def trial_helps(row: Trial) -> bool:
    return row.state in ("better", "smaller", "closer")


def trial_title(row: Trial, tried: Tried) -> str:
    """The change, and what it brought."""
    gain = "" if row.gain is None else f" {-row.gain:+.1%}"
    if tried.judged_by == "fit" and row.fits:
        return f"{row.name}: it fits,{gain} cycles" if gain else f"{row.name}: it fits"
    if row.state in ("smaller", "closer"):
        cost = "" if row.gain is None else f", {_COSTS[tried.judged_by]}{gain}"
        return f"{row.name}: {_brought(row)}{cost}"
    return f"{row.name}: {STATES[row.state]}{gain}"


def _brought(row: Trial) -> str:
    """What a change brought that saves no time: bytes, or decibels."""
    outputs = row.outputs
    if row.state == "closer" and outputs is not None and outputs.sqnr_after_db is not None:
        before = "" if outputs.sqnr_before_db is None else f" instead of {outputs.sqnr_before_db:.1f} dB"
        return f"SQNR {outputs.sqnr_after_db:.1f} dB{before}"
    sizes = (figure for figure in row.figures if figure.metric in ("SRAM", "flash") and figure.before)
    steps = ((figure.metric, figure.after / (figure.before or 1) - 1) for figure in sizes)
    return ", ".join(f"{metric} {step:+.1%}" for metric, step in steps if step < 0) or STATES[row.state]


def trial_pairs(row: Trial) -> Iterator[tuple[str, str]]:
    """A trial as names and texts."""
    yield "change", row.change
    if row.command is not None:
        yield "do", row.command
    for line in row.code or ():
        yield "write", line
    for figure in row.figures:
        if figure.before != figure.after:
            source = f" ({figure.source})" if figure.source is not None else ""
            share = f", {figure.after / figure.before - 1:+.1%}" if figure.before else ""
            before = "unknown" if figure.before is None else _number(figure.before)
            steps = f"{before} → {_number(figure.after)}{_unit(figure)}{share}{source}"
            yield "got", f"{figure.metric} {steps}"
    if row.outputs is not None:
        yield "outputs", f"{row.outputs.state}: {row.outputs.text}"
    for limit in row.limits:
        yield "but", limit


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


def _pairs(title: str, rows: Iterable[tuple[str, str]], *, no_wrap: bool = False) -> Table:
    """Names and texts under a title; with `no_wrap`, names stay on their line."""
    table = Table(
        title=escape(title) or None, title_justify="left", box=None, show_header=False, pad_edge=False
    )
    table.add_column(no_wrap=no_wrap, overflow="ellipsis" if no_wrap else "fold")
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


def _unit(row: Figure | Change) -> str:
    """The unit, where the metric's name does not say it."""
    return "" if row.metric.endswith(row.unit) or row.unit == "calls" else f" {row.unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"


def advice_title(row: Item) -> str:
    """The rule of an advice, what it is about, and the first gain."""
    where = f" ({row.where})" if row.where is not None else ""
    return f"{row.rule}{where}: {_change_text(row.gains[0])}"


def advice_pairs(row: Item) -> Iterator[tuple[str, str]]:
    """An advice as names and texts."""
    yield "seen", row.finding
    for figure in row.evidence:
        source = f" ({figure.source})" if figure.source is not None else ""
        text = f"{wording.number_texts(figure.value)[0]} {figure.unit}{source}"
        yield "evidence", f"{figure.name}: {text}"
    if row.command is not None:
        yield "do", row.command
    for line in row.code or ():
        yield "write", line
    for name, changes in (("gain", row.gains), ("cost", row.costs)):
        for change in changes:
            yield name, f"{_change_text(change)}: {change.how}"
    for limit in row.limits:
        yield "but", limit


def _change_text(change: Change) -> str:
    before, after = change.before, change.after
    steps = " → ".join(wording.number_texts(before, after))
    share = f", {(after - before) / abs(before):+.1%}" if before and change.unit != "dB" else ""
    source = f"{change.source} → expected" if change.source is not None else "expected"
    return f"{change.metric} {steps}{_unit(change)} ({source}{share})"
