"""Whether a program computes what PyTorch computes, and whether a refusal helps."""

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from campaigns.command import Done
from campaigns.meaning.cells import BAD_REFUSAL, HANG, REFUSED, RIGHT, WRONG, Array, Outcome

# What rounding costs in networks this small, whose calibration samples are like those compared. A lost write
# or state leaves a few decibels. The second figure is the largest error, of the largest value.
LIMITS = {"int8": (15.0, 0.25), "int16": (24.0, 0.1), "none": (80.0, 1e-4)}
_TRUTHFUL = (3, 7)  # exit codes of a refusal
_OPERATOR = re.compile(r"\baten(?:::|\.)\w+|\btosa_\w+|\btorch\.[\w.]+|\boperator\b.{0,3}\w+")
_TOO_COMMON = {*keyword.kwlist, "self", "x", "b", "c", "d", "y", "torch", "nn", "return", "model"}

Steps = Sequence[Sequence[Array]]  # the outputs of each sample


@dataclass(frozen=True)
class Distance:
    """How far apart outputs are: decibels and largest error of the worst output; `reason` says what cannot be."""

    decibels: float | None = None
    largest: float = 0.0
    reason: str = ""
    is_narrowed: bool = False


def compared(wanted: Steps, found: Steps) -> Distance:
    """How far `found` is from `wanted`: number, shapes, types and values of the outputs, sample by sample."""
    narrowed = False
    if [len(step) for step in wanted] != [len(step) for step in found]:
        return Distance(reason=f"{len(found[0])} outputs instead of {len(wanted[0])}")
    worst = Distance()
    for index in range(len(wanted[0])):
        want, got = ([step[index] for step in steps] for steps in (wanted, found))
        shapes = [(tuple(a.shape), tuple(b.shape)) for a, b in zip(want, got, strict=True)]
        if wrong := [pair for pair in shapes if pair[0] != pair[1]]:
            return Distance(
                reason=f"output {index} has the shape {list(wrong[0][1])} instead of {list(wrong[0][0])}"
            )
        is_narrow = want[0].dtype == np.int64 and got[0].dtype == np.int32
        if want[0].dtype != got[0].dtype and not is_narrow:
            return Distance(reason=f"output {index} is {got[0].dtype} instead of {want[0].dtype}")
        narrowed |= is_narrow
        row = _distance(
            index, *(np.concatenate([array.reshape(-1) for array in arrays]) for arrays in (want, got))
        )
        if row.reason:
            return row
        if worst.decibels is None or (row.decibels is not None and row.decibels < worst.decibels):
            worst = Distance(row.decibels, max(row.largest, worst.largest))
        else:
            worst = Distance(worst.decibels, max(row.largest, worst.largest))
    return Distance(worst.decibels, worst.largest, "", narrowed)


def _distance(index: int, want: Array, got: Array) -> Distance:
    """Of one output's values over all samples."""
    if want.dtype.kind in "biu":
        wrong = int((want != got).sum())
        return Distance(reason=f"{wrong} of {want.size} elements of output {index} differ" if wrong else "")
    want, got = want.astype(np.float64), got.astype(np.float64)
    usual = np.isfinite(want)
    if not np.array_equal(want[~usual], got[~usual], equal_nan=True) or not np.isfinite(got[usual]).all():
        return Distance(reason=f"output {index} has other elements that are not finite")
    want, got = want[usual], got[usual]
    error = got - want
    noise, signal = float((error**2).sum()), float((want**2).sum())
    if noise == 0:
        return Distance()
    peak = float(np.abs(want).max())
    if peak == 0:
        return Distance(0.0, float(np.abs(error).max()))
    return Distance(float(10 * np.log10(max(signal, 1e-300) / noise)), float(np.abs(error).max()) / peak)


def is_right(distance: Distance, quantize: str) -> bool:
    """Whether rounding explains the distance."""
    least, most = LIMITS[quantize]
    near = distance.decibels is None or distance.decibels >= least
    return not distance.reason and near and distance.largest <= most


def judged(distance: Distance, quantize: str) -> Outcome:
    """The outcome of a model that was compiled and run."""
    message = distance.reason
    if not message and not is_right(distance, quantize):
        message = f"{distance.decibels:.1f} dB, an error of {distance.largest:.0%} of the largest value"
    return Outcome(
        WRONG if message else RIGHT,
        message=message,
        decibels=None if distance.decibels is None else round(distance.decibels, 1),
        largest=round(distance.largest, 4),
        is_narrowed=distance.is_narrowed,
    )


def refused(step: str, done: Done, file: str, text: str) -> Outcome:
    """The outcome of a command that did not end with 0. `text` is the content of the model's file."""
    if done.code is None:
        return Outcome(HANG, step=step, message="stopped: the time limit was over")
    message = done.err.partition("error: ")[2] or done.err.strip()[-300:]
    message = " ".join(message.split())[:600]
    problem = ""
    if done.code not in _TRUTHFUL or "Traceback (most recent call last)" in done.err:
        problem = f"exit code {done.code}"
    elif step == "compile":
        problem = _unplaced(message, file, text)
    verdict = BAD_REFUSAL if problem else REFUSED
    return Outcome(verdict, step=step, exit_code=done.code, message=message, problem=problem)


def _unplaced(message: str, file: str, text: str) -> str:
    """What a refusal does not name: the line of the user's file, or the operator there."""
    numbers = [int(number) for number in re.findall(rf"{re.escape(file)}(?::|, line )(\d+)", message)]
    lines = text.splitlines()
    places = [lines[number - 1] for number in numbers if 0 < number <= len(lines)]
    if not places:
        return "names no line of the model's file"
    if any(line.strip() in message for line in places if line.strip()):
        return ""  # it quotes the line
    words = {word for line in places for word in re.findall(r"[A-Za-z_]\w*", line)} - _TOO_COMMON
    named = any(re.search(rf"\b{re.escape(word)}", message) for word in words)
    return "" if named or _OPERATOR.search(message) else "names no operator"
