"""What a hazard is, and how it reads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class HazardKind(Enum):
    """What is wrong with a command stream."""

    DMA_WAIT = "missing NPU_OP_DMA_WAIT"
    KERNEL_WAIT = "missing NPU_OP_KERNEL_WAIT"
    BLOCKDEP = "BLOCKDEP too large"
    LUT_OVERWRITTEN = "look-up table overwritten while it is needed"
    LUT_NOT_LOADED = "look-up table not loaded"
    LUT_BEYOND_MEMORY = "look-up table loaded beyond the NPU's own memory"
    CHAIN_NOT_WRITTEN = "chaining buffer not written"


class Conflict(Enum):
    """What an operation does that another one in front of it forbids; the text is part of a sentence."""

    READ_AFTER_WRITE = "reads what {earlier} writes"
    WRITE_AFTER_READ = "writes what {earlier} reads"
    WRITE_AFTER_WRITE = "writes what {earlier} writes"
    UNUSED = "writes over what {earlier} loaded and nothing has used"
    OVERWRITTEN = "reads what {earlier} wrote over"
    NEVER_WRITTEN = "reads what nothing wrote"
    RESULT = "depends on the result of {earlier}"
    NO_MEMORY = "writes where there is none"
    OWN_BUFFERS = "has accumulators where it reads its table"

    @classmethod
    def between(cls, *, earlier_writes: bool, later_writes: bool) -> Conflict:
        """The conflict of two operations that touch the same bytes, at least one of them to write."""
        if not later_writes:
            return cls.READ_AFTER_WRITE
        return cls.WRITE_AFTER_WRITE if earlier_writes else cls.WRITE_AFTER_READ


@dataclass(frozen=True)
class Hazard:
    """An operation that can go wrong on hardware, and why.

    `offset` is its byte offset in the command stream, `earlier` that of the operation it is in conflict with, if
    there is one. The conflict is about bytes `start` up to `end` of `region`, where None is the NPU's own memory,
    about the chaining buffer `chain`, or, with no bytes, about the result that a branch tests.
    """

    kind: HazardKind
    offset: int
    earlier: int | None
    conflict: Conflict
    region: int | None = None
    start: int = 0
    end: int = 0
    chain: int | None = None

    def describe(self) -> str:
        """The hazard in one sentence."""
        earlier = "" if self.earlier is None else f"the one at {self.earlier:#x}"
        conflict = self.conflict.value.format(earlier=earlier)
        text = f"{self.kind.value}: the operation at byte {self.offset:#x} of the command stream {conflict}"
        if self.chain is not None:
            return f"{text}, in chaining buffer {self.chain}"
        if self.start == self.end:
            return text
        place = "the NPU's own memory" if self.region is None else f"region {self.region}"
        return f"{text}, bytes {self.start:#x} to {self.end:#x} of {place}"
