"""The options of `debug`. The module is imported for every `--help`: it must stay light."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class DebugOptions:
    """The options of `debug` that are not those of `compile`.

    A layer breaks where its SQNR is below `threshold_db` and that of its inputs is not; there is advice for one whose
    own quantisation leaves less than `advice_db`.
    """

    inputs: Path | None = None
    threshold_db: float = 20.0
    advice_db: float = 30.0
    dump: Path | None = None
    rows: int | None = None
    timeout_s: float = 300.0
