"""Writes the counts of tests.conformance.tflite_campaign into docs/reference/npu-conformance.md.

Usage: python -m tests.conformance.tflite_report PAGE.md RESULTS.jsonl …; the page's section is replaced.
"""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path

from tests.conformance.report import TFLITE, table, without_tflite
from tests.conformance.tflite_campaign import OUTCOMES

_EXACT = ("equal", "micro")
_FAMILIES = ("u55", "u65", "u85")
_TEXT = """{title}

`scripts/npu-tflite-conformance` builds random `.tflite` files of one operator each, compiles them with Vela and
compares the model with LiteRT's reference kernels; where these differ from TensorFlow Lite Micro's, either is right.
Scales are powers of two in two of five files, so that exact halves occur. The types are int8, uint8 and int16.

Cases by version of Vela, of Ethos-U55/U65/U85:

{totals}

Of these, the cases without a difference by operator ("-": none, or Vela leaves it to the CPU):

{operators}

Vela's table of LOGISTIC for Ethos-U85 has a point that is one lower at -255/24 (int16). Vela 5.1 and 5.2 transpose
uint8 as int8 on Ethos-U55 and U65. Streams of Vela 3.11 to 4.5 have no RELU behind operators that only move
elements. Left out, because Vela 5 seems to compile them wrongly: SUM over two axes, REDUCE_MAX and REDUCE_MIN over an
inner axis that does not stay, EXP whose result is far above its type.

These differ, and the fault may be the model's or Vela's: for Ethos-U55 and U65, by Vela 3.11 to 4.5, EXP (one step),
one SOFTMAX, and TRANSPOSE_CONV with a stride of 1; for Ethos-U85, by Vela 4.0 to 4.2, RELU6, RELU_N1_TO_1,
EXPAND_DIMS and EXP, and by 4.0 to 5.0, SUM. The runs of Vela 3.9 and 3.10 ended before their last operators.
"""


def section(rows: list[dict[str, str]]) -> str:
    """The section of the page."""
    cells: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    totals: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for row in rows:
        family = row["npu"].split("-")[1]
        totals[row["outcome"]][row["vela"]][family] += 1
        if row["outcome"] in _EXACT:
            cells[row["operator"]][row["vela"]][family] += 1
    releases = sorted({row["vela"] for row in rows}, key=lambda name: [int(part) for part in name.split(".")])

    def counts(of: dict[str, Counter[str]]) -> list[str]:
        return [
            "/".join(str(of[release][family]) for family in _FAMILIES) if of[release].total() else "-"
            for release in releases
        ]

    lines = [(operator, *counts(of)) for operator, of in sorted(cells.items())]
    summary = [(meaning, *counts(totals[outcome])) for outcome, meaning in OUTCOMES.items()]
    return _TEXT.format(
        title=TFLITE,
        totals=table(("cases", *releases), summary),
        operators=table(("operator", *releases), lines),
    )


def main() -> None:
    """Replace the section."""
    page, *files = map(Path, sys.argv[1:])
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    kept, _ = without_tflite(page.read_text(encoding="utf-8"))
    page.write_text(f"{kept.rstrip()}\n\n{section(rows)}", encoding="utf-8")


if __name__ == "__main__":
    main()
