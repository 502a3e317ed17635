"""Inputs and outputs as `.npz` files: read with every size checked, nothing unpickled; written reproducibly.

A `.npz` is a ZIP archive of `.npy` files (NumPy Enhancement Proposal 1). Arrays are called `input0`, `input1`, … and
`output0`, … in the model's order; several inferences are one extra leading axis on every array. NumPy's own reader
does not suffice: it sets no limit to what an archive expands to, and reads no array in parts.
"""

from ethosu_sdk.npz.reading import (
    MOST_SAMPLES,
    Array,
    RowReader,
    SampleSet,
    open_rows,
    read_npz,
    read_rows,
    read_samples,
)
from ethosu_sdk.npz.writing import staged_npz, write_npz

__all__ = [
    "MOST_SAMPLES",
    "Array",
    "RowReader",
    "SampleSet",
    "open_rows",
    "read_npz",
    "read_rows",
    "read_samples",
    "staged_npz",
    "write_npz",
]
