"""`convert`: what it writes is opened by readers of others, and says what the records say."""

import itertools
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from junitparser import JUnitXml
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from tests.integration.cli import assert_clear, sdk
from tests.integration.convert.reading import EXAMPLES, convert, refused
from tests.records import example

UNIT_STAGES = {
    "MAC unit": "mac",
    "output unit": "output",
    "weight decoder": "weight_decoder",
    "busiest memory": "memory",
}

Record = dict[str, Any]


# JUnit


def _suites(content: bytes) -> JUnitXml:
    return JUnitXml.fromstring(content)


def _results(content: bytes) -> dict[str, str]:
    return {
        case.name: type(case.result[0]).__name__ if case.result else "passed"
        for suite in _suites(content)
        for case in suite
    }


@pytest.mark.parametrize("name", ["run-ds_cnn", "run-add-timed"])
def test_each_check_of_a_run_is_a_case(name: str, tmp_path: Path) -> None:
    record = example(name)
    content = convert(record, "junit", tmp_path)
    assert _results(content) == {row["name"]: "passed" for row in record["verdict"]["checks"]}
    (suite,) = _suites(content)
    assert suite.time == pytest.approx(record["wall_time_s"], abs=1e-3)


def test_a_failed_check_is_a_failure_and_only_that(tmp_path: Path) -> None:
    record = example("run-ds_cnn")
    checks = record["verdict"]["checks"]
    checks.append({"name": "outputs & <more>", "status": "fail", "detail": "3 of 10 differ \x07]]>"})
    record["status"] = record["verdict"]["status"] = "fail"
    content = convert(record, "junit", tmp_path)
    results = _results(content)
    assert [name for name, result in results.items() if result == "Failure"] == ["outputs & <more>"]
    (suite,) = _suites(content)
    assert (suite.tests, suite.failures, suite.errors) == (len(checks), 1, 0)


def test_regressions_of_a_comparison_are_failures(tmp_path: Path) -> None:
    record = example("compare-digits_cnn")
    results = _results(convert(record, "junit", tmp_path))
    (part,) = record["comparisons"]
    worse = {row["name"] for row in part["metrics"] if row["status"] == "regression"}
    failures = {name.removeprefix("A → B: ") for name, result in results.items() if result == "Failure"}
    assert worse
    assert failures == {*worse, "verdict"}


def test_what_was_allowed_is_named(tmp_path: Path) -> None:
    record = example("compare-digits_cnn")
    record["comparisons"][0]["metrics"][0]["tolerated"] = 64
    (suite,) = _suites(convert(record, "junit", tmp_path))
    properties = {row.name: row.value for row in suite.properties()}
    assert properties["policy: may differ"] == "model, memory_mode"
    assert properties["policy: *"] == "better: lower, tolerance: 0, tolerance: 0 %, missing: warn"
    assert properties["policy: outputs.*"] == "better: equal, missing: fail"
    (case,) = [row for row in suite if row.name == "A → B: npu.cycles"]
    assert "better: lower, 64 tolerated" in str(case.system_out)
    (threshold,) = [
        row
        for suite in _suites(convert(EXAMPLES / "compile-digits_cnn-evaluated.json", "junit", tmp_path))
        for row in suite
        if "top-1" in row.name
    ]
    assert "at least 0.9 (--min-top1)" in str(threshold.system_out)


def test_verdicts_of_compile_and_verify_are_cases(tmp_path: Path) -> None:
    results = _results(convert(EXAMPLES / "compile-digits_cnn-evaluated.json", "junit", tmp_path))
    assert (len(results), set(results.values())) == (4, {"passed"})
    record = example("verify")
    named = {"agrees": "passed", "differs": "Failure", "unknown": "Skipped"}
    expected = {row["name"]: named[row["status"]] for row in record["checks"]}
    assert set(expected.values()) == set(named.values())
    assert _results(convert(record, "junit", tmp_path)) == expected


# Perfetto


