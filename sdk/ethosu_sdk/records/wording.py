"""Records in words: figures, the system and the time of an inference, a run, and generated text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.records.common import Priced
from ethosu_sdk.records.profile import Profile
from ethosu_sdk.records.run import Reference, ReferenceOutput, Run
from ethosu_sdk.records.sequences import Generate, Phase, Timing
from ethosu_sdk.records.time_line import WAITS_PATH, TimeLine, headline

MINUS = "\N{MINUS SIGN}"
_MOST_DIGITS = 6  # decimals of numbers that hardly differ
_TWO_PLACES = 10  # a number from here on has one decimal
_LEAST_PERCENT = 0.1
_EXACT_PERCENT = 10  # below, a percentage has a decimal


def shape_text(sizes: Sequence[int]) -> str:
    """Sizes as text, such as ``8x8x16``."""
    return "x".join(map(str, sizes))


def number_texts(*values: float) -> list[str]:
    """Numbers with their thousands apart and as many decimals as show that they differ: ``0.087``, ``0.051``."""
    if all(value == int(value) for value in values):
        return [f"{value:,.0f}" for value in values]
    digits = max(map(_decimals, values))
    while digits < _MOST_DIGITS and len({f"{value:.{digits}f}" for value in values}) < len(set(values)):
        digits += 1
    return [f"{value:,.{digits}f}" for value in values]


def _decimals(value: float) -> int:
    """Decimals of three digits at least, two of them significant."""
    size = abs(value)
    if not size or size >= _TWO_PLACES:
        return 1
    return min(max(2 if size >= 1 else 3, 1 - math.floor(math.log10(size))), _MOST_DIGITS)


def percent_text(share: float) -> str:
    """A share of 1 as a percentage; what is there is never 0 %."""
    value = 100 * share
    if 0 < value < _LEAST_PERCENT:
        return f"< {_LEAST_PERCENT} %"
    return f"{value:.{0 if not value or value >= _EXACT_PERCENT else 1}f} %"


def size_text(size_bytes: int) -> str:
    """A number of bytes with two digits at least: ``320 bytes``, ``15.3 KiB``, ``4 MiB``."""
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size_bytes >= 1 << shift:
            return f"{size_bytes / (1 << shift):,.1f}".removesuffix(".0") + f" {unit}"
    return counted(size_bytes, "byte")


def signed_percent(value: float) -> str:
    """A change in percent, with its sign and two digits at least."""
    digits = 0 if abs(value) >= _EXACT_PERCENT else 1 if abs(value) >= _LEAST_PERCENT else 2
    return f"{value:+,.{digits}f} %".replace("-", MINUS)


def system_line(priced: Priced) -> str:
    """The system, and that it is another than the program's where it is."""
    system = priced.system
    return priced.caveat or f"for {system.name} with {system.memory_mode} ({system.source})"


def milliseconds(duration_s: float) -> str:
    """A duration with three digits at least: ``21.4 ms``."""
    value = duration_s * 1e3
    digits = 3 if value < 1 else 2 if value < 10 else 1
    return f"{value:,.{digits}f} ms"


def time_sentence(time: TimeLine) -> str:
    """The time of an inference, its band, and who takes it, in one line."""
    total = time.total
    band = "band not known"
    if total.least_s is not None and total.most_s is not None:
        band = f"{milliseconds(total.least_s)} to {milliseconds(total.most_s)}"
    return (
        f"{milliseconds(total.duration_s)} on {time.place} ({total.source}, {band}): "
        f"{time_sums(time)}; "
        f"largest on the CPU: {largest_on_cpu(time)}"
    )


def time_sums(time: TimeLine) -> str:
    """What the NPU takes and what the CPU; of a program that has no work for the NPU, the CPU's alone."""
    cpu = f"CPU {milliseconds(time.sums.cpu_s)}"
    return f"NPU {milliseconds(time.sums.npu_s)}, {cpu}" if time.sums.npu_s else cpu


def inference_rate(time: TimeLine) -> Iterator[str]:
    """How many inferences a second the time allows, where it takes time. A token of a language model is one."""
    if time.total.duration_s:
        yield f"{1 / time.total.duration_s:,.1f} inferences/s"


def largest_on_cpu(time: TimeLine) -> str:
    """What takes the CPU longest, without the runtime's part around a kernel: ``avg_pool2d kernel 0.514 ms``."""
    name = short_operator(time.largest.name) + (" kernel" if _kernels(time) else "")
    return f"{name} {milliseconds(time.largest.duration_s)}{calls_of_largest(time)}"


