"""What a report says: its first lines, plots, tables, several runs, trials and operators on the CPU."""

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.program.execution_plan import Allocation, KernelCall, Tensor
from ethosu_sdk.records import kinds, operation_tree, wording
from ethosu_sdk.records.advice import Advice, Figure, Outputs, Trial
from ethosu_sdk.records.common import Metric, SourceLine, Unavailable
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Reference, ReferenceOutput, Run
from ethosu_sdk.records.run_facts import RunFacts
from ethosu_sdk.records.time_line import Contributor, TimeLine, TimePart
from ethosu_sdk.reporting.advise import advise_command
from ethosu_sdk.reporting.advise.advice_facts import Facts
from ethosu_sdk.reporting.advise.cpu_rules import Placed
from ethosu_sdk.reporting.pages import (
    advice_rows,
    document,
    headline,
    next_commands,
    report_inputs,
    run_plots,
    run_rows,
    side_by_side,
)
from ethosu_sdk.reporting.pages.network_graph import _Reading
from ethosu_sdk.reporting.pages.report_inputs import ADVICE, PROFILE, ReportInputs
from tests.records import EXAMPLES, content, example
from tests.tables import each

SLOW = "aten::upsample_bilinear2d.vec_out"


def _inputs(run: Run, profile: Profile | None) -> ReportInputs:
    records = {} if profile is None else {PROFILE: profile}
    return ReportInputs("a", Path(), run, records, None, None, RunFacts())


def slow_time(time: TimeLine) -> TimeLine:
    """The time line, most of which are two calls of one operator."""
    kernels = tuple(
        TimePart(operator=number, what="kernel", on="CPU", name=SLOW, start_s=0.0, duration_s=0.0413)
        for number in (2, 3)
    )
    largest = Contributor(name=SLOW, duration_s=0.0826)
    total = replace(time.total, duration_s=0.118)
    return replace(time, parts=(*time.parts, *kernels), largest=largest, total=total)


def test_each_processor_has_its_largest_part() -> None:
    run, profile = content("run-add-timed"), content("profile-add-timed")
    clock = profile.time.clocks.npu.hz
    dearest = max(row.modelled_cycles for row in profile.operations if row.runs_on == "NPU")
    text = headline.limit_words(_inputs(run, profile))
    assert f"Largest part of the CPU: runtime {wording.milliseconds(run.time.largest.duration_s)}" in text
    assert f"; of the NPU: ELEMENTWISE_ADD {wording.milliseconds(dearest / clock)}" in text
    assert "of the NPU:" not in headline.limit_words(_inputs(run, None))
    assert "largest on the CPU: upsample_bilinear2d kernel 82.6 ms in 2 calls" in wording.time_sentence(
        slow_time(run.time)
    )


def test_a_program_of_one_processor_names_it_alone() -> None:
    time = content("run-add-timed").time
    assert wording.time_sums(time).startswith("NPU ")
    cpu = wording.milliseconds(time.sums.cpu_s)
    assert wording.time_sums(replace(time, sums=replace(time.sums, npu_s=0.0))) == f"CPU {cpu}"
    run = replace(content("run-add-timed"), time=None)
    alone = _inputs(replace(run, npu=None, target=None), None)
    assert headline.limit_words(alone).startswith(f"The CPU takes {run.cpu.cycles.value:,} cycles; ")
    assert [card["name"] for card in headline.cards(alone)][1] == "CPU cycles"
    assert "The CPU takes" not in headline.limit_words(_inputs(replace(run, npu=None, cpu=None), None))


@pytest.mark.parametrize(
    ("cpu", "words"), [(93.5, "The CPU sets the pace with 94 %"), (20.0, "The NPU sets the pace with 80 %")]
)
def test_who_sets_the_pace_has_the_larger_share(cpu: float, words: str) -> None:
    run = content("run-add-timed")
    shares = replace(run.time.shares, cpu_percent=cpu, npu_percent=100 - cpu)
    assert words in headline.limit_words(_inputs(replace(run, time=replace(run.time, shares=shares)), None))


