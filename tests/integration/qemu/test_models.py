"""The firmware on QEMU with the NPU model behind its registers: every family, every kind of memory mode.

What comes out must be what `npu.run` and the TOSA reference model give, and what the PMU counts must be what the
machine counts when it runs alone. The TOSA model is the only independent witness for the numbers; the others show
that driver, registers, routes and memories between the program and the machine change nothing.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ethosu_sdk import npu
from ethosu_sdk.base import filesystem, proc
from ethosu_sdk.firmware_build import program_firmware
from ethosu_sdk.npu import vela_blocks
from ethosu_sdk.npu.machine import Counters, Machine, Ports
from ethosu_sdk.npu.memory import FixedRegions
from ethosu_sdk.npu.program import written_bytes
from ethosu_sdk.npu.weight_cache import WeightCache
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import DelegateCall
from ethosu_sdk.run import evidence, input_image, uart
from ethosu_sdk.simulate import simulators
from ethosu_sdk.simulate.simulation import SimulationRequest
from tests import kept
from tests.conformance.conftest import SOURCES
from tests.conformance.models.case import Integers
from tests.integration.cli import sdk
from tests.integration.qemu.models.pairs import PAIRS, QUICK, Pair
from tests.oracles.tosa import TosaModel
from tests.places import ROOT
from tests.records import printed
from tests.unit.run import wire

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]
INFERENCES = 2
LOWERING_LIMIT_S, RUN_LIMIT_S = 600, 120

Array = NDArray[Any]
# Literals: the ports of commands and of regions 0, 1 and 2, for the settings of ExecuTorch's corstone_utils.cmake
# and, with Shared_Sram, the defaults of Arm's ethos-u-core-driver.
ROUTES = {
    "Sram_Only": (0, (0, 0, 0)),
    "Dedicated_Sram": (1, (1, 1, 0)),
    "ethos-u55": (1, (1, 0, 0)),
    "ethos-u65": (1, (1, 1, 0)),
    "ethos-u85": (1, (1, 0, 0)),
}
EVENTS = {
    "ethos-u55": (130, 386, 135, 391),
    "ethos-u65": (130, 386, 135, 391),
    "ethos-u85": (130, 386, 135, 391, 17, 35, 48, 32),
}


@dataclass(frozen=True)
class Lowered:
    """A compiled pair."""

    pte: Path
    tosa: bytes
    fast_scratch_bytes: int


def lower(folder: Path, profile: str, pairs: Iterable[Pair]) -> None:
    """Compile the pairs of a profile into `folder`, as far as that is not done."""
    with filesystem.locked_folder(filesystem.make_directory(folder / profile)):
        names = [pair.name for pair in pairs if pair.profile == profile]
        if missing := [name for name in names if not (folder / f"{name}.json").is_file()]:
            argv = [sys.executable, "-m", "tests.integration.qemu.models.lower", str(folder), *missing]
            proc.run(argv, cwd=ROOT, timeout_s=LOWERING_LIMIT_S, log=folder / f"{profile}.log")


@pytest.fixture(scope="session")
def lowered(request: pytest.FixtureRequest) -> Iterator[Callable[[Pair], Lowered]]:
    """``lowered(pair)``: the compiled pair. Both profiles are compiled at once, in processes of their own."""
    is_whole = any(item.path == Path(__file__) and is_thorough(item) for item in request.session.items)
    wanted = PAIRS if is_whole else QUICK
    folder = kept.shared("qemu-models", [*SOURCES, *(Path(__file__).parent / "models").glob("*.py")])
    with ThreadPoolExecutor(2) as pool:
        jobs = {name: pool.submit(lower, folder, name, wanted) for name in ("u55", "u85")}

        def wait(pair: Pair) -> Lowered:
            jobs[pair.profile].result()
            facts = json.loads((folder / f"{pair.name}.json").read_text(encoding="utf-8"))
            return Lowered(folder / f"{pair.name}.pte", (folder / f"{pair.name}.tosa").read_bytes(), **facts)

        yield wait


def is_thorough(item: pytest.Item) -> bool:
    return item.get_closest_marker("thorough") is not None


# --- what is expected


def random_inputs(pair: Pair, program: pte.Pte, seed: int) -> list[Array]:
    """Inputs of one inference over the whole range of their types, or the model's own."""
    generator = np.random.default_rng(seed)
    inputs = []
    kinds = pair.case.inputs
    for kind, tensor in zip(kinds, program.plan("forward").input_tensors(), strict=True):
        limits = np.iinfo(tensor.dtype)
        low, high = (kind.low, kind.high) if isinstance(kind, Integers) else (limits.min, limits.max)
        inputs.append(generator.integers(low, high, tensor.sizes, endpoint=True).astype(tensor.dtype))
    return inputs


