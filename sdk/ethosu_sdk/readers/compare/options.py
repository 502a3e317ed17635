"""What `compare` is asked for beside what it compares."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class CompareOptions:
    """`policy` is a file, None the SDK's own; `allow` adds dimensions that may differ to those that it allows.
    `loose` takes records that are not as their manifests list them."""

    policy: Path | None = None
    allow: tuple[str, ...] = ()
    loose: bool = False
    rows: int | None = None  # operators shown on the terminal
