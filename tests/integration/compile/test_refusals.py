"""Models that cannot come through are refused by name, with the user's own line and what to do instead.

The pipeline runs in this process, so that torch is imported once; a few go through the command, as a user's would.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from ethosu_sdk.base.errors import InputError, SdkError
from ethosu_sdk.base.targets import parse_target
from ethosu_sdk.compile import model_checks
from ethosu_sdk.compile.compile_facts import CompileRequest
from ethosu_sdk.compile.program_options import ProgramOptions
from tests.integration.cli import sdk
from tests.integration.compile.refusal import refusal

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

U55 = parse_target("ethos-u55-128")
HEAD = """\
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(8, 8)
    def forward(self, x):
        y = self.l(x)
        return self.end(y)
x = torch.linspace(-1, 1, 8).view(1, 8)
example_inputs = (x,)
class Bad(Net):
    def end(self, y):
"""
LINE = HEAD.count("\n") + 1  # where the body of `end` stands
WEIGHTS = """\
        return y
bad = Bad()
with torch.no_grad():
    bad.l.{}
"""
RECURRENT = """\
        return y
class Rnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.{}
    def forward(self, x):
        return self.rnn(x)[0]
example_inputs = (torch.ones({}),)
"""
AUTOCAST = """\
        with torch.autocast('cpu', dtype=torch.bfloat16):
            z = self.l(y)
        return z.float()
"""
CELLS = """\
        return y
class Rnn(nn.Module):
    def __init__(self): super().__init__(); self.cell = nn.LSTMCell(8, 8)
    def forward(self, x):
        h = c = torch.zeros(1, 8)
        for _ in range(19):
            h, c = self.cell(x, (h, c))
        return h
"""

COMPLEX = "a Conv1d with cosine and sine kernels"
HALF = "`model.float()`"
BRANCH = "torch.cond(condition, f, g, (x,))"
AT = f"at net.py, line {LINE}"
NOISE = "generate the noise outside and pass it to the model as another input"
EVAL = "pass training=self.training to functions of torch.nn.functional"
FINITE = "load weights that are all finite"
FEWER = "process fewer steps in one inference and pass the state as an input and an output"

Refuse = Callable[..., SdkError]


@pytest.fixture
def refuse(tmp_path: Path) -> Refuse:
    """``refuse(body, entry)``: the error that ends the compilation of HEAD with `body` in the place of `end`'s."""

    def run(body: str, entry: str = "Bad", quantize: str = "int8") -> SdkError:
        path = tmp_path / "net.py"
        path.write_text(HEAD + body)
        options = ProgramOptions(quantize=quantize)
        return refusal(CompileRequest(f"{path}:{entry}", U55, tmp_path / "out", options=options))

    return run


@pytest.mark.parametrize(
    ("statement", "words", "remedy"),
    [
        (
            "return torch.stft(y, 4, 2, window=torch.ones(4), return_complex=True).abs()",
            "complex64 values in aten.",
            COMPLEX,
        ),
        ("return torch.fft.rfft(y).abs()", "complex64 values in aten.", COMPLEX),
        ("return torch.view_as_complex(y.view(4, 2)).abs()", "complex64 values in aten.", COMPLEX),
        ("return (y.bfloat16() * 2).float()", "bfloat16 values in aten.", HALF),
        ("return (y.half() * 2).float()", "float16 values in aten.", HALF),
        (
            "return y if y.sum() > 0 else y * 2",
            f"depend on the values of its data, {AT}: `return y if",
            BRANCH,
        ),
        ("return sum(y * i for i in range(int(y.abs().sum())))", f"of its data, {AT}: `return sum(", BRANCH),
        (
            "return y * y.sum().item()",
            f"control flow or shapes depend on the values of its data, {AT}",
            BRANCH,
        ),
        (
            "return y * y.tolist()[0][0]",
            f"control flow or shapes depend on the values of its data, {AT}",
            BRANCH,
        ),
        (
            "return y[y > 0]",
            f"dynamic shapes: that of aten.index.Tensor is [u0], {AT}",
            "whose result's shape depends on data",
        ),
        (
            "return torch.log(-y.abs())",
            f"gives NaN on the example inputs, first {AT}",
            "clamp(min=1e-6) before log",
        ),
        ("return y.view(5)", f"is invalid for input of size 8, {AT}: `return y.view(5)`", ""),
    ],
)
def test_what_a_model_computes(refuse: Refuse, statement: str, words: str, remedy: str) -> None:
    error = refuse(f"        {statement}\n")
    assert error.exit_code == 3
    assert words in error.message
    assert remedy in error.hint


