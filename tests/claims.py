"""Work that several processes share: each outcome is the business of one of them."""

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from ethosu_sdk.files import writing


@contextlib.contextmanager
def claimed(outcome: Path) -> Iterator[bool]:
    """Whether the file `outcome` is this process's to make, while the block runs."""
    writing.make_directory(outcome.parent)
    with outcome.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield not outcome.is_file()