@pytest.mark.parametrize(("content", "stale"), [(b"another program", ("add_u55.pte",)), (None, ())])
def test_a_file_of_another_program_is_named(
    tmp_path: Path, content: bytes | None, stale: tuple[str, ...]
) -> None:
    (tmp_path / "run.json").write_bytes((EXAMPLES / "run-add-timed.json").read_bytes())
    if content is not None:
        (tmp_path / "add_u55.pte").write_bytes(content)
    (found,) = report_inputs.read_runs([tmp_path], [RunFacts()])
    assert found.stale == stale
    text = headline.stale_words(found)
    assert ("add_u55.pte is not of the program that the run executed" in text) is bool(stale)
    assert bool(text) is bool(stale)
    two = dataclasses.replace(found, stale=("a.json", "b.json"))
    assert "a.json, b.json are not of the program" in headline.stale_words(two)


def test_the_folder_of_a_script_names_its_calls(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text("{}")
    call = tmp_path / "calls" / "0-prefill"
    call.mkdir(parents=True)
    (call / "run.json").write_text("{}")
    with pytest.raises(InputError, match="each call of a script is a run") as refused:
        report_inputs.read_runs([tmp_path], [RunFacts()])
    assert str(call) in (refused.value.hint or "")


def test_another_board_than_the_simulated_one_is_named() -> None:
    run = content("run-add-timed")
    assert "simulated on Corstone-300; its time is for my-board." in headline.limit_words(_inputs(run, None))
    own = replace(run, time=replace(run.time, place="corstone-300"))
    assert "simulated" not in headline.limit_words(_inputs(own, None))


def test_a_dominating_operator_without_advice_is_said() -> None:
    profile = content("profile-add-timed")
    row = next(row for row in profile.operations if row.runs_on == "NPU")
    cycles = Metric(value=33_000_000, unit="cycles", source="modelled")
    slow = replace(row, runs_on="CPU", name=SLOW, cpu_cycles=cycles)
    found = Facts(replace(profile, time=slow_time(profile.time), operations=(slow,)))
    text = advice_rows.unadvised(found, ())
    assert text.startswith("upsample_bilinear2d takes 82.6 ms of 118.0 ms on the CPU in 2 calls, and no rule")
    assert "advise MODEL --try" in text
    item = next(row for row in content("advice-tried").advice)
    assert advice_rows.unadvised(found, (replace(item, finding=f"{SLOW} runs on the CPU"),)) == ""
    small = replace(found.profile, time=profile.time)
    assert advice_rows.unadvised(Facts(small), ()) == ""


@each(
    ("values", "texts"),
    [
        ((0.087, 0.051), ["0.087", "0.051"]),
        ((1.2534, 1.1), ["1.25", "1.10"]),
        ((118.41, 118.38), ["118.41", "118.38"]),
        ((0.0000042,), ["0.000004"]),
        ((8754, 0), ["8,754", "0"]),
        ((0.5, 0), ["0.500", "0.000"]),
    ],
)
def test_numbers_that_differ_look_different(values: tuple[float, ...], texts: list[str]) -> None:
    assert wording.number_texts(*values) == texts


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.0006, "< 0.1 %"), (0.0949, "9.5 %"), (0.7199, "72 %"), (1.0, "100 %")],
)
def test_what_is_used_is_never_nothing(share: float, text: str) -> None:
    assert wording.percent_text(share) == text


# --- What a report draws: points stay below the roof, operators have the model's names, and views have writers.

Args = tuple[int, ...]


def _profile(change: Any = None) -> Profile:
    record = example("profile-digits_cnn")
    if change is not None:
        change(record)
    return kinds.PROFILE.convert(record)


def _points(profile: Profile) -> list[dict[str, Any]]:
    points = run_plots.roofline_plot(profile, "plot").spec["datasets"]["points"]
    assert isinstance(points, list)
    return points


def _beside_others(record: dict[str, Any]) -> None:
    """Operations that run beside the ones before, and add one cycle each."""
    for row in record["operations"]:
        for part in row.get("cycles", ()):
            if part["source"] == "modelled":
                part["value"] = 1


@pytest.mark.parametrize("change", [None, _beside_others])
def test_points_stay_below_the_roof(change: Any) -> None:
    points = _points(_profile(change))
    assert len(points) > 2
    assert all(0 < row["rate"] <= row["roof"] * 1.0001 for row in points)
    if change is not None:  # the cycles that they add would lie above
        assert any(row["macs"] / 1 > row["roof"] for row in points)


