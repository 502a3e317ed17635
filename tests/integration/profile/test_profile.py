"""`profile`: its rows add up to what the run counted and to what Vela estimates, for networks on every family."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk import records
from ethosu_sdk.aot import CompileRequest
from ethosu_sdk.commands.compile import check_record, record as compile_record
from ethosu_sdk.targets import parse_target
from tests.conftest import ZooPte
from tests.integration.cli import sdk
from tests.places import GOLDEN_PTE, ROOT

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
        done = sdk("compile", TRANSFORMER, "--target", target, "--no-check", "-o", tmp_path, cwd=tmp_path)
        assert done.code == 0, done.err
        return next(tmp_path.glob("*.pte"))
    compiled = zoo_pte(name, target)
    asked = CompileRequest(f"zoo:{name}", parse_target(target), compiled.pte.parent)
    record = check_record.left_out(compile_record.make(asked, compiled, "0" * 64, 0.0))
    records.write_json(compiled.pte.with_name(f"{name}.compile.json"), record)
    return compiled.pte


def _profile(program: Path, folder: Path) -> tuple[Record, Record, Record]:
    """The profile, the run and the compilation."""
    done = sdk("profile", program, "-o", folder, cwd=program.parent)
    assert done.code == 0, done.err
    compiled = program.with_name(f"{program.stem}.compile.json")
    return (
        json.loads((folder / "profile.json").read_text(encoding="utf-8")),
        json.loads((folder / "run.json").read_text(encoding="utf-8")),
        json.loads(compiled.read_text(encoding="utf-8")) if compiled.is_file() else {},
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
        ("mobilenet_v2", TARGETS[0]),
        *((name, target) for name in ("ds_cnn", "transformer") for target in TARGETS),
    ],
    ids="-".join,
    indirect=True,
)
def test_rows_add_up(program: Path, tmp_path: Path) -> None:
    profile, run, compiled = _profile(program, tmp_path / "out")
    _check_against_the_run(profile, run)
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


def _ran(folder: Path) -> Path:
    """A run with its program beside its record."""
    program = folder / "add_u55.pte"
    program.write_bytes((GOLDEN_PTE / "add_u55.pte").read_bytes())
    assert sdk("run", program, "-o", folder, "-q", cwd=folder).code == 0
    return program


def test_a_run_that_was_made_before(tmp_path: Path) -> None:
    _ran(tmp_path)
    done = sdk("profile", tmp_path, "--clock-mhz", "250", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "running" not in done.err
    assert "250 MHz (--clock-mhz)" in done.out
    profile = json.loads((tmp_path / "profile.json").read_text(encoding="utf-8"))
    _check_against_the_run(profile, json.loads((tmp_path / "run.json").read_text(encoding="utf-8")))
    shown = sdk("profile", tmp_path, "--json", cwd=tmp_path)
    assert json.loads(shown.out)["operations"] == profile["operations"]


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = sdk("profile", empty, cwd=tmp_path)
    assert (done.code, "holds no run.json" in done.err) == (3, True)
    program = _ran(tmp_path)
    program.write_bytes((GOLDEN_PTE / "softmax.pte").read_bytes())
    done = sdk("profile", tmp_path, cwd=tmp_path)
    assert (done.code, "the program of the run is not in" in done.err) == (3, True)
    assert "ethosu-sdk profile MODEL.pte makes a run" in done.err
    assert not (tmp_path / "profile.json").exists()