@dataclass(frozen=True)
class Delegate:
    """The one delegate of a program, and which of its arguments are which inputs and outputs of the program."""

    payload: memoryview
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def delegate_of(program: pte.Pte) -> Delegate:
    plan = program.plan("forward")
    (delegate,) = plan.delegates
    (call,) = (row for row in plan.chains[0].instructions if isinstance(row, DelegateCall))
    assert delegate.vela is not None
    count = len(delegate.vela.inputs)
    return Delegate(
        delegate.payload,
        tuple(plan.inputs.index(value) for value in call.args[:count]),
        tuple(plan.outputs.index(value) for value in call.args[count:]),
    )


def counted_alone(pair: Pair, program: npu.Program, inputs: list[Array], fast_bytes: int) -> Counters:
    """The machine's counters for one job with the routes of the pair's memory mode, without any board.

    Region 2 is exactly as large as Vela planned it.
    """
    mode = pair.target.memory_mode
    commands, regions = ROUTES[
        "Dedicated_Sram"
        if mode.startswith("Dedicated")
        else pair.target.npu
        if mode == "Shared_Sram"
        else mode
    ]
    blocks = program.blocks
    scratch = np.zeros(blocks.scratch_bytes, np.uint8)
    for slot, array in zip(blocks.inputs, inputs, strict=True):
        scratch[slot.offset : slot.offset + slot.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
    memory = FixedRegions(
        {
            vela_blocks.REGION_WEIGHTS: np.frombuffer(blocks.weights, np.uint8),
            vela_blocks.REGION_SCRATCH: scratch,
            vela_blocks.REGION_FAST_SCRATCH: np.zeros(fast_bytes, np.uint8),
        }
    )
    machine = Machine(program.config, memory, WeightCache(), Ports(regions.__getitem__, commands))
    machine.run(bytes(blocks.command_stream))
    return machine.counters


def expected_events(npu_name: str, counters: Counters) -> dict[int, int]:
    """Event → value, by this file's own table. Beats are never fewer than what moves the bytes once."""
    beats = {}
    for event, key in {130: (0, False), 135: (0, True), 386: (1, False), 391: (1, True)}.items():
        beats[event] = counters.beats.get(key, 0)
        assert bool(beats[event]) == bool(counters.bytes_moved.get(key, 0))
    whole = {17: counters.total_cycles, 35: counters.total_cycles, 48: counters.mac_cycles, 32: 0}
    return {event: (beats | whole)[event] for event in EVENTS[npu_name]}


# --- the run on the board


def simulate(
    pair: Pair, compiled: Lowered, inferences: list[list[Array]], folder: Path, **npu: Any
) -> evidence.Evidence:
    """The firmware's evidence of a run; `npu` are members of its target that differ from those of the pair."""
    program = pte.read(compiled.pte)
    built = program_firmware.build_firmware(
        compiled.pte,
        filesystem.make_directory(folder / "build"),
        program_firmware.BuildOptions(
            simulator="qemu", inferences=len(inferences), fast_scratch_bytes=compiled.fast_scratch_bytes
        ),
    )
    raw = tuple(tuple(array.tobytes() for array in row) for row in inferences)
    symbol = built.symbols["input_image"]
    request = SimulationRequest(
        elf=built.elf,
        images=((symbol.address, input_image.encode_image(raw, [EVENTS[pair.target.npu]])),),
        # System configuration and memory mode of the family's default, as the machine has them.
        target=replace(pair.target, system_config="", memory_mode="", **npu),
        timeout_s=RUN_LIMIT_S,
        idle_timeout_s=RUN_LIMIT_S,
        uart_log=folder / "uart.log",
    )
    result = simulators.create_simulator("qemu").run(request)
    expected = evidence.ExpectedRun(
        model_sha256=program.sha256,
        model_bytes=program.size,
        board=built.board,
        steps=wire.steps_of_bytes(raw),
        outputs=len(program.plan("forward").outputs),
    )
    return evidence.evidence_of_run(uart.parse_uart(result.uart), expected, result.exit_code)


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(pair, id=pair.name, marks=[] if pair in QUICK else [pytest.mark.thorough])
        for pair in PAIRS
    ],
)
def test_the_board_gives_what_the_machine_and_the_reference_give(
    pair: Pair, lowered: Callable[[Pair], Lowered], tosa: TosaModel, tmp_path: Path
) -> None:
    compiled = lowered(pair)
    program = pte.read(compiled.pte)
    assert program.target() == pair.target
    inferences = [random_inputs(pair, program, seed) for seed in range(INFERENCES)]
    found = simulate(pair, compiled, inferences, tmp_path)
    assert found.delegate_calls == INFERENCES
    delegate = delegate_of(program)
    alone = npu.load(delegate.payload)
    for number, inputs in enumerate(inferences):
        arguments = [inputs[index] for index in delegate.inputs]
        result = npu.run(alone, arguments)
        reference = tosa.run(compiled.tosa, arguments)
        for place, output, wanted in zip(delegate.outputs, result.outputs, reference, strict=True):
            got = found.outputs[number][place]
            np.testing.assert_array_equal(got.reshape(-1), output.reshape(-1), strict=True)
            np.testing.assert_array_equal(got.reshape(-1), wanted.reshape(-1))
        counters = counted_alone(pair, alone, arguments, compiled.fast_scratch_bytes)
        assert sum(counters.bytes_moved.values()) == sum(result.counters.bytes_moved.values())
        (sample,) = (row for row in found.pmu if row.inference == number)
        assert sample.overflow == 0
        assert sample.cycles == counters.total_cycles == result.counters.total_cycles > 0
        assert dict(sample.counters) == expected_events(pair.target.npu, counters)


