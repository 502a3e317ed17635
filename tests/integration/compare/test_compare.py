"""`compare`: what is worse is found and named with its operator, what is the same is silent, the rest is refused."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ethosu_sdk.records import validation
from ethosu_sdk.reporting.compare import compare_command
from ethosu_sdk.reporting.compare.options import CompareOptions
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.integration.compare.runs import Record, changed, compare, run_on_host, with_another_scale
from tests.integration.conftest import FinishedRun
from tests.places import GOLDEN_PTE, ROOT
from tests.records import read

EXAMPLES = ROOT / "schemas" / "examples" / "valid"
CHECKED = ("--check", "--allow", "memory_mode")

pytestmark = [pytest.mark.torch, pytest.mark.qemu]


def test_the_same_run_twice_is_silent(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "shared", tmp_path / "again")
    run_on_host(tmp_path / "again")
    found = compare(made / "shared", "again", cwd=tmp_path)
    assert (found.done.code, found.done.err) == (0, "")
    lines = found.done.out.splitlines()
    cycles = read(made / "shared" / "run.json")["npu"]["cycles"]["value"]
    assert lines[0] == f"SAME     {cycles:,} cycles of the NPU, without the CPU's (modelled)"
    assert "outputs  equal, bit for bit" in lines
    assert lines[-2:] == [
        f"figures  {found.only['compared']} compared: no difference",
        f"next     ethosu-sdk report {made / 'shared'} again",
    ]
    assert found.only["compared"] > 50
    assert (found.only["metrics"], found.only["operators"]) == ([], [])
    assert found.only["kinds"] == ["run", "profile", "compile"]
    assert validation.record_problems(found.record) == []


@pytest.mark.toolchain
def test_two_runs_on_qemu_are_the_same(finished_run: FinishedRun, tmp_path: Path) -> None:
    program = GOLDEN_PTE / "add_u55.pte"
    sdk_ok("profile", program, "-o", "b", "-q", cwd=tmp_path, fresh=True)
    found = compare(finished_run(program, command="profile"), "b", cwd=tmp_path)
    assert found.done.code == 0, found.done.err
    assert found.done.out.startswith("SAME ")
    assert found.only["kinds"] == ["run", "profile", "build"]


def test_two_variants_are_compared_and_checked_only_when_that_is_asked(made: Path, tmp_path: Path) -> None:
    """Weights in SRAM are read faster than from flash; the figures are those of the records."""
    runs = [read(made / name / "run.json") for name in ("shared", "sram")]
    before, after = (run["npu"]["cycles"]["value"] for run in runs)
    for words, word in ((("shared", "sram"), "FASTER"), (("sram", "shared"), "SLOWER")):
        found = compare(*(made / name for name in words), cwd=tmp_path)
        assert (found.done.code, found.done.err) == (0, "")
        assert found.done.out.split()[:3] == [word, f"{before / after:.1f}", "times:"]
        assert "settings  memory_mode " in found.done.out
    assert found.record["status"] == "fail"  # by the SDK's own policy, which nobody asked for
    assert f"{after:,} → {before:,} cycles of the NPU" in found.done.out
    found = compare(made / "shared", made / "sram", "--check", cwd=tmp_path)
    assert (found.done.code, found.record["status"]) == (3, "blocked")
    assert "memory_mode: Shared_Sram and Sram_Only" in found.done.err
    assert "model:" not in found.done.err
    assert found.done.out.startswith("NOT COMPARABLE  memory_mode Shared_Sram → Sram_Only")
    assert found.only["metrics"] == []


def test_a_stream_that_is_slower_is_found_with_its_operator(made: Path, tmp_path: Path) -> None:
    """From SRAM to flash the weights of the convolutions take longer; the figures are those of the two profiles."""
    found = compare(made / "sram", made / "shared", *CHECKED, cwd=tmp_path)
    assert (found.done.code, found.record["status"]) == (7, "fail")
    cycles = [read(made / name / "run.json")["npu"]["cycles"]["value"] for name in ("sram", "shared")]
    row = found.metric("npu.cycles")
    assert [row["before"], row["after"], row["change"]] == [*cycles, cycles[1] - cycles[0]]
    assert row["status"] == "regression"
    operator = found.only["operators"][row["operator"]]
    assert (operator["name"], operator["source"]["module"]) == ("CONV2D", "3")
    assert f"npu.cycles: {cycles[0]:,} → {cycles[1]:,} cycles (modelled)" in found.done.err
    assert "most of it at CONV2D (module 3, ethosu_sdk/compile/zoo/digits.py:60" in found.done.err
    growth: Counter[str] = Counter()
    for row in found.only["operators"]:
        growth[row["source"]["module"]] += _change(row, "cycles.modelled")
    profiled = [_cycles(made / name, tmp_path) for name in ("sram", "shared")]
    assert growth == {key: profiled[1][key] - profiled[0][key] for key in growth}


def _change(row: Record, name: str) -> int:
    return sum(part["change"] for part in row["figures"] if part["name"] == name)


def _cycles(folder: Path, cwd: Path) -> dict[str, int]:
    """Modelled cycles of the convolutions by module, summed up here."""
    sdk_ok("profile", folder, "-o", f"profile-{folder.name}", "-q", cwd=cwd)
    found: dict[str, int] = {}
    for row in read(cwd / f"profile-{folder.name}" / "profile.json")["operations"]:
        if row["runs_on"] == "NPU":
            module = row["source"]["module"]
            value = next(part["value"] for part in row["cycles"] if part["source"] == "modelled")
            found[module] = found.get(module, 0) + row["calls"] * value
    return found


def test_a_planted_percent_is_found_at_its_operator(made: Path, tmp_path: Path) -> None:
    sdk_ok("profile", made / "shared", "-o", "profiled", "-q", cwd=tmp_path)
    source = tmp_path / "profiled" / "profile.json"

    def slower(record: Record) -> None:
        row = next(row for row in record["operations"] if row.get("source", {}).get("module") == "7")
        extra = record["totals"]["npu"]["cycles"][0]["value"] // 100
        for cycles in (row["cycles"], record["delegates"][0]["cycles"], record["totals"]["npu"]["cycles"]):
            next(part for part in cycles if part["source"] == "modelled")["value"] += extra

    found = compare(source, changed(source, tmp_path / "slower.json", slower), "--check", cwd=tmp_path)
    assert found.done.code == 7
    assert "profile.cycles.modelled" in found.done.err
    assert "most of it at CONV2D (module 7, ethosu_sdk/compile/zoo/digits.py:64" in found.done.err
    assert [row["name"] for row in found.only["metrics"]] == ["profile.cycles.modelled"]
    assert len(found.only["operators"]) == 1
    assert 0.9 < found.metric("profile.cycles.modelled")["percent"] <= 1.0


@pytest.mark.parametrize(("percent", "code"), [(0.9, 7), (1.1, 0)])
def test_a_policy_tolerates_what_it_says(percent: float, code: int, made: Path, tmp_path: Path) -> None:
    source = made / "shared" / "run.json"

    def slower(record: Record) -> None:
        record["npu"]["cycles"]["value"] = round(1.01 * record["npu"]["cycles"]["value"])

    changed(source, tmp_path / "slower.json", slower)
    text = f'[metrics."npu.*"]\ntolerance_percent = {percent}\n'
    (tmp_path / "policy.toml").write_text(text, encoding="utf-8")
    found = compare(source, "slower.json", "--policy", "policy.toml", cwd=tmp_path)
    assert found.done.code == code, found.done.err
    assert found.metric("npu.cycles")["status"] == ("regression" if code else "tolerated")
    back = compare("slower.json", source, cwd=tmp_path)
    assert (back.done.code, back.metric("npu.cycles")["status"]) == (0, "improved")


def test_a_bad_scale_in_one_layer_is_found_by_the_outputs(made: Path, tmp_path: Path) -> None:
    folder = with_another_scale(made / "shared", tmp_path / "changed", 1)
    run_on_host(folder)
    found = compare(made / "shared", folder, "--check", cwd=tmp_path)
    assert found.done.code == 7
    row = found.metric("outputs.0")
    assert row["status"] == "regression"
    assert " of 10 values differ, by " in row["detail"]
    assert "outputs.0: " in found.done.err
    assert found.metric("reference.0.equal")["status"] == "regression"
    # The stream is the same: nothing else became worse.
    worse = {row["name"].partition(".")[0] for row in found.only["metrics"] if row["status"] == "regression"}
    assert worse == {"outputs", "reference"}
    (operator,) = found.only["operators"]
    assert (operator["constants"], operator["figures"]) == ("differ", [])
    assert (operator["name"], operator["source"]["module"]) == ("CONV2D", "3")
    assert (
        "other weights or scales at CONV2D (module 3, ethosu_sdk/compile/zoo/digits.py:60 in _network)"
        in found.done.err
    )


def test_measured_and_modelled_are_never_compared(tmp_path: Path) -> None:
    source = EXAMPLES / "run-ds_cnn.json"

    def measured(record: Record) -> None:
        record["simulator"]["name"] = "fvp"
        for row in (record["npu"]["cycles"], *record["npu"]["counters"]):
            row["source"] = "measured"

    changed(source, tmp_path / "fvp.json", measured)
    found = compare(source, "fvp.json", "--allow", "simulator", cwd=tmp_path)
    assert found.done.code == 3
    assert "fidelity: modelled and measured: what is measured and what is modelled" in found.done.err

    words = [f"--allow={name}" for name in ("model", "simulator", "versions", "inputs", "runtime", "board")]
    assert compare(source, "fvp.json", *words, cwd=tmp_path).done.code == 3
    assert_clear(sdk("compare", source, "fvp.json", "--allow", "fidelity", cwd=tmp_path), 2, "never compared")


def test_measured_and_modelled_stand_beside_each_other_on_demand(tmp_path: Path) -> None:
    """With both sources, and without a word on which is better."""

    def measured(record: Record) -> None:
        record["simulator"]["name"] = "fvp"
        for row in (record["npu"]["cycles"], *record["npu"]["counters"]):
            row["source"] = "measured"
        record["npu"]["cycles"]["value"] *= 2

    changed(EXAMPLES / "run-ds_cnn.json", tmp_path / "fvp.json", measured)
    words = ("compare", EXAMPLES / "run-ds_cnn.json", tmp_path / "fvp.json", "--across")
    outcome = sdk_ok(*words, "-v", "-o", tmp_path / "out", cwd=tmp_path)
    (comparison,) = json.loads((tmp_path / "out" / "compare.json").read_text())["comparisons"]
    cycles = next(row for row in comparison["metrics"] if row["name"] == "npu.cycles")
    assert (cycles["source_before"], cycles["source"]) == ("modelled", "measured")
    assert (cycles["status"], cycles["percent"]) == ("differs", 100)
    assert "(modelled → measured)" in outcome.out
    assert_clear(sdk(*words, "--check", cwd=tmp_path), 2, "--across shows figures that no check can judge")


def _other_system(record: Record) -> None:
    record["target"]["system_config"] = "Other"
    del record["priced"]  # it would be that of another system


DIFFERENCES = {
    "versions": lambda record: record["provenance"]["tools"][-1].update(version="9.9.9"),
    "inputs": lambda record: record["inputs"][0].update(sha256="0" * 64),
    "board": lambda record: record.update(board="corstone-320"),
    "target": lambda record: record["target"].update(macs=256),
    "system_config": _other_system,
    "runtime": lambda record: record["provenance"]["inputs"][1].update(file="resident_runner.elf"),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_every_difference_is_named_and_can_be_allowed(name: str, tmp_path: Path) -> None:
    source = EXAMPLES / "run-ds_cnn.json"
    changed(source, tmp_path / "other.json", DIFFERENCES[name])
    found = compare(source, "other.json", "--check", cwd=tmp_path)
    assert found.done.code == 3
    assert [row["name"] for row in found.only["dimensions"] if row["status"] == "blocks"] == [name]
    assert f"A → B, {name}: " in found.done.err
    (tmp_path / "policy.toml").write_text(f'allow = ["{name}"]\n', encoding="utf-8")
    options = CompareOptions(policy=tmp_path / "policy.toml")
    assert compare_command.compare_paths([source, tmp_path / "other.json"], {}, options).status == "pass"


def test_three_runs_and_the_record_on_stdout(tmp_path: Path) -> None:
    source = EXAMPLES / "run-ds_cnn.json"

    def larger(record: Record) -> None:
        record["memory"]["pools"][0]["used_bytes"] += 100

    changed(source, tmp_path / "larger.json", larger)
    done = sdk("compare", source, source, "larger.json", "--json", "--check", cwd=tmp_path)
    record = json.loads(done.out)
    assert (done.code, record["status"]) == (7, "fail")
    assert [(row["before"], row["after"], row["status"]) for row in record["comparisons"]] == [
        ("A", "B", "pass"),
        ("A", "C", "fail"),
    ]
    assert record == read(tmp_path / "build" / "compare" / "compare.json")
    shown = sdk("summary", "build/compare/compare.json", cwd=tmp_path)
    assert "❌ compare" in shown.out
    assert "memory.pools.stack" in shown.out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["a.json"], 2, "one run cannot be compared"),
        (["a.json", "none"], 3, "no file or folder none"),
        (["a.json", "empty"], 3, "holds no record"),
        (["a.json", "broken.json"], 3, "is not JSON"),
        (["a.json", "doctor.json"], 3, "cannot be compared"),
        (["a.json", "compile.json"], 3, "no record of the same kind"),
        (["a.json", "a.json", "--allow", "modle"], 2, "did you mean 'model'"),
        (["a.json", "a.json", "--policy", "none.toml"], 3, "there is no file none.toml"),
    ],
)
def test_what_cannot_be_compared_is_named(words: list[str], code: int, said: str, tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "run-ds_cnn.json", tmp_path / "a.json")
    shutil.copy(EXAMPLES / "doctor.json", tmp_path / "doctor.json")
    shutil.copy(EXAMPLES / "compile-ds_cnn.json", tmp_path / "compile.json")
    (tmp_path / "broken.json").write_text("{", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    assert_clear(sdk("compare", *words, cwd=tmp_path), code, said)
    assert not (tmp_path / "build").exists()


def test_a_folder_that_lost_its_run_is_no_silent_pass(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "shared", tmp_path / "lost")
    for name in ("run.json", "manifest.json"):
        (tmp_path / "lost" / name).unlink()
    for words in ((made / "shared", "lost"), ("lost", made / "shared")):
        assert_clear(sdk("compare", *words, cwd=tmp_path), 3, "lost holds no run, but ")


def test_the_function_gives_the_record(made: Path, tmp_path: Path) -> None:
    script = (
        "import sys, ethosu_sdk\n"
        "found = ethosu_sdk.compare(sys.argv[1], sys.argv[2], allow=('model', 'memory_mode'))\n"
        "print(found.status, *sorted(row['name'] for row in found.regressions), len(found.operators) > 0)\n"
    )
    words = [sys.executable, "-c", script, str(made / "sram"), str(made / "shared")]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.startswith("fail ")
    assert "npu.cycles" in done.stdout
    assert done.stdout.rstrip().endswith("True")
    assert list(tmp_path.iterdir()) == []
