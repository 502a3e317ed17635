"""A run in words: the rows that the terminal and summaries show."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ethosu_sdk.plain_text import counted
from ethosu_sdk.records.run import Reference, ReferenceOutput, Run
from ethosu_sdk.tables import systems, times

_SHOWN_CHOICES = 32
_COUNTERS = "/npu/counters/"


def unjudged(run: Run) -> str:
    """For the verdict's first line: that some steps were not judged; empty where all were, or none was to be."""
    sequence = run.sequence
    if sequence is None or sequence.tolerance is None:
        return ""
    judged = sum(row.status is not None for row in sequence.steps)
    if judged == len(sequence.steps):
        return ""
    which = "the last step alone was judged" if judged == 1 else f"{judged} steps alone were judged"
    return f"of {len(sequence.steps)} steps, {which}: leave --outputs last out, or give no tolerance"


def rows(run: Run, data: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Name and text of all but the verdict and the memories. A row without a name goes on with the one above; `data`
    are lines about data files."""
    simulator = run.simulator
    yield "ran on", f"{run.board}, {simulator.name} {simulator.version} ({simulator.fidelity})"
    yield "runtime", f"{run.runtime.name} {run.runtime.version}"
    yield "board", run.board_reason
    yield from (("data", line) for line in data)
    yield "inferences", str(run.inferences)
    for row in run.outputs:
        yield row.name, f"{row.dtype}{list(row.shape)}, sha256 {row.sha256[:16]}…"
    yield from (("", words) for words in _reference(run))
    if run.second_opinion is not None:
        other = run.second_opinion.runtime
        yield "second opinion", f"{other.name} {other.version}"
    yield from _sequence(run)
    yield from times.rows(run)
    yield from _npu(run)
    if run.cpu.cycles is not None:
        yield "CPU cycles", f"{run.cpu.cycles.value:,} of {run.cpu.core} ({run.cpu.cycles.source})"
    on_cpu = dict.fromkeys(row.name for row in run.operators if row.kind == "kernel")
    yield "on the CPU", ", ".join(on_cpu) or "nothing"


def _reference(run: Run) -> Iterator[str]:
    """For each output its distance in words; of a sequence without a reference, why there is none."""
    part = run.reference
    if part is not None:
        steps = f"{part.steps} of {counted(run.inferences, 'step')}: " if part.steps is not None else ""
        yield from (f"output{row.index} {steps}{_distance(row, part)}" for row in part.outputs)
    elif run.sequence is not None:
        found = (row.reason for row in run.unavailable if row.path == "/reference")
        yield from (f"outputs not compared with PyTorch: {reason}" for reason in found)


def _distance(row: ReferenceOutput, part: Reference) -> str:
    where = f"the outputs in {part.file} (PyTorch)"
    if row.equal == row.elements:
        return f"equal to {where}"
    words = f"{row.elements - row.equal:,} of {row.elements:,} elements differ from {where}"
    if row.max_abs_error is not None:
        words += f", by {row.max_abs_error:.4g} at most"
    return words + (f", SQNR {row.sqnr_db:.1f} dB" if row.sqnr_db is not None else "")


def _sequence(run: Run) -> Iterator[tuple[str, str]]:
    """The state, the steps and what was chosen in them."""
    for tensor in run.state.tensors if run.state is not None else ():
        place = f"{tensor.memory}, planned buffer {tensor.arena} from byte {tensor.offset:,}"
        yield "state", f"{tensor.name}, {tensor.dtype}{list(tensor.shape)}, {tensor.bytes:,} bytes in {place}"
    sequence = run.sequence
    if sequence is None:
        return
    if sequence.first_beyond is not None:
        yield "first beyond", f"step {sequence.first_beyond} is the first beyond the tolerance"
    for feed in sequence.feeds:
        choices = (row for step in sequence.steps for row in step.choices or ())
        number = feed.rpartition(":input")[2]
        values = [value for row in choices if str(row.input) == number for value in row.values]
        cut = " …" if len(values) > _SHOWN_CHOICES else ""
        yield "feed", feed + (f" chose {' '.join(map(str, values[:_SHOWN_CHOICES]))}{cut}" if values else "")


def _npu(run: Run) -> Iterator[tuple[str, str]]:
    npu = run.npu
    if npu is None:
        return
    if npu.cycles is not None:
        yield "NPU cycles", f"{npu.cycles.value:,} per inference ({npu.cycles.source})"
        if run.priced is not None:
            yield "", systems.line(run.priced)
    for row in npu.counters:
        size = f" = {row.bytes:,} bytes" if row.bytes is not None else ""
        yield "", f"{row.event} {row.value:,} {row.unit}{size}"
    for gap in run.unavailable:
        if gap.path.startswith(_COUNTERS):
            yield "", f"{gap.path.removeprefix(_COUNTERS)} unavailable: {gap.reason}"
