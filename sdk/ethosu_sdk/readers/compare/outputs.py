"""How far apart the outputs of two runs are, where both lie beside their records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ethosu_sdk.errors import SdkError
from ethosu_sdk.files.hashing import sha256_bytes
from ethosu_sdk.readers.compare.subjects import Subject
from ethosu_sdk.records.run import Run

if TYPE_CHECKING:
    from numpy.typing import NDArray


def distance(before: Subject, after: Subject, name: str) -> str:
    """How the output behind the figure `name`, ``outputs.N``, differs, in words; nothing where the arrays are not at
    hand."""
    index = int(name.rpartition(".")[2])
    arrays = [_array(subject, index) for subject in (before, after)]
    if arrays[0] is None or arrays[1] is None:
        return ""
    old, new = arrays[0], arrays[1]
    if old.shape != new.shape:
        return "the shapes differ"
    return _words(old, new)


def _words(old: NDArray[Any], new: NDArray[Any]) -> str:
    import numpy as np

    with np.errstate(invalid="ignore", over="ignore"):
        wide = [array.astype(np.float64) for array in (old, new)]
        same = (wide[0] == wide[1]) | (np.isnan(wide[0]) & np.isnan(wide[1]))
        gaps = np.abs(wide[1] - wide[0])[~same]
    if not gaps.size:
        return f"all {old.size:,} values are equal"
    finite = gaps[np.isfinite(gaps)]
    most = f", by {finite.max():.6g} at most" if finite.size else ""
    return f"{gaps.size:,} of {old.size:,} values differ{most}"


def _array(subject: Subject, index: int) -> NDArray[Any] | None:
    """An output, if it is the one that the record is about."""
    from ethosu_sdk import npz

    record = subject.records.get("run")
    if subject.folder is None or not isinstance(record, Run) or index >= len(record.outputs):
        return None
    row = record.outputs[index]
    try:
        array = npz.read_npz(subject.folder / row.file).get(row.name)
    except SdkError:
        return None
    return array if array is not None and sha256_bytes(array.tobytes()) == row.sha256 else None
