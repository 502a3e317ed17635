"""The sections on the CPU and on hardware of docs/reference/fidelity.md."""

from __future__ import annotations

from collections.abc import Sequence

from campaigns.fidelity.comparison import DATA, Figure
from campaigns.fidelity.cpu.comparison import figures
from campaigns.fidelity.cpu.hardware import Latency, latencies
from campaigns.fidelity.cpu.models import PROGRAMS
from ethosu_sdk.cpu_cycles.band import ERROR, TOO_LOW

_CPU = f"""## CPU

Cycles of a Cortex-M core are executions of blocks, counted on QEMU, times the price of each block
(`ethosu_sdk/cpu_cycles`). Prices come from LLVM's scheduling models by way of an in-order scoreboard, with the
rows of `cpu_cycles/pipeline/cores.toml` where LLVM has no figure or a wrong one. Prices were not fitted to the
runs below.

The programs are Arm's prebuilt runners with CMSIS-NN (package `mlia-ethos-u`), for one inference without
start-up and log: TensorFlow Lite Micro on Corstone-310, compiled for Cortex-M85, and for `quantize_per_tensor`
ExecuTorch on Corstone-300, compiled for Cortex-M55. The boards ran other builds: LLVM Embedded 17.0.1 on
EK-RA8D1, ExecuTorch 1.1.0 on Alif E8. So an error contains the difference between compilers and versions of
CMSIS-NN.

Waits come from the board's profile, as in the time of a run, or from `campaigns/fidelity/data/cpu_systems.toml`: each
line of a layer's tensors crosses the data cache once. This model was written after the first runs had shown how
many cycles were missing. The figures for Alif E8 are its vendor's and were not fitted. Those for EK-RA8D1 are from
the submission's sources, except one: how many bits an access to flash has is not public, and was chosen with the
autoencoder's missing cycles in view. Its row is shown, not judged. DS-CNN waits for less than 2 % of its cycles, so
that this decides nothing. Errors in brackets are not judged.

`scripts/fidelity --data` takes tables with the columns of `cpu_cycles.csv`. The known programs are

{chr(10).join(f"- `{model}`, part `{part}`" for model, part in PROGRAMS)}
"""
_ORIGINS = """
Records quote ±{error:.0f} % where the board's profile has the waits, and up to {low:.0f} % too low where it does not.

- Depthwise layers have the largest errors. Their windows overlap, and three rows of the input are 24 KiB and 32
  KiB in the two worst cases. Rows that the cache does not keep are fetched again, which the model leaves out.
  That could explain a third to a half of these two errors; the rest is not explained.
- At half or twice the width of an access to flash, the autoencoder would be off by about +74 % or -26 %, and
  DS-CNN by about +3.0 % or +1.6 %.
- More than 60 % of the modelled cycles of `quantize_per_tensor` and of the autoencoder are waits: they use each
  byte once.
- SLOTHY (github.com/slothy-optimizer/slothy) has models of both cores of its own, made from Arm's Software
  Optimization Guides, and notes the cycles that it expects of the loops in its examples. Compared once, with
  loops of six instructions or more: of 31 for Cortex-M55, 15 are equal and the largest difference is 7.7 %; all
  five for Cortex-M85 are equal. Its 23 shorter loops for Cortex-M55 differ by up to a cycle. These are
  expectations of a model, not measurements.
- Scalar code with many branches has no judge here. CoreMark, in nine builds by GCC 12.2, is priced at 2.6 to
  3.2 CoreMark/MHz on Cortex-M55 and at 3.6 to 4.1 on Cortex-M85. Arm's own figures, with its own compiler, are
  4.2 and 6.28. A part of the difference is the compiler's: for Cortex-M7, Arm has 5.01, and a board with
  everything in its tightly coupled memory measured 4.0 to 4.1 (github.com/Masmiseim36/Coremark_iMXRT, with
  CrossWorks). The same share would make 3.4 of Cortex-M55's and 5.1 of Cortex-M85's: such code would then be
  priced 5 to 30 % too dear on Cortex-M55, and 25 to 40 % on Cortex-M85.
- Most of that could be branches and loads. On Cortex-M55, a taken branch of two cycles instead of three gives 3.0
  to 3.5, results of loads a cycle earlier 3.0 to 3.5, pairs of any two instructions of 16 bits no more than
  another 0.03. On Cortex-M85, branches that are never predicted wrongly give 4.1 to 4.6. No public document has
  such figures, and the published operators speak against them: with cheaper branches seven of the nine above are
  further off than before, by up to 2.2 points, with faster loads eight, by up to 4.1. So the prices stay.
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
        [_CPU, table(found), _worst(found), _ORIGINS.format(error=100 * ERROR, low=100 * TOO_LOW)]
    )
    return "\n".join([cpu, _HARDWARE, hardware(list(latencies()))])


def table(found: Sequence[Figure]) -> str:
    """Figures as a Markdown table; rows that cannot be rebuilt are lines below it."""
    lines = ["| run | core | figure | published | model | error |", "|---|---|---|--:|--:|--:|"]
    for row in found:
        if row.error is None:
            continue
        error = f"{100 * row.error:+.1f} %"
        lines.append(
            f"| {row.run} | {row.family} | {row.what} | {row.published:,} | {row.modelled:,} | "
            f"{error if row.scored else f'({error})'} |"
        )
    return "\n".join([*lines, "", *(f"{row.run}: {row.why}" for row in found if row.why), ""])


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
