"""Words for what a language model generated."""

from __future__ import annotations

from collections.abc import Iterator

from ethosu_sdk.plain_text import counted
from ethosu_sdk.records.sequences.generate import Generate, Phase, Timing

_ENDS = {
    "eos": "the token that ends a text",
    "length": "the number of tokens that was asked for",
    "context": "the caches are full",
    "interrupted": "interrupted: the tokens are as the board told them, without the evidence of a finished run",
}


def rows(record: Generate) -> Iterator[tuple[str, str]]:
    """Name and text of what people see of the record."""
    yield "tokens", f"{counted(len(record.tokens), 'token')} behind a prompt of {len(record.prompt)}"
    yield "ended by", _ENDS[record.stopped]
    if record.npu_cycles is not None:
        yield "NPU", f"{record.npu_cycles.value:,} cycles a step, {record.npu_cycles.source}"
    if record.time is not None:
        yield "a step", step(record.time)
        yield "prefill", phase(record.time.prefill)
        yield "decode", phase(record.time.decode)
    elif record.unavailable:
        yield "time", f"not known: {record.unavailable[-1].reason}"
    if record.perplexity is not None:
        measured = record.perplexity
        yield (
            "perplexity",
            f"{measured.perplexity:.4g} on {counted(measured.predicted, 'predicted token')}",
        )


def step(time: Timing) -> str:
    """The time of a step with its parts."""
    part = time.step
    waits = "" if part.waits_s is None else f", of it {part.waits_s * 1e3:.3f} ms waits for memory"
    return (
        f"{part.duration_s * 1e3:.3f} ms, {time.source}: NPU {part.npu_s * 1e3:.3f} ms, "
        f"CPU {part.cpu_s * 1e3:.3f} ms{waits}"
    )


def phase(part: Phase) -> str:
    """The steps of a phase, their time, and the tokens per second."""
    rate = "" if part.tokens_per_s is None else f", {part.tokens_per_s:.1f} tokens/s"
    return f"{counted(part.steps, 'step')}, {part.duration_s * 1e3:.1f} ms{rate}"
