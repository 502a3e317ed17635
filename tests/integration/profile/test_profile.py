"""`profile`: its rows add up to what the run counted and to what Vela estimates, for networks on every family."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.base import json_text
from ethosu_sdk.base.errors import VerdictError
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile import check_record, compile_record
from ethosu_sdk.compile.compile_facts import CompileRequest
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.npu.stream.pieces import cut
from ethosu_sdk.run import firmware as run_pieces, run_command
from ethosu_sdk.run.options import RunOptions
from tests.conftest import ZooPte
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.integration.conftest import FinishedRun
from tests.places import GOLDEN_PTE, ROOT
from tests.records import read

TARGETS = ("ethos-u55-128", "ethos-u65-256", "ethos-u85-256")
TRANSFORMER = f"{ROOT / 'benchmarks' / 'compile_models.py'}:transformer"
PORTS = {"AXI0": 0, "AXI1": 1, "SRAM": 0, "EXT": 1}
# Kinds that the NPU does on its MAC unit with weights or a matrix. Vela also counts what a pooling adds, what one
# copies, and a MATMUL that it makes of multiplications and sums.
MULTIPLYING = {"conv", "depthwise", "matmul"}

Record = dict[str, Any]

pytestmark = [pytest.mark.torch, pytest.mark.toolchain, pytest.mark.qemu]


@pytest.fixture
def program(request: pytest.FixtureRequest, zoo_pte: ZooPte, tmp_path: Path) -> Path:
    """A compiled network with the record that `compile` writes beside it."""
    name, target = request.param
    if name == "transformer":
        sdk_ok("compile", TRANSFORMER, "--target", target, "--no-check", "-o", tmp_path, cwd=tmp_path)
        return next(tmp_path.glob("*.pte"))
    compiled = zoo_pte(name, target)
    asked = CompileRequest(f"zoo:{name}", parse_target(target), compiled.pte.parent)
    record = check_record.check_left_out(compile_record.compile_record(asked, compiled, "0" * 64, 0.0))
    json_text.write_json(compiled.pte.with_name(f"{name}.compile.json"), record)
    return compiled.pte


def _profile(program: Path, folder: Path, *options: str) -> tuple[Record, Record, Record]:
    """The profile, the run and the compilation."""
    sdk_ok("profile", program, "-o", folder, *options, cwd=program.parent)
    compiled = program.with_name(f"{program.stem}.compile.json")
    return (
        read(folder / "profile.json"),
        read(folder / "run.json"),
        read(compiled) if compiled.is_file() else {},
    )


def _sum(rows: list[Record], source: str) -> int:
    return sum(
        row["calls"] * cycles["value"]
        for row in rows
        for cycles in row.get("cycles", ())
        if cycles["source"] == source
    )


def _check_against_the_run(profile: Record, run: Record) -> None:
    """Cycles and beats are those of the NPU's counters; every operator of the run has its row."""
    started = sum(row["calls"] * row["start_cycles"] for row in profile["delegates"])
    assert _sum(profile["operations"], "modelled") + started == run["npu"]["cycles"]["value"]
    beats = {row["port"]: row for row in profile["memories"]}
    compared = 0
    for counter in run["npu"]["counters"]:
        port, _, rest = counter["event"].partition("_")
        direction = {"RD": "read", "WR": "write"}.get(rest.partition("_")[0])
        if direction and counter["unit"] == "beats":
            of_port = [row for row in profile["memories"] if row["port"] == PORTS[port]]
            assert sum(row[f"{direction}_beats"] for row in of_port) == counter["value"], counter["event"]
            compared += 1
    assert compared >= 2
    assert beats
    kernels = [row["name"] for row in profile["operations"] if row["runs_on"] == "CPU"]
    assert kernels == [row["name"] for row in run["operators"] if row["kind"] == "kernel"]


