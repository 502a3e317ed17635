"""What a command's end, a record and two simulators' outputs say of a cell."""

import functools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from campaigns.command import Done
from campaigns.corpus.cells import CAUGHT, DIFFERS, FAILED, RAN, REFUSED, Outcome
from campaigns.grid import PAGES
from tests.kernels.cases.bounds import Bound

# exit codes of the SDK's own errors, but for its command line
_ENDS = {3: REFUSED, 4: REFUSED, 5: REFUSED, 6: REFUSED, 7: CAUGHT}
_KERNELS = PAGES / "kernels.md"
_ROW = re.compile(r"^\| `(\S+)` \|.*\| (?:(\d+) ulp|(\S+) \+ (\S+)·\\\|x\\\|) \|$", re.MULTILINE)
_TRACE = "Traceback (most recent call last)"


def last_line(text: str) -> str:
    """The last line that is not empty."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def ended(facts: Outcome, step: str, done: Done) -> Outcome:
    """The outcome of a command that did not end with 0."""
    if done.code is None:
        return replace(facts, verdict=FAILED, step=step, message="stopped: the time limit of a cell was over")
    parts = re.split(r"^error: ", done.err, maxsplit=1, flags=re.MULTILINE)
    message, _, hint = parts[-1].partition("\nhint: ")
    own = len(parts) == 2 and _TRACE not in done.err
    verdict = _ENDS.get(done.code, FAILED) if own else FAILED
    if verdict == FAILED:
        message = last_line(done.err)
    return replace(
        facts,
        verdict=verdict,
        step=step,
        exit_code=done.code,
        message=message.strip(),
        hint=" ".join(hint.split()),
    )


def compiled(record: dict[str, Any]) -> Outcome:
    """What the record of a compilation tells of a cell."""
    cpu = tuple((row["name"], row["calls"]) for row in record["cpu_operators"] if not row["boundary"])
    links = {
        link["link"]: [output["sqnr_db"] for output in link["outputs"] if "sqnr_db" in output]
        for link in record["chain"]["links"]
    }
    return Outcome(
        RAN,
        delegates=len(record["delegates"]),
        cpu=cpu,
        quantisation_db=min(links.get("quantised", []), default=None),
        execution_db=min(links.get("executed", []), default=None),
    )


@functools.cache
def kernel_bounds() -> dict[str, Bound]:
    """The bounds of docs/reference/kernels.md, without the operators that are exact."""
    text = _KERNELS.read_text(encoding="utf-8")
    return {
        name: Bound(ulp=int(ulp or 0), absolute=float(absolute or 0), relative=float(relative or 0))
        for name, ulp, absolute, relative in _ROW.findall(text)
    }


def _differing(found: Any, expected: Any) -> int:
    """How many elements do not have the same bits."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return int(max(found.size, expected.size))
    bits = [np.ascontiguousarray(array).view(np.uint8).reshape(array.size, -1) for array in (found, expected)]
    return int((bits[0] != bits[1]).any(axis=1).sum())


def compared(facts: Outcome, found: Sequence[Any], expected: Sequence[Any]) -> Outcome:
    """`facts` with the comparison of QEMU's outputs with the host's: bit for bit, else within what the bounds of the
    float kernels on the way allow."""
    elements = sum(array.size for array in expected)
    unequal = [index for index, pair in enumerate(zip(found, expected, strict=True)) if _differing(*pair)]
    if not unequal:
        return replace(facts, elements=elements)
    allowed = {name: kernel_bounds()[name] for name, _ in facts.cpu if name in kernel_bounds()}
    absolute = sum(bound.absolute + 2.0**-20 * bound.ulp for bound in allowed.values())
    relative = sum(bound.relative + 2.0**-22 * bound.ulp for bound in allowed.values())
    joint = Bound(relative=relative, absolute=absolute)
    wrong = sum(_differing(found[i], expected[i]) for i in unequal if not joint.holds(found[i], expected[i]))
    distance = max(float(np.abs(np.subtract(found[i], expected[i], dtype=np.float64)).max()) for i in unequal)
    return replace(
        facts,
        verdict=DIFFERS if wrong else RAN,
        elements=elements,
        differing=wrong,
        distance=distance,
        allowance=tuple(sorted(allowed)),
    )
