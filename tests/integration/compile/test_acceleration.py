"""Short cuts while a program is lowered: graphs, values and code are those that torch and ExecuTorch make without.

That whole compilations give the same bytes is tested in test_compile.
"""

import copy
import inspect
import operator
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.compile import acceleration

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]  # what executorch warns of


def plus_two(x: Any) -> Any:
    return x + 2


@pytest.fixture
def module() -> Iterator[Any]:
    """A graph module whose code is not yet written: x + 1, made from x + 2."""
    import torch

    with acceleration.code_on_demand():
        traced = torch.fx.symbolic_trace(plus_two)
        (node,) = traced.graph.find_nodes(op="call_function", target=operator.add)
        node.args = (node.args[0], 1)
        traced.recompile()
        assert "_code" not in vars(traced)
        yield traced


def test_code_is_written_when_the_module_is_called(module: Any) -> None:
    assert module(3) == 4
    assert module(3) == 4
    assert "x + 1" in vars(module)["_code"]


def test_code_signature_copies_and_pickles_are_up_to_date(module: Any) -> None:
    assert "x + 1" in copy.deepcopy(module).code
    assert list(inspect.signature(type(module).forward).parameters) == ["self", "x"]
    (node,) = module.graph.find_nodes(op="call_function", target=operator.add)
    node.args = (node.args[0], 5)
    assert module.recompile().src == module.code
    assert "x + 5" in str(module)
    node.args = (node.args[0], 6)
    module.recompile()
    assert pickle.loads(pickle.dumps(module))(1) == 7


def test_after_the_block_code_is_written_at_once() -> None:
    import torch

    with acceleration.code_on_demand():
        inside = torch.fx.symbolic_trace(plus_two)
    assert "x + 2" in vars(torch.fx.symbolic_trace(plus_two))["_code"]
    assert "_code" not in vars(inside)
    assert inside(1) == 3


def test_the_table_of_operators_is_the_same_from_either_reader() -> None:
    from importlib import resources

    from ruamel.yaml import YAML

    text = resources.files("executorch.exir.dialects.edge").joinpath("edge.yaml").read_text(encoding="utf-8")
    plain = YAML(typ="safe").load(text)
    with acceleration.quick_imports():
        quick = YAML(typ="safe").load(text)
    assert repr(quick) == repr(plain)
    assert len(quick) > 100


def test_the_environment_switches_all_of_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._export import utils as export_utils
    from torch.fx import GraphModule

    recompile, look_up = GraphModule.recompile, export_utils._materialize_cpp_cia_ops
    with acceleration.accelerated():
        assert GraphModule.recompile is not recompile
        assert export_utils._materialize_cpp_cia_ops is not look_up
    monkeypatch.setenv(acceleration.SWITCH, "0")
    with acceleration.accelerated():
        assert GraphModule.recompile is recompile
        assert export_utils._materialize_cpp_cia_ops is look_up


def test_operators_are_looked_up_when_their_list_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from torch._export import utils as export_utils

    calls: list[None] = []
    monkeypatch.setattr(export_utils, "_materialize_cpp_cia_ops", lambda: calls.append(None))
    library = torch.library.Library("sdk_looked_up", "DEF")
    with acceleration.operators_looked_up_once():
        export_utils._materialize_cpp_cia_ops()
        export_utils._materialize_cpp_cia_ops()
        assert len(calls) == 1
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
        export_utils._materialize_cpp_cia_ops()
        assert len(calls) == 2
    library._destroy()


