"""Layers whose result is transposed into a part of a larger tensor, for Ethos-U85.

With the activation behind the TRANSPOSE, Vela encodes the weights for another number of channels, and the debug
database says so. With the activation before it, as `aot/repairs/miscounted_channels.py` has it, all is well.
"""

import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.aot.lowering import to_pte
from ethosu_sdk.aot.vela import debug_database
from ethosu_sdk.aot.vela.capture import spaceless_directory
from ethosu_sdk.npu.errors import WeightOrderError
from tests.conformance.comparison import differing_elements
from tests.conformance.targets import executorch_target
from tests.conformance.tosa_graph import Graph
from tests.conformance.tosa_graphs import built, clamped, layer, looked_up
from tests.oracles.tosa import TosaModel

pytestmark = pytest.mark.torch

HEIGHT, IFM_DEPTH = 8, 16


@dataclass(frozen=True)
class Part:
    """A layer, the operator that takes its result as a part, and an activation."""

    layer: str
    channels: int
    width: int
    activation: str = "CLAMP"
    whole: str = "CONCAT"

    def make(self, activation_first: bool) -> bytes:
        """The TOSA graph, with the activation before or behind the TRANSPOSE."""

        def build(graph: Graph) -> Any:
            value = self._layer(graph)
            steps = [self._activation, _transposed]
            for step in steps if activation_first else reversed(steps):
                value = step(graph, value)
            return self._whole(graph, value)

        return built(build)()

    def _layer(self, graph: Graph) -> Any:
        depth = self.channels if self.layer.startswith("DEPTHWISE") else IFM_DEPTH
        ifm = graph.input((1, HEIGHT, self.width, depth), "INT8")
        return layer(graph, self.layer, ifm, self.channels, 3)

    def _activation(self, graph: Graph, value: Any) -> Any:
        return looked_up(graph, value) if self.activation == "TABLE" else clamped(graph, value, -20, 90)

    def _whole(self, graph: Graph, value: Any) -> Any:
        shape = list(value.shape)
        shape[1] *= 2
        if self.whole == "PAD":
            sides = graph.constant([8], "SHAPE", [0, 0, 0, self.channels, 0, 0, 0, 0])
            return graph.add("PAD", [value, sides, graph.constant([1], "INT8", [0])], shape, "INT8")
        return graph.add("CONCAT", [value, graph.input(value.shape, "INT8")], shape, "INT8", axis=1)


def _transposed(graph: Graph, value: Any) -> Any:
    batch, height, width, depth = value.shape
    return graph.add("TRANSPOSE", [value], (batch, depth, height, width), "INT8", perms=[0, 3, 1, 2])


def compiled(tosa: bytes) -> tuple[bytes, bytes]:
    """Vela's payload and its debug database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from executorch.backends.arm.arm_vela import vela_compile

        spec = to_pte.compile_spec(executorch_target("ethos-u85-256"))
    with tempfile.TemporaryDirectory(dir=spaceless_directory()) as folder:
        flags = [*spec.compiler_flags, "--verbose-performance", "--enable-debug-db"]
        payload = bytes(vela_compile(tosa, flags, intermediate_path=folder).processed_bytes)
        (debug_xml,) = Path(folder, "output").glob("*_debug.xml")
        return payload, debug_xml.read_bytes()


WRONG = (
    Part("CONV2D", 4, 16),
    Part("CONV2D", 16, 8, "TABLE"),
    Part("CONV2D", 16, 12),  # as many micro-blocks of weights: nothing shows but the values
    Part("DEPTHWISE_CONV2D", 16, 12, whole="PAD"),
)


@pytest.mark.parametrize("part", WRONG, ids=str)
def test_the_activation_behind_the_transpose_costs_the_weights(part: Part, tosa: TosaModel) -> None:
    graph = part.make(activation_first=False)
    payload, debug_xml = compiled(graph)
    assert set(debug_database.misjudged_channels(debug_xml).values()) == {(part.channels, part.width)}
    try:
        differing, _ = differing_elements(payload, graph, tosa, (0, 0))
    except WeightOrderError:
        return
    assert differing


@pytest.mark.parametrize("part", WRONG, ids=str)
def test_the_activation_before_the_transpose_does_not(part: Part, tosa: TosaModel) -> None:
    graph = part.make(activation_first=True)
    payload, debug_xml = compiled(graph)
    assert not debug_database.misjudged_channels(debug_xml)
    differing, total = differing_elements(payload, graph, tosa, (0, 0))
    assert differing == 0, f"{differing} of {total} elements differ"


def test_as_many_channels_as_columns_are_right(tosa: TosaModel) -> None:
    graph = Part("CONV2D", 16, 16).make(activation_first=False)
    payload, debug_xml = compiled(graph)
    assert not debug_database.misjudged_channels(debug_xml)
    assert differing_elements(payload, graph, tosa, (0, 0))[0] == 0