@pytest.mark.parametrize("pairs", [QUICK, pytest.param(PAIRS, marks=pytest.mark.thorough)], ids=len)
def test_the_fast_scratch_memory_that_commands_reach_is_what_vela_planned(
    pairs: tuple[Pair, ...], lowered: Callable[[Pair], Lowered]
) -> None:
    """No payload says how large region 2 is; Vela's own figure comes from its reports."""
    for pair in pairs:
        compiled = lowered(pair)
        blocks = npu.load(delegate_of(pte.read(compiled.pte)).payload).blocks
        config = npu.NpuConfig.from_word(blocks.config_word)
        written = written_bytes(bytes(blocks.command_stream), config)
        assert (pair.name, written.get(2, 0)) == (pair.name, compiled.fast_scratch_bytes)
        assert blocks.scratch_bytes // 2 <= written[1] <= blocks.scratch_bytes, pair.name
    fast = {pair.target.npu for pair in pairs if lowered(pair).fast_scratch_bytes > 4096}
    assert fast == {"ethos-u65", "ethos-u85"}


@pytest.mark.parametrize(("pairs", "configurations"), [(QUICK, 6), (PAIRS, 11)], ids=["quick", "all"])
def test_the_pairs_cover_what_there_is(pairs: tuple[Pair, ...], configurations: int) -> None:
    """All of them every configuration; and every kind of mode of Ethos-U65 and Ethos-U85."""
    assert len({pair.name for pair in pairs}) == len(pairs)
    assert len({(pair.target.npu, pair.target.macs) for pair in pairs}) == configurations
    modes = {(pair.target.npu, pair.target.memory_mode.split("_")[0]) for pair in pairs}
    assert {mode for name, mode in modes if name == "ethos-u65"} == {"Sram", "Shared", "Dedicated"}
    assert {mode for name, mode in modes if name == "ethos-u85"} == {"Sram", "Shared", "Dedicated"}