@each(
    ("module", "kind", "operator", "name"),
    [
        ("head.act", "Mish", "TANH", "Mish: TANH"),
        ("7", "Linear", "CONV2D", "Linear: CONV2D"),
        ("0", "Conv2d", "DEPTHWISE_CONV2D", "DEPTHWISE_CONV2D"),
        ("2", "AdaptiveMaxPool2d", "MAX_POOL2D", "MAX_POOL2D"),
        ("7", "Linear", "TRANSPOSE", "TRANSPOSE"),
        ("", "Model", "TANH", "TANH"),
        ("head", None, "TANH", "TANH"),
    ],
)
def test_an_operator_has_the_name_of_its_module(
    module: str, kind: str | None, operator: str, name: str
) -> None:
    row = next(row for row in _profile().operations if row.tosa is not None)
    assert row.tosa is not None
    source = SourceLine(module=module, module_type=kind)
    assert (
        operation_tree.operator_name(replace(row, source=source, tosa=replace(row.tosa, operator=operator)))
        == name
    )


def _tensor(offset: int, size: int) -> Tensor:
    return Tensor(
        dtype="int8",
        element_bytes=1,
        sizes=(size,),
        dim_order=(0,),
        dynamism="STATIC",
        data_buffer_idx=0,
        allocation=Allocation(1, offset),
        data=None,
        name="",
        external_name="",
    )


class _Plan:
    """The values and calls of a program; of each call the last argument is the result."""

    def __init__(self, values: Sequence[Tensor], calls: Sequence[Args]) -> None:
        self.values = values
        self.instructions = [KernelCall(0, args) for args in calls]


@pytest.mark.parametrize(
    ("calls", "edges"),
    [
        ([(0,), (1, 2)], [(0, 1)]),  # 1 is a view of 0: the same bytes
        ([(0,), (3, 2)], []),  # 3 begins there and is longer: room to work in
        ([(0,), (4,), (1, 2)], []),  # 4 lies on some of the bytes of 0
    ],
)
def test_a_view_is_read_from_who_wrote_its_bytes(calls: list[Args], edges: list[tuple[int, int]]) -> None:
    values = [_tensor(0, 16), _tensor(0, 16), _tensor(64, 8), _tensor(0, 48), _tensor(8, 4)]
    row = _profile().operations[0]
    rows = tuple(replace(row, index=at, instruction=at) for at in range(len(calls)))
    plan: Any = _Plan(values, calls)
    found = _Reading(plan, replace(_profile(), operations=rows), {})
    assert list(found.edges()) == edges


@each(
    ("text", "html"),
    [
        ("run `a --try` again", "Run <code>a --try</code> again."),
        ("net.pte is about another program", "net.pte is about another program."),
        ("an odd ` stays", "An odd ` stays."),
        ("<b> `<i>`", "&lt;b&gt; <code>&lt;i&gt;</code>."),
        ("Done: what?", "Done: what?"),
        ("", ""),
    ],
)
def test_messages_are_sentences(text: str, html: str) -> None:
    assert str(document._sentence(text)) == html


# --- Several runs in a report: what was changed comes first, and no row stands twice on a page.


def _labelled(run: Run, label: str = "a") -> ReportInputs:
    return ReportInputs(label, Path(), run, {PROFILE: content("profile-add-timed")}, None, None, RunFacts())


def _beside(run: Run, other: Run) -> dict[str, Any]:
    return side_by_side.compared_runs([_labelled(run, "1: a"), _labelled(other, "2: b")])


def test_what_was_changed_is_said_first() -> None:
    run = content("run-add-timed")
    other = replace(run, target=replace(run.target, memory_mode="Sram_Only"))
    found = _beside(run, other)
    assert found["cause"] == "What differs: memory mode Shared_Sram → Sram_Only."
    assert [(row["name"], row["cells"]) for row in found["changed"]] == [
        ("memory mode", ["Shared_Sram", "Sram_Only"])
    ]
    assert "memory mode" not in dict(found["same"])
    assert dict(found["same"])["target"] == "ethos-u55-128"


@pytest.mark.parametrize(
    ("digest", "words"),
    [
        (None, "Nothing that the records name differs"),
        ("0" * 64, "The programs differ, and the records name no"),
    ],
)
def test_equal_settings_are_no_cause(digest: str | None, words: str) -> None:
    run = content("run-add-timed")
    other = run if digest is None else replace(run, model=replace(run.model, sha256=digest))
    found = _beside(run, other)
    assert found["cause"].startswith(words)
    assert found["changed"] == []