def _tracks(content: bytes) -> dict[str, list[tuple[str, int, int, dict[str, Any]]]]:
    """Name, begin, nanoseconds and arguments of each slice and instant by track, as the trace's schema reads them."""
    names: dict[int, str] = {}
    found: defaultdict[str, list[tuple[str, int, int, dict[str, Any]]]] = defaultdict(list)
    opened: dict[int, tuple[str, int, dict[str, Any]]] = {}
    for packet in Trace.FromString(content).packet:
        if packet.HasField("track_descriptor"):
            names[packet.track_descriptor.uuid] = packet.track_descriptor.name
            continue
        event = packet.track_event
        facts = {row.name: row.int_value or row.string_value for row in event.debug_annotations}
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            assert event.track_uuid not in opened
            opened[event.track_uuid] = event.name, packet.timestamp, facts
        elif event.type == TrackEvent.TYPE_SLICE_END:
            name, begin, arguments = opened.pop(event.track_uuid)
            found[names[event.track_uuid]].append((name, begin, packet.timestamp - begin, arguments))
        else:
            found[names[event.track_uuid]].append((event.name, packet.timestamp, 0, facts))
    assert not opened
    return found


@pytest.mark.parametrize("hertz", [1e9, 4e8, 333_333_333.3])
def test_durations_add_up_to_the_record(hertz: float, tmp_path: Path) -> None:
    record = example("profile-digits_cnn")
    record["clock"]["hz"] = hertz
    del record["totals"]["speed"]  # which is by the clock, too
    first = next(row for row in record["operations"] if "stages" in row)
    first["stages"]["mac"] = 3 * first["cycles"][0]["value"]  # it runs on beside the operations behind it
    tracks = _tracks(convert(record, "perfetto", tmp_path))
    (total,) = [row["value"] for row in record["totals"]["npu"]["cycles"] if row["source"] == "modelled"]
    assert abs(sum(row[2] for row in tracks["operations"]) - total / hertz * 1e9) <= 0.5
    for unit, stage in UNIT_STAGES.items():
        busy = sum(row["calls"] * row["stages"][stage] for row in record["operations"] if "stages" in row)
        slices = tracks[unit]
        assert sum(row[3]["cycles"] for row in slices) == busy
        assert abs(sum(row[2] for row in slices) - busy / hertz * 1e9) <= len(slices)
        assert all(before[1] + before[2] <= after[1] for before, after in itertools.pairwise(slices))
    for memory in record["memories"]:
        moved = tracks[f"{memory['memory']}, port {memory['port']}"]
        of_operations = sum(
            value for row in moved for key, value in row[3].items() if key.endswith(", bytes")
        )
        commands = sum(
            row["commands"]["bytes"] * row["calls"]
            for row in record["delegates"]
            if row["commands"]["memory"] == memory["memory"]
        )
        assert of_operations + commands == memory["read_bytes"] + memory["write_bytes"]


def test_operators_on_the_cpu_have_instructions_and_no_time(tmp_path: Path) -> None:
    record = example("profile-digits_cnn")
    rows = _tracks(convert(record, "perfetto", tmp_path))["operators on the CPU"]
    expected = [
        (row["name"], row["instructions"]["value"]) for row in record["operations"] if row["runs_on"] == "CPU"
    ]
    assert [(name, facts["counted instructions"]) for name, _, _, facts in rows] == expected
    assert {duration for _, _, duration, _ in rows} == {0}


# What is refused


def _without_clock(record: Record) -> None:
    del record["clock"]


def _slow(record: Record) -> None:
    record["clock"]["hz"] = 1e-300


