"""A payload with fewer outputs than its TOSA graph is refused, with the places of the tensors in question."""

from pathlib import Path

import pytest

from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.aot.vela import delegate_outputs
from ethosu_sdk.aot.vela.capture import VelaCapture
from ethosu_sdk.errors import InputError
from tests.conformance.tosa_graph import Graph
from tests.unit.vela_payloads import Payload, slots

ROOT = Path("/models")
BIG, SMALL = (1, 1, 1, 2, 2, 3, 1, 0, 1), (1, 1, 1, 1, 2, 3, 1, 64, 1)


def capture(*shapes: list[int]) -> VelaCapture:
    """Of a graph that returns tensors of these shapes, the first made in line 7 of the model."""
    graph = Graph()
    results = [graph.add("IDENTITY", [graph.input(shape, "INT8")], shape, "INT8") for shape in shapes]
    nodes = {results[0].name: {"stack_trace": f'File "{ROOT}/net.py", line 7, in forward'}}
    return VelaCapture("", 0, graph.finish(*results), b"", b"", b"", 0, 0, nodes)


def check(rows: tuple[tuple[int, ...], ...], *shapes: list[int]) -> None:
    payload = Payload(outputs=slots(*rows)).encode()
    delegate_outputs.check(3, payload, capture(*shapes), SourceFinder(ROOT))


def test_as_many_outputs_of_the_same_sizes_pass() -> None:
    check((BIG, SMALL), [1, 2, 2, 3], [2, 3])


def test_a_lost_output_is_named() -> None:
    with pytest.raises(InputError, match="delegate 3 with 1 of its 2 outputs") as caught:
        check((SMALL,), [1, 2, 2, 3], [2, 3])
    assert caught.value.message.endswith("It is [1, 2, 2, 3] made at net.py, line 7, in forward")
    assert caught.value.hint


def test_outputs_of_one_size_are_all_named() -> None:
    with pytest.raises(InputError, match="It is one of ") as caught:
        check((SMALL,), [2, 3], [6])
    assert "[2, 3] made at net.py, line 7, in forward; [6] made at an unknown place" in caught.value.message


def test_sizes_in_another_order_are_no_match() -> None:
    with pytest.raises(InputError, match="delegate 3 with 2 of its 2 outputs"):
        check((SMALL, BIG), [1, 2, 2, 3], [2, 3])
