"""The first lines of a report: who takes the time, and what nobody gives advice on."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ethosu_sdk.errors import InputError
from ethosu_sdk.readers.advise.facts import Facts
from ethosu_sdk.readers.report import inputs as report_inputs
from ethosu_sdk.readers.report.inputs import PROFILE, Inputs
from ethosu_sdk.readers.report.views import advice, summary
from ethosu_sdk.records import kinds
from ethosu_sdk.records.common import Metric
from ethosu_sdk.records.parts.time_line import Contributor, TimeLine, TimePart
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Run
from ethosu_sdk.results.run_facts import RunFacts
from ethosu_sdk.tables import figures, times
from tests.places import ROOT

EXAMPLES = ROOT / "schemas" / "examples" / "valid"
SLOW = "aten::upsample_bilinear2d.vec_out"


def _record(name: str) -> Any:
    return kinds.content(json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8")))


def _inputs(run: Run, profile: Profile | None) -> Inputs:
    records = {} if profile is None else {PROFILE: profile}
    return Inputs("a", Path(), run, records, None, None, RunFacts())


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
    run, profile = _record("run-add-timed"), _record("profile-add-timed")
    clock = profile.time.clocks.npu.hz
    dearest = max(row.modelled_cycles for row in profile.operations if row.runs_on == "NPU")
    text = summary.limits(_inputs(run, profile))
    assert f"Largest part of the CPU: runtime {times.milliseconds(run.time.largest.duration_s)}" in text
    assert f"; of the NPU: ELEMENTWISE_ADD {times.milliseconds(dearest / clock)}" in text
    assert "of the NPU:" not in summary.limits(_inputs(run, None))
    assert "largest on the CPU: upsample_bilinear2d kernel 82.6 ms in 2 calls" in times.line(
        slow_time(run.time)
    )


def test_a_program_without_work_for_the_npu_names_the_cpu_alone() -> None:
    time = _record("run-add-timed").time
    assert times.sums(time).startswith("NPU ")
    cpu = times.milliseconds(time.sums.cpu_s)
    assert times.sums(replace(time, sums=replace(time.sums, npu_s=0.0))) == f"CPU {cpu}"


@pytest.mark.parametrize(
    ("cpu", "words"), [(93.5, "The CPU sets the pace with 94 %"), (20.0, "The NPU sets the pace with 80 %")]
)
def test_who_sets_the_pace_has_the_larger_share(cpu: float, words: str) -> None:
    run = _record("run-add-timed")
    shares = replace(run.time.shares, cpu_percent=cpu, npu_percent=100 - cpu)
    assert words in summary.limits(_inputs(replace(run, time=replace(run.time, shares=shares)), None))


def test_cycles_of_the_cpu_lead_where_nothing_runs_on_an_npu() -> None:
    run = replace(_record("run-cpu-cycles"), time=None)
    alone = _inputs(replace(run, npu=None, target=None), None)
    assert summary.limits(alone).startswith(f"The CPU takes {run.cpu.cycles.value:,} cycles; ")
    assert [card["name"] for card in summary.cards(alone)][1] == "CPU cycles"
    assert "The CPU takes" not in summary.limits(_inputs(replace(run, npu=None, cpu=None), None))


@pytest.mark.parametrize(("content", "stale"), [(b"another program", ("add_u55.pte",)), (None, ())])
def test_a_file_of_another_program_is_named(
    tmp_path: Path, content: bytes | None, stale: tuple[str, ...]
) -> None:
    (tmp_path / "run.json").write_bytes((EXAMPLES / "run-add-timed.json").read_bytes())
    if content is not None:
        (tmp_path / "add_u55.pte").write_bytes(content)
    (found,) = report_inputs.read([tmp_path], [RunFacts()])
    assert found.stale == stale
    text = summary.stale(found)
    assert ("add_u55.pte is not of the program that the run executed" in text) is bool(stale)
    assert bool(text) is bool(stale)
    two = dataclasses.replace(found, stale=("a.json", "b.json"))
    assert "a.json, b.json are not of the program" in summary.stale(two)


def test_the_folder_of_a_script_names_its_calls(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text("{}")
    call = tmp_path / "calls" / "0-prefill"
    call.mkdir(parents=True)
    (call / "run.json").write_text("{}")
    with pytest.raises(InputError, match="each call of a script is a run") as refused:
        report_inputs.read([tmp_path], [RunFacts()])
    assert str(call) in (refused.value.hint or "")


def test_another_board_than_the_simulated_one_is_named() -> None:
    run = _record("run-add-timed")
    assert "simulated on Corstone-300; its time is for my-board." in summary.limits(_inputs(run, None))
    own = replace(run, time=replace(run.time, place="corstone-300"))
    assert "simulated" not in summary.limits(_inputs(own, None))


def test_a_dominating_operator_without_advice_is_said() -> None:
    profile = _record("profile-add-timed")
    row = next(row for row in profile.operations if row.runs_on == "NPU")
    cycles = Metric(value=33_000_000, unit="cycles", source="modelled")
    slow = replace(row, runs_on="CPU", name=SLOW, cpu_cycles=cycles)
    found = Facts(replace(profile, time=slow_time(profile.time), operations=(slow,)))
    text = advice.unadvised(found, ())
    assert text.startswith("upsample_bilinear2d takes 82.6 ms of 118.0 ms on the CPU in 2 calls, and no rule")
    assert "advise MODEL --try" in text
    item = next(row for row in _record("advice-digits_cnn").advice)
    assert advice.unadvised(found, (replace(item, finding=f"{SLOW} runs on the CPU"),)) == ""
    small = replace(found.profile, time=profile.time)
    assert advice.unadvised(Facts(small), ()) == ""


@pytest.mark.parametrize(
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
    assert figures.numbers(*values) == texts


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0, "0 %"), (0.0006, "< 0.1 %"), (0.0949, "9.5 %"), (0.7199, "72 %"), (1.0, "100 %")],
)
def test_what_is_used_is_never_nothing(share: float, text: str) -> None:
    assert figures.percent(share) == text
