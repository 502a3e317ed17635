"""The comparison as a page or on the terminal: scripts/fidelity."""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from campaigns.fidelity import operators as by_operator, plot, streams
from campaigns.fidelity.comparison import DATA, VELA, Choice, Figure, figures, rows
from campaigns.fidelity.cpu import page as cpu_page
from campaigns.fidelity.cpu.comparison import figures as cpu_figures, is_table as is_cpu_table
from campaigns.fidelity.fitting import LeftOut, kept_errors
from campaigns.fidelity.networks import NETWORKS
from campaigns.fidelity.vela import compile_network
from campaigns.grid import PAGES
from ethosu_sdk.npu import timing
from tests.published_systems import system_of

_BOARD, _SINGLE = "FPGA board", "Single operators"
_VERSIONS = ("4.4.1", "4.5.0", "5.0.0", "5.1.0", "5.2.0")
_TABLES = {
    "Networks": "networks.csv",
    "More networks": "networks_more.csv",
    "Arm's learning path": "learning_path.csv",
    _BOARD: "board.csv",
    _SINGLE: "single_operators.csv",
}
_PICTURE = "fidelity.svg"
_FIRST = """# Accuracy of modelled cycles and traffic

Of {judged} published runs of {networks} networks on Ethos-U55, -U65 and -U85, {near} are within 10 % of the model and
half within {median:.1f} %. The strip is ±10 %.

![Modelled against measured cycles: circles are runs of Arm's FVP, squares an FPGA board](../images/{picture})

The ten largest errors:

| run | measured | model | error, % |
|---|--:|--:|--:|
{worst}
"""
_INTRODUCTION = """## What is compared

`scripts/fidelity` makes this page; do not edit it. It compares published runs of Arm's FVP, which is itself
cycle-approximate (about 10 %), with the SDK's model and with Vela's own estimate. The networks are rebuilt from
their public descriptions, with random weights that compress equally well, and compiled with the Vela of the published
run. Vela's totals for rebuilt networks are within {rebuilt:.1f} % of the published ones: the streams are practically
the same.

`scripts/fit-timing` fits the constants in `npu/timing/fitted.py` to all of these runs together, and then once for
each network without that network. The errors of the networks that were left out are the error bands. What an
operation costs beside its stages is known from RNNoise alone, and stays as it is when that is left out.
`scripts/fidelity --data TABLE.csv` compares further runs; the tables in `campaigns/fidelity/data/` have all published
figures.

Cycles are NPU_ACTIVE; errors are in percent. `rd0` and `wr0` are beats of AXI port 0 (Ethos-U85: SRAM), `rd1` and
`wr1` of port 1 (EXT). Cycles below 25,000 and beats below 50,000 are in brackets
and not judged: the FVP's totals move in steps of 1,000 cycles.
"""

_OPERATORS = """## Operators of networks

Cycles of single operators in three networks, published for Ethos-U85-256 and -512 (compiled for SYS_DRAM_Low or
_Mid). They were taken between two interrupts and lie on a grid of 1,000 cycles: each is known to ±1,000, so that
small operators cannot be judged by a percentage. *Beyond the grid* counts only what is more than 1,000 off.

{section}"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare, and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a table of published runs instead of the SDK's")
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument(
        "--versions", action="store_true", help="also Vela's estimate by each of its versions (slow)"
    )
    parser.add_argument(
        "--streams",
        type=Path,
        metavar="FOLDER",
        help="write the table of operations again from these streams",
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="with --data: the rows that contain it")
    parser.add_argument(
        "--own-vela", action="store_true", help="with --data: compile with the SDK's Vela; none is installed"
    )
    chosen = parser.parse_args(arguments)
    if chosen.streams is not None:
        streams.write_table(chosen.streams)
        return
    if chosen.data is not None:
        choice = Choice(chosen.only, "" if chosen.own_vela else None)
        if is_cpu_table(chosen.data):
            print(cpu_page.table(list(cpu_figures(chosen.data, choice))))
        else:
            print(table(list(figures(chosen.data, choice))))
        return
    found = {title: list(figures(DATA / name)) for title, name in _TABLES.items()}
    kept = kept_errors()
    every = [row for part in found.values() for row in part]
    rebuilt = 100 * max(abs(row.rebuilt_vela_error or 0) for row in every)
    parts = [first(found), _INTRODUCTION.format(rebuilt=rebuilt), bands(every, kept)]
    parts += [f"## {title}\n\n{table(part, kept)}" for title, part in found.items() if title != _SINGLE]
    parts.append(f"## {_SINGLE}\n\n{operators(found[_SINGLE])}")
    parts.append(streams.section(list(streams.timed())))
    parts.append(_OPERATORS.format(section=by_operator.section(list(by_operator.operators()))))
    if chosen.versions:
        parts.append(f"## Vela's own estimate by version\n\n{versions()}")
    parts.append(cpu_page.sections())
    page = "\n".join(parts)
    if chosen.write is None:
        print(page)
        return
    chosen.write.write_text(page, encoding="utf-8")
    picture = plot.picture(*([_mark(row) for row in part] for part in _cycles(found)))
    (PAGES.parent / "images" / _PICTURE).write_text(picture, encoding="utf-8")


def _cycles(found: Mapping[str, Sequence[Figure]]) -> tuple[list[Figure], list[Figure]]:
    """The cycles of networks on the FVP, and on the board."""
    fvp: list[Figure] = []
    board: list[Figure] = []
    for title, part in found.items():
        judged = [row for row in part if row.what == "cycles" and row.modelled is not None and row.scored]
        if title == _BOARD:
            board += judged
        elif title != _SINGLE:
            fvp += judged
    return fvp, board


def _mark(row: Figure) -> tuple[str, float, float]:
    assert row.modelled is not None
    return f"{row.run}: {_percent(row.error)} %", row.published, row.modelled


def first(found: Mapping[str, Sequence[Figure]]) -> str:
    """The page's first screen: a sentence, the picture, the worst."""
    fvp, board = _cycles(found)
    judged = sorted([*fvp, *board], key=lambda row: -abs(row.error or 0))
    named = [(row, " (board)" if row in board else "") for row in judged[:10]]
    return _FIRST.format(
        judged=len(judged),
        networks=len({row.run.split()[0] for row in judged}),
        near=sum(abs(row.error or 0) <= 0.1 for row in judged),
        median=100 * statistics.median(abs(row.error or 0) for row in judged),
        picture=_PICTURE,
        worst="\n".join(
            f"| {row.run}{where} | {row.published:,} | {row.modelled:,} | {_percent(row.error)} |"
            for row, where in named
        ),
    )


