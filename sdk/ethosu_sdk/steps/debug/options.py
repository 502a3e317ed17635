"""The options of `debug`. The module is imported for every `--help`: it must stay light."""

from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.program_options import INPUTS, Option, option
from ethosu_sdk.steps.run.options import TIMEOUT


@dataclass(frozen=True, kw_only=True)
class DebugOptions:
    """The options of `debug` that are not those of `compile`.

    A layer breaks where its SQNR is below `threshold_db` and that of its inputs is not; there is advice for one whose
    own quantisation leaves less than `advice_db`.
    """

    inputs: Path | None = option(None, INPUTS)
    threshold_db: float = option(
        20.0,
        Option("SQNR below which a layer counts as broken.", name="--threshold", metavar="DB", finite=True),
    )
    advice_db: float = option(
        30.0,
        Option(
            "Give advice for layers whose own quantisation leaves an SQNR below this.",
            name="--advice",
            metavar="DB",
            finite=True,
        ),
    )
    dump: Path | None = option(None, Option("Write the tensors of all layers to this file.", metavar="F.npz"))
    rows: int | None = option(
        None,
        Option("Show the N worst layers.", metavar="N", minimum=1, shown_default="all, up to 100"),
    )
    timeout_s: float = option(300.0, TIMEOUT)