@pytest.mark.parametrize(
    ("statement", "operator"),
    [
        ("return y + torch.rand(8)", "rand"),
        ("return y + torch.randn(1, 8) * 0.1", "randn"),
        ("return y * torch.randint(0, 2, (8,))", "randint"),
        ("return y[:, torch.randperm(8)]", "randperm"),
        ("return y + torch.rand_like(y)", "rand_like"),
        ("return y + torch.randn_like(y)", "randn_like"),
        ("return y * torch.bernoulli(y.sigmoid())", "bernoulli"),
        ("return torch.multinomial(y.softmax(1), 2)", "multinomial"),
        ("return y + torch.zeros(8).normal_()", "normal_"),
        ("return y + torch.empty(8).uniform_()", "uniform_"),
        ("return torch.poisson(y.abs())", "poisson"),
        ("return torch.nn.functional.gumbel_softmax(y)", "exponential_"),
    ],
)
def test_random_numbers(refuse: Refuse, statement: str, operator: str) -> None:
    error = refuse(f"        {statement}\n")
    assert (error.exit_code, error.message) == (
        3,
        f"the model draws random numbers: aten::{operator} {AT}, in Bad.end",
    )
    assert NOISE in error.hint


@pytest.mark.parametrize("quantize", ["int8", "none"])
def test_random_numbers_in_a_branch(refuse: Refuse, quantize: str) -> None:
    body = (
        "        return torch.cond(y.sum() > 0, self.noisy, self.calm, (y,))\n"
        "    def noisy(self, y):\n"
        "        return y + torch.randn(8)\n"
        "    def calm(self, y):\n"
        "        return y * 2\n"
    )
    error = refuse(body, quantize=quantize)
    assert error.exit_code == 3
    assert (
        error.message
        == f"the model draws random numbers: aten::randn at net.py, line {LINE + 2}, in Bad.noisy"
    )


@pytest.mark.parametrize(
    ("call", "operator"),
    [
        ("dropout(y, 0.5, training=True)", "dropout"),
        ("rrelu(y, training=True)", "rrelu"),
        ("scaled_dot_product_attention(y, y, y, dropout_p=0.5)", "scaled_dot_product_attention"),
    ],
)
@pytest.mark.parametrize("branch", [False, True])
def test_functions_that_train_for_ever(refuse: Refuse, call: str, operator: str, branch: bool) -> None:
    statement = f"torch.nn.functional.{call}"
    if branch:
        statement = f"torch.cond(y.sum() > 0, lambda y: {statement}, lambda y: y * 2, (y,))"
    error = refuse(f"        return {statement}\n")
    assert error.exit_code == 3
    assert error.message == (
        f"the model is in training mode: aten::{operator} at net.py, line {LINE}, in Bad.end draws random "
        "numbers or changes with each run"
    )
    assert EVAL in error.hint


@pytest.mark.parametrize("quantize", ["int8", "none"])
def test_autocast(refuse: Refuse, quantize: str) -> None:
    error = refuse(AUTOCAST, quantize=quantize)
    assert error.exit_code == 3
    assert error.message.startswith("the model computes bfloat16 values in ")
    assert error.message.endswith(f" at net.py, line {LINE + 1}, in Bad.end, module 'l'")
    assert "no torch.autocast" in error.hint


@pytest.mark.parametrize(
    ("statement", "words", "remedy"),
    [
        ("bfloat16()", "parameter 'l.weight' of {} is bfloat16, and 1 more are", HALF),
        ("half()", "parameter 'l.weight' of {} is float16, and 1 more are", HALF),
        ("weight[1, 2] = float('nan')", "parameter 'l.weight' of {} holds NaN, 1 of its 64 values", FINITE),
        ("bias[:3] = float('-inf')", "parameter 'l.bias' of {} holds infinity, 3 of its 8 values", FINITE),
        ("register_buffer('b', x * float('nan'))", "buffer 'l.b' of {} holds NaN, 8 of its 8 values", FINITE),
        (
            "eval(); bad = torch.jit.trace(bad.l, x)",
            "{} is a TorchScript module, which cannot be exported",
            "scripted",
        ),
        ("register_buffer('b', x * 1j)", "buffer 'l.b' of {} is complex64", COMPLEX),
    ],
)
def test_what_a_model_holds(refuse: Refuse, tmp_path: Path, statement: str, words: str, remedy: str) -> None:
    error = refuse(WEIGHTS.format(statement), "bad")
    assert error.exit_code == 3
    assert error.message == words.format(f"{tmp_path / 'net.py'}:bad")
    assert remedy in error.hint