DAMAGE: dict[str, tuple[Callable[[Record], None], str]] = {
    "no clock": (_without_clock, "has no NPU clock"),
    "clock of nearly nothing": (_slow, "lasts longer than a trace can record"),
    "no operations": (lambda record: record.pop("operations"), "is not a valid record"),
    "another record": (lambda record: record.update(schema="run-result/1"), "is not a valid record"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_profiles_are_refused(name: str, tmp_path: Path) -> None:
    record = example("profile-digits_cnn")
    damage, said = DAMAGE[name]
    damage(record)
    (tmp_path / "profile.json").write_text(json.dumps(record), encoding="utf-8")
    assert said in refused(tmp_path, tmp_path / "profile.json", "--to", "perfetto")


def test_what_a_format_has_no_use_for_is_refused(tmp_path: Path) -> None:
    assert "this format cannot hold" in refused(tmp_path, EXAMPLES / "zoo.json", "--to", "junit")
    assert "holds no record" in refused(tmp_path, tmp_path, "--to", "sarif")
    assert "there is no file" in refused(tmp_path, tmp_path / "gone.json", "--to", "sarif")
    assert_clear(sdk("convert", EXAMPLES / "zoo.json", "--to", "junt", "-o", "x", cwd=tmp_path), 2, "junit")


def test_a_missing_package_is_named_with_the_fix(tmp_path: Path) -> None:
    (tmp_path / "perfetto.py").write_text("raise ImportError('not here')\n", encoding="utf-8")
    source = EXAMPLES / "profile-digits_cnn.json"
    done = sdk(
        *("convert", source, "--to", "perfetto", "-o", "x"), cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}
    )
    assert (done.code, "ethosu-sdk[formats]" in done.err) == (4, True)


def test_a_folder_of_another_program_is_not_mixed(tmp_path: Path) -> None:
    for name, source in (("run.json", "run-ds_cnn"), ("x.compile.json", "compile-digits_cnn-evaluated")):
        (tmp_path / name).write_bytes((EXAMPLES / f"{source}.json").read_bytes())
    (suite,) = _suites(convert(tmp_path, "junit", tmp_path))
    assert suite.name == "run-result ds_cnn.pte"


def test_records_are_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes((EXAMPLES / "run-ds_cnn.json").read_bytes())
    done = sdk("convert", tmp_path, "--to", "junit", "-o", tmp_path / "." / "run.json", cwd=tmp_path)
    assert (done.code, "choose another file" in done.err) == (2, True)
    assert path.read_bytes() == (EXAMPLES / "run-ds_cnn.json").read_bytes()


_HUGE = 10**399


def _long_run() -> Record:
    return {**example("run-ds_cnn"), "wall_time_s": _HUGE}


def _far_off() -> Record:
    record = example("debug-wrong-scale")
    for part in record["comparisons"]:
        for name in ("first_break", "largest_drop"):
            if name in part:
                part[name]["drop_db"] = _HUGE
    return record


def _fast() -> Record:
    record = example("profile-digits_cnn")
    record["clock"]["hz"] = _HUGE
    return record


def _slow_operations() -> Record:
    record = example("profile-digits_cnn")
    for row in record["operations"]:
        for part in row.get("cycles", ()):
            if part["source"] == "estimated":
                part["value"] = 1e308
    for row in (*record["delegates"], record["totals"]["npu"]):
        row["cycles"] = [part for part in row["cycles"] if part["source"] != "estimated"]
    return record


@pytest.mark.parametrize(
    ("made", "to"),
    [
        (_long_run, "junit"),
        (_far_off, "sarif"),
        (_fast, "perfetto"),
        (_slow_operations, "perfetto"),
        (_slow_operations, "parquet"),
        (_slow_operations, "model-explorer"),
    ],
)
def test_numbers_that_no_float_holds_end_in_a_file_or_a_sentence(
    made: Callable[[], Record], to: str, tmp_path: Path
) -> None:
    (tmp_path / "record.json").write_text(json.dumps(made()), encoding="utf-8")
    done = sdk("convert", tmp_path / "record.json", "--to", to, "-o", tmp_path / "converted", cwd=tmp_path)
    assert done.code in (0, 3), done.err
    assert "is not a valid record" not in done.err
    assert (tmp_path / "converted").exists() == (done.code == 0)


@pytest.mark.parametrize("to", ["perfetto", "parquet"])
def test_names_that_no_encoding_holds_are_shown_as_escapes(to: str, tmp_path: Path) -> None:
    record = example("profile-digits_cnn")
    for row in record["operations"]:
        row["name"] = row.get("tosa", {})["tensor"] = "\ud800\x1b[31m"
    for row in record["memories"], *(row.get("traffic", ()) for row in record["operations"]):
        for part in row:
            part["memory"] = "\udc00"
    for row in record["delegates"]:
        row["commands"]["memory"] = "\udc00"
    record["model"]["file"] = "\ud800.pte"
    content = convert(record, to, tmp_path)
    assert b"ud800" in content
    assert b"\x1b[31m" not in content
