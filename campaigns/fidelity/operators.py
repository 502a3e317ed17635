"""Published cycles of the operators of networks beside the model's, operator by operator."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from campaigns.fidelity import networks
from campaigns.fidelity.comparison import DATA, VELA, compiled_for, rows
from ethosu_sdk.npu import program, timing
from ethosu_sdk.npu.operation import BlockOp, Kind, Operation, Shape
from ethosu_sdk.npu.timing.price import OperationProfile
from tests.published_systems import System, system_of

TABLE = DATA / "operators.csv"
GRID = 1000  # cycles: windows between two interrupts are known to this
_WORST = 20
_KINDS = {
    "Conv2D": Kind.CONV,
    "FullyConnected": Kind.CONV,
    "DepthwiseConv2D": Kind.DEPTHWISE,
    "AvgPool": Kind.POOL,
    "MaxPool": Kind.POOL,
    "Add": Kind.ELEMENTWISE,
    "Mul": Kind.ELEMENTWISE,
    "Sub": Kind.ELEMENTWISE,
}


@dataclass(frozen=True)
class Operator:
    """One operator of a published run: cycles and beats as they were published, and the model's.

    `beats` are (published, modelled) of SRAM and EXT together. `has_block`: its OFM block is the published one.
    """

    run: str
    number: int
    what: str
    published: int
    modelled: int
    beats: tuple[int, int]
    has_block: bool
    bound: str

    @property
    def error(self) -> float:
        """The model's error, as a share of what is published."""
        return self.modelled / self.published - 1

    @property
    def beyond_grid(self) -> int:
        """Cycles of the error that the grid of the published windows does not explain."""
        return max(0, abs(self.modelled - self.published) - GRID)


@dataclass
class _Layer:
    """Operations that make one operator: parts of its OFM, with the copies of weights before them."""

    kind: Kind
    ifm: Shape
    ofm: Shape
    profiles: list[OperationProfile]


def operators() -> Iterator[Operator]:
    """The operators of :data:`TABLE` that are found in the rebuilt networks."""
    runs: defaultdict[tuple[str, str, str], list[dict[str, str]]] = defaultdict(list)
    for row in rows(TABLE):
        runs[row["model"], row["npu"], row["compiled"]].append(row)
    for (model, npu, compiled), published in runs.items():
        found = system_of(npu, "Dedicated")
        system = replace(found, system_config=f"Ethos_U85_SYS_DRAM_{compiled}")
        layers = _layers(networks.NETWORKS[model](), system)
        for row in sorted(published, key=lambda row: int(row["op"])):
            layer = next((layer for layer in layers if _is(layer, row)), None)
            if layer is not None:
                layers.remove(layer)
                yield _operator(f"{model} {npu} {compiled}", row, layer)


def _layers(model: bytes, system: System) -> list[_Layer]:
    compiled = compiled_for(model, system, VELA)
    stream = program.described(compiled.stream, compiled.config)
    found: list[_Layer] = []
    copies: list[OperationProfile] = []
    for row in timing.profile(stream, compiled.config, system.priced).operations:
        op = row.operation
        if not isinstance(op, BlockOp):
            copies.append(row)
            continue
        if found and _goes_on(found[-1], op):
            height, width, depth = found[-1].ofm
            found[-1].ofm = (height, width, depth + op.shape[2])
            found[-1].profiles += [*copies, row]
        else:
            found.append(_Layer(op.kind, op.ifm_shape, op.shape, [*copies, row]))
        copies = []
    return found


def _goes_on(layer: _Layer, op: BlockOp) -> bool:
    """Whether `op` makes further channels of the OFM."""
    before = layer.profiles[-1].operation
    same = isinstance(before, BlockOp) and (op.kind, op.ifm) == (before.kind, before.ifm)
    return same and op.kind is Kind.CONV and op.shape[:2] == layer.ofm[:2]


def _is(layer: _Layer, row: dict[str, str]) -> bool:
    if layer.kind is not _KINDS.get(row["kind"]) or not row["ifm"]:
        return False
    if layer.kind is Kind.ELEMENTWISE:
        return layer.ofm == _shape(row["ifm"])
    return layer.ifm == _shape(row["ifm"]) and row["ofm"] in ("", "x".join(str(size) for size in layer.ofm))


def _shape(text: str) -> Shape:
    height, width, depth = (int(size) for size in text.split("x"))
    return height, width, depth


def _operator(run: str, row: dict[str, str], layer: _Layer) -> Operator:
    last: Operation = layer.profiles[-1].operation
    assert isinstance(last, BlockOp)
    slowest = max(layer.profiles, key=lambda profile: profile.cycles)
    beats = sum(moved.beats for profile in layer.profiles for moved in profile.price.transfers)
    return Operator(
        run=run,
        number=int(row["op"]),
        what=f"{row['kind']} {row['ifm']} to {'x'.join(str(size) for size in layer.ofm)}",
        published=int(row["cycles"]),
        modelled=sum(profile.cycles for profile in layer.profiles),
        beats=(int(row["sram"] or 0) + int(row["ext"] or 0), beats),
        has_block=not row["ofm_block"] or last.block == _shape(row["ofm_block"]),
        bound=" of ".join(part for part in (slowest.bound.value, slowest.memory) if part),
    )


def section(found: Sequence[Operator]) -> str:
    """The page's part on operators: each run in a line, and the worst ones."""
    lines = [
        "| run | operators | same OFM block | median, % | sum of errors, % | beyond the grid, % | beats, % |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    runs: defaultdict[str, list[Operator]] = defaultdict(list)
    for row in found:
        runs[row.run].append(row)
    for run, own in [*runs.items(), ("all", list(found))]:
        cycles = sum(row.published for row in own)
        both = [sum(counts) for counts in zip(*(row.beats for row in own if row.beats[0]), strict=True)]
        cells = [
            run,
            str(len(own)),
            str(sum(row.has_block for row in own)),
            f"{100 * statistics.median(abs(row.error) for row in own):.1f}",
            f"{100 * sum(abs(row.modelled - row.published) for row in own) / cycles:.1f}",
            f"{100 * sum(row.beyond_grid for row in own) / cycles:.1f}",
            f"{100 * (both[1] / both[0] - 1):+.1f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    totals = {run: sum(row.published for row in own) for run, own in runs.items()}
    worst = sorted(found, key=lambda row: -abs(row.modelled - row.published) / totals[row.run])[:_WORST]
    lines += [
        "",
        f"The {_WORST} largest errors by their share of the run's time, and what the model says sets the pace:",
        "",
    ]
    lines += ["| run | operator | published | model | share, % | pace |", "|---|---|--:|--:|--:|---|"]
    for row in worst:
        share = 100 * (row.modelled - row.published) / totals[row.run]
        lines.append(
            f"| {row.run} | {row.number} {row.what} | {row.published:,} | {row.modelled:,} | {share:+.1f} "
            f"| {row.bound} |"
        )
    return "\n".join([*lines, ""])