def test_verdict_time_and_accuracy_lead_the_figures() -> None:
    run = replace(content("run-add-timed"), reference=None)
    rows = [ReferenceOutput(index=0, elements=8, equal=5, max_abs_error=0.1, sqnr_db=31.27)]
    other = replace(run, reference=Reference(file="a.io.npz", outputs=tuple(rows)))
    found = _beside(run, other)
    names = [row["name"] for row in found["rows"]]
    assert names[:4] == ["verdict", "inference", "time of the CPU", "time of the NPU"]
    row = next(row for row in found["rows"] if row["name"] == "output 0")
    assert row["cells"] == ["", "SQNR 31.3 dB beside the model in PyTorch"]
    assert row["differences"] == ["came"]


@pytest.mark.parametrize("name", ["run-add-timed", "run-ds_cnn"])
def test_what_ran_repeats_nothing_of_the_headline(name: str) -> None:
    inputs = _labelled(content(name))
    ran = [row.name for row in (*run_rows.setting_rows(inputs), *run_rows.count_rows(inputs))]
    assert len(set(ran)) == len(ran)
    assert not {row.name for row in run_rows.decisive_rows(inputs)} & set(ran)
    assert "target" in ran or inputs.run.target is None


# --- The table of operations in a report: its last row is what an inference adds up to, however often each runs.

CALLS = 3


def _sums(profile: dict[str, Any]) -> dict[str, int]:
    found = operation_tree.operations_table(kinds.PROFILE.convert(profile))
    cells = zip(found["columns"], found["sums"], strict=True)
    return {
        column["key"]: int(cell["text"].replace(",", ""))
        for column, cell in cells
        if column["format"] == "whole" and cell["text"]
    }


def test_figures_of_one_call_count_for_each_call_and_instructions_once() -> None:
    profile = example("profile-digits_cnn")
    totals = profile["totals"]
    before = _sums(profile)
    assert before["instructions"] == totals["cpu"]["instructions"]["value"]
    assert before["macs"] == totals["npu"]["macs"]
    for name in ("read", "written"):
        assert before[name] == sum(
            row[f"{'write' if name == 'written' else name}_bytes"] for row in profile["memories"]
        )
    for row in (*profile["operations"], *profile["delegates"]):
        row["calls"] = CALLS
    after = _sums(profile)
    assert after["instructions"] == before["instructions"]  # the record has those of all calls
    for name in ("macs", "read", "written"):
        assert after[name] == CALLS * before[name]


# --- What a report shows of trials and of operators on the CPU, by a record whose figures are written out.


def _advice() -> Advice:
    record = content("advice-tried")
    assert isinstance(record, Advice)
    return record


def _trial(**changed: Any) -> Trial:
    record = _advice()
    assert record.tried is not None
    return replace(record.tried.trials[0], **changed)


def _advised(record: Advice | None, no_room: str = "") -> ReportInputs:
    records = {} if record is None else {ADVICE: record}
    return ReportInputs("a", Path(), content("run-add-timed"), records, None, None, RunFacts(no_room=no_room))


def test_the_best_is_first_with_what_it_got() -> None:
    """47,071,108 cycles became 672,205, and 198,704 bytes of SRAM 264,208."""
    record = _advice()
    assert record.tried is not None
    shown = advice_rows.tried_view(record.tried)
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
    assert len(shown["details"]) == sum(advise_command.trial_helps(row) for row in record.tried.trials)
    written = next(row for row in shown["details"][0]["rows"] if row["name"] == "write")
    assert written["is_code"]
    assert written["text"].splitlines() == list(record.tried.trials[0].code or ())


def test_what_does_not_help_is_listed_with_its_reason() -> None:
    record = _advice()
    assert record.tried is not None
    failed = _trial(state="failed", figures=(), gain=None, fits=None, outputs=None, reason="no\nroom")
    wide = _trial(fits=False, state="worse", reason="it does not fit the memory of the board")
    shown = advice_rows.tried_view(replace(record.tried, trials=(failed, wide), left=("prune-half",)))
    assert [(row["result"], row["reason"], row["helps"]) for row in shown["rows"]] == [
        ("failed", "no room", False),
        ("does not fit", "", False),
    ]
    assert (shown["details"], shown["left"]) == ([], ("prune-half",))
    assert advice_rows.best_change(replace(record.tried, trials=(failed, wide))) is None