def _check_the_pieces(profile: Record, run: Record) -> None:
    """Each operation's own job moved what the operation moves in the whole stream; the commands come on top."""
    verdict = {row["name"]: row["status"] for row in run["verdict"]["checks"]}
    assert verdict["the pieces gave the same outputs as the whole"] == "pass"
    own = [row["offsets"] for row in run["pieces"]]
    rows = {(row["delegate"], row["offset"]): row for row in profile["operations"] if row["runs_on"] == "NPU"}
    assert sum(map(len, own)) == len(rows)
    commands = {row["commands"]["port"] for row in profile["delegates"]}
    compared = 0
    for row in rows.values():
        if row.get("job", {}).get("operations") != 1:
            continue
        for counter in row["job"]["counters"]:
            port, _, rest = counter["event"].partition("_")
            direction = {"RD": "read", "WR": "write"}.get(rest.partition("_")[0])
            if direction is None or counter["unit"] != "beats":
                continue
            place = (PORTS[port], direction)
            beats = sum(
                part["beats"] for part in row["traffic"] if (part["port"], part["direction"]) == place
            )
            fetched = direction == "read" and PORTS[port] in commands
            assert counter["value"] > beats if fetched else counter["value"] == beats, (row, counter)
            compared += 1
    assert compared >= 2 * len(run["pieces"]) * 0.8
    jobs = profile["totals"]["npu"]["jobs"]
    assert jobs["count"] == len(own)
    assert jobs["cycles"]["value"] == sum(row["cycles"]["value"] for row in run["pieces"])
    assert jobs["cycles"]["value"] >= run["npu"]["cycles"]["value"]


def _check_against_vela(profile: Record, compiled: Record) -> None:
    """The estimates are Vela's, and MACs those that it counts, operation by operation."""
    macs: Counter[tuple[int, int]] = Counter()
    multiplying = set()
    for row in profile["operations"]:
        if "scheduled" in row:
            macs[row["delegate"], row["scheduled"]] += row["macs"]
            if row["kind"] in MULTIPLYING:
                multiplying.add((row["delegate"], row["scheduled"]))
    compared = 0
    for delegate in compiled["delegates"]:
        for number, operation in enumerate(delegate["operations"]):
            stated = {row["name"]: row["value"] for row in operation["estimates"]}
            place = (delegate["index"], number)
            assert macs[place] == (stated["macs"] if place in multiplying else 0), operation
            compared += place in multiplying
    assert compared
    stated = sum(
        row["value"]
        for delegate in compiled["delegates"]
        for operation in delegate["operations"]
        for row in operation["estimates"]
        if row["name"] == "cycles"
    )
    assert _sum(profile["operations"], "estimated") == stated


@pytest.mark.parametrize(
    "program",
    [
        ("resnet8", TARGETS[0]),
        *((name, target) for name in ("ds_cnn", "transformer") for target in TARGETS),
    ],
    ids="-".join,
    indirect=True,
)
def test_rows_add_up(program: Path, tmp_path: Path) -> None:
    profile, run, compiled = _profile(program, tmp_path / "out", "--split")
    _check_against_the_run(profile, run)
    _check_the_pieces(profile, run)
    _check_against_vela(profile, compiled)
    cpu = [row for row in profile["operations"] if row["runs_on"] == "CPU"]
    assert len(cpu) == sum(row["calls"] for row in compiled["cpu_operators"])
    assert all(row["instructions"]["value"] > 0 for row in cpu)
    assert profile["totals"]["cpu"]["instructions"]["source"] == "counted"
    with (tmp_path / "out" / "profile.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [int(row["cycles_modelled"] or 0) for row in table] == [
        _sum([{**row, "calls": 1}], "modelled") for row in profile["operations"]
    ]


def test_a_program_without_a_compile_record(tmp_path: Path) -> None:
    profile, run, _ = _profile(GOLDEN_PTE / "add_u55.pte", tmp_path)
    _check_against_the_run(profile, run)
    assert "/vela" in [row["path"] for row in profile["unavailable"]]
    assert {row["source"] for row in profile["totals"]["npu"]["cycles"]} == {"modelled"}
    speed = profile["totals"]["speed"][0]
    assert speed["inferences_per_s"] == pytest.approx(
        profile["clock"]["hz"] / profile["totals"]["npu"]["cycles"][0]["value"]
    )


