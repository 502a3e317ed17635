"""Published cycles of the CPU: what is counted on Arm's runners, at the SDK's prices."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns.fidelity.comparison import DATA, Figure, rows
from campaigns.fidelity.cpu import comparison, page
from campaigns.fidelity.cpu.hardware import Latency
from campaigns.fidelity.cpu.kits import KITS, inference
from campaigns.fidelity.cpu.models import PROGRAMS, layers
from campaigns.fidelity.tflite import Graph
from ethosu_sdk.base import tools
from ethosu_sdk.simulate.cpu_cycles import BAND_ERROR, MovedBytes, cycles_of
from tests import processes
from tests.own_qemu import VARIABLE, built
from tests.places import ROOT

CPU_CYCLES = DATA / "cpu_cycles.csv"


@pytest.fixture
def own_qemu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(built()))
    tools.probe.cache_clear()


def judged(table: Path, found: str, tmp_path: Path) -> list[Figure]:
    """The figures of the rows of `table` that contain `found`."""
    lines = [line for line in table.read_text().splitlines() if line.startswith("model,") or found in line]
    part = tmp_path / "part.csv"
    part.write_text("\n".join(lines) + "\n")
    return list(comparison.figures(part))


@pytest.mark.qemu
@pytest.mark.toolchain
@pytest.mark.parametrize(
    "name",
    [
        "first 3x3 32",
        "96->24",
        *(pytest.param(name, marks=pytest.mark.thorough) for name in ("conv2d stem", "32->16")),
    ],
)
@pytest.mark.usefixtures("own_qemu")
def test_published_cycles_are_met(name: str, tmp_path: Path) -> None:
    plain, waiting = judged(CPU_CYCLES, name, tmp_path)
    assert (plain.scored, waiting.scored) == (False, True)
    assert plain.modelled is not None
    assert waiting.modelled is not None
    assert waiting.error is not None
    assert abs(waiting.error) < BAND_ERROR
    assert plain.modelled < waiting.modelled


@pytest.mark.qemu
@pytest.mark.toolchain
@pytest.mark.usefixtures("own_qemu")
def test_on_a_board_of_assumed_memories_rows_are_judged_that_hardly_wait(tmp_path: Path) -> None:
    """DS-CNN does. The autoencoder uses each weight once: it takes far longer than its instructions."""
    rows = judged(CPU_CYCLES, "mlperf_tiny", tmp_path)
    assert [row.scored for row in rows] == [False, False, False, True]
    autoencoder, _, plain, ds_cnn = (row.error or 0.0 for row in rows)
    assert abs(ds_cnn) < BAND_ERROR
    assert plain < ds_cnn < plain + 0.02
    assert autoencoder < -0.5


@pytest.mark.qemu
@pytest.mark.toolchain
@pytest.mark.torch
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning"
)  # of ExecuTorch's and torch's imports
@pytest.mark.thorough
def test_quantizing_waits_for_memory(tmp_path: Path) -> None:
    """On Debian's QEMU. Without waits the figure is far from the published one, so they are what it judges."""
    plain, waiting = judged(CPU_CYCLES, "quantize_per_tensor", tmp_path)
    assert waiting.error is not None
    assert plain.error is not None
    assert abs(waiting.error) < BAND_ERROR
    assert plain.error < -0.5


@pytest.mark.qemu
@pytest.mark.toolchain
@pytest.mark.usefixtures("own_qemu")
def test_counts_are_of_one_inference_alone_and_repeat() -> None:
    """Of a 1x1 layer from 64 to 64 channels, at 16 multiply-accumulates an instruction at best, without start-up."""
    graph = Graph(spread=45.0)
    small, large = graph.input(1, 8, 8, 64), Graph(spread=45.0)
    model = graph.build(graph.conv(small, 64))
    twice = large.build(large.conv(large.input(1, 16, 8, 64), 64))
    counted = [inference(KITS["tflm"], model) for _ in range(2)]
    assert counted[0] == counted[1]
    one, two = (
        sum(block.instructions * block.executions for block in blocks)
        for blocks in (counted[0], inference(KITS["tflm"], twice))
    )
    assert 8 * 8 * 64 * 64 / 16 < one < 200_000  # the start-up executes more than a million
    assert 1.7 < two / one < 2.0  # twice the pixels; what does not depend on them is small
    slow, fast = (
        sum(b.executions * c for b, c in zip(counted[0], cycles_of(counted[0], core), strict=True))
        for core in ("cortex-m55", "cortex-m85")
    )
    assert fast < slow


def test_layers_are_read_from_the_model() -> None:
    graph = Graph()
    last = graph.conv(graph.input(1, 8, 8, 4), 16, (3, 3))
    model = graph.build(graph.fully_connected(graph.flatten(last), 10))
    conv, flat, dense = layers(model)
    assert conv == MovedBytes(constant_bytes=3 * 3 * 4 * 16 + 4 * 16, arena_bytes=8 * 8 * (4 + 16))
    assert flat.arena_bytes == 2 * 8 * 8 * 16
    assert dense == MovedBytes(constant_bytes=1024 * 10 + 4 * 10, arena_bytes=1024 + 10)


def test_every_published_row_can_be_rebuilt() -> None:
    assert {(row["model"], row["part"]) for row in rows(CPU_CYCLES)} <= set(PROGRAMS)


def test_systems_are_those_of_the_rows() -> None:
    known = comparison.board_of("cortex-m55", "executorch-cmsis-nn")
    assumed = comparison.board_of("cortex-m85", "tflm-cmsis-nn")
    assert known is not None
    assert assumed is not None
    assert (known.assumed, assumed.assumed) == (False, True)
    assert comparison.board_of("cortex-m85", "executorch-cmsis-nn") is None


def test_unknown_programs_are_named(tmp_path: Path) -> None:
    table = tmp_path / "runs.csv"
    table.write_text("model,part,core,runtime,cycles\nno_such_network,whole,cortex-m85,tflm-cmsis-nn,5\n")
    done = processes.run([ROOT / "scripts" / "fidelity", "--data", table], check=True)
    assert "no_such_network whole: cannot be rebuilt here: its layers are not known" in done.stdout


def test_the_page_shows_why_a_latency_is_not_judged() -> None:
    row = Latency("net", "u55", "board", 10.0, "execute", "somebody", why="not judged: no figures")
    assert "| 10 | execute |  | not judged: no figures | somebody |" in page.hardware([row])
    assert "| 9.00 | -10.0 % |" in page.hardware([Latency("net", "u55", "board", 10.0, "x", "y", 9.0)])