def calls_of_largest(time: TimeLine) -> str:
    """In how many calls, where the time is that of several; else nothing."""
    calls = _kernels(time)
    return f" in {calls:,} calls" if calls > 1 else ""


def _kernels(time: TimeLine) -> int:
    return sum(row.what == "kernel" and row.name == time.largest.name for row in time.parts)


def short_operator(name: str) -> str:
    """An operator's name without its library and overload."""
    return name.rpartition("::")[2].partition(".")[0].replace("_", " " if "::" not in name else "_")


def time_rows(record: Run | Profile) -> Iterator[tuple[str, str]]:
    """Name and text of what people see of the time: the headline, or the same with its caveat."""
    time = record.time
    if time is None:
        return
    if headline(record) is not None:
        yield "inference", time_sentence(time)
        yield from (("", f"{words}, one after the other") for words in inference_rate(time))
    elif record.priced is not None:
        yield "at those clocks", f"{time_sentence(time)}, {record.priced.caveat}"
    clocks = [("CPU", time.clocks.cpu), ("NPU", time.clocks.npu)]
    for name, clock in clocks:
        if clock is not None:
            yield "", f"{name} at {clock.hz / 1e6:,g} MHz ({clock.source})"
    yield "", _waits(record, time)


def _waits(record: Run | Profile, time: TimeLine) -> str:
    if time.waits is not None:
        lies = time.waits.memories
        places = f"code in {lies.code}, constants in {lies.constants}, arena in {lies.arena}"
        return f"waits of the CPU: {milliseconds(time.waits.duration_s)} ({places})"
    reasons = [row.reason for row in record.unavailable if row.path == WAITS_PATH]
    return f"waits of the CPU for memory are not included: {', '.join(reasons) or 'not known'}"


_SHOWN_CHOICES = 32
_COUNTERS = "/npu/counters/"


def unjudged_steps(run: Run) -> str:
    """For the verdict's first line: that some steps were not judged; empty where all were, or none was to be."""
    sequence = run.sequence
    if sequence is None or sequence.tolerance is None:
        return ""
    judged = sum(row.status is not None for row in sequence.steps)
    if judged == len(sequence.steps):
        return ""
    which = "the last step alone was judged" if judged == 1 else f"{judged} steps alone were judged"
    return f"of {len(sequence.steps)} steps, {which}: leave --outputs last out, or give no tolerance"


def run_rows(run: Run, data: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Name and text of all but verdict and memories; a row without a name goes on with the one above."""
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
    yield from time_rows(run)
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
            yield "", system_line(run.priced)
    for row in npu.counters:
        size = f" = {row.bytes:,} bytes" if row.bytes is not None else ""
        yield "", f"{row.event} {row.value:,} {row.unit}{size}"
    for gap in run.unavailable:
        if gap.path.startswith(_COUNTERS):
            yield "", f"{gap.path.removeprefix(_COUNTERS)} unavailable: {gap.reason}"


_ENDS = {
    "eos": "the token that ends a text",
    "length": "the number of tokens that was asked for",
    "context": "the caches are full",
    "interrupted": "interrupted: the tokens are as the board told them, without the evidence of a finished run",
}


def generate_rows(record: Generate) -> Iterator[tuple[str, str]]:
    yield "tokens", f"{counted(len(record.tokens), 'token')} behind a prompt of {len(record.prompt)}"
    yield "ended by", _ENDS[record.stopped]
    if record.npu_cycles is not None:
        yield "NPU", f"{record.npu_cycles.value:,} cycles a step, {record.npu_cycles.source}"
    if record.time is not None:
        yield "a step", step_text(record.time)
        yield "prefill", phase_text(record.time.prefill)
        yield "decode", phase_text(record.time.decode)
    elif record.unavailable:
        yield "time", f"not known: {record.unavailable[-1].reason}"
    if record.perplexity is not None:
        measured = record.perplexity
        yield ("perplexity", f"{measured.perplexity:.4g} on {counted(measured.predicted, 'predicted token')}")


def step_text(time: Timing) -> str:
    part = time.step
    waits = "" if part.waits_s is None else f", of it {part.waits_s * 1e3:.3f} ms waits for memory"
    return (
        f"{part.duration_s * 1e3:.3f} ms, {time.source}: NPU {part.npu_s * 1e3:.3f} ms, "
        f"CPU {part.cpu_s * 1e3:.3f} ms{waits}"
    )


def phase_text(part: Phase) -> str:
    """The steps of a phase, their time, and the tokens per second."""
    rate = "" if part.tokens_per_s is None else f", {part.tokens_per_s:.1f} tokens/s"
    return f"{counted(part.steps, 'step')}, {part.duration_s * 1e3:.1f} ms{rate}"
