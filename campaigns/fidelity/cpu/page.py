"""The sections on the CPU and on hardware of docs/reference/fidelity.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from campaigns.fidelity.comparison import DATA, Figure
from campaigns.fidelity.cpu.comparison import figures
from campaigns.fidelity.cpu.hardware import Latency, latencies
from ethosu_sdk.simulate.cpu_cycles import BAND_ERROR, BAND_TOO_LOW

_CPU = """## CPU

Cycles of a Cortex-M core are executions of blocks, counted on QEMU, times the price of each block
(`simulate/cpu_cycles.py`). Prices come from LLVM's scheduling models by way of an in-order scoreboard, with the
rows of `simulate/cpu_cores.toml` where LLVM has no figure or a wrong one. Prices were not fitted to the
runs below.

The programs are Arm's prebuilt runners with CMSIS-NN (package `mlia-ethos-u`), for one inference without
start-up and log: TensorFlow Lite Micro on Corstone-310, compiled for Cortex-M85, and for `quantize_per_tensor`
ExecuTorch on Corstone-300, compiled for Cortex-M55. The boards (EK-RA8D1, Alif E8) ran other builds, so an error
contains the difference between compilers and versions of CMSIS-NN.

Waits come from the board's profile, as in the time of a run, or from `campaigns/fidelity/data/cpu_systems.toml`: each
line of a layer's tensors crosses the data cache once. The figures for Alif E8 are its vendor's. Those for EK-RA8D1
are from the submission's sources, except how many bits an access to flash has, which is not public and was chosen
with the autoencoder's missing cycles in view: its row is in brackets and not judged.
"""
_ORIGINS = """
Records quote ±{error:.0f} % where the board's profile has the waits, and up to {low:.0f} % too low where it does not.

- Depthwise layers have the largest errors. Rows of the input that the cache does not keep are fetched again, which
  the model leaves out. That could explain a third to a half of the two largest errors; the rest is not explained.
- At half or twice the width of an access to flash, the autoencoder would be off by about +74 % or -26 %, and
  DS-CNN by about +3.0 % or +1.6 %.
- SLOTHY (github.com/slothy-optimizer/slothy) expects the cycles of the loops in its examples by models of its own: of
  31 longer loops for Cortex-M55, the largest difference is 7.7 %; all five for Cortex-M85 are equal.
- Scalar code with many branches is priced too high: by CoreMark 5 to 30 % on Cortex-M55 and 25 to 40 % on Cortex-M85,
  after a correction for compilers. Cheaper branches and loads make the published operators worse.
"""
_HARDWARE = """## Hardware

Published latencies of boards with an Ethos-U, and the time of the NPU alone by the model, with the memories of
the board as its vendor describes them to Vela (`campaigns/fidelity/data/hardware_systems.toml`). Streams are those
of the SDK's Vela for Arm's example of a system. A method's execution also contains the operators on the CPU,
which the model's time does not. Rows whose memories or layers are not public are shown, not judged.
"""


def sections() -> str:
    """Both sections, in Markdown."""
    found = list(figures(DATA / "cpu_cycles.csv"))
    cpu = "\n".join(
        [_CPU, table(found), _worst(found), _ORIGINS.format(error=100 * BAND_ERROR, low=100 * BAND_TOO_LOW)]
    )
    return "\n".join([cpu, _HARDWARE, hardware(list(latencies()))])


def table(found: Sequence[Figure]) -> str:
    """A row for each run as a Markdown table; rows that cannot be rebuilt are lines below it."""
    lines = [
        "| run | core | published | without waits | error, % | with waits | error, % |",
        "|---|---|--:|--:|--:|--:|--:|",
    ]
    runs: defaultdict[tuple[str, str], list[Figure]] = defaultdict(list)
    for row in found:
        if row.error is not None:
            runs[row.run, row.family].append(row)
    for (run, core), rows in runs.items():
        told = [f"{row.modelled:,} | {_error(row)}" for row in rows]
        lines.append(f"| {run} | {core} | {rows[0].published:,} | {' | '.join(told)} |")
    return "\n".join([*lines, "", *(f"{row.run}: {row.why}" for row in found if row.why), ""])


def _error(row: Figure) -> str:
    error = f"{100 * (row.error or 0):+.1f}"
    return error if row.scored else f"({error})"


def _worst(found: Sequence[Figure]) -> str:
    largest = max(abs(row.error or 0) for row in found if row.scored)
    return f"The largest judged error is {100 * largest:.1f} %."


def hardware(found: Sequence[Latency]) -> str:
    """Latencies as a Markdown table."""
    lines = [
        "| network | NPU | CPU; memories | published, ms | of what | model, ms | error | source |",
        "|---|---|---|--:|---|--:|--:|---|",
    ]
    for row in found:
        model = "" if row.modelled_ms is None else f"{row.modelled_ms:.2f}"
        error = row.why if row.error is None else f"{100 * row.error:+.1f} %"
        lines.append(
            f"| {row.network} | {row.npu} | {row.system} | {row.published_ms:g} | {row.what} | {model} | {error} "
            f"| {row.source} |"
        )
    return "\n".join([*lines, ""])
