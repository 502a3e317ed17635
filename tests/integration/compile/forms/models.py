"""Small models of operators and forms that the tools fail at: those that come through, and those that are refused."""

from dataclasses import dataclass
from pathlib import Path

U55, U85 = "ethos-u55-128", "ethos-u85-256"
_FILE = """\
import torch
from torch import nn
from torch.nn import functional as F
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {layers}
    def forward(self, x, *more):
        {body}
example_inputs = ({inputs},)
model = Net().eval()
"""
LINE = _FILE[: _FILE.index("{body}")].count("\n") + 1  # of the operator


@dataclass(frozen=True)
class Form:
    """A model of one line, and what it is compiled for."""

    name: str
    body: str
    inputs: str = "torch.randn(2, 16)"
    layers: str = "self.l = nn.Linear(16, 16)"
    target: str = U55
    quantize: str = "int8"
    exact: bool = False  # integers, of which all are right

    def write(self, folder: Path) -> Path:
        """The model's file, in `folder`."""
        path = folder / "net.py"
        path.write_text(_FILE.format(layers=self.layers, body=self.body, inputs=self.inputs))
        return path


_PLANE, _VOLUME = "torch.randn(1, 3, 9, 8)", "torch.randn(1, 2, 4, 6, 6)"
_INDEXED = "torch.randn(2, 16), torch.tensor([[0, 3, 5, 7], [1, 2, 3, 4]])"
_LARGE = "torch.randint(1, 2**30, (2, 16), dtype=torch.int32)"
_NORMALISED = (
    "self.c = nn.Conv2d(3, 4, 3, padding=1); self.n = nn.BatchNorm2d(4); "
    "self.n.running_mean.uniform_(-1, 1); self.n.running_var.uniform_(0.5, 3)"
)
_TWO_NORMS = f"{_NORMALISED}; self.m = nn.BatchNorm2d(4); self.m.running_var.uniform_(3, 9)"
# What the first inference works out and all others read, as timm's LeViT and the heads of YOLO do.
_TABLE = "self.l = nn.Linear(16, 16); self.table = {}"
_FILL_TABLE = "self.table = self.table or {'w': self.l.weight.flip(0)}"
_STEP = (
    "self.l = nn.Linear(16, 16); self.register_buffer('steps', torch.tensor([0.5, 2.0])); self.step = None"
)
_FIND_STEP = "self.step = self.step or self.steps[1].item()"
WORKING = (
    Form(
        "no-autocast",
        "y = self.l(x)\n"
        "        with torch.autocast('cpu', enabled=False):\n"
        "            z, w = torch.relu(y.float()) * 2, y - 1\n"
        "        return z @ y.transpose(0, 1), w",
    ),
    Form("even-same", "return self.c(x)", _PLANE, "self.c = nn.Conv2d(3, 4, 4, padding='same')"),
    Form(
        "even-same-line",
        "return self.c(x)",
        "torch.randn(1, 8, 16)",
        "self.c = nn.Conv1d(8, 4, 4, padding='same')",
        U85,
    ),
    Form("unbatched", "return self.c(x)", "torch.randn(3, 8, 8)", "self.c = nn.Conv2d(3, 4, 3)", U85),
    Form("unbatched-pool", "return self.c(x)", "torch.randn(3, 8, 8)", "self.c = nn.AvgPool2d(2)"),
    # As in a residual network that normalises first: what is added is the convolution's own result.
    Form("shared-norm", "y = self.c(x); return y + self.n(y).relu()", _PLANE, _NORMALISED),
    Form("shared-norm-u85", "y = self.c(x); return y + self.n(y).relu()", _PLANE, _NORMALISED, U85),
    # As in the heads of detectors: one convolution for all levels, a normalisation for each.
    Form("shared-weights", "return self.n(self.c(x)), self.m(self.c(2 * x))", _PLANE, _TWO_NORMS),
    Form("shared-weights-one-norm", "return self.n(self.c(x)), self.c(2 * x)", _PLANE, _NORMALISED, U85),
    Form("instance-norm", "return self.n(x)", _PLANE, "self.n = nn.InstanceNorm2d(3)"),
    Form(
        "instance-norm-affine", "return self.n(x)", _PLANE, "self.n = nn.InstanceNorm2d(3, affine=True)", U85
    ),
    Form("table-filled-once", f"{_FILL_TABLE}; return x @ self.table['w']", layers=_TABLE),
    Form("number-found-once", f"{_FIND_STEP}; return self.l(x) * self.step", layers=_STEP),
    Form("conv3d", "return self.c(x)", _VOLUME, "self.c = nn.Conv3d(2, 4, 3, stride=(1, 2, 1), padding=1)"),
    Form("pool3d", "return self.c(x)", _VOLUME, "self.c = nn.MaxPool3d(2)", U85),
    Form("mean3d", "return self.c(x)", _VOLUME, "self.c = nn.AvgPool3d(2)", quantize="none"),
    Form("adaptive", "return F.adaptive_max_pool2d(x, (3, 5))", _PLANE, "pass", quantize="none"),
    Form("gather", "return self.l(x).gather(1, more[0])", _INDEXED),
    Form("scatter", "return self.l(x).scatter_add(1, more[0], x[:, :4])", _INDEXED, target=U85),
    Form("along", "return self.l(x).take_along_dim(more[0], 1)", _INDEXED, target=U85),
    Form("one-hot", "return F.one_hot(x, 5).float()", "torch.tensor([0, 3, 2])", "pass", U85),
    Form("bicubic", "return F.interpolate(x, scale_factor=2, mode='bicubic')", _PLANE, "pass", U85),
    Form("sort", "return self.l(x).sort(-1, descending=True).values"),
    Form("kth", "return self.l(x).kthvalue(3, 1).values", quantize="none"),
    Form("maximum", "return tuple(self.l(x).max(1))", quantize="none"),
    Form("maximum-int8", "return self.l(x).max(1).values", target=U85),
    Form("buckets", "return torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0]))", quantize="none", exact=True),
    Form("products", "return x.cumprod(1)", "torch.rand(2, 6) + 0.5", "pass", quantize="none"),
    Form("quotients", "return x // 7", _LARGE, "pass", exact=True),
    Form("addmm", "return torch.addmm(self.l.bias, x, self.l.weight)"),
    Form("rounded", "return (4 * x).round().to(torch.int32)", layers="pass"),
    Form("power-mean", "return self.c(x)", "torch.randn(1, 3, 8, 8)", "self.c = nn.LPPool2d(2, 2)"),
)
_LOOP = (
    "return torch.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 1.1), "
    "(torch.zeros((), dtype=torch.int64), x))[1]"
)
_SCAN = "from torch._higher_order_ops.scan import scan; return scan(lambda c, v: (c + v, c * 2), torch.zeros(16), x)"
_FLAG = "self.l = nn.Linear(16, 16); self.first = True"
REFUSED = (
    (
        Form("sort", "return self.l(x).sort(-1)"),
        "aten::sort.values (at net.py, line {}, in Net.forward",
        "torch.topk(x, x.shape[dim], dim)",
    ),
    (
        Form("median", "return tuple(self.l(x).median(1))", target=U85),
        "aten::median.dim_values (at net.py, line {}, in Net.forward",
        "torch.topk",
    ),
    (
        # Another result the first time: no table, but a state.
        Form("flag", "y = self.l(x) if self.first else -x; self.first = False; return y", layers=_FLAG),
        "the attribute 'first' (bool), which a program cannot keep from one inference to the next: net.py, line {}",
        "register_buffer('first'",
    ),
    (
        Form("loop", _LOOP),
        "while_loop cannot be compiled, at net.py, line {}",
        "`for` with a fixed number of steps",
    ),
    (
        Form("scan", _SCAN),
        "scan cannot be compiled, at net.py, line {}",
        "`for` with a fixed number of steps",
    ),
    (
        Form("histogram", "return x.histc(4)", quantize="none"),
        "aten::histc.out (at net.py, line {}, in Net.forward",
        "docs/reference/kernels.md",
    ),
)
# What the refusals advise.
WAYS_OUT = (
    Form(
        "no-diagonal",
        "y = x @ x.t(); return torch.where(self.m, torch.zeros_like(y), y)",
        layers="self.register_buffer('m', torch.eye(2, dtype=torch.bool))",
    ),
    Form(
        "running",
        "a, b, c = x.unbind(0); d = torch.maximum(a, b); return torch.stack([a, d, torch.maximum(d, c)])",
        "torch.randn(3, 16)",
    ),
    Form("sorted", "return x.topk(x.shape[-1], -1)", quantize="none"),
    Form("steps", "y = x\n        for _ in range(3):\n            y = y * 1.1\n        return y"),
)
