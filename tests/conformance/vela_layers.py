"""Vela's own price of each layer, from the database that it writes on request, beside the stream's operations.

The database says which commands belong to which layer, in how many slices or stripes it was cut, and what it costs.
A layer's price is that of the whole layer: parts are put together again before they are compared. It includes waiting
for weights and tables that a DMA brings, as far as the layer before does not hide that.
"""

from __future__ import annotations

import csv
import re
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ethosu_sdk import npu
from ethosu_sdk.aot import lowering
from ethosu_sdk.aot.vela_capture import spaceless_directory
from ethosu_sdk.npu import cycles, cycles_geometry, cycles_transfer
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import BlockOp, DmaOp, FeatureMap, Lut, Operation
from ethosu_sdk.npu.program import steps
from ethosu_sdk.npu.system_config import SystemConfig
from ethosu_sdk.targets import Target

_TABLE = re.compile(r'<table name="(\w+)">\n<!\[CDATA\[\n(.*?)]]>', re.DOTALL)
_LAYER_TABLES = ("perf", "perf_debug", "perf_debug_main", "perf_debug_wd")
_CACHE_REGION, _ARENA_REGION = 2, 1


@dataclass(frozen=True)
class Layer:
    """A layer: Vela's row of figures, its block operations in the stream, and the estimate of each."""

    row: Mapping[str, str]
    operations: tuple[BlockOp, ...]
    estimates: tuple[cycles.Estimate, ...]

    @property
    def operator(self) -> str:
        """Vela's name of what the layer computes."""
        return self.row["operator"]

    @property
    def price(self) -> int:
        """Vela's cycles for the layer, without its traffic."""
        return int(self.row["npu_cycles"])

    @property
    def is_striped(self) -> bool:
        """Whether the rows of the OFM are made by several operations."""
        return self.row["cascade"] != "0" and len(self.operations) > 1

    @property
    def whole(self) -> BlockOp:
        """The layer as one operation: what it would be if it had not been cut."""
        first, last = self.operations[0], self.operations[-1]
        height, width, depth = first.shape
        if self.is_striped:
            height = sum(op.shape[0] for op in self.operations)
        else:
            depth = sum(op.shape[2] for op in self.operations)
        padding = replace(first.padding, bottom=last.padding.bottom)
        return replace(first, shape=(height, width, depth), padding=padding)


@dataclass(frozen=True)
class Compiled:
    """What Vela made of a graph: the configuration, the stream's operations, and the layers as it ran them."""

    config: NpuConfig
    operations: tuple[Operation, ...]
    layers: tuple[Layer, ...]


def compiled(target: Target, system: SystemConfig, tosa: bytes, flags: Sequence[str] = ()) -> Compiled:
    """A TOSA graph as Vela compiles it for `target`, with its database."""
    with warnings.catch_warnings():  # of ExecuTorch's modules
        warnings.simplefilter("ignore")
        from executorch.backends.arm.arm_vela import vela_compile

        spec = lowering.compile_spec(target)
    with tempfile.TemporaryDirectory(dir=spaceless_directory()) as folder:
        options = [*spec.compiler_flags, *flags, "--verbose-performance", "--enable-debug-db"]
        payload = bytes(vela_compile(tosa, options, intermediate_path=folder).processed_bytes)
        (database,) = Path(folder, "output").glob("*_debug.xml")
        tables = {
            name: list(csv.DictReader(body.splitlines()))
            for name, body in _TABLE.findall(database.read_text())
        }
    program = npu.load(payload)
    listed = steps(bytes(program.blocks.command_stream), program.config)
    operations = tuple(op for _, op in listed if op is not None)
    return Compiled(program.config, operations, _layers(program.config, system, operations, tables))


def _layers(
    config: NpuConfig,
    system: SystemConfig,
    operations: Sequence[Operation],
    tables: Mapping[str, list[dict[str, str]]],
) -> tuple[Layer, ...]:
    rows: dict[str, dict[str, str]] = {}
    for table in _LAYER_TABLES:
        for row in tables.get(table, []):
            rows.setdefault(row["id"], {}).update(row)
    # The queue names the last command of each part of a layer.
    queue = iter(sorted((int(row["offset"]), row["scheduled_id"]) for row in tables["queue"]))
    end, layer = next(queue)
    found: dict[str, list[tuple[BlockOp, cycles.Estimate]]] = {}
    for op, estimate in zip(operations, cycles.estimates(operations, config, system), strict=True):
        while op.offset > end:
            end, layer = next(queue)
        if isinstance(op, BlockOp):
            found.setdefault(layer, []).append((op, estimate))
    order = sorted(rows, key=lambda name: (int(rows[name]["time_index"]), int(name)))
    return tuple(
        Layer(rows[name], *map(tuple, zip(*found[name], strict=True))) for name in order if name in found
    )


