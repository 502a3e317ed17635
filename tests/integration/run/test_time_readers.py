"""What readers of records make of the time of an inference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import KeptFolder
from tests.integration.cli import sdk, sdk_ok
from tests.records import read

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain, pytest.mark.torch]
Record = dict[str, Any]


@pytest.fixture(scope="module")
def folder(kept_folder: KeptFolder) -> Path:
    """A model with an NPU job between two conversions on the CPU, profiled with a slow and with a fast CPU."""

    def make(folder: Path) -> None:
        for name, mhz in (("slow", "100"), ("fast", "400")):
            done = sdk_ok("profile", "zoo:digits_cnn", "--cpu-clock-mhz", mhz, "-o", name, cwd=folder)
            assert "\ntime    0." in done.out

    return kept_folder("timed", make, own=True)


def time_of(path: Path) -> Record:
    found: Record = read(path)["time"]
    return found


def test_summary_and_report_have_the_headline(folder: Path) -> None:
    headline = f"{time_of(folder / 'slow' / 'run.json')['total']['duration_s'] * 1e3:.3f} ms"
    summary = sdk("summary", "slow/run.json", "slow/profile.json", cwd=folder)
    assert summary.out.count(f"| inference | {headline} on ") == 2
    sdk_ok("report", "slow", "-o", "page.html", cwd=folder)
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert f'<p class="text">{headline}</p><p class="note">modelled, on Ethos_U55_High_End_Embedded, ' in page
    assert "run1-plot-inference" in page


def test_compare_judges_the_total_and_shows_its_parts(folder: Path) -> None:
    done = sdk("compare", "fast", "slow", "--check", "--json", cwd=folder)
    assert done.code == 7  # the second CPU is slower
    (comparison,) = json.loads(done.out)["comparisons"]
    rows = {row["name"]: row for row in comparison["metrics"]}
    fast, slow = (time_of(folder / name / "run.json") for name in ("fast", "slow"))
    total = rows["time.total_ms"]
    assert total["status"] == "regression"
    assert total["after"] - total["before"] == pytest.approx(
        1e3 * (slow["total"]["duration_s"] - fast["total"]["duration_s"])
    )
    assert [row["name"] for row in comparison["metrics"] if row["status"] == "regression"] == [
        "time.total_ms"
    ]
    assert any(name.startswith("time.parts.quantized_decomposed::quantize") for name in rows)
    assert sdk("compare", "slow", "fast", "--check", cwd=folder).code == 0


def test_perfetto_has_a_track_for_each_processor(folder: Path) -> None:
    messages = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    sdk_ok("convert", "slow/profile.json", "--to", "perfetto", "-o", "trace.pftrace", cwd=folder)
    trace = messages.Trace()
    trace.ParseFromString((folder / "trace.pftrace").read_bytes())
    names = {
        row.track_descriptor.uuid: row.track_descriptor.name
        for row in trace.packet
        if row.HasField("track_descriptor") and row.track_descriptor.name in ("CPU", "NPU")
    }
    assert sorted(names.values()) == ["CPU", "NPU"]
    time = time_of(folder / "slow" / "profile.json")
    for uuid, processor in names.items():
        stamps = [row.timestamp for row in trace.packet if row.track_event.track_uuid == uuid]
        parts = [part for part in time["parts"] if part["on"] == processor]
        assert len(stamps) == 2 * len(parts)
        assert stamps[0] == round(parts[0]["start_s"] * 1e9)
        assert stamps[-1] == pytest.approx((parts[-1]["start_s"] + parts[-1]["duration_s"]) * 1e9, abs=1)


def test_advice_is_ranked_by_the_time_that_it_saves(folder: Path) -> None:
    done = sdk_ok("advise", "slow", "--json", cwd=folder)
    advice = {row["rule"]: row for row in json.loads(done.out)["advice"]}
    gains = {row["metric"]: row for row in advice["quantised-io"]["gains"]}
    first = advice["quantised-io"]["gains"][0]
    assert first["metric"] == "time of an inference"
    saved = gains["CPU cycles"]["before"] - gains["CPU cycles"]["after"]
    assert first["before"] - first["after"] == pytest.approx(1e3 * saved / 100e6)
    times = [
        row["gains"][0] for row in advice.values() if row["gains"][0]["metric"] == "time of an inference"
    ]
    assert times == sorted(times, key=lambda row: row["after"])


@pytest.mark.thorough
def test_a_sweep_has_the_time_of_each_cell_on_its_board(tmp_path: Path) -> None:
    """The model takes less than 20 ms on the fast board, and more than a tenth of a millisecond on the slow one."""
    pytest.importorskip("distributed")
    (tmp_path / "s.toml").write_text(
        'models = ["zoo:digits_cnn"]\ntargets = ["ethos-u55-256", "ethos-u55-128"]\nsimulators = ["qemu"]\n'
        'systems = ["alif-e8-h?"]\n'
        '[[constraints]]\nfigure = "inference_ms"\nmax = "20 ms"\nsystems = ["alif-e8-hp"]\n'
        '[[constraints]]\nfigure = "inference_ms"\nmax = "0.1 ms"\nsystems = ["alif-e8-he"]\n'
    )
    done = sdk_ok("sweep", "run", "s.toml", "-j", "1", "-o", "out", "--json", cwd=tmp_path)
    assert "alif-e8-hp has no ethos-u55-128" in done.err
    assert "of the NPU alone" not in done.out + done.err
    verdict = json.loads(done.out)["verdict"]
    (model,) = verdict["models"]
    found = {}
    for cell in (tmp_path / "out").rglob("cell.json"):
        record = read(cell)
        figures, time = record["figures"], time_of(cell.parent / "run.json")
        system = record["cell"]["system"]
        assert time["place"] == system
        assert time["waits"]["duration_s"] > 0
        assert figures["inference_ms"] == pytest.approx(1e3 * time["total"]["duration_s"])
        assert figures["time_ms"] == pytest.approx(1e3 * time["sums"]["npu_s"])
        assert figures["inference_ms"] > figures["time_ms"]
        found[system] = record["key"][:12]
    assert model["winners"] == [found["alif-e8-hp"]]
    standings = {row["cell"]: row["standing"] for row in verdict["cells"]}
    assert standings == {found["alif-e8-hp"]: "winner", found["alif-e8-he"]: "broken"}
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "alif-e8-he" in page