@pytest.mark.parametrize(
    ("statement", "words", "remedy"),
    [
        ("example_inputs = x.half()", "example input 0 is float16", HALF),
        ("example_inputs = x.bfloat16()", "example input 0 is bfloat16", HALF),
        ("example_inputs = x * 1j", "example input 0 is complex64", COMPLEX),
        (
            "example_inputs = x / 0",
            "example input 0 holds infinity: 8 of its 8 values are not finite",
            "real data",
        ),
        (
            "example_inputs = x * float('nan')",
            "example input 0 holds NaN: 8 of its 8 values are not finite",
            "real data",
        ),
        (
            "calibration = [x, x * float('nan')]",
            "calibration sample 1: input 0 holds NaN: 8 of its 8 values are not finite",
            "real data",
        ),
    ],
)
def test_what_a_model_is_given(refuse: Refuse, statement: str, words: str, remedy: str) -> None:
    error = refuse(f"        return y\n{statement}\n")
    assert (error.exit_code, error.message) == (3, words)
    assert remedy in error.hint


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (RECURRENT.format("GRU(4, 4, batch_first=True)", "1, 16, 4"), "16 steps become about 320 operators"),
        (
            RECURRENT.format("GRU(4, 4, 2, bidirectional=True)", "4, 1, 4"),
            "16 steps become about 320 operators",
        ),
        (RECURRENT.format("LSTM(4, 4)", "18, 1, 4"), "18 steps become about 324 operators"),
        (RECURRENT.format("RNN(4, 4)", "51, 1, 4"), "51 steps become about 306 operators"),
        (CELLS, "19 steps become about 304 operators"),
    ],
)
def test_a_sequence_that_is_too_long(
    refuse: Refuse, monkeypatch: pytest.MonkeyPatch, body: str, words: str
) -> None:
    monkeypatch.setattr(model_checks, "WORTH_A_WARNING", 100)
    monkeypatch.setenv(model_checks.LIMIT_VARIABLE, "300")
    error = refuse(body, "Rnn")
    assert error.exit_code == 3
    assert error.message.startswith("the model's recurrent layers (at net.py, line 20, in Rnn.forward")
    assert error.message.endswith(f"unroll: {words}, but the limit is 300")
    assert FEWER in error.hint
    assert model_checks.LIMIT_VARIABLE in error.hint


@pytest.mark.parametrize(
    ("body", "entry", "needed", "call"),
    [
        (
            "class Own(Net):\n    def __init__(self, n, *, width, deep=1): ...",
            "Own",
            "n, width",
            "Own(n=…, width=…)",
        ),
        ("def get(n, *rest): ...", "get", "n", "get(n=…)"),
        ("Own = nn.Linear", "Own", "in_features, out_features", "Own(in_features=…, out_features=…)"),
    ],
)
def test_arguments_that_nobody_gives(refuse: Refuse, body: str, entry: str, needed: str, call: str) -> None:
    error = refuse(f"        return y\n{body}\n", entry)
    assert error.exit_code == 3
    assert error.message.endswith(f"net.py:{entry} needs arguments: {needed}")
    assert f"`def make(): return {call}`, and compile net.py:make" in error.hint


@pytest.mark.parametrize(
    ("statement", "words", "remedy"),
    [
        (
            "if True: import no_such_package",
            "No module named 'no_such_package', at net.py",
            "pip install no_such_package",
        ),
        (
            "if True: import torch.no_such_part",
            "No module named 'torch.no_such_part'",
            "may need another version",
        ),
        ("1 / 0", "ZeroDivisionError: division by zero, at net.py, line 15: `1 / 0`", ""),
    ],
)
def test_a_file_that_does_not_load(refuse: Refuse, statement: str, words: str, remedy: str) -> None:
    error = refuse(f"        return y\n{statement}\n")
    assert error.exit_code == 3
    assert words in error.message
    assert remedy in error.hint


def test_a_branch_through_the_command(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        HEAD + "        if y.sum() > 0:\n            return y\n        return y * 2\n"
    )
    outcome = sdk("compile", "net.py:Bad", cwd=tmp_path)
    assert outcome.code == 3
    first, second = outcome.err.splitlines()[-2:]
    assert first == (
        "error: the model's control flow or shapes depend on the values of its data, "
        f"at net.py, line {LINE}: `if y.sum() > 0:`"
    )
    assert second.startswith("hint: ")
    assert BRANCH in second


def test_a_mask_of_infinities_is_no_fault() -> None:
    import torch

    from ethosu_sdk.compile import model_checks

    class Masked(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mask", torch.full((4, 4), float("-inf")).triu(1))

    model_checks.check_module(Masked(), "mine")
    norm = torch.nn.BatchNorm1d(2)
    norm.running_var[0] = float("inf")
    with pytest.raises(InputError, match="buffer 'running_var' of mine holds infinity"):
        model_checks.check_module(norm, "mine")


def test_torchs_own_files_are_recognised_for_what_they_are(tmp_path: Path) -> None:
    """The files that torch itself writes, next to the made-up ones of the unit tests."""
    import torch

    from ethosu_sdk.base import file_kinds

    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)).eval()
    inputs = (torch.ones(1, 2),)
    torch.save(net.state_dict(), tmp_path / "state_dict.pth")
    torch.save(net.state_dict(), tmp_path / "state_dict.old.pth", _use_new_zipfile_serialization=False)
    torch.save({"epoch": 1, "state_dict": net.state_dict()}, tmp_path / "checkpoint.ckpt")
    torch.save(net, tmp_path / "pickled_module.pt")
    torch.save(net, tmp_path / "pickled_module.old.pt", _use_new_zipfile_serialization=False)
    torch.jit.trace(net, inputs).save(tmp_path / "torchscript.pt2")
    torch.export.save(torch.export.export(net, inputs), tmp_path / "pt2.pt2")
    for path in tmp_path.iterdir():
        kind = file_kinds.recognise(path)
        assert kind is not None
        assert kind.id == path.name.partition(".")[0]
