"""Command streams that are split between operations, and the counters of each piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ethosu_sdk import pte
from ethosu_sdk.errors import SdkError, UsageError
from ethosu_sdk.evidence.evidence import PmuSample
from ethosu_sdk.evidence.input_image import StreamPiece
from ethosu_sdk.evidence.repeats import Changed, Plan
from ethosu_sdk.evidence.verdict import Check
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.stream import pieces
from ethosu_sdk.npu.stream.pieces import Piece
from ethosu_sdk.plain_text import counted
from ethosu_sdk.records import Record
from ethosu_sdk.simulators import Figures
from ethosu_sdk.steps.run.execution import NpuFacts, npu_part


@dataclass(frozen=True)
class Cut:
    """The pieces of each delegate of a program, by its number, and why some are not cut. Empty without --split.

    `delegates` is the number of the delegate that each delegate call, by the number of its instruction, calls.
    """

    pieces: dict[int, tuple[Piece, ...]] = field(default_factory=dict)
    uncut: dict[int, str] = field(default_factory=dict)
    delegates: dict[int, int] = field(default_factory=dict)

    def for_image(self) -> list[StreamPiece]:
        """As the firmware takes them."""
        return [StreamPiece(index, piece.stream) for index, row in self.pieces.items() for piece in row]

    @property
    def streams(self) -> dict[int, list[bytes]]:
        """The command streams of the pieces of each delegate."""
        return {index: [piece.stream for piece in row] for index, row in self.pieces.items()}

    @property
    def counts(self) -> dict[int, int]:
        """How many pieces a delegate call runs, by the number of its instruction."""
        return {instruction: len(self.pieces[index]) for instruction, index in self.delegates.items()}


def cut(plan: pte.ExecutionPlan) -> Cut:
    """The delegates of `plan` in pieces; one that cannot be cut stays whole. UsageError when it has none."""
    cut_delegates: dict[int, tuple[Piece, ...]] = {}
    uncut: dict[int, str] = {}
    for index, delegate in enumerate(plan.delegates):
        if delegate.vela is None:
            continue
        stream = bytes(delegate.vela.command_stream)
        try:
            cut_delegates[index] = pieces.cut(stream, NpuConfig.from_word(delegate.vela.config_word))
        except SdkError as error:
            cut_delegates[index] = (Piece((), stream),)
            uncut[index] = f"its command stream is not cut: {error}"
    if not cut_delegates:
        raise UsageError(
            "the program has no delegate whose command stream could be split", "leave --split out"
        )
    calls = {
        number: row.delegate_index
        for number, row in enumerate(plan.instructions)
        if isinstance(row, pte.DelegateCall) and row.delegate_index in cut_delegates
    }
    return Cut(cut_delegates, uncut, calls)


def record_part(cut_streams: Cut, samples: Sequence[PmuSample], npu: str, figures: Figures) -> list[Record]:
    """The record's `pieces`: every job of the first set's inference in pieces, in the order in which they ran."""
    if figures.absent:
        return []
    rows = []
    done: dict[int, int] = {}
    for sample in samples:
        number = done.get(sample.instruction, 0)
        done[sample.instruction] = number + 1
        delegate = cut_streams.delegates[sample.instruction]
        own = cut_streams.pieces[delegate]
        rows.append(
            {
                "instruction": sample.instruction,
                "delegate": delegate,
                "call": number // len(own),
                "offsets": list(own[number % len(own)].offsets),
                **_figures(sample, npu, figures),
            }
        )
    return rows


def _figures(sample: PmuSample, npu: str, figures: Figures) -> Record:
    totals = {
        event: (value, bool(sample.overflow >> index & 1))
        for index, (event, value) in enumerate(sample.counters)
    }
    facts = NpuFacts(npu=npu, identity={}, delegate_calls=1, cycles=sample.cycles, totals=totals)
    part, _ = npu_part(facts, [event for event, _ in sample.counters], figures)
    return {"cycles": part["cycles"], "counters": part["counters"]}


def unavailable(cut_streams: Cut, figures: Figures) -> Iterator[Record]:
    """What the record cannot say of pieces, and why."""
    if figures.absent:
        yield {"path": "/pieces", "reason": figures.absent}
    for index, reason in cut_streams.uncut.items():
        yield {"path": f"/delegates/{index}/pieces", "reason": reason}


def check(plan: Plan, changed: Sequence[Changed], count: int) -> Check:
    """Whether the pieces gave the outputs that the whole command streams gave."""
    name = "the pieces gave the same outputs as the whole"
    own = [row for row in changed if plan.runs_pieces(row.set * plan.repeats + row.repeat)]
    if own:
        return Check(name, False, f"output {own[0].index} and {counted(len(own) - 1, 'other')} differ")
    return Check(name, True, f"{count} NPU jobs instead of one for each delegate call, every output equal")
