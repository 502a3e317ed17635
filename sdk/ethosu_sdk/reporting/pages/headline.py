"""The figures at the top: what limits the inference, what ran where, how fast, and with how much memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ethosu_sdk.records import operation_tree, trials, wording
from ethosu_sdk.records.advice import Advice
from ethosu_sdk.records.common import Metric, VerdictCheck
from ethosu_sdk.records.compile import Compilation
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.records.sequences import Generate
from ethosu_sdk.records.time_line import TimeLine
from ethosu_sdk.reporting.pages import advice_rows, run_rows
from ethosu_sdk.reporting.pages.report_inputs import ReportInputs


def run_title(inputs: ReportInputs) -> str:
    model, target = run_rows.model_name(inputs), run_rows.target_name(inputs)
    return f"{model} on {target}" if target else model


def page_title(all_inputs: Sequence[ReportInputs]) -> str:
    found = list(dict.fromkeys(map(run_title, all_inputs)))
    models = {run_rows.model_name(inputs) for inputs in all_inputs}
    if len(found) == 1:
        return found[0] + (f", {len(all_inputs)} runs" if len(all_inputs) > 1 else "")
    if len(models) == 1:
        targets = dict.fromkeys(run_rows.target_name(inputs) or "the CPU" for inputs in all_inputs)
        return f"{models.pop()} on {' and '.join(targets)}"
    return " · ".join(found)


def limit_words(inputs: ReportInputs) -> str:
    """What went wrong or limits the inference, in a sentence or two, and which outputs are far from the model's."""
    no_room, reference = inputs.facts.no_room, inputs.run.reference
    wrong = [no_room] if no_room else []
    wrong += [f"failed: {words}" for words in map(_check_words, _failed(inputs.run))]
    first = "".join(f"{words[:1].upper()}{words[1:]}. " for words in wrong)
    far = "".join(
        f" Output {row.index} differs from {run_rows.reference_words(inputs)} in {row.elements - row.equal:,} of "
        f"{row.elements:,} elements, with an SQNR of {row.sqnr_db:.1f} dB."
        for row in (reference.outputs if reference is not None else ())
        if row.sqnr_db is not None and row.sqnr_db < trials.BROKEN_DB
    )
    return f"{first}{_pace(inputs)}{far}"


def _failed(run: Run) -> list[VerdictCheck]:
    return [row for row in run.verdict.checks if row.status != "pass"]


def _check_words(row: VerdictCheck) -> str:
    return ": ".join(filter(None, (row.name, row.detail)))


def stale_words(inputs: ReportInputs) -> str:
    """Which files of the folder are of another program than the run, and what helps; empty where none is."""
    if not inputs.stale:
        return ""
    names = ", ".join(inputs.stale)
    return (
        f"The folder holds files of two programs: {names} {'is' if len(inputs.stale) == 1 else 'are'} not of the "
        "program that the run executed. What needs them is left out. "
        f"`ethosu-sdk run {inputs.run.model.file} -o RUN_DIR` runs the program that lies there now."
    )


def _pace(inputs: ReportInputs) -> str:
    time = run_rows.time_of(inputs)
    if time is None:
        found = _known_cycles(inputs.run)
        cycles = f"The {found[0]} takes {found[1].value:,} cycles; t" if found is not None else "T"
        reason = next((row.reason for row in inputs.run.unavailable if row.path == "/time"), "")
        return f"{cycles}he time of an inference with the CPU is not known{f': {reason}' if reason else ''}."
    largest = {"CPU": wording.largest_on_cpu(time), "NPU": _largest_on_npu(inputs.profile, time)}
    (slower, share), *_ = by_time = _by_time(time)
    known = [f"of the {name}: {largest[name]}" for name, part in by_time if part and largest[name]]
    # A system of Vela's is no board.
    run, elsewhere = inputs.run, ""
    if time.place not in (run.board, run.priced.system.name if run.priced is not None else ""):
        where = (
            "executed on this machine" if run.board == "host" else f"simulated on {run.board.capitalize()}"
        )
        elsewhere = f" The program was {where}; its time is for {time.place}."
    return (
        f"The {slower} sets the pace with {share:.0f} % of the time. Largest part {'; '.join(known)}."
        f"{_busiest(time) if slower == 'NPU' else ''}{elsewhere}"
    )


def _known_cycles(run: Run) -> tuple[str, Metric] | None:
    """The cycles of an inference on the NPU, or on the CPU where nothing runs on an NPU."""
    if run.npu is not None and run.npu.cycles is not None:
        return "NPU", run.npu.cycles
    if run.npu is None and run.cpu is not None and run.cpu.cycles is not None:
        return "CPU", run.cpu.cycles
    return None


def _largest_on_npu(profile: Profile | None, time: TimeLine) -> str:
    """The operator that takes the NPU longest, all calls of its NPU operations together; empty without a profile."""
    npu = time.clocks.npu
    if profile is None or npu is None:
        return ""
    groups = operation_tree.group_operations(row for row in profile.operations if row.runs_on == "NPU")
    found = [(sum(row.calls * row.modelled_cycles for row in rows), rows) for rows in groups]
    cycles, rows = max(found, default=(0, []), key=lambda row: row[0])
    if not cycles:
        return ""
    name = operation_tree.operator_name(operation_tree.main_operation(rows))
    return f"{name} {wording.milliseconds(cycles / npu.hz)}"


def _by_time(time: TimeLine) -> list[tuple[str, float]]:
    """The processors with their share of the time, the slower one first."""
    shares = [("CPU", time.shares.cpu_percent), ("NPU", time.shares.npu_percent)]
    return sorted(shares, key=lambda row: -row[1])


