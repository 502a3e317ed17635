"""Results of sweeps: the runs of the schemas' examples, and cells like them by models, targets and modes."""

import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.targets import target_names
from ethosu_sdk.records import kinds
from ethosu_sdk.records.sweep import Verdict
from ethosu_sdk.sweep import store
from ethosu_sdk.sweep.sweep_page import LEADER
from ethosu_sdk.sweep.sweep_verdict import judge_sweep
from tests.places import ROOT
from tests.records import read
from tests.unit.sweep.rows import Row, row, without_result
from tests.unit.sweep.test_goals import of_tables

EXAMPLES = ROOT / "schemas" / "examples" / "valid"
RUNS = ("run-ds_cnn", "run-add-timed")
GOALS = """
[[constraints]]
figure = "sram_bytes"
max = "2 MB"

[[constraints]]
figure = "time_ms"
max = 20
clock_mhz = 500

[[constraints]]
figure = "sqnr_db"
min = 20
"""
REFUSED = "the program needs 2,412,544 bytes of SRAM, and the board has 2,097,152"


@dataclass(frozen=True)
class Sweep:
    """A page, the rows and the verdict that it was made from."""

    path: Path
    rows: list[Row]
    verdict: Verdict

    def row(self, cell: str) -> Row:
        return next(row for row in self.rows if row["cell"] == cell)

    @property
    def standings(self) -> dict[str, str]:
        """As the page has them: a winner without the CPU's time gets no star."""
        rows = {row["cell"]: row for row in self.rows}
        return {
            cell.cell: LEADER
            if cell.standing == "winner" and rows[cell.cell]["operators_cpu"]
            else cell.standing
            for cell in self.verdict.cells
        }


def recorded(name: str) -> Row:
    """The row of a run whose record is an example."""
    run = read(EXAMPLES / f"{name}.json")
    target, cycles = run["target"], run["npu"]["cycles"]
    used = {region["name"]: region["used_bytes"] for region in run["memory"]["regions"]}
    return row(
        model=run["model"]["file"],
        model_sha256=run["model"]["sha256"],
        npu=target["npu"],
        macs=target["macs"],
        target=f"{target['npu']}-{target['macs']}",
        system_config=target["system_config"],
        memory_mode=target["memory_mode"],
        board=run["board"],
        program_bytes=run["model"]["bytes"],
        npu_cycles=cycles["value"],
        npu_cycles_source=cycles["source"],
        sram_bytes=used["SRAM"],
        flash_bytes=used["DDR"],
        operators_cpu=sum(entry["kind"] == "kernel" for entry in run["operators"]),
        seconds=run["wall_time_s"],
    )


def rows(models: int) -> list[Row]:
    """Cells of as many models on all targets, the same ones each time."""
    chance = random.Random(models)
    names = [f"models/net_{number}.py:Net" for number in range(1, models + 1)]
    found = [recorded(name) for name in RUNS]
    for name in names:
        work, memory = chance.uniform(2e5, 1.2e7), chance.uniform(3e4, 1.6e6)
        work *= 100 if name == names[1] else 1  # too slow for all targets
        for place in _places(name):
            found.append(_cell(place, work, memory, chance))
    return found


def _places(model: str) -> Iterator[Row]:
    for target in target_names():
        npu, _, macs = target.rpartition("-")
        for mode in ("Dedicated_Sram_384KB" if npu == "ethos-u85" else "Shared_Sram", "Sram_Only"):
            for quantize in ("int8", "int16"):
                place = {
                    "model": model,
                    "target": target,
                    "npu": npu,
                    "macs": int(macs),
                    "quantize": quantize,
                }
                yield {**place, "memory_mode": mode, "system_config": f"of {npu}"}


def _cell(place: Row, work: float, memory: float, chance: random.Random) -> Row:
    wide, alone = place["quantize"] == "int16", place["memory_mode"] == "Sram_Only"
    sram = int(memory * (2.2 if alone else 1) * (2 if wide else 1) * chance.uniform(0.95, 1.05))
    share = chance.random()
    if sram > 5_000_000:
        return without_result("refused", REFUSED, hint="--memory-mode Shared_Sram", **place)
    if share < 0.05:
        return without_result("failed" if share < 0.03 else "timeout", "it did not end well", **place)
    if share < 0.07:
        return row(**place, status="fail", message="output 0 differs", sram_bytes=sram)
    return row(
        **place,
        npu_cycles=int(work * (0.2 + 60 / place["macs"]) * (1.6 if wide else 1)),
        clock_mhz=500.0 if place["npu"] == "ethos-u55" else 1000.0,
        sram_bytes=sram,
        sqnr_db=None if share > 0.97 else round(chance.uniform(18, 45), 2),
        operators_cpu=chance.choice((0, 0, 2)),
        seconds=round(chance.uniform(3, 80), 1),
    )


def made(found: list[Row], folder: Path, goals: str = GOALS, name: str = "keyword models") -> Sweep:
    """The page of `found` in `folder`, where every third cell has a report and every other third a record."""
    for number, entry in enumerate(found):
        if number % 3 and len(found) < 1000:
            place = filesystem.make_directory(folder / entry["folder"])
            (place / ("report.html" if number % 3 == 1 else "run.json")).write_text("{}", encoding="utf-8")
    verdict = judge_sweep(found, of_tables(tomllib.loads(goals)))
    example = kinds.SWEEP.convert(read(EXAMPLES / "sweep.json"))
    path = store.write_page(folder, replace(example, name=name, verdict=verdict), found)
    return Sweep(path, found, verdict)
