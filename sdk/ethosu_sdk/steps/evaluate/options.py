"""The options of `compile` that judge its accuracy. The module is imported for every `--help`: it must stay light."""

from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.program_options import Option, name_of, option, rows

_DATA = "evaluate"


def _limit(unit: str, text: str) -> Option:
    """A threshold for the pair of the user's choice."""
    return Option(f"Fail with exit code 7 {text}.", metavar=f"[PAIR=]{unit}")


@dataclass(frozen=True, kw_only=True)
class AccuracyOptions:
    """The samples to evaluate on, and the thresholds as they were typed."""

    evaluate: Path | None = option(
        None,
        Option(
            "Evaluate float model, quantised model and executed program on these samples (input0 …, "
            "label0 or output0 …).",
            metavar="F.npz",
        ),
    )
    min_top1: tuple[str, ...] = option(
        (),
        _limit("SHARE", "if the share of right answers is below this; PAIR is, for example, float-executed"),
    )
    max_top1_drop: tuple[str, ...] = option(
        (), _limit("SHARE", "if the share of right answers falls by more than this from float to executed")
    )
    min_sqnr: tuple[str, ...] = option(
        (),
        _limit(
            "DB",
            "if the signal to quantisation noise ratio is below this; without --evaluate, on the samples "
            "that every compilation compares",
        ),
    )
    min_cosine: tuple[str, ...] = option(
        (), _limit("C", "if the cosine similarity of the outputs is below this")
    )
    max_error: tuple[str, ...] = option((), _limit("E", "if the absolute error of an output is above this"))

    def thresholds(self) -> dict[str, tuple[str, ...]]:
        """What was typed for each threshold, by the option's name."""
        return {
            name_of(row): getattr(self, name) for name, row in rows(AccuracyOptions).items() if name != _DATA
        }