def _lowered(first: int, second: int) -> list[tuple[str, tuple[Any, ...], tuple[int, ...]]]:
    """Name, arguments and shape of each node after two passes that change the shape of a view."""
    import torch
    from executorch.exir.pass_base import ExportPass

    class Reshape(ExportPass):
        def __init__(self, rows: int) -> None:
            super().__init__()
            self.rows = rows

        def call_operator(self, op: Any, args: Any, kwargs: Any, meta: Any) -> Any:
            if op is torch.ops.aten.view.default:
                args = (args[0], [self.rows, 24 // self.rows])
            return super().call_operator(op, args, kwargs, meta)

    class Views(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.relu((x + 1).view(6, 4) * 2)

    graph = torch.export.export(Views(), (torch.ones(4, 6),)).graph_module
    for rows in (first, first, second):
        graph = Reshape(rows)(graph).graph_module
    return [
        (n.name, tuple(map(str, n.args)), tuple(n.meta["val"].shape))
        for n in graph.graph.nodes
        if n.op != "output"
    ]


@pytest.mark.parametrize(("first", "second"), [(4, 4), (3, 8), (4, 2)])
def test_passes_make_the_same_graphs(first: int, second: int) -> None:
    plain = _lowered(first, second)
    with acceleration.short_cuts(), acceleration.values_remembered():
        assert _lowered(first, second) == plain
    assert plain[-1][2] == (second, 24 // second)


def test_a_value_is_known_for_the_same_call_alone() -> None:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode() as mode:
        x, y, result = torch.ones(2, 3), torch.ones(2, 3), torch.ones(2, 3)
    add, random = torch.ops.aten.add.Tensor, torch.ops.aten.rand_like.default
    computed = acceleration._Computed()
    call = computed.call(add, (x, 1), {"alpha": 2}, mode)
    assert call is not None
    computed.add(result, result, *call)

    def known(*args: Any, target: Any = add, **kwargs: Any) -> Any:
        again = computed.call(target, args, kwargs, mode)
        return None if again is None else computed.result(result, again[0])

    assert known(x, 1, alpha=2) is result
    for other in ((y, 1), (x, 1.0), (x, True), (x, 2), (x, y)):
        assert known(*other, alpha=2) is None
    assert known(x, 1) is None
    assert known(x, 1, alpha=3) is None
    assert known(x, 1, target=torch.ops.aten.sub.Tensor, alpha=2) is None
    assert computed.call(random, (x,), {}, mode) is None
    assert computed.call(torch.ops.aten.add_.Tensor, (x, 1), {}, mode) is None
    assert computed.call(add, (torch.ones(2), 1), {}, mode) is None


def _samples(kind: str, seed: int) -> Any:
    """Values whose histogram has tails, gaps, ties between its two ends, or a single bin."""
    rng = np.random.default_rng(seed)
    made = {
        "normal": rng.normal(size=5000),
        "tailed": rng.standard_t(1.5, size=5000),
        "one-sided": rng.exponential(size=3000),
        "symmetric": np.concatenate([values := rng.normal(size=2000), -values]),
        "two clusters": np.concatenate([rng.normal(-9, 0.01, 2000), rng.normal(9, 0.01, 2000)]),
        "few": rng.normal(size=7),
        "constant": np.full(50, 3.0),
    }
    return made[kind].astype(np.float32)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "kind", ["normal", "tailed", "one-sided", "symmetric", "two clusters", "few", "constant"]
)
def test_ranges_are_those_of_torchao(kind: str, seed: int) -> None:
    import torch
    from torchao.quantization.pt2e.observer import HistogramObserver

    observer = HistogramObserver(dtype=torch.int8, quant_min=-128, quant_max=127)
    for part in np.array_split(_samples(kind, seed), 3):
        observer(torch.from_numpy(part))
    plain = observer._non_linear_param_search()
    with acceleration.ranges_by_bisection():
        quick = observer._non_linear_param_search()
    assert [limit.item() for limit in quick] == [limit.item() for limit in plain]
    assert [limit.dtype for limit in quick] == [limit.dtype for limit in plain]


def test_counts_that_are_no_numbers_are_left_to_torchao() -> None:
    import torch
    from torchao.quantization.pt2e.observer import HistogramObserver

    observer = HistogramObserver(dtype=torch.int8)
    observer(torch.arange(10.0))
    observer.histogram[3] = float("nan")
    plain = observer._non_linear_param_search()
    with acceleration.ranges_by_bisection():
        assert observer._non_linear_param_search() == plain
