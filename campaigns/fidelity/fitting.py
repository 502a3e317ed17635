"""Fit the constants of the NPU's cycle model, and take the errors of networks that the fit left out.

`scripts/fit-timing [--write]`: with --write the SDK's own file of constants is made anew.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from scipy.optimize import least_squares

from campaigns.fidelity.comparison import ALL, DATA, Cell, Choice, cells, rows
from ethosu_sdk.npu.timing import fitted
from ethosu_sdk.npu.timing.constants import Fitted
from tests.places import ROOT

TABLES = (
    "networks.csv",
    "networks_more.csv",
    "learning_path.csv",
    "single_operators.csv",
)
_PLACE = ROOT / "sdk" / "ethosu_sdk" / "npu" / "timing" / "fitted.py"
_LIMITS = {  # of each constant: what is physically possible
    # Runs of Ethos-U55 and -U65 do not pin this one: MobileNetV2 is best at 16, VWW-4 above 64. With 48 each run is
    # within 10 %, and the published time of MobileNetV2 on an Alif Ensemble E8 (left out of the fit) within 15 %.
    "block_cycles": (0.0, 48.0),
    "operation_cycles": (0.0, 128.0),
    "operation_trips": (0.0, 4.0),
    "first_weights_bytes": (20000.0, 40000.0),
    "read_pipeline_cycles": (40.0, 55.0),
}
# What an operation costs beside its stages, RNNoise says alone, in runs with seven latencies: these constants were
# fitted to it, and are not free here, as other networks would leave them at any value.
_FREE = {"u55": ("block_cycles",), "u85": ("block_cycles", "first_weights_bytes", "read_pipeline_cycles")}
_ORDER = (
    "u85",
    "u55",
)  # runs of Ethos-U55 and -U65 do not tell what a latency costs: theirs is that of Ethos-U85
_OPERATOR_WEIGHT = 0.35  # of a single operator beside a network
_LARGE_ERROR = 0.05  # errors beyond count by their size, not by their square
_LEAST_BAND, _NETWORKS_FOR_A_BAND = 5, 3


@dataclass(frozen=True)
class LeftOut:
    """A network's published run, what runs it, and the model's error when the network was left out of the fit."""

    network: str
    run: str
    npu: str
    macs: int
    error: float


ERRORS = DATA / "left_out.csv"
"""What `scripts/fit-timing --write` found for each run."""


def kept_errors() -> list[LeftOut]:
    """The errors in :data:`ERRORS`."""
    return [
        LeftOut(row["network"], row["run"], row["npu"], int(row["macs"]), float(row["error"]))
        for row in rows(ERRORS)
    ]


def _write_errors(found: Sequence[LeftOut]) -> None:
    lines = [
        "# Errors of the model's cycles, each network left out of the fit in turn; made by scripts/fit-timing"
    ]
    lines += ["network,run,npu,macs,error"]
    lines += [f"{row.network},{row.run},{row.npu},{row.macs},{row.error:.4f}" for row in found]
    ERRORS.write_text("\n".join([*lines, ""]), encoding="utf-8")


def generation(cell: Cell) -> str:
    """That whose constants price a run."""
    return cell.compiled.config.generation


def measured(cell: Cell) -> bool:
    """Whether a run takes part: single operators below 2,500 cycles do not."""
    return cell.published["cycles"] > 0 and cell.scored


def fit(name: str, runs: Sequence[Cell], start: Fitted) -> Fitted:
    """The constants of generation `name` with which its `runs` come out best, from `start` on."""
    free = _FREE[name]
    low = np.array([_LIMITS[key][0] for key in free])
    span = np.array([_LIMITS[key][1] for key in free]) - low
    weights = np.array([1.0 if cell.is_network else _OPERATOR_WEIGHT for cell in runs])

    def constants(point: np.ndarray) -> Fitted:
        return replace(start, **dict(zip(free, (float(value) for value in low + point * span), strict=True)))

    def errors(point: np.ndarray) -> np.ndarray:
        fitted.FITTED[name] = constants(point)
        return weights * np.array([math.log(cell.modelled() / cell.published["cycles"]) for cell in runs])

    begin = (np.array([getattr(start, key) for key in free]) - low) / span
    found = least_squares(
        errors,
        begin.clip(0.02, 0.98),
        bounds=(0, 1),
        diff_step=0.03,
        loss="soft_l1",
        f_scale=_LARGE_ERROR,
        max_nfev=8,  # from the constants in use, which are near
    )
    return _rounded(constants(found.x))


def _rounded(found: Fitted) -> Fitted:
    values = {field.name: round(float(f"{getattr(found, field.name):.3g}"), 2) for field in fields(found)}
    return replace(found, **values)


def fit_all(runs: Sequence[Cell]) -> None:
    """Fit the constants of both generations, from those in use on. One without runs keeps its own."""
    for name in _ORDER:
        own = [cell for cell in runs if generation(cell) == name]
        if not own:
            continue
        start = fitted.FITTED[name]
        if name == "u55":
            start = replace(start, operation_trips=fitted.FITTED["u85"].operation_trips)
        fitted.FITTED[name] = fit(name, own, start)


def left_out(runs: Sequence[Cell]) -> list[LeftOut]:
    """Each network's errors with constants that are fitted to all others. The constants in use come back."""
    kept = dict(fitted.FITTED)
    found = []
    for name in sorted({cell.name for cell in runs if cell.is_network}):
        fit_all([cell for cell in runs if cell.name != name])
        found += [_error(cell) for cell in runs if cell.name == name]
        fitted.FITTED.update(kept)
    return found