def _busiest(time: TimeLine) -> str:
    engines = time.engines
    if engines is None:
        return ""
    rows = {
        "MAC unit": engines.mac_percent,
        "weight decoder": engines.weight_decoder_percent,
        "memory": engines.memory_percent,
    }
    name = max(rows, key=lambda row: rows[row])
    return f" Of the NPU, its {name} is busiest: {rows[name]:.0f} % of the NPU's time."


def cards(inputs: ReportInputs) -> list[dict[str, str]]:
    """The few figures that are read first: name, text and a note each."""
    run, time = inputs.run, run_rows.time_of(inputs)
    no_room, verdict = inputs.facts.no_room, run.verdict.status
    status = "" if no_room and verdict == "pass" else verdict  # what does not fit is not good, though it ran
    checks, failed = run.verdict.checks, _failed(run)
    said = [f"failed: {row.name}" for row in failed] or [row.name for row in checks]
    if run.reference is None and not any("output" in row.name for row in checks):
        said.append("the outputs are not judged")
    found = [{"name": "verdict", "text": verdict, "note": "; ".join(said), "status": status}]
    if no_room:
        room = {"name": "memory of its board", "text": "too small", "note": no_room, "status": "fail"}
        found.insert(0, room)
    if time is not None:
        total = time.total
        band = f"{total.source}, on {time.place}"
        if total.least_s is not None and total.most_s is not None:
            band += f", {wording.milliseconds(total.least_s)} to {wording.milliseconds(total.most_s)}"
        slower, share = _by_time(time)[0]
        most = {"text": f"{slower}, {share:.0f} %", "note": wording.time_sums(time)}
        found += [
            {"name": "inference", "text": wording.milliseconds(total.duration_s), "note": band},
            {"name": "most of it on the", **most},
        ]
    elif (known := _known_cycles(run)) is not None:
        name, cycles = known
        worth: str = cycles.source
        if name == "NPU":
            caveat = run.priced.caveat if run.priced is not None else ""
            words = ("the NPU alone", caveat, run_rows.believed_source(run, cycles.source))
            worth = "; ".join(filter(None, words))
        note = f"of an inference, {worth}"
        found.append({"name": f"{name} cycles", "text": f"{cycles.value:,}", "note": note})
    found += [*_tokens(inputs.record(Generate)), *_accuracy(inputs), *_limiting_memories(run, time)]
    record = inputs.record(Advice)
    best = advice_rows.best_change(record.tried) if record is not None and record.tried is not None else None
    return [*found, *([best] if best is not None else [])]


def _tokens(record: Generate | None) -> Iterator[dict[str, str]]:
    time = None if record is None else record.time
    if time is not None and time.decode.tokens_per_s is not None:
        text = f"{time.decode.tokens_per_s:.1f} tokens/s"
        yield {"name": "decode", "text": text, "note": wording.step_text(time)}


def _limiting_memories(run: Run, time: TimeLine | None) -> Iterator[dict[str, str]]:
    """The board's memory that holds the scratch, or its SRAM, and the fullest one where that is fuller and hardly has
    room."""
    rows = sorted(run_rows.used_memories(run), key=lambda row: row.used_bytes / row.size_bytes)
    names = [row.memory for row in run.memory.uses or () if row.role == "scratch"] or ["SRAM"]
    sram = [row for row in rows if row.name in names and row.used_bytes] or rows[-1:]
    fullest = [row for row in rows[-1:] if row not in sram and row.used_bytes > 0.9 * row.size_bytes]
    board = run.memory.board or run.board
    place = f" of {board}" if time is not None and time.place != run.board else ""
    for row in (*sram, *fullest):
        share = wording.percent_text(row.used_bytes / row.size_bytes)
        yield {"name": f"{row.name} used", "text": share, "note": f"{run_rows.used_share(row)}{place}"}


def _accuracy(inputs: ReportInputs) -> Iterator[dict[str, str]]:
    """The output that is furthest from that of the model in PyTorch."""
    reference = inputs.run.reference
    rows = reference.outputs if reference is not None else ()
    if not rows:
        return
    worst = min(rows, key=lambda row: float("inf") if row.sqnr_db is None else row.sqnr_db)
    equal, elements = sum(row.equal for row in rows), sum(row.elements for row in rows)
    is_equal = equal == elements
    text = "equal" if is_equal or worst.sqnr_db is None else f"{worst.sqnr_db:.1f} dB"
    is_far = not is_equal and worst.sqnr_db is not None and worst.sqnr_db < trials.BROKEN_DB
    limit = f"; below {trials.BROKEN_DB:g} dB, `debug` says that a layer breaks" if is_far else ""
    beside = f"{'' if is_equal else 'SQNR '}beside {run_rows.reference_words(inputs)}"
    note = f"{beside}; {equal:,} of {elements:,} elements equal{limit}{_loss(inputs.record(Compilation))}"
    yield {"status": "warn" if is_far else "", "name": "outputs", "text": text, "note": note}


def _loss(compiled: Compilation | None) -> str:
    """What quantisation costs, as `compile` compared the quantised model with that in floating point."""
    links = compiled.chain.links if compiled is not None and compiled.chain is not None else ()
    known = [row.sqnr_db for link in links if link.link == "quantised" for row in link.outputs or ()]
    ratios = [ratio for ratio in known if ratio is not None]
    return f"; quantisation leaves {min(ratios):.1f} dB beside floating point" if ratios else ""