@contextmanager
def record_of(path: Path, folder: Path, *options: str) -> Iterator[Mapping[str, Any]]:
    """run.json of `ethosu-sdk run`."""
    outcome = sdk("run", path, "-o", folder / "out", "--json", *options, cwd=folder)
    record = printed(outcome)
    yield record


def pair_named(name: str) -> Pair:
    return next(pair for pair in PAIRS if pair.name == name)


def test_the_record_of_an_ethos_u85_says_that_no_such_board_exists(
    lowered: Callable[[Pair], Lowered], tmp_path: Path
) -> None:
    """And what the model cannot know is unavailable, not zero."""
    with record_of(lowered(pair_named("inverted_residual-ethos-u85-256-Sram_Only")).pte, tmp_path) as record:
        assert record["board"] == "corstone-300"
        assert "Ethos-U85" in record["simulator"]["fidelity"]
        assert record["npu"]["config"] == 0x2000_0118
        counted = {row["event"]: row for row in record["npu"]["counters"]}
        assert counted.keys() == {
            "SRAM_RD_DATA_BEAT_RECEIVED",
            "SRAM_WR_DATA_BEAT_WRITTEN",
            "EXT_RD_DATA_BEAT_RECEIVED",
            "EXT_WR_DATA_BEAT_WRITTEN",
            "MAC_ACTIVE",
            "WD_ACTIVE",
        }
        assert counted["EXT_RD_DATA_BEAT_RECEIVED"]["value"] == 0  # Sram_Only: nothing goes there
        row = counted["SRAM_WR_DATA_BEAT_WRITTEN"]
        assert row["bytes"] == 16 * row["value"] > 0
        missing = {entry["path"] for entry in record["unavailable"]}
        assert {"/npu/counters/NPU_IDLE", "/cpu/cycles"} <= missing


def test_the_record_of_an_ethos_u65_with_fast_scratch_memory(
    lowered: Callable[[Pair], Lowered], tmp_path: Path
) -> None:
    compiled = lowered(pair_named("inverted_residual-ethos-u65-512"))
    with record_of(compiled.pte, tmp_path) as record:
        assert "Ethos-U85" not in record["simulator"]["fidelity"]
        assert record["target"]["memory_mode"] == "Dedicated_Sram_384KB"
        counted = {row["event"]: row for row in record["npu"]["counters"]}
        row = counted["AXI1_RD_DATA_BEAT_RECEIVED"]
        assert row["bytes"] == 16 * row["value"] > 0
    build = json.loads((tmp_path / "out" / "build.json").read_text(encoding="utf-8"))
    pools = {row["name"]: row["used_bytes"] for row in build["memory"]["pools"]}
    assert pools["fast_scratch"] == compiled.fast_scratch_bytes > 0


def test_a_program_for_another_npu_is_refused_by_the_driver(
    lowered: Callable[[Pair], Lowered], tmp_path: Path
) -> None:
    pair = pair_named("inverted_residual-ethos-u85-256-Sram_Only")
    compiled = lowered(pair)
    inputs = [random_inputs(pair, pte.read(compiled.pte), 0)]
    for changes in ({"macs": 512}, {"npu": "ethos-u65", "macs": 512}):
        with pytest.raises(uart.ProtocolError, match="config_mismatch"):
            simulate(pair, compiled, inputs, tmp_path, **changes)