def _error(cell: Cell) -> LeftOut:
    error = round(cell.modelled() / cell.published["cycles"] - 1, 4)
    return LeftOut(cell.name, cell.run, cell.system.npu, cell.system.macs, error)


def bands(errors: Iterable[LeftOut]) -> dict[str, dict[int, int]]:
    """Percent by family and MACs per cycle, and under 0 that of sizes without a published run.

    A size has a band of its own where enough networks were published; others have the family's, which is the largest
    of all sizes.
    """
    by_size: defaultdict[str, defaultdict[int, list[LeftOut]]] = defaultdict(lambda: defaultdict(list))
    for row in errors:
        by_size[row.npu][row.macs].append(row)
    found = {}
    for family, sizes in sorted(by_size.items()):
        largest = {macs: _percent(runs) for macs, runs in sorted(sizes.items())}
        known = [
            macs for macs, runs in sizes.items() if len({row.network for row in runs}) >= _NETWORKS_FOR_A_BAND
        ]
        whole = max(largest.values())
        found[family] = {0: whole} | {
            macs: band if macs in known else whole for macs, band in largest.items()
        }
    return found


def _percent(runs: Sequence[LeftOut]) -> int:
    return max(_LEAST_BAND, *(math.ceil(100 * abs(row.error)) for row in runs))


def source(constants: dict[str, Fitted], quoted: dict[str, dict[int, int]]) -> str:
    """The Python file of constants and bands."""
    lines = [
        '"""Constants of the performance model that are fitted to published runs, and errors of networks left out.',
        "",
        "`scripts/fit-timing --write` makes this file; do not edit it.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from ethosu_sdk.npu.timing.constants import Fitted",
        "",
        "FITTED: dict[str, Fitted] = {",
    ]
    for name, values in constants.items():
        lines += [f'    "{name}": Fitted(']
        lines += [f"        {field.name}={getattr(values, field.name)!r}," for field in fields(values)]
        lines += ["    ),"]
    lines += [
        "}",
        '"""By :attr:`NpuConfig.generation`."""',
        "",
        "BANDS: dict[str, dict[int, int]] = {",
    ]
    for family, sizes in quoted.items():
        lines.append(f'    "{family}": {{{", ".join(f"{macs}: {band}" for macs, band in sizes.items())}}},')
    lines += [
        "}",
        '"""Percent by family and MACs per cycle; 0 stands for sizes without a published run."""',
        "",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit, leave each network out in turn, and print or write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="make the SDK's file of constants anew")
    parser.add_argument("--only", default="", metavar="TEXT", help="the published runs that contain it alone")
    parser.add_argument(
        "--own-vela", action="store_true", help="compile with the SDK's Vela; none is installed"
    )
    chosen = parser.parse_args(arguments)
    choice = Choice(chosen.only, "" if chosen.own_vela else None)
    if chosen.write and choice != ALL:
        parser.error("--write takes all published runs")
    runs = [cell for name in TABLES for cell in cells(DATA / name, choice) if measured(cell)]
    fit_all(runs)
    for name, found in fitted.FITTED.items():
        print(name, found)
    errors = left_out(runs)
    for row in errors:
        print(f"{row.run}: {100 * row.error:+.1f} %")
    text = source(fitted.FITTED, bands(errors))
    print(text)
    if chosen.write:
        _PLACE.write_text(text, encoding="utf-8")
        _write_errors(errors)


if __name__ == "__main__":
    main()
