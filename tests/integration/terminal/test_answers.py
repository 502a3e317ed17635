"""What `run` and `profile` show first: at most 15 lines that fit the terminal, with the figures of the records."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.records import answers, kinds
from ethosu_sdk.records.answers import Subject
from tests.integration.cli import sdk_ok
from tests.integration.terminal.widths import printed
from tests.places import GOLDEN_PTE
from tests.records import example, read

Record = dict[str, Any]
Case = tuple[Record, Record | None]

WIDTHS = (80, 100, 120)
SUBJECT = Subject("kws.py", ["kws.py", "--target", "ethos-u55-128"], Path("build/kws-ethos-u55-128"))
MODELLED = {"unit": "cycles", "source": "modelled"}


def mixed() -> Case:
    """Two delegates and a pooling between them, on no board: the CPU is not counted."""
    return example("run-ds_cnn"), example("compile-ds_cnn")


def all_npu() -> Case:
    run, compiled = mixed()
    run["operators"] = [row for row in run["operators"] if row["kind"] == "delegate"]
    return run, compiled | {"cpu_operators": [], "options": compiled["options"] | {"io": "int8"}}


def all_cpu() -> Case:
    run, _ = mixed()
    run["operators"] = [row for row in run["operators"] if row["kind"] == "kernel"]
    return {key: row for key, row in run.items() if key not in ("npu", "target", "priced")}, None


def on_a_board() -> Case:
    """With a second opinion, and a program that was not quantised."""
    return example("run-add-timed"), example("compile-add")


def cortex_m() -> Case:
    """Cycles without a clock."""
    run, compiled = all_cpu()
    for number, row in enumerate(run["operators"]):
        row["cpu_cycles"] = {"value": 1000 * number, **MODELLED}
    run["cpu"] = {"core": "cortex-m55", "cycles": {"value": 654_321, **MODELLED}}
    run["unavailable"] = [
        {"path": "/time", "reason": "the CPU's clock is not known: --system NAME or --cpu-clock-mhz"}
    ]
    return run, compiled


def without_llvm() -> Case:
    run, compiled = all_cpu()
    run["unavailable"] = [{"path": "/cpu/cycles", "reason": "llvm-mc-19 is missing: apt-get install llvm-19"}]
    return run, compiled


def failing() -> Case:
    run, compiled = on_a_board()
    check = {"name": "output0 is as expected", "status": "fail", "detail": "3 of 5 elements differ"}
    run["verdict"]["checks"] += [
        check,
        check | {"name": "output1 is as expected"},
        check | {"name": "a third"},
    ]
    run["status"] = run["verdict"]["status"] = "fail"
    return run, compiled


def too_large() -> Case:
    run, compiled = on_a_board()
    roles = ({"role": "model", "used_bytes": 8_441_280}, {"role": "code", "used_bytes": 77_824})
    run["memory"]["uses"] = [{"memory": "MRAM", "size_bytes": 5_767_168, **row} for row in roles]
    run["memory"]["uses"] += [
        {"memory": "SRAM0", "role": "scratch", "used_bytes": 320, "size_bytes": 4_194_304},
        {"memory": "SRAM0", "role": "harness", "used_bytes": 1_048_576, "size_bytes": 4_194_304},
        {"memory": "OSPI", "role": "data", "used_bytes": 2_048},
    ]
    run["memory"]["board"] = "alif-e8-hp"
    return run, compiled


def of_unknown_size() -> Case:
    run, compiled = too_large()
    for row in run["memory"]["uses"]:
        row.pop("size_bytes", None)
    return run, compiled


def sequence() -> Case:
    run, compiled = on_a_board()
    run["inferences"] = 20
    run["reference"]["steps"] = 10
    return run, compiled


def expected() -> Case:
    """Judged by --expect: nothing was compared with the model."""
    run, compiled = mixed()
    run["verdict"]["checks"].append(
        {"name": "output0 is as expected", "status": "pass", "detail": "all equal"}
    )
    return run, compiled


def on_this_machine() -> Case:
    run, compiled = mixed()
    run["board"] = run["simulator"]["name"] = "host"
    run["unavailable"] = [{"path": "/cpu/cycles", "reason": "the host simulator has no board"}]
    return run, compiled


def another_system() -> Case:
    run, compiled = on_a_board()
    run["priced"]["compiled_for"] = False
    return run, compiled


def evaluated() -> Case:
    run, _ = mixed()
    return run, example("compile-digits_cnn-evaluated")


CASES = (
    *(
        mixed,
        all_npu,
        all_cpu,
        on_a_board,
        cortex_m,
        without_llvm,
        failing,
        too_large,
        of_unknown_size,
        sequence,
        expected,
    ),
    *(on_this_machine, another_system, evaluated),
)
# What each must say, beside the figures.
WORDS: dict[Callable[[], Case], tuple[str, ...]] = {
    mixed: ("PASS", "not compared: nothing to compare", "time unknown", "--system NAME gives the time"),
    all_npu: ("CPU 0 operators", "on the NPU (estimated) random_weights.py:"),
    all_cpu: ("no NPU on corstone-300", "quality unknown", "time unknown"),
    on_a_board: ("on my-board", "the same on both runtimes", "not quantised here"),
    cortex_m: (
        "cortex-m55 on corstone-300",
        "654,321 cycles",
        "the CPU's clock is not known",
        "4,000 cycles on the CPU",
    ),
    without_llvm: ("llvm-mc-19 is missing: apt-get install llvm-19",),
    failing: (
        "FAIL",
        "3 of 7 checks failed",
        "and 1 more: -v",
        "next ethosu-sdk debug kws.py --target ethos-u55-128",
    ),
    too_large: (
        "does not fit: MRAM 8.1 MiB + code 76 KiB of 5.5 MiB",
        "SRAM0 320 bytes of 4 MiB",
        "OSPI 2 KiB (size not public)",
    ),
    of_unknown_size: ("memory MRAM 8.1 MiB + code 76 KiB (size not public)",),
    sequence: ("in 10 of 20 steps",),
    expected: ("1 of 1 output as expected",),
    on_this_machine: ("on this machine", "the host simulator has no board"),
    another_system: ("for Ethos_U55_High_End_Embedded, not the system you compiled for",),
    evaluated: ("200 samples of",),
}


def milliseconds(duration_s: float) -> str:
    value = duration_s * 1e3
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def figures(run: Record, compiled: Record | None) -> list[str]:
    """The figures that an answer must have, worked out from the record's own members."""
    found = []
    if "time" in run:
        total, sums = run["time"]["total"], run["time"]["sums"]
        found.append(f"{milliseconds(total['duration_s'])} ms ({milliseconds(total['least_s'])}\N{EN DASH}")
        cpu = sums["cpu_before_npu_s"] + sums["cpu_between_npu_s"] + sums["cpu_after_npu_s"]
        found += [f"CPU {milliseconds(cpu)} ms {100 * cpu / total['duration_s']:.0f} %"]
        found += [f"NPU {milliseconds(sums['npu_s'])} ms {100 * sums['npu_s'] / total['duration_s']:.1f} %"]
    elif "npu" in run:
        cycles, hertz = run["npu"]["cycles"]["value"], run["priced"]["system"]["clock_hz"]
        found.append(f"NPU {cycles:,} cycles, {milliseconds(cycles / hertz)} ms at {hertz / 1e6:g} MHz")
    if run["status"] == "pass" and "reference" in run:
        rows = run["reference"]["outputs"]
        found.append(
            f"{sum(row['equal'] for row in rows):,} of {sum(row['elements'] for row in rows):,} output values"
        )
    if compiled is None:
        return [*found, f"CPU {sum(row['kind'] == 'kernel' for row in run['operators'])} operators"]
    calls = sum(row["calls"] for row in compiled["cpu_operators"])
    found.append(f"CPU {calls} operator{'' if calls == 1 else 's'}")
    converting = sum(row["calls"] for row in compiled["cpu_operators"] if row["boundary"])
    return [
        *found,
        *([f"{converting} of them avoidable"] if converting and compiled["options"]["io"] == "float" else []),
    ]


