"""The options of `sweep`. The module is imported for every `--help`: it must stay light."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class SweepOptions:
    """The options of `sweep` that its file does not have.

    `jobs` None is one a core. `scheduler` is the address of a Dask scheduler that runs already. With `retry`, cells
    that did not come to an end are done again.
    """

    jobs: int | None = None
    scheduler: str | None = None
    dry_run: bool = False
    retry: bool = False
    trust: bool = False
