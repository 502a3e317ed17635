"""Types of tensor elements: ExecuTorch's names and numbers, NumPy's names, sizes. A test compares them with both."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ScalarType:
    """One row: `dtype` is NumPy's name where NumPy has the type, else ExecuTorch's in lower case.

    `in_numpy` types can be inputs and outputs of programs, `in_records` types those of programs that are run.
    """

    name: str
    number: int
    dtype: str
    element_bytes: int
    in_numpy: bool = False
    in_records: bool = False


SCALAR_TYPES = (
    ScalarType("BYTE", 0, "uint8", 1, in_numpy=True, in_records=True),
    ScalarType("CHAR", 1, "int8", 1, in_numpy=True, in_records=True),
    ScalarType("SHORT", 2, "int16", 2, in_numpy=True, in_records=True),
    ScalarType("INT", 3, "int32", 4, in_numpy=True, in_records=True),
    ScalarType("LONG", 4, "int64", 8, in_numpy=True, in_records=True),
    ScalarType("HALF", 5, "float16", 2, in_numpy=True, in_records=True),
    ScalarType("FLOAT", 6, "float32", 4, in_numpy=True, in_records=True),
    ScalarType("DOUBLE", 7, "float64", 8, in_numpy=True, in_records=True),
    ScalarType("BOOL", 11, "bool", 1, in_numpy=True, in_records=True),
    ScalarType("QINT8", 12, "qint8", 1),
    ScalarType("QUINT8", 13, "quint8", 1),
    ScalarType("QINT32", 14, "qint32", 4),
    ScalarType("BFLOAT16", 15, "bfloat16", 2),
    ScalarType("QUINT4X2", 16, "quint4x2", 1),
    ScalarType("QUINT2X4", 17, "quint2x4", 1),
    ScalarType("BITS16", 22, "bits16", 2),
    ScalarType("FLOAT8E5M2", 23, "float8_e5m2", 1),
    ScalarType("FLOAT8E4M3FN", 24, "float8_e4m3fn", 1),
    ScalarType("FLOAT8E5M2FNUZ", 25, "float8_e5m2fnuz", 1),
    ScalarType("FLOAT8E4M3FNUZ", 26, "float8_e4m3fnuz", 1),
    ScalarType("UINT16", 27, "uint16", 2, in_numpy=True),
    ScalarType("UINT32", 28, "uint32", 4, in_numpy=True),
    ScalarType("UINT64", 29, "uint64", 8, in_numpy=True),
)
NUMPY_TYPES = tuple(row for row in SCALAR_TYPES if row.in_numpy)
RECORD_TYPES = tuple(row for row in SCALAR_TYPES if row.in_records)