def table(found: Sequence[Figure], left_out: Sequence[LeftOut] = ()) -> str:
    """A row for each run as a Markdown table; runs that cannot be rebuilt are lines below it."""
    lines = [
        "| run | published | model | error | left out of the fit | other errors | Vela's error |",
        "|---|--:|--:|--:|--:|---|--:|",
    ]
    errors = {row.run: row.error for row in left_out}
    runs: defaultdict[str, list[Figure]] = defaultdict(list)
    for row in found:
        if not row.why:
            runs[row.run].append(row)
    for run, (first, *others) in runs.items():
        cells = [
            run,
            f"{first.published:,}",
            f"{first.modelled:,}",
            _judged(first),
            _percent(errors.get(run)),
            ", ".join(f"{row.what.removeprefix('cycles ')} {_judged(row)}" for row in others),
            _percent(first.vela_error),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    skipped = [f"{row.run}: {row.why}" for row in found if row.why]
    return "\n".join([*lines, "", *skipped, ""])


def operators(found: Sequence[Figure]) -> str:
    """The errors of single operators in two sentences: --data prints each of them."""
    cycles = sorted((row for row in found if row.what == "cycles"), key=lambda row: abs(row.error or 0))
    middle, worst = cycles[len(cycles) // 2], cycles[-1]
    vela = max(cycles, key=lambda row: abs(row.vela_error or 0))
    bare = max(
        (row for row in found if row.what != "cycles" and row.scored), key=lambda row: abs(row.error or 0)
    )
    half = abs(100 * (middle.error or 0))
    return "\n".join(
        [
            f"Half of {len(cycles)} runs of convolutions on Ethos-U85 are within {half:.1f} %. Largest errors:",
            f"{_percent(worst.error)} ({worst.run}), without latency {_percent(bare.error)} ({bare.run}),",
            f"Vela's {_percent(vela.vela_error)} ({vela.run}).",
            "",
        ]
    )


def _judged(row: Figure) -> str:
    return _percent(row.error) if row.scored else f"({_percent(row.error)})"


def bands(found: Sequence[Figure], left_out: Sequence[LeftOut]) -> str:
    """Errors of networks by configuration, beside the bands that the SDK quotes."""
    lines = [
        "## Error bands\n",
        "| configuration | networks | largest error left out of the fit, % | in the fit | of beats | quoted |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for npu, macs in sorted({(row.npu, row.macs) for row in left_out}):
        own = [row for row in left_out if (row.npu, row.macs) == (npu, macs)]
        runs = {row.run for row in own}
        judged = [row for row in found if row.run in runs and row.scored and row.error is not None]
        cycles = [abs(row.error or 0) for row in judged if row.what == "cycles"]
        beats = [abs(row.error or 0) for row in judged if row.what != "cycles"]
        cells = [
            f"{npu}-{macs}",
            str(len({row.network for row in own})),
            f"{100 * max(abs(row.error) for row in own):.1f}",
            f"{100 * max(cycles):.1f}",
            f"{100 * max(beats):.1f}" if beats else "",
            timing.band(npu, macs),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def versions() -> str:
    """The error of Vela's total of each network by each version of Vela."""
    lines = [f"| run | published | {' | '.join(_VERSIONS)} |", "|---|--:" + "|--:" * len(_VERSIONS) + "|"]
    for row in rows(DATA / "networks.csv"):
        system = system_of(row["npu"], row["mode"])
        totals = []
        for version in _VERSIONS:
            compiled = compile_network(
                NETWORKS[row["model"]](),
                version,
                system.accelerator,
                system.system_config,
                system.memory_mode,
                system.cache_bytes,
            )
            totals.append(_percent(compiled.vela_total / int(row["active"]) - 1))
        lines.append(f"| {row['model']} {row['npu']} | {int(row['active']):,} | {' | '.join(totals)} |")
    return "\n".join([*lines, "", f"The published runs were compiled with {VELA}.", ""])


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:+.1f}"


if __name__ == "__main__":
    main()
