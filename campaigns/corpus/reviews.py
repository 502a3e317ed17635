"""What people found of refusals: whether a message tells the truth. The table is reviews.toml."""

import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from campaigns.corpus.cells import Cell, Outcome

TABLE = Path(__file__).with_name("reviews.toml")


@dataclass(frozen=True)
class Review:
    """A judgement of the refusals whose message `says` matches, of the architectures `names`, or of any."""

    says: str
    truthful: bool
    why: str
    names: tuple[str, ...] = ()

    def covers(self, cell: Cell, found: Outcome) -> bool:
        """Whether this is about the refusal of `cell`."""
        return cell.name in (self.names or (cell.name,)) and re.search(self.says, found.message) is not None


@functools.cache
def table() -> tuple[Review, ...]:
    """All reviews."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8")).get("review", [])
    return tuple(Review(**{**row, "names": tuple(row.get("names", ()))}) for row in rows)


def judge(reviews: tuple[Review, ...], cell: Cell, found: Outcome) -> Review | None:
    """The first review of a cell's refusal, if there is one."""
    return next((review for review in reviews if review.covers(cell, found)), None)
