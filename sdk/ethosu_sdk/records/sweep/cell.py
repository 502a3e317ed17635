"""``sweep-cell/1``: schemas/sweep-cell.v1.schema.json says what each member means."""

from __future__ import annotations

from typing import Literal

import msgspec

from ethosu_sdk.records.common import Document, Host, Limits, Number, Source
from ethosu_sdk.records.kind import Part, RecordKind


class Cell(Part):
    model: str
    target: str
    system: str | None = None
    system_config: str
    memory_mode: str
    quantize: Literal["default", "int8", "int16", "none"]
    vela: str
    simulator: Literal["none", "host", "qemu"]
    board: str | None = None
    inputs: str | None = None


class Error(Part):
    class_name: str = msgspec.field(name="class")
    exit_code: Literal[1, 2, 3, 4, 5, 6, 7]
    message: str
    hint: str | None = None


class Figures(Part):
    program_bytes: int | None = None
    program_sha256: str | None = None
    npu_cycles: int | None = None
    npu_cycles_source: Source | None = None
    clock_mhz: Number | None = None
    time_ms: Number | None = None
    inference_ms: Number | None = None
    sram_bytes: int | None = None
    dram_bytes: int | None = None
    flash_bytes: int | None = None
    npu_macs: int | None = None
    operators_npu: int | None = None
    operators_cpu: int | None = None
    cpu_calls: int | None = None
    check: Literal["pass", "fail", "unavailable", "left-out"] | None = None
    check_sqnr_db: Number | None = None
    sqnr_db: Number | None = None
    top1: Number | None = None
    outputs_sha256: str | None = None


class SweepCell(
    Document[Literal["pass", "fail", "refused", "failed", "timeout", "out of memory", "killed"]],
    tag_field="schema",
    tag="sweep-cell/1",
):
    """One cell of a sweep: what came of it."""

    key: str
    model_sha256: str
    cell: Cell
    error: Error | None = None
    figures: Figures
    no_noise: tuple[Literal["check_sqnr_db", "sqnr_db"], ...] | None = None
    reads: dict[str, str]
    limits: Limits
    wall_time_s: Number
    host: Host


def has_an_error_or_passes(record: SweepCell) -> list[str]:
    """A cell that did not pass says why, and one that did has nothing to say."""
    if (record.status == "pass") == (record.error is not None):
        return [
            f"the status is '{record.status}', and there is {'no' if record.error is None else 'an'} error"
        ]
    return []


KIND = RecordKind(SweepCell, (has_an_error_or_passes,), file="cell.json", role="record of the cell")
