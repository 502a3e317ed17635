"""`report`: what it takes, what it writes and where, and what it says when something is missing."""

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from ethosu_sdk.base import filesystem, json_text
from tests.conftest import ZooPte
from tests.integration.browsing import HOSTILE, opened
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.integration.report.pages import Record, beside_its_record
from tests.places import ROOT
from tests.records import read

pytestmark = [pytest.mark.torch, pytest.mark.toolchain, pytest.mark.qemu]

MOST_BYTES = 3_000_000


def _copy(source: Path, target: Path) -> Path:
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("firmware", "*.lock"))
    return target


def test_beside_the_records_it_is_one_of_the_folders_files(run_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run_folder, folder)
    sdk_ok("report", folder, cwd=tmp_path)
    rows = {row["path"]: row for row in read(folder / "manifest.json")["files"]}
    assert rows["report.html"]["sha256"] == filesystem.sha256_file(folder / "report.html")
    assert "report.html" not in sdk("validate", folder, cwd=tmp_path).err
    (folder / "report.html").write_text("changed", encoding="utf-8")
    assert "report.html has changed" in sdk("validate", folder, cwd=tmp_path).err


def test_two_runs_stand_side_by_side(run_folder: Path, tmp_path: Path) -> None:
    other = _copy(run_folder, tmp_path / "other")
    for name in ("manifest.json", "profile.json", "digits_cnn.compile.json"):
        (other / name).unlink()
    sdk_ok("report", run_folder, other, cwd=tmp_path)
    text = (tmp_path / "build" / "report.html").read_text(encoding="utf-8")
    cycles = read(run_folder / "run.json")["npu"]["cycles"]["value"]
    assert text.count(f"<td>{cycles:,} (modelled") == 2  # side by side alone: each headline has it
    assert f">2: other is as fast as 1: {run_folder.name}</h2>" in text
    assert f"ethosu-sdk advise {other}" in text
    assert 'id="run2-operations"' in text
    # A run without a profile gets one for the report alone.
    assert not (other / "profile.json").exists()
    assert text.count('class="sortable tree"') == 2


def _slower(profile: Record, index: int, by: int) -> None:
    """One operation takes `by` cycles more, and so do its delegate and the inference."""
    changed = [profile["operations"][index], *profile["delegates"], profile["totals"]["npu"]]
    for part in changed:
        next(row for row in part["cycles"] if row["source"] == "modelled")["value"] += by


def test_differences_of_two_runs(browser: Browser, run_folder: Path, tmp_path: Path) -> None:
    """Where one operation takes 1,000 cycles more, its row and the sum differ, and no other row."""
    other = _copy(run_folder, tmp_path / "other")
    (other / "manifest.json").unlink()
    profile = read(other / "profile.json")
    index = next(row["index"] for row in profile["operations"] if row.get("macs", 0) > 10_000)
    before = next(
        row["value"] for row in profile["operations"][index]["cycles"] if row["source"] == "modelled"
    )
    _slower(profile, index, 1000)
    json_text.write_json(other / "profile.json", profile)
    sdk_ok("report", run_folder, other, "-o", "page.html", cwd=tmp_path)
    with opened(browser, tmp_path / "page.html") as shown:
        page = shown.page
        assert shown.said == []
        assert page.inner_text("h1").endswith(", 2 runs")
        rows = page.locator(".operators tbody tr:not(.equal)")
        assert rows.count() == 1
        assert rows.locator("td").all_inner_texts()[0] == f"+1,000 ({100_000 / before:+.1f} %)"
        assert page.locator(".operators tbody tr.equal").count() > 2
        total = next(
            row["value"] for row in profile["totals"]["npu"]["cycles"] if row["source"] == "modelled"
        )
        assert page.locator(".operators tfoot td").all_inner_texts()[1:] == [
            f"{total - 1000:,}",
            f"{total:,}",
        ]
        assert (
            page.locator("#compared path[tabindex]").count()
            == 2 * page.locator(".operators tbody tr").count()
        )


