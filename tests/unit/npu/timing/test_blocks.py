"""The blocks of an operation: rows that they read, worked out by hand."""

from __future__ import annotations

import pytest

from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import Kernel, Kind
from ethosu_sdk.npu.timing import blocks
from tests.unit.npu.operations import dense, operation

# Rows of a kernel, its dilation → parts of at most eight rows with the dilation, and IFM rows that ten OFM rows read:
# each part reads the rows that its elements meet, so that those between two parts are read twice.
CASES = [
    (3, 1, 1, 12),
    (8, 1, 1, 17),
    (9, 1, 2, 17 + 10),
    (4, 2, 1, 16),
    (5, 2, 2, 16 + 10),
    (3, 2, 1, 14),
]


@pytest.mark.parametrize(("rows", "dilation", "parts", "read"), CASES)
def test_large_kernels_are_walked_in_parts(rows: int, dilation: int, parts: int, read: int) -> None:
    kernel = Kernel(rows, 1, 1, 1, dilation, 1, part_kernel_first=False)
    shape = (10, 4, 8)
    op = operation(Kind.CONV, shape, dense(0, (40, 4, 8)), dense(4096, shape), kernel=kernel)
    assert blocks.subkernels(op) == parts
    spans = blocks.ifm_spans(op, 0, NpuConfig.for_target("ethos-u55", 128))
    assert sum(count for _, count in spans) == read


def test_ethos_u85_reads_the_rows_of_a_large_kernel_once() -> None:
    """Published beats of Wav2Letter: its kernels of 32 columns read no column for each of their four parts."""
    kernel = Kernel(16, 1, 1, 1, 1, 1, part_kernel_first=False)
    op = operation(Kind.CONV, (10, 4, 8), dense(0, (40, 4, 8)), dense(4096, (10, 4, 8)), kernel=kernel)
    assert blocks.ifm_spans(op, 0, NpuConfig.for_target("ethos-u85", 256)) == [(0, 25)]
