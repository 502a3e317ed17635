"""The chain of comparisons: writes and state keep their meaning, and a fault fails in the link where it was planted.

The compiler runs in this process, so that torch is imported once; campaigns/meaning goes through the command line.
"""

import operator
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ethosu_sdk.base.errors import InputError, VerdictError
from ethosu_sdk.base.targets import Target
from ethosu_sdk.compile import functionalization, lowering, pipeline, quantizing, worker
from ethosu_sdk.compile.compile_facts import CompileOutput, CompileRequest
from ethosu_sdk.compile.rewrite import before_quantisation

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

TARGET = Target("ethos-u55", 128, "Ethos_U55_High_End_Embedded", "Shared_Sram")
PREPARED, EXPORTED, QUANTISED = "the graph that is prepared", "the exported graph", "the quantised model"

FILE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)
        {init}

    def forward(self, x):
        y = self.first(x)
{forward}

torch.manual_seed(3)
model = Net().eval()
samples = torch.randn(32, 1, 8)
example_inputs = (samples[0],)
calibration = [(sample,) for sample in samples]
"""
WRITES = {
    "slice": "y[:, :2] = y[:, :2].sigmoid() * 2 - 0.5\nreturn y",
    "index": "y[:, 2] = 5.0\nreturn y",
    "view": "y.view(2, 4)[0].mul_(3)\nreturn y",
    "chunk": "a, b = y.chunk(2, 1)\na.neg_()\nreturn y",
    "transposed": "y.t()[1].fill_(2.0)\nreturn y",
    "unsqueezed": "y.unsqueeze(0).tanh_()\nreturn y",
    "input": "x[:, 0] = 3.0\nreturn y + x",
}
STATE = {
    "slice": ("self.register_buffer('s', torch.zeros(1, 8))", "self.s[:, 4:] = y[:, 4:]\nreturn y + self.s"),
    "assigned": (
        "self.register_buffer('s', torch.zeros(1, 8))",
        "self.s = self.s * 0.5 + y\nreturn self.s * 2",
    ),
    "attribute": ("self.s = torch.zeros(1, 8)", "self.s = self.s * 0.5 + y\nreturn self.s * 2"),
    "parameter": (
        "self.s = nn.Parameter(torch.zeros(1, 8))",
        "self.s.data.copy_(self.s * 0.5 + y)\nreturn self.s * 2",
    ),
    "ring": (
        "self.register_buffer('s', torch.zeros(1, 4, 8))\n        "
        "self.register_buffer('p', torch.zeros(1, dtype=torch.int64))",
        "self.s[:, self.p] = y.unsqueeze(1)\nself.p.add_(1).remainder_(4)\nreturn self.s.mean(1)",
    ),
    "counter": (
        "self.register_buffer('n', torch.zeros(1, dtype=torch.int32))",
        "self.n += 1\nreturn y, self.n * 2",
    ),
}
PYTHON_STATE = {
    "number": ("self.n = 0", "self.n += 1\nreturn y * self.n", "self.n += 1"),
    "list": ("self.l = [torch.zeros(1, 8)]", "self.l.append(y)\nreturn y + self.l[-2]", "self.l.append(y)"),
}


def compiled(folder: Path, forward: str, init: str = "pass") -> CompileOutput:
    """The compilation of a model with these lines."""
    lines = "\n".join(" " * 8 + line for line in forward.splitlines())
    file = folder / "net.py"
    file.write_text(FILE.format(init=init, forward=lines))
    (folder / "check").mkdir(exist_ok=True)
    request = CompileRequest(str(file), TARGET, folder, check_folder=folder / "check")
    return worker.run_stages(request, lambda stage: None)


def line_of(folder: Path, text: str) -> str:
    """Where a line of the model stands, as errors name it."""
    lines = (folder / "net.py").read_text().splitlines()
    return f"net.py, line {next(n for n, line in enumerate(lines, 1) if text in line)}"


def quantised_db(output: CompileOutput) -> float:
    """The lowest ratio of the quantised model to the float one."""
    assert output.chain is not None
    link = next(row for row in output.chain.links if row.name == "quantised")
    return min(row.sqnr_db for row in link.outputs if row.sqnr_db is not None)


@pytest.mark.parametrize("name", WRITES)
def test_what_is_written_in_place_is_kept(name: str, tmp_path: Path) -> None:
    output = compiled(tmp_path, WRITES[name])
    assert output.chain is not None
    assert len(output.chain.samples) == 3
    assert quantised_db(output) > 25.0


@pytest.mark.parametrize("name", [name for name in WRITES if name != "input"])
def test_without_functionalisation_the_second_link_fails(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functionalization, "without_writes", lambda program: program)
    with pytest.raises(VerdictError) as failed:
        compiled(tmp_path, WRITES[name])
    assert PREPARED in failed.value.message
    assert line_of(tmp_path, WRITES[name].splitlines()[-2]) in failed.value.message
    assert not (tmp_path / "net.pte").exists()


@pytest.mark.parametrize("name", STATE)
def test_state_is_kept_from_sample_to_sample(name: str, tmp_path: Path) -> None:
    init, forward = STATE[name]
    output = compiled(tmp_path, forward, init)
    assert output.check is not None
    assert output.check.stateful
    assert quantised_db(output) > 20.0


def test_a_buffer_that_lowering_loses_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = lowering.lower_program

    def planted(*args: Any, **named: Any) -> Any:
        edge = original(*args, **named)
        program = edge.exported_program()
        rows, output = program.graph_signature.output_specs, program.graph.output_node()
        kept = [(row, item) for row, item in zip(rows, output.args[0], strict=True) if row.target != "s"]
        rows[:], output.args = [row for row, _ in kept], (tuple(item for _, item in kept),)
        program.graph_module.recompile()
        return edge

    monkeypatch.setattr(lowering, "lower_program", planted)
    init, forward = STATE["slice"]
    with pytest.raises(VerdictError, match="loses the state 's'"):
        compiled(tmp_path, forward, init)


@pytest.mark.parametrize("name", PYTHON_STATE)
def test_state_in_python_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    init, forward, line = PYTHON_STATE[name]
    with pytest.raises(InputError) as refused:
        compiled(tmp_path, forward, init)
    assert f"{line_of(tmp_path, line)}: `{line}`" in refused.value.message
    assert "register_buffer" in refused.value.hint


def test_what_is_written_anew_each_time_is_no_state(tmp_path: Path) -> None:
    compiled(tmp_path, "self.last = y * 2\nself.names = [str(y.shape)]\nreturn self.last + y")


# The ReLU shares its quantisation with what goes below zero: nothing else would cut its input off there.
PLAIN = """y = torch.relu(y)
z = torch.tanh(x)
w = torch.cat([y, z], 1)
return self.second(w[:, :8] - w[:, 8:])"""


def without_relu(module: Any) -> Any:
    """The graph of `module` with its ReLU left out."""
    for node in [node for node in module.graph.nodes if "relu" in str(node.target)]:
        node.replace_all_uses_with(node.args[0])
        module.graph.erase_node(node)
    return module


def swapped(module: Any) -> Any:
    """The graph of `module` with the operands of its difference exchanged."""
    for node in module.graph.nodes:
        if "aten.sub.Tensor" in str(node.target):
            node.args = (node.args[1], node.args[0])
    return module


def scaled(module: Any) -> Any:
    """The graph of `module` with one value stored in steps of three times the size."""
    conversions = [node for node in module.graph.nodes if "quantize_per_tensor" in str(node.target)]
    source = next(node.args[0] for node in conversions if "tanh" in str(node.args[0]))
    for node in source.users:
        for changed in (node, *node.users):
            changed.args = (changed.args[0], changed.args[1] * 3, *changed.args[2:])
    return module


PLANTED: dict[str, Callable[[Any], Any]] = {"relu": without_relu, "sub": swapped}


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_of_the_exported_graph_fails_in_the_first_link(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def planted(program: Any) -> Any:
        PLANTED[name](program.graph_module)
        program.graph_module.recompile()
        return program

    monkeypatch.setattr(before_quantisation, "split_addmm", planted)
    with pytest.raises(VerdictError, match=EXPORTED):
        compiled(tmp_path, PLAIN)


@pytest.mark.parametrize(("link", "step"), [(PREPARED, "prepare_module"), (QUANTISED, "convert_module")])
@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_fails_in_the_link_where_it_was_planted(
    name: str, link: str, step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = getattr(quantizing, step)

    def planted(*args: Any, **named: Any) -> Any:
        module = PLANTED[name](original(*args, **named))
        module.recompile()
        return module

    monkeypatch.setattr(quantizing, step, planted)
    with pytest.raises(VerdictError, match=link) as failed:
        compiled(tmp_path, PLAIN)
    assert "net.py, line" in failed.value.message


def test_a_wrong_scale_fails_in_the_third_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = quantizing.convert_module
    monkeypatch.setattr(pipeline.quantizing, "convert_module", lambda prepared: scaled(original(prepared)))
    with pytest.raises(VerdictError, match=QUANTISED) as failed:
        compiled(tmp_path, PLAIN)
    assert "aten::tanh" in failed.value.message
    assert line_of(tmp_path, "torch.tanh") in failed.value.message


def test_ordinary_networks_are_exported_as_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What writes only to fresh results needs no functionalisation, which takes time."""
    seen: list[bool] = []
    original = functionalization.without_writes
    monkeypatch.setattr(
        functionalization,
        "without_writes",
        lambda program: seen.append(operator.is_(original(program), program)) or program,
    )
    compiled(tmp_path, "y = nn.functional.relu(y, inplace=True)\ny += x * 2\nreturn self.second(y)")
    assert seen == [True]