def shown(width: int, run: Record, compiled: Record | None) -> str:
    record = None if compiled is None else kinds.COMPILE.convert(compiled)
    return printed(width, answers.run_answer(kinds.RUN.convert(run), record, SUBJECT))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_answer_of_a_run(case: Callable[[], Case], width: int) -> None:
    run, compiled = case()
    before = copy.deepcopy(run)
    lines = shown(width, run, compiled).splitlines()
    assert run == before
    assert len(lines) <= 15
    assert max(len(line.rstrip()) for line in lines) <= width
    text = " ".join(" ".join(lines).split())
    missing = [words for words in (*figures(run, compiled), *WORDS[case]) if words not in text]
    assert missing == [], text
    if run["status"] == "pass":
        assert re.search(r"next ethosu-sdk advise \S+( ·)? ethosu-sdk report build/kws-ethos-u55-128$", text)
    else:
        assert [line.split()[0] for line in lines].index("next") < [line.split()[0] for line in lines].index(
            "time"
        )
    # The label of a row, or its continuation: what one looks for stands below each other.
    assert all(line[:8].strip() == line.split()[0] or not line[:8].strip() for line in lines)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_answer_of_a_profile(run_folder: Path, width: int, tmp_path: Path) -> None:
    """From the command line, at the width of a terminal. Rows add up to the whole, and each is named once."""
    words = ("profile", run_folder.name, "-o", tmp_path)
    done = sdk_ok(*words, cwd=run_folder.parent, env={"COLUMNS": str(width)})
    profile = read(tmp_path / "profile.json")
    lines = done.out.splitlines()
    assert len(lines) <= 15
    assert max(map(len, lines)) <= width
    (first,) = (number for number, line in enumerate(lines) if line.startswith("slowest "))
    rows = [line[8:] for line in lines[first:] if "%" in line]
    costs = [int(cost.replace(",", "")) for cost in re.findall(r"([\d,]+) cycles", "\n".join(rows))]
    totals = profile["totals"]
    whole = totals["npu"]["cycles"][0]["value"] + totals["cpu"]["cycles"]["value"]
    assert costs == sorted(costs, reverse=True)
    assert sum(costs) == pytest.approx(whole, rel=0.01)
    for row in profile["operations"]:
        place = (
            f"{Path(row['source']['file']).name}:{row['source']['line']}" if "source" in row else row["name"]
        )
        assert place in "\n".join(rows) or row["runs_on"] == "CPU"
    assert lines[-1] == f"next    ethosu-sdk advise {run_folder.name}"


def test_all_that_is_known_with_verbose(tmp_path: Path) -> None:
    program = GOLDEN_PTE / "add_u55.pte"
    short, full = (
        sdk_ok("run", program, "--simulator", "host", *more, "-o", "out", cwd=tmp_path).out
        for more in ((), ("-v",))
    )
    assert full.startswith(short)
    assert "\nruntime " in full
    assert len(short.splitlines()) <= 15 < len(full.splitlines())