def test_the_heading_says_what_a_change_brought_and_what_it_costs() -> None:
    """198,704 bytes to 149,028 are a quarter less."""
    record = _advice()
    assert record.tried is not None
    sram = Figure(metric="SRAM", unit="bytes", before=198_704, after=149_028)
    smaller = _trial(name="a", state="smaller", gain=-0.079, figures=(sram,))
    assert advise_command.trial_title(smaller, record.tried) == "a: SRAM -25.0%, cycles +7.9%"
    outputs = Outputs(state="close", text="", sqnr_before_db=35.35, sqnr_after_db=43.44)
    closer = _trial(name="b", state="closer", gain=-0.368, outputs=outputs)
    timed = replace(record.tried, judged_by="time of an inference")
    assert advise_command.trial_title(closer, timed).startswith("b: SQNR 43.4 dB instead of 35.")
    assert advise_command.trial_title(closer, timed).endswith(" dB, time +36.8%")


def test_outputs_far_from_the_model_are_no_quiet_figure() -> None:
    """15.3 dB is below the 20 dB at which a layer breaks; 57.4 dB is not."""
    inputs = _advised(None)

    def shown(ratio_db: float) -> tuple[str, str]:
        row = ReferenceOutput(index=1, elements=16, equal=7, max_abs_error=0.046, sqnr_db=ratio_db)
        run = replace(inputs.run, reference=Reference(file="a.npz", outputs=(row,)))
        given = dataclasses.replace(inputs, run=run)
        (card,) = [card for card in headline.cards(given) if card["name"] == "outputs"]
        return card["status"], headline.limit_words(given)

    status, text = shown(15.26)
    assert status == "warn"
    assert text.endswith(
        "Output 1 differs from the model in PyTorch in 9 of 16 elements, with an SQNR of 15.3 dB."
    )
    status, text = shown(57.4)
    assert (status, "differs" in text) == ("", False)


def test_the_best_change_is_among_the_first_figures() -> None:
    record = _advice()
    (card,) = [card for card in headline.cards(_advised(record)) if "best change" in card["name"]]
    assert card["text"] == "-98.6 %"
    assert card["note"].startswith("total cycles 47,071,108 → 672,205 cycles: bilinear resizing")
    assert card["note"].endswith("SRAM 198,704 → 264,208 bytes (+33.0 %)")
    assert all("best change" not in card["name"] for card in headline.cards(_advised(None)))


def test_a_program_that_is_too_large_says_so_first() -> None:
    record = _advice()
    assert record.tried is not None
    fit = replace(record.tried, judged_by="fit", fits=False, trials=(_trial(fits=True),))
    inputs = _advised(replace(record, tried=fit), "the scratch does not fit SRAM")
    assert headline.limit_words(inputs).startswith("The scratch does not fit SRAM. ")
    cards = headline.cards(inputs)
    assert (cards[0]["text"], cards[0]["status"]) == ("too small", "fail")
    assert (cards[1]["name"], cards[1]["status"]) == ("verdict", "")
    assert (cards[-1]["text"], cards[-1]["note"][:35]) == ("it fits", "SRAM 198,704 → 264,208 bytes: bilin")


def test_advice_of_the_record_stands_where_the_program_is_not_there() -> None:
    """Estimates that were tried are not shown twice."""
    record = _advice()
    shown = advice_rows.advice_view(_advised(record))
    assert shown["tried"]["rows"]
    assert (shown["untried"], shown["reason"]) == ("", "")
    assert len(shown["advice"]) == sum(
        not advise_command.was_tried(row, record.tried) for row in record.advice
    )
    alone = advice_rows.advice_view(_advised(replace(record, tried=None)))
    assert len(alone["advice"]) == len(record.advice) > len(shown["advice"])
    assert alone["tried"] is None
    assert advice_rows.advice_view(_advised(None))["cpu"] is None


def test_operators_on_the_cpu_have_their_cost_and_what_replaces_them() -> None:
    """At 400 MHz, 21,689,706 cycles are 54.2 ms."""
    calls = _advice().cpu
    assert calls is not None
    time = content("run-add-timed").time
    clock = replace(time.clocks.cpu, hz=400_000_000)
    shown = advice_rows.cpu_call_rows(calls, replace(time, clocks=replace(time.clocks, cpu=clock)))
    row = shown["rows"][0]
    assert (shown["what"], shown["has_borders"]) == ("cycles, modelled", True)
    assert (row["name"], row["cost"], row["time"]) == ("upsample_bilinear2d", 21_689_706, "54.2 ms")
    assert (row["border"], row["border_time"]) == (7_627_363, "19.1 ms")
    assert row["constraint"].startswith("ethos-u55 takes nearest resizing alone")
    assert row["replacement"].startswith("to twice the size: nearest resizing")
    part = TimePart(operator=7, what="kernel", on="CPU", name=calls[0].name, start_s=0.0, duration_s=0.0682)
    placed = (Placed(calls[0], (7,)),)
    (own,) = advice_rows.timed_calls(placed, replace(time, parts=(part,)))["rows"]
    assert (own["time"], own["cost"], own["border_time"]) == ("68.2 ms", 21_689_706, "")
    counted = advice_rows.cpu_call_rows([replace(calls[0], cycles=None)], None)
    assert (counted["what"], counted["rows"][0]["cost"]) == ("instructions, counted", 12_548_508)
    assert advice_rows.cpu_call_rows([replace(calls[0], cycles=None, instructions=None)], None)["what"] == ""