def with_waiting(compiled: Compiled, system: SystemConfig) -> list[tuple[Layer, int | None]]:
    """Each layer with its price as our estimates make it, waiting included.

    None where that depends on the price of a transposition, which Vela alone knows. Layers that a chain carries out
    are left out.
    """
    found: list[tuple[Layer, int | None]] = []
    slack: int | None = 0  # cycles of the layer before, which hide what a DMA does
    for layer in compiled.layers:
        if all(estimate.total_cycles == 0 for estimate in layer.estimates):
            continue
        ours = _whole_cycles(layer, compiled.config, system)
        found.append((layer, _waiting(layer, ours, slack, compiled, system)))
        slack = _slack(layer, ours, compiled.config, system)
    return found


def _is_one(layer: Layer) -> bool:
    """Whether the layer's operations are parts of one operation."""
    same = len({(op.kind, op.mode) for op in layer.operations}) == 1
    slices = layer.row["ofm_depth_slices"].count("|")
    return same and (len(layer.operations) == slices or layer.is_striped)


def _whole_cycles(layer: Layer, config: NpuConfig, system: SystemConfig) -> int:
    if layer.is_striped and _is_one(layer):
        return cycles.estimate(layer.whole, config, system).npu_cycles
    return sum(estimate.npu_cycles for estimate in layer.estimates)


def _slack(layer: Layer, ours: int, config: NpuConfig, system: SystemConfig) -> int | None:
    """What the layer hides of the next one's DMA, priced before Vela moves feature maps to the cache."""
    if layer.operator == "Transpose" and config.generation == "u55":
        return None if system.arena != system.cache else layer.price
    if not _is_one(layer):
        return ours
    if layer.is_striped or len(layer.operations) == 1:
        places = cycles.places(layer.operations)
        chained = cycles.estimate(_in_arena(layer.whole), config, system, places[0])
        return max(chained.npu_cycles, ours) if system.arena == system.cache else chained.npu_cycles
    last = _in_arena(layer.operations[-1])
    read = cycles_transfer.block_read_cycles(last, cycles_geometry.of(last, config), system, config)
    return cycles.estimate(last, config, system).npu_cycles - read


def _in_arena(op: BlockOp) -> BlockOp:
    def moved(feature_map: FeatureMap) -> FeatureMap:
        in_cache = feature_map.region == _CACHE_REGION
        return replace(feature_map, region=_ARENA_REGION) if in_cache else feature_map

    operands = tuple(replace(operand, feature_map=moved(operand.feature_map)) for operand in op.operands)
    ifm2 = None if op.ifm2 is None else moved(op.ifm2)
    return replace(op, ifm=moved(op.ifm), ofm=moved(op.ofm), ifm2=ifm2, operands=operands)


def _waiting(
    layer: Layer, ours: int, slack: int | None, compiled: Compiled, system: SystemConfig
) -> int | None:
    """`ours` and the cycles that the layer waits for its weights or its table."""
    table = next((op.output.lut for op in layer.operations if op.output.lut is not None), None)
    if layer.row["weight_buffering"]:
        last = _slack(layer, ours, compiled.config, system)
        first = _weight_dma(layer.operations[0], compiled.operations)
        if slack is None or last is None:
            return None
        moved = cycles_transfer.dma_cycles(first, system, compiled.config)
        return max(int(layer.row["weight_transfer_cycles"]) - slack + last, ours + max(0, moved - slack))
    if layer.operator == "LUT" and table is not None:
        if slack is None:
            return None
        return ours + max(0, _table_cycles(table, compiled.config, system) - slack)
    return ours


def _table_cycles(table: Lut, config: NpuConfig, system: SystemConfig) -> int:
    size = 256 * table.result.itemsize if table.index.itemsize == 1 else 2048
    return cycles_transfer.dma_cycles(DmaOp(0, 0, 0, None, 0, size), system, config)


def _weight_dma(op: BlockOp, operations: Sequence[Operation]) -> DmaOp:
    """The transfer that brings the first weights and scales of a layer."""
    assert op.weights is not None
    assert op.scales is not None
    parts = [part for part in (*op.weights.streams, *op.scales.streams) if part.length]
    address, region = min(part.address for part in parts), parts[0].region
    return next(
        dma
        for dma in reversed(operations)
        if isinstance(dma, DmaOp)
        and dma.offset < op.offset
        and dma.target_region == region
        and dma.target <= address < dma.target + dma.length
    )
