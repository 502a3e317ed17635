"""Published latencies of command streams that a vendor timed on its board, beside the model's.

The streams are third-party files and stay outside: the SDK has their operations as figures, one row each, which is
all that a price depends on. `scripts/fidelity --streams FOLDER` writes that table again from the streams themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from campaigns.fidelity.comparison import DATA, rows
from ethosu_sdk.base import board_profiles
from ethosu_sdk.compile import pricing_system
from ethosu_sdk.npu import program, timing, vela_blocks
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import (
    BlockOp,
    DmaOp,
    ElementwiseMode,
    FeatureMap,
    Kernel,
    Kind,
    Lut,
    Operand,
    Operation,
    Output,
    Padding,
    PoolMode,
    Rounding,
    ScaleFormat,
    ScaleStreams,
    Stream,
    Wait,
    WeightStreams,
)

LATENCIES, OPERATIONS = DATA / "streams.csv", DATA / "stream_operations.csv"
CONVERSION_CYCLES = 23
"""CPU cycles of converting an element between float and int8, by which the autoencoder and ResNet-8 take longer than
their streams: the networks that the vendor's compiler quantised from float, with a CPU unit for inputs and outputs.
Published: the autoencoder gives 22.9 (weights in MRAM) and 22.2 (SRAM), ResNet-8 22.8 (SRAM)."""
_ABOUT = (
    "# Operations of the streams in streams.csv, one row each, as figures: what the model's price depends on; "
    "made by `scripts/fidelity --streams FOLDER`",
    "# kernel: height, width, strides, dilations, part-kernel-first; maps: region, type, layout, strides of rows, "
    "columns and bricks; weights, scales: encoded bytes",
)
_COLUMNS = (
    *("stream", "waits", "kind", "ofm", "ifm_depth", "kernel", "padding", "upscale", "ifm_map", "ofm_map"),
    *(
        "ifm2_map",
        "weights",
        "scales",
        "operands",
        "block",
        "micro_block",
        "accumulator_bits",
        "blockdep",
        "lut",
    ),
)


_PAGE = """## Command streams on EK-RA8P1