def test_nobody_is_cautioned_of_what_a_trial_replaced() -> None:
    profile, record = content("profile-add-timed"), _advice()
    row = next(row for row in profile.operations if row.runs_on == "NPU")
    found = Facts(
        replace(profile, time=slow_time(profile.time), operations=(replace(row, runs_on="CPU", name=SLOW),))
    )
    assert "advise MODEL --try" in advice_rows.unadvised(found, ())
    assert advice_rows.unadvised(found, (), record.tried) == ""
    assert record.tried is not None
    other = replace(record.tried, trials=(_trial(parts=("int8-io",)),))
    assert "Nothing that was tried replaces it." in advice_rows.unadvised(found, (), other)


def test_the_time_line_shows_the_operators_of_the_npu() -> None:
    """Their bars fill the job of the NPU without gap, after what a delegate's start takes."""
    run, profile = content("run-add-timed"), content("profile-add-timed")
    time = profile.time
    bars = run_plots.inference_plot(_inputs(run, profile), "plot").spec["datasets"]["parts"]
    npu = sorted((row for row in bars if row["on"] == "NPU"), key=lambda row: row["start"])
    (job,) = [part for part in time.parts if part.on == "NPU"]
    assert npu[-1]["end"] == pytest.approx(job.end_s * 1e3)
    assert all(one["end"] == pytest.approx(other["start"]) for one, other in itertools.pairwise(npu))
    assert any("ELEMENTWISE_ADD" in row["name"] for row in npu)
    alone = run_plots.inference_plot(_inputs(run, None), "plot").spec["datasets"]["parts"]
    assert [row["ms"] for row in alone if row["on"] == "NPU"] == [pytest.approx(job.duration_s * 1e3)]


def test_no_cycles_of_an_operation_with_work_are_said_to_be_parallel() -> None:
    profile = content("profile-add-timed")
    free = [
        replace(row, cycles=tuple(replace(part, value=0) for part in row.cycles))
        if row.runs_on == "NPU"
        else row
        for row in profile.operations
    ]
    table = operation_tree.operations_table(replace(profile, operations=tuple(free)))
    at = [column["key"] for column in table["columns"]].index("modelled")
    cells = [row["cells"][at]["text"] for row in table["rows"] if row["on"] == "NPU" and row["is_leaf"]]
    assert cells
    assert set(cells) == {"parallel"}


def test_what_a_record_lacked_is_known_once_it_is_there() -> None:
    record = replace(_advice(), unavailable=(Unavailable(path="/debug", reason="there is no debug.json"),))
    inputs = _advised(record)
    assert [row["what"] for row in run_rows.unavailable_rows(inputs)].count("advice: /debug") == 1
    there = dataclasses.replace(inputs, records={**inputs.records, "debug": content("debug-wrong-scale")})
    assert "advice: /debug" not in [row["what"] for row in run_rows.unavailable_rows(there)]


def test_the_next_commands_are_about_this_run() -> None:
    """Without a time, the run again on a board with the target; with a failure, first the layers."""
    run, compiled = content("run-ds_cnn"), content("compile-add")
    inputs = ReportInputs("a", Path("a b"), run, {"compile": compiled}, None, None, RunFacts())
    lines = [row.line for row in next_commands.next_commands(inputs)]
    assert lines[-1] == "ethosu-sdk verify 'a b'"
    assert any(line.startswith("ethosu-sdk run ") and "--system alif-" in line for line in lines)
    assert sum("--system-config" in line for line in lines) == 1  # of debug; a board has its own
    failed = replace(run, verdict=replace(run.verdict, status="fail"))
    first = next(next_commands.next_commands(dataclasses.replace(inputs, run=failed)))
    assert first.line.startswith("ethosu-sdk debug ")
    assert "--io" not in first.line
