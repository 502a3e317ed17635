"""`advise` as a command: what it takes, what it writes and where, and what it refuses."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ethosu_sdk.records import validation
from tests.integration.advise.programs import Advised, Record
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.places import GOLDEN_PTE
from tests.records import EXAMPLES, printed, read


@pytest.mark.toolchain
@pytest.mark.qemu
def test_a_program_is_run_first(tmp_path: Path) -> None:
    record = printed(sdk("advise", GOLDEN_PTE / "add_u55.pte", "-o", "out", "--json", cwd=tmp_path))
    assert record == read(tmp_path / "out" / "advice.json")
    assert validation.record_problems(record) == []
    unknown = {row["rule"] for row in record["silent"] if row["state"] == "unknown"}
    assert {"memory-mode", "quantised-io", "sixteen-bits"} <= unknown
    assert "/compile" in [row["path"] for row in record["unavailable"]]
    assert sdk("validate", "out", cwd=tmp_path).code == 0
    manifest = read(tmp_path / "out" / "manifest.json")
    (row,) = [row for row in manifest["files"] if row["path"] == "advice.json"]
    assert (row["schema"], row["writer"]) == ("advice/1", "advise")


def test_people_see_what_the_record_says(plain: Advised, tmp_path: Path) -> None:
    """The table has each change with its figures, a number its command or code, and nothing is lost on the way."""
    shutil.copytree(plain.folder, tmp_path / "run")
    record = plain.advice
    for width in (80, 100, 120):
        shown = sdk_ok("advise", "run", cwd=tmp_path, env={"COLUMNS": str(width)}).out.splitlines()
        assert len(shown) <= 15
        assert max(map(len, shown)) <= width
        assert shown[-1] == "next        ethosu-sdk advise run 1"
        assert shown[0].startswith(f"{len(record['advice'])} changes for net.pte on ethos-u55-")
        rows = [line for line in shown[1:] if line[:1].isdigit()]
        assert [row[0] for row in rows] == [str(n) for n in range(min(5, len(record["advice"]) + 1))]
        first = record["advice"][0]["gains"][0]
        if first["metric"] == "NPU cycles":
            assert f" {first['before']:,} " in f"{rows[0]} "
            assert f" {first['after']:,} " in rows[1]
    cycles = plain.expected("memory-mode", "NPU cycles")
    whole = sdk_ok("advise", "run", "-v", cwd=tmp_path, env={"COLUMNS": "300"})
    for number, row in enumerate(record["advice"], start=1):
        done = sdk_ok("advise", "run", number, cwd=tmp_path, env={"COLUMNS": "300"})
        for text in (done.out, whole.out):
            assert f"{number}. {row['rule']}" in text
            assert all(line in text for line in row.get("code", [row.get("command")]))
    assert f"NPU cycles {cycles[0]:,} → {cycles[1]:,} (modelled → expected" in whole.out
    assert f"there is no change {number + 1}" in sdk("advise", "run", number + 1, cwd=tmp_path).err


def test_what_was_tried_is_not_forgotten(plain: Advised, tmp_path: Path) -> None:
    """An `advise` without --try keeps the trials of the same program, and no others."""
    folder = shutil.copytree(plain.folder, tmp_path / "run")
    (folder / "manifest.json").unlink()
    trial = read(EXAMPLES / "advice-tried.json")
    record = plain.advice
    for digest in (record["model"]["sha256"], "0" * 64):
        kept = {**record, "model": {**record["model"], "sha256": digest}, "tried": trial["tried"]}
        (folder / "advice.json").write_text(json.dumps(kept), encoding="utf-8")
        sdk_ok("advise", folder, "-q", cwd=tmp_path)
        assert ("tried" in read(folder / "advice.json")) == (digest == record["model"]["sha256"])
        (folder / "manifest.json").unlink()


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert_clear(sdk("advise", "empty", cwd=tmp_path), 3, "it has no run.json")
    assert list((tmp_path / "empty").iterdir()) == []


def _compiled(change: Callable[[Record], object]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / "net.compile.json"
        record = read(path)
        change(record)
        path.write_text(json.dumps(record), encoding="utf-8")

    return damage


def _calls(record: Record) -> None:
    for row in record["cpu_operators"]:
        row["calls"] = row["sites"][0]["calls"] = 10**30
        row["name"] = "aten::mul.out"


def _of_another_mode(record: Record) -> None:
    for part in (record["target"], record["system"]):
        part["memory_mode"] = "Nowhere"


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda folder: (folder / "net.compile.json").write_text("{", encoding="utf-8"), 3),
        (lambda folder: (folder / "debug.json").write_text("[]", encoding="utf-8"), 3),
        (lambda folder: shutil.copy(folder / "run.json", folder / "debug.json"), 3),
        (_compiled(lambda record: record.pop("target")), 3),
        (_compiled(lambda record: record["target"].update(memory_mode="Nowhere")), 3),
        (_compiled(_of_another_mode), 0),
        (_compiled(lambda record: record.pop("delegation")), 0),
        (_compiled(lambda record: record["inputs"][0].update(shape=[0] * 9)), 0),
        (_compiled(lambda record: record["inputs"][0].update(shape=[10**400])), 3),
        (_compiled(_calls), 3),
    ],
)
def test_hostile_records(damage: Callable[[Path], object], code: int, plain: Advised, tmp_path: Path) -> None:
    folder = shutil.copytree(plain.folder, tmp_path / "run")
    for name in ("manifest.json", "advice.json"):
        (folder / name).unlink()
    damage(folder)
    assert_clear(sdk("advise", folder, cwd=tmp_path, timeout_s=60), code)
    assert (folder / "advice.json").is_file() == (code == 0)