def _advised(run_folder: Path, path: Path, sha256: str) -> Record:
    """The example of a record with trials, as if it were about the program with that digest."""
    record = read(ROOT / "schemas" / "examples" / "valid" / "advice-tried.json")
    record["model"]["sha256"] = record["provenance"]["inputs"][0]["sha256"] = sha256
    record["tried"]["trials"][0]["change"] += HOSTILE[1]
    json_text.write_json(path, record)
    return record


def test_what_was_tried_is_shown(browser: Browser, run_folder: Path, tmp_path: Path) -> None:
    """A record in the folder or a given one; of another program it is refused."""
    path, digest = tmp_path / "tries.json", read(run_folder / "run.json")["model"]["sha256"]
    tried = _advised(run_folder, path, digest)["tried"]
    trials = tried["trials"]
    sdk_ok("report", run_folder, "--advice", path, "-o", "given.html", cwd=tmp_path)
    folder = _copy(run_folder, tmp_path / "run")
    shutil.copy(path, folder / "advice.json")
    (folder / "manifest.json").unlink()
    assert sdk("report", folder, "-o", "own.html", cwd=tmp_path).code == 0
    for name in ("given.html", "own.html"):
        with opened(browser, tmp_path / name) as shown:
            assert shown.said == []
            assert shown.page.evaluate("window.broken") is None
            table = shown.page.locator("table.tried tbody tr")
            assert table.first.locator("td").all_inner_texts()[1:4] == ["", "47,071,108", "198,704"]
            assert table.nth(1).locator("td").nth(1).inner_text() == f"{-100 * trials[0]['gain']:+.1f} %"
            assert table.count() == 1 + len(trials) + len(tried["left"])
            lines = "\n".join(shown.page.locator("#run1-advice code.line").all_text_contents())
            assert all(line in lines for line in trials[0]["code"])
            operators = shown.page.locator("table.on-the-cpu tbody th").all_inner_texts()
            assert any(text.startswith("quantize_per_tensor") for text in operators)
    _advised(run_folder, path, "0" * 64)
    done = sdk("report", run_folder, "--advice", path, "-o", "other.html", cwd=tmp_path)
    assert_clear(done, 3, "about another program")
    done = sdk("report", run_folder, "--advice", run_folder / "run.json", "-o", "other.html", cwd=tmp_path)
    assert_clear(done, 3, "not an advice/1")


def test_what_is_missing_is_named(run_folder: Path, tmp_path: Path) -> None:
    folder = _copy(run_folder, tmp_path / "run")
    for path in (folder / "manifest.json", folder / "profile.json", *folder.glob("*.pte")):
        path.unlink()
    sdk_ok("report", folder, "-o", "page.html", cwd=tmp_path)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.count("the program of the run is not in") >= 2
    assert "There is no debug.json in the folder" in text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "holds no run.json"),
        ("{", "is not JSON"),
        ('{"schema": "run-result/1"}', "run.json"),
        ('{"schema": "error/1"}', "run.json"),
    ],
)
def test_no_run(content: str | None, words: str, tmp_path: Path) -> None:
    folder = filesystem.make_directory(tmp_path / "run")
    if content is not None:
        (folder / "run.json").write_text(content, encoding="utf-8")
    assert_clear(sdk("report", folder, "-o", "page.html", cwd=tmp_path), 3, words)
    assert not (tmp_path / "page.html").exists()


def test_changed_records_are_refused(run_folder: Path, tmp_path: Path) -> None:
    folder = _copy(run_folder, tmp_path / "run")
    path = folder / "run.json"
    path.write_text(path.read_text(encoding="utf-8").replace("pass", "fail"), encoding="utf-8")
    assert_clear(sdk("report", folder, cwd=tmp_path), 3, "has changed")