@pytest.fixture
def ran(finished_run: FinishedRun, tmp_path: Path) -> Path:
    """The program of a run, beside its record."""
    shutil.copytree(finished_run(GOLDEN_PTE / "add_u55.pte"), tmp_path, dirs_exist_ok=True)
    return Path(shutil.copy(GOLDEN_PTE / "add_u55.pte", tmp_path))


@pytest.mark.usefixtures("ran")
def test_a_run_that_was_made_before(tmp_path: Path) -> None:
    done = sdk_ok("profile", tmp_path, "--clock-mhz", "250", "-v", cwd=tmp_path)
    assert "running" not in done.err
    assert "250 MHz (--clock-mhz)" in done.out
    profile = read(tmp_path / "profile.json")
    _check_against_the_run(profile, read(tmp_path / "run.json"))
    shown = sdk("profile", tmp_path, "--json", cwd=tmp_path)
    assert json.loads(shown.out)["operations"] == profile["operations"]


def test_a_piece_that_does_not_run_fails_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: the first operation runs twice, the last one never."""
    monkeypatch.setattr(run_pieces.pieces, "cut", lambda *given: (cut(*given)[0], *cut(*given)[:-1]))
    options = RunOptions(split=True, simulator="qemu")
    program = str(GOLDEN_PTE / "conv_u65_int8.pte")
    with pytest.raises(VerdictError, match="the pieces gave the same outputs as the whole: output 0"):
        run_command.run(program, CompileOptions(), options, tmp_path, Reporter(quiet=True))
    run = read(tmp_path / "run.json")
    assert run["status"] == "fail"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((".", "--split"), "--split needs a new run"),
        ((str(GOLDEN_PTE / "softmax.pte"), "--split"), "no delegate whose command stream could be split"),
    ],
)
def test_what_cannot_be_split_is_refused(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    assert_clear(sdk("profile", *arguments, cwd=tmp_path), 2, words)


def test_what_is_no_run_is_refused(ran: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert_clear(sdk("profile", "empty", cwd=tmp_path), 3, "it has no run.json")
    ran.write_bytes((GOLDEN_PTE / "softmax.pte").read_bytes())
    done = sdk("profile", tmp_path, cwd=tmp_path)
    assert (done.code, "the program of the run is not in" in done.err) == (3, True)
    assert "`ethosu-sdk profile MODEL.pte` runs it first" in done.err
    assert not (tmp_path / "profile.json").exists()


SLOW = "max_reads=4\nmax_writes=4\nread_latency=900\nwrite_latency=900\npulse_on=1\npulse_off=7\nbwcap=1\n"


def test_cycles_for_timing_adapters(ran: Path, tmp_path: Path) -> None:
    """Slower memories, more cycles; the profile prices for what the run was modelled for."""
    fast = read(tmp_path / "run.json")["npu"]
    (tmp_path / "slow.toml").write_text(f"[axi0]\n{SLOW}[axi1]\n{SLOW}", encoding="utf-8")
    profile, run, _ = _profile(ran, tmp_path / "slow", "--memory-timing", "slow.toml")
    _check_against_the_run(profile, run)
    assert run["npu"]["memory_timing"]["name"] == "slow.toml"
    assert [row["bytes_per_cycle"] for row in run["npu"]["memory_timing"]["interfaces"]] == [1.0, 1.0]
    assert run["npu"]["cycles"]["value"] > 2 * fast["cycles"]["value"]
    assert run["npu"]["counters"] == fast["counters"]


@pytest.mark.parametrize(
    ("program", "timing", "code", "words"),
    [
        ("add_u55", "exectorch", 2, "did you mean 'executorch'"),
        ("add_u55", "none.toml", 3, "there is no file none.toml"),
        ("softmax", "executorch", 2, "needs a program that uses the NPU"),
    ],
)
def test_memory_timing_that_cannot_be_is_refused(
    program: str, timing: str, code: int, words: str, tmp_path: Path
) -> None:
    done = sdk("run", GOLDEN_PTE / f"{program}.pte", "--memory-timing", timing, cwd=tmp_path)
    assert_clear(done, code, words)
