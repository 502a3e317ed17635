"""What a report shows of trials and of operators on the CPU, by a record whose figures are written out."""

import dataclasses
import json
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ethosu_sdk.readers.advise import tried_tables
from ethosu_sdk.readers.advise.cpu_calls import Placed
from ethosu_sdk.readers.advise.facts import Facts
from ethosu_sdk.readers.report.inputs import ADVICE, Inputs
from ethosu_sdk.readers.report.views import advice, on_the_cpu, summary, tried
from ethosu_sdk.records import kinds
from ethosu_sdk.records.advice import Advice, Figure, Outputs, Trial
from ethosu_sdk.records.parts.time_line import TimePart
from ethosu_sdk.records.run import Reference, ReferenceOutput
from ethosu_sdk.results.run_facts import RunFacts
from tests.places import ROOT
from tests.unit.commands.report.test_headline import SLOW, slow_time

EXAMPLES = ROOT / "schemas" / "examples" / "valid"


def _record(name: str) -> Any:
    return kinds.content(json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8")))


def _advice() -> Advice:
    record = _record("advice-tried")
    assert isinstance(record, Advice)
    return record


def _trial(**changed: Any) -> Trial:
    record = _advice()
    assert record.tried is not None
    return replace(record.tried.trials[0], **changed)


def _inputs(record: Advice | None, no_room: str = "") -> Inputs:
    records = {} if record is None else {ADVICE: record}
    return Inputs("a", Path(), _record("run-add-timed"), records, None, None, RunFacts(no_room=no_room))


def test_the_best_is_first_with_what_it_got() -> None:
    """47,071,108 cycles became 672,205, and 198,704 bytes of SRAM 264,208."""
    record = _advice()
    assert record.tried is not None
    shown = tried.of(record.tried)
    assert shown["columns"] == [
        "difference",
        "total cycles, modelled",
        "SRAM, bytes",
        "flash, bytes",
        "outputs, SQNR to float",
    ]
    assert shown["before"] == ["", "47,071,108", "198,704", "54,480", "50.5 dB"]
    best = shown["rows"][0]
    assert best["cells"] == ["-98.6 %", "672,205", "264,208", "42,112", "close, 50.4 dB"]
    assert (best["helps"], best["result"]) == (True, "better")
    assert [row["note"] for row in shown["rows"]] == [row.name for row in record.tried.trials]
    assert len(shown["details"]) == sum(tried_tables.helps(row) for row in record.tried.trials)
    written = next(row for row in shown["details"][0]["rows"] if row["name"] == "write")
    assert written["is_code"]
    assert written["text"].splitlines() == list(record.tried.trials[0].code or ())


def test_what_does_not_help_is_listed_with_its_reason() -> None:
    record = _advice()
    assert record.tried is not None
    failed = _trial(state="failed", figures=(), gain=None, fits=None, outputs=None, reason="no\nroom")
    wide = _trial(fits=False, state="worse", reason="it does not fit the memory of the board")
    shown = tried.of(replace(record.tried, trials=(failed, wide), left=("prune-half",)))
    assert [(row["result"], row["reason"], row["helps"]) for row in shown["rows"]] == [
        ("failed", "no room", False),
        ("does not fit", "", False),
    ]
    assert (shown["details"], shown["left"]) == ([], ("prune-half",))
    assert tried.best(replace(record.tried, trials=(failed, wide))) is None


def test_the_heading_says_what_a_change_brought_and_what_it_costs() -> None:
    """198,704 bytes to 149,028 are a quarter less."""
    record = _advice()
    assert record.tried is not None
    sram = Figure(metric="SRAM", unit="bytes", before=198_704, after=149_028)
    smaller = _trial(name="a", state="smaller", gain=-0.079, figures=(sram,))
    assert tried_tables.title(smaller, record.tried) == "a: SRAM -25.0%, cycles +7.9%"
    outputs = Outputs(state="close", text="", sqnr_before_db=35.35, sqnr_after_db=43.44)
    closer = _trial(name="b", state="closer", gain=-0.368, outputs=outputs)
    timed = replace(record.tried, judged_by="time of an inference")
    assert tried_tables.title(closer, timed).startswith("b: SQNR 43.4 dB instead of 35.")
    assert tried_tables.title(closer, timed).endswith(" dB, time +36.8%")


def test_outputs_far_from_the_model_are_no_quiet_figure() -> None:
    """15.3 dB is below the 20 dB at which a layer breaks; 57.4 dB is not."""
    inputs = _inputs(None)

    def shown(ratio_db: float) -> tuple[str, str]:
        row = ReferenceOutput(index=1, elements=16, equal=7, max_abs_error=0.046, sqnr_db=ratio_db)
        run = replace(inputs.run, reference=Reference(file="a.npz", outputs=(row,)))
        given = dataclasses.replace(inputs, run=run)
        (card,) = [card for card in summary.cards(given) if card["name"] == "accuracy"]
        return card["status"], summary.limits(given)

    status, text = shown(15.26)
    assert status == "warn"
    assert text.endswith(
        "Output 1 differs from the model in PyTorch in 9 of 16 elements, with an SQNR of 15.3 dB."
    )
    status, text = shown(57.4)
    assert (status, "differs" in text) == ("", False)


def test_the_best_change_is_among_the_first_figures() -> None:
    record = _advice()
    (card,) = [card for card in summary.cards(_inputs(record)) if "best change" in card["name"]]
    assert card["text"] == "-98.6 %"
    assert card["note"].startswith("total cycles 47,071,108 → 672,205 cycles: bilinear resizing")
    assert card["note"].endswith("SRAM 198,704 → 264,208 bytes (+33.0 %)")
    assert all("best change" not in card["name"] for card in summary.cards(_inputs(None)))


def test_a_program_that_is_too_large_says_so_first() -> None:
    record = _advice()
    assert record.tried is not None
    fit = replace(record.tried, judged_by="fit", fits=False, trials=(_trial(fits=True),))
    inputs = _inputs(replace(record, tried=fit), "the scratch does not fit SRAM")
    assert summary.limits(inputs).startswith("The scratch does not fit SRAM. ")
    cards = summary.cards(inputs)
    assert (cards[0]["text"], cards[0]["status"]) == ("too small", "fail")
    assert (cards[1]["name"], cards[1]["status"]) == ("verdict", "")
    assert (cards[-1]["text"], cards[-1]["note"][:35]) == ("it fits", "SRAM 198,704 → 264,208 bytes: bilin")


def test_advice_of_the_record_stands_where_the_program_is_not_there() -> None:
    """Estimates that were tried are not shown twice."""
    record = _advice()
    shown = advice.of(_inputs(record))
    assert shown["tried"]["rows"]
    assert (shown["untried"], shown["reason"]) == ("", "")
    assert len(shown["advice"]) == sum(not tried_tables.was_tried(row, record.tried) for row in record.advice)
    alone = advice.of(_inputs(replace(record, tried=None)))
    assert len(alone["advice"]) == len(record.advice) > len(shown["advice"])
    assert alone["tried"] is None
    assert advice.of(_inputs(None))["cpu"] is None


def test_operators_on_the_cpu_have_their_cost_and_what_replaces_them() -> None:
    """At 400 MHz, 21,689,706 cycles are 54.2 ms."""
    calls = _advice().cpu
    assert calls is not None
    time = _record("run-add-timed").time
    clock = replace(time.clocks.cpu, hz=400_000_000)
    shown = on_the_cpu.of(calls, replace(time, clocks=replace(time.clocks, cpu=clock)))
    row = shown["rows"][0]
    assert (shown["what"], shown["has_borders"]) == ("cycles, modelled", True)
    assert (row["name"], row["cost"], row["time"]) == ("upsample_bilinear2d", 21_689_706, "54.2 ms")
    assert (row["border"], row["border_time"]) == (7_627_363, "19.1 ms")
    assert row["constraint"].startswith("ethos-u55 takes nearest resizing alone")
    assert row["replacement"].startswith("to twice the size: nearest resizing")
    part = TimePart(operator=7, what="kernel", on="CPU", name=calls[0].name, start_s=0.0, duration_s=0.0682)
    placed = (Placed(calls[0], (7,)),)
    (own,) = on_the_cpu.timed(placed, replace(time, parts=(part,)))["rows"]
    assert (own["time"], own["cost"], own["border_time"]) == ("68.2 ms", 21_689_706, "")
    counted = on_the_cpu.of([replace(calls[0], cycles=None)], None)
    assert (counted["what"], counted["rows"][0]["cost"]) == ("instructions, counted", 12_548_508)
    assert on_the_cpu.of([replace(calls[0], cycles=None, instructions=None)], None)["what"] == ""


def test_nobody_is_cautioned_of_what_a_trial_replaced() -> None:
    profile, record = _record("profile-add-timed"), _advice()
    row = next(row for row in profile.operations if row.runs_on == "NPU")
    found = Facts(
        replace(profile, time=slow_time(profile.time), operations=(replace(row, runs_on="CPU", name=SLOW),))
    )
    assert "advise MODEL --try" in advice.unadvised(found, ())
    assert advice.unadvised(found, (), record.tried) == ""
    assert record.tried is not None
    other = replace(record.tried, trials=(_trial(parts=("int8-io",)),))
    assert "Nothing that was tried replaces it." in advice.unadvised(found, (), other)