def _with_operations(source: Path, folder: Path, change: Callable[[Record], None]) -> Path:
    """The run with a profile whose operations of the NPU went through `change`."""
    _copy(source, folder)
    (folder / "manifest.json").unlink()
    profile = read(folder / "profile.json")
    for row in profile["operations"]:
        if row["runs_on"] == "NPU":
            change(row)
    json_text.write_json(folder / "profile.json", profile)
    return folder


def _without_what_may_be_absent(row: Record) -> None:
    for name in ("scheduled", "tosa", "vela", "source", "shapes", "dtypes", "weights", "scratch_bytes"):
        row.pop(name, None)


def test_a_profile_may_have_less(run_folder: Path, tmp_path: Path) -> None:
    folder = _with_operations(run_folder, tmp_path / "run", _without_what_may_be_absent)
    assert sdk("validate", folder / "profile.json", cwd=tmp_path).code == 0
    sdk_ok("report", folder, "-o", "page.html", cwd=tmp_path)


def test_numbers_without_end(run_folder: Path, tmp_path: Path) -> None:
    folder = _with_operations(run_folder, tmp_path / "run", lambda row: row.update(macs=10**399))
    assert_clear(sdk("report", folder, "-o", "page.html", cwd=tmp_path), 3, "needs more than 64 bits")
    assert not (tmp_path / "page.html").exists()


def test_the_name_must_be_that_of_a_page(run_folder: Path, tmp_path: Path) -> None:
    assert_clear(sdk("report", run_folder, "-o", "run.json", cwd=tmp_path), 2, ".html")


def test_without_the_extra_its_name_is_said(run_folder: Path, tmp_path: Path) -> None:
    """A package of that name that cannot be imported comes first on the path."""
    (tmp_path / "altair.py").write_text(
        "raise ModuleNotFoundError('gone', name='altair')\n", encoding="utf-8"
    )
    done = sdk("report", run_folder, "-o", "page.html", cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert done.code == 4, done.err
    assert "altair" in done.err
    assert "pip install 'ethosu-sdk[report]'" in done.err
    assert "Traceback" not in done.err


def test_a_large_network_makes_a_small_page(zoo_pte: ZooPte, tmp_path: Path) -> None:
    program = beside_its_record("mobilenet_v2", zoo_pte, tmp_path)
    sdk_ok("run", program, "--simulator", "host", "-q", "-o", tmp_path, cwd=tmp_path)
    sdk_ok("report", tmp_path, "-o", "page.html", cwd=tmp_path)
    content = (tmp_path / "page.html").read_bytes()
    assert content.count(b" data-leaf data-index=") > 100
    assert len(content) < MOST_BYTES
    # MobileNetV2 has ten residual connections (Sandler et al., 2018, table 2: repeats of equal stride).
    targets = re.findall(r'class="edge" data-ends="\d+ (\d+)"', content.decode())
    assert sorted(Counter(targets).values())[-11:] == [1, *[2] * 10]


def test_advice_is_a_part_of_the_page(run_folder: Path, tmp_path: Path) -> None:
    folder = _copy(run_folder, tmp_path / "run")
    sdk_ok("advise", folder, "-q", cwd=tmp_path)
    advice = read(folder / "advice.json")
    given = {row["rule"]: row for row in advice["advice"]}
    assert {"memory-mode", "flatten-as-convolution", "quantised-io"} == set(
        given
    )  # half of the MACs cost 18 % here
    counted = read(folder / "profile.json")["totals"]["cpu"]["instructions"]["value"]
    change = given["quantised-io"]["gains"][0]  # of a program that computes nothing else on the CPU
    assert (change["metric"], change["before"], change["after"]) == ("CPU instructions", counted, 0)
    sdk_ok("report", folder, "-o", "page.html", cwd=tmp_path)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    for row in advice["advice"]:
        assert f"<summary>{row['rule']}" in text
    for row in advice["silent"]:
        assert f"<td>{row['rule']}</td>" in text
