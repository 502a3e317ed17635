"""``sweep-cell/1``, from which schemas/sweep-cell.v1.schema.json is made."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from ethosu_sdk.records.common import (
    Amount,
    Count,
    DistinctSome,
    Document,
    Host,
    Limits,
    Number,
    PositiveAmount,
    Sha256,
    Share,
    Source,
    TargetName,
    Text,
)
from ethosu_sdk.records.kind import Part, RecordKind, about, require_distinct


class Cell(Part):
    model: Text
    target: TargetName
    system: Annotated[Text | None, about("the board profile that the cell is compiled for and priced on")] = (
        None
    )
    system_config: Text
    memory_mode: Text
    quantize: Literal["default", "int8", "int16", "none"]
    vela: Text
    simulator: Literal["none", "host", "qemu"]
    board: Text | None = None
    inputs: Text | None = None


class Error(Part):
    class_name: Text = msgspec.field(name="class")
    exit_code: Literal[1, 2, 3, 4, 5, 6, 7]
    message: Text
    hint: Text | None = None


class Figures(Part):
    program_bytes: Count | None = None
    program_sha256: Sha256 | None = None
    npu_cycles: Count | None = None
    npu_cycles_source: Source | None = None
    clock_mhz: PositiveAmount | None = None
    time_ms: Amount | None = None
    inference_ms: Annotated[Amount | None, about("of CPU and NPU, as the run's time line has it")] = None
    sram_bytes: Count | None = None
    dram_bytes: Count | None = None
    flash_bytes: Annotated[Count | None, about("commands and weights of the NPU's part")] = None
    npu_macs: Count | None = None
    operators_npu: Count | None = None
    operators_cpu: Count | None = None
    cpu_calls: Count | None = None
    check: Literal["pass", "fail", "unavailable", "left-out"] | None = None
    check_sqnr_db: Number | None = None
    sqnr_db: Number | None = None
    top1: Share | None = None
    outputs_sha256: Sha256 | None = None


Status = Annotated[
    Literal["pass", "fail", "refused", "failed", "timeout", "out of memory", "killed"],
    about("fail: compared and wrong; refused: the model or its settings cannot be (exit codes 2 and 3)"),
]


class SweepCell(Document[Status], tag_field="schema", tag="sweep-cell/1"):
    """One cell of a sweep: what came of it."""

    key: Annotated[Sha256, about("digest of all that shapes the cell and can be seen beforehand")]
    model_sha256: Annotated[Sha256, about("of the model's source")]
    cell: Cell
    error: Error | None = None
    figures: Figures
    no_noise: Annotated[
        DistinctSome[Literal["check_sqnr_db", "sqnr_db"]] | None,
        about("figures that are infinite: all outputs are equal"),
    ] = None
    reads: Annotated[
        dict[str, Sha256], about("files that the model read, from the folder of the sweep's file")
    ]
    limits: Limits
    wall_time_s: Amount
    host: Host

    def __post_init__(self) -> None:
        require_distinct(self.no_noise or ())


def has_an_error_or_passes(record: SweepCell) -> list[str]:
    """A cell that did not pass says why, and one that did has nothing to say."""
    if (record.status == "pass") == (record.error is not None):
        return [
            f"the status is '{record.status}', and there is {'no' if record.error is None else 'an'} error"
        ]
    return []


KIND = RecordKind(SweepCell, (has_an_error_or_passes,), file="cell.json", role="record of the cell")
