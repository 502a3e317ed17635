"""A line of the model's own source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceLine:
    """Where in the model something comes from; None for what torch did not record.

    `file` is relative to the folder of the model's file, or begins with the name of an installed package.
    `module` is the name below the model, as in ``named_modules()`` (empty for the model itself), `module_type` its
    class.
    """

    file: str | None
    line: int | None
    module: str | None
    module_type: str | None