Latencies that Renesas published (`campaigns/fidelity/data/streams.csv`), and the price of the very command streams
that it timed, with the memories of the board's profile. The streams have no weights: `ethosu-sdk profile FILE.cop1
--system ek-ra8p1` prices one.

The keyword network takes int8 and has no part on the CPU. The vendor's compiler quantised the other two from floating
point, and they keep it at their inputs and outputs, which units on the CPU convert: *converted* counts the elements.
What the streams lack of the measured time of the autoencoder and of ResNet-8 in SRAM is the same: {cycles} cycles of
the 1 GHz CPU for such an element (22 to 23). That is found in these rows and not a test of them, and the sources of
the units are not published; ExecuTorch's own kernel takes 9 on a Cortex-M55 ([CPU](#cpu)). It is not the MRAM: the
autoencoder, whose time is that of reading its weights, takes as long with them in SRAM. ResNet-8 was given the same
figure for both places, between which the model has 7 %.
"""


def row_of(op: Operation) -> dict[str, str]:
    """What the price of an operation of Ethos-U55 depends on, as text."""
    if isinstance(op, DmaOp):
        return {
            "kind": "DMA",
            "ofm": _joined(op.counts),
            "weights": str(op.length),
            "ifm_map": _region(op.source_region),
        }
    kernel, padding = op.kernel, op.padding
    sides = (
        kernel.height,
        kernel.width,
        kernel.stride_y,
        kernel.stride_x,
        kernel.dilation_y,
        kernel.dilation_x,
    )
    return {
        "kind": op.kind.name if op.mode is None else f"{op.kind.name} {op.mode.name}",
        "ofm": _joined(op.shape),
        "ifm_depth": str(op.ifm_depth),
        "kernel": _joined((*sides, int(kernel.part_kernel_first))),
        "padding": _joined((padding.top, padding.left, padding.bottom, padding.right)),
        "upscale": str(op.upscale),
        "ifm_map": _map_text(op.ifm),
        "ofm_map": _map_text(op.ofm),
        "ifm2_map": "" if op.ifm2 is None else _map_text(op.ifm2),
        "weights": _joined(row.length for row in op.weights.streams) if op.weights is not None else "",
        "scales": _joined(row.length for row in op.scales.streams) if op.scales is not None else "",
        "operands": " ".join(map(_operand_text, op.operands)),
        "block": _joined(op.block),
        "micro_block": _joined(op.micro_block),
        "accumulator_bits": str(op.accumulator_bits),
        "blockdep": str(op.blockdep),
        "lut": "" if op.output.lut is None else op.output.lut.index.name,
    }


def _joined(values: Iterable[int]) -> str:
    return "x".join(map(str, values))


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("x"))) if text else ()


def _region(region: int | None) -> str:
    return "" if region is None else str(region)


def _map_text(fm: FeatureMap) -> str:
    layout = "bricks" if fm.bricks else "rows"
    return f"{fm.region}:{fm.dtype.name}:{layout}:{fm.stride_y}:{fm.stride_x}:{fm.stride_c}"


def _map_of(text: str) -> FeatureMap:
    region, dtype, layout, *strides = text.split(":")
    stride_y, stride_x, stride_c = map(int, strides)
    is_brick = layout == "bricks"
    none = (0, 0, 0, 0)
    return FeatureMap(int(region), none, 1, 1, 1, stride_y, stride_x, stride_c, np.dtype(dtype), is_brick, 0)


def _operand_text(operand: Operand) -> str:
    given = "scalar" if operand.scalar is not None else _joined(map(int, operand.broadcast))
    return f"{given}@{_map_text(operand.feature_map)}"


def _operand_of(text: str) -> Operand:
    given, _, place = text.partition("@")
    if given == "scalar":
        return Operand(_map_of(place), scalar=0)
    height, width, depth = (bool(flag) for flag in _numbers(given))
    return Operand(_map_of(place), (height, width, depth))


def operation_of(row: dict[str, str]) -> Operation:
    """The operation that a row stands for; what a price does not depend on is 0."""
    shape = _numbers(row["ofm"])
    if row["kind"] == "DMA":
        source = int(row["ifm_map"]) if row["ifm_map"] else None
        return DmaOp(0, source, 0, None, 0, int(row["weights"]), (shape[0], shape[1]))
    name, _, mode = row["kind"].partition(" ")
    kind = Kind[name]
    modes = PoolMode if kind is Kind.POOL else ElementwiseMode
    *sides, part = _numbers(row["kernel"])
    weights, scales = (
        tuple(Stream(0, 0, size) for size in _numbers(row[key])) for key in ("weights", "scales")
    )
    lut = Lut(0, np.dtype(row["lut"]), np.dtype("int8")) if row["lut"] else None
    return BlockOp(
        offset=0,
        kind=kind,
        mode=modes[mode] if mode else None,
        shape=(shape[0], shape[1], shape[2]),
        ifm=_map_of(row["ifm_map"]),
        ifm_depth=int(row["ifm_depth"]),
        ofm=_map_of(row["ofm_map"]),
        kernel=Kernel(*sides, part_kernel_first=bool(part)),
        padding=Padding(*_numbers(row["padding"])),
        upscale=int(row["upscale"]),
        weights=WeightStreams(weights) if weights else None,
        scales=ScaleStreams(scales, ScaleFormat.BIAS_40) if scales else None,
        output=Output(True, None, 0, Rounding.NATURAL, None, lut),
        operands=tuple(map(_operand_of, row["operands"].split())),
        ifm2=_map_of(row["ifm2_map"]) if row["ifm2_map"] else None,
        accumulates=False,
        divides=False,
        resize=None,
        block=_shape(row["block"]),
        micro_block=_shape(row["micro_block"]),
        accumulator_bits=int(row["accumulator_bits"]),
        blockdep=int(row["blockdep"]),
    )


def _shape(text: str) -> tuple[int, int, int]:
    height, width, depth = _numbers(text)
    return height, width, depth


def _wait_texts(waits: Sequence[Wait], before: int) -> str:
    return " ".join(f"{row.name}:{row.at_most}" for row in waits if row.before == before)


def _waits_of(text: str, before: int) -> Iterator[Wait]:
    for part in text.split():
        name, _, most = part.partition(":")
        yield Wait(before, name, int(most))


def write_table(folder: Path) -> None:
    """Write :data:`OPERATIONS` from the streams in `folder` that :data:`LATENCIES` names."""
    names = dict.fromkeys(row["stream"] for row in rows(LATENCIES))
    lines = [",".join(_COLUMNS)]
    for name in names:
        _, _, stream = vela_blocks.driver_actions(memoryview((folder / name).read_bytes()))
        found = program.described(bytes(stream), NpuConfig.for_target("ethos-u55", 256))
        for number, op in enumerate(found.operations):
            row = {"stream": name, "waits": _wait_texts(found.waits, number), **row_of(op)}
            lines.append(",".join(row.get(column, "") for column in _COLUMNS))
    OPERATIONS.write_text("\n".join([*_ABOUT, *lines, ""]), encoding="utf-8")


@dataclass(frozen=True)
class Timed:
    """A published latency of a stream with the model's: `npu_ms` of the stream, `cpu_ms` of `converted` elements."""

    network: str
    place: str
    published_ms: float
    npu_ms: float
    converted: int
    cpu_ms: float

    @property
    def npu_error(self) -> float:
        return self.npu_ms / self.published_ms - 1

    @property
    def error(self) -> float:
        return (self.npu_ms + self.cpu_ms) / self.published_ms - 1


def timed() -> Iterator[Timed]:
    """The rows of :data:`LATENCIES`."""
    streams: defaultdict[str, list[dict[str, str]]] = defaultdict(list)
    for row in rows(OPERATIONS):
        streams[row["stream"]].append(row)
    for row in rows(LATENCIES):
        profile = board_profiles.find_profile(row["board"])
        system = pricing_system.system_of_board(profile, mode=row["mode"])
        own = streams[row["stream"]]
        operations = [operation_of(part) for part in own]
        waits = [wait for number, part in enumerate(own) for wait in _waits_of(part["waits"], number)]
        config = NpuConfig.for_target("ethos-u55", 256)
        cycles = timing.started(system) + timing.price(operations, config, system, waits)[-1].elapsed
        clock = profile.cpu.clock_hz or 0
        converted = int(row["converted"])
        yield Timed(
            row["network"],
            row["place"],
            float(row["ms"]),
            1e3 * cycles / system.clock_hz,
            converted,
            1e3 * converted * CONVERSION_CYCLES / clock,
        )


def section(found: Sequence[Timed]) -> str:
    """The page's part on command streams that were timed on a board."""
    lines = [
        _PAGE.format(cycles=CONVERSION_CYCLES),
        "| network | weights in | measured, ms | stream, ms | error, % | converted | with them, ms | error, % |",
        "|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    for row in found:
        cells = [
            row.network,
            row.place,
            f"{row.published_ms:.3f}",
            f"{row.npu_ms:.3f}",
            f"{100 * row.npu_error:+.1f}",
            f"{row.converted:,}",
            f"{row.npu_ms + row.cpu_ms:.3f}",
            f"{100 * row.error:+.1f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])
