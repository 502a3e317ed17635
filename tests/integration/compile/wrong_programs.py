"""Models that compile to wrong programs: with a fault planted, or with a repair left out."""

MODEL = """
import torch
from torch import nn
{fault}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Conv2d(2, 4, 3), nn.Conv2d(4, 4, 1), nn.Conv2d(4, 3, 1)

    def forward(self, x):
        x = torch.relu(self.first(x))
        x = torch.relu(self.second(x))  # THE FAULT
        return self.last(x)

torch.manual_seed(3)
model = Net().eval()
samples = torch.randn(9, 1, 2, 8, 8)
example_inputs = (samples[0],)
calibration = [(sample,) for sample in samples[1:]]
"""
# The second RESCALE, that of `second`, gets a scale that is too large.
WRONG_SCALE = """
from executorch.backends.arm.operators import op_tosa_rescale
right, calls = op_tosa_rescale._compute_multiplier_and_shift, []

def wrong(scales, width=32):
    calls.append(scales)
    return right([1.5 * scale for scale in scales] if len(calls) == 2 else scales, width)

op_tosa_rescale._compute_multiplier_and_shift = wrong
"""
# Vela gets other weights than the TOSA graph has.
WRONG_WEIGHTS = """
from executorch.backends.arm.ethosu import backend
from tosa.TosaGraph import TosaGraph
right = backend.vela_compile

def wrong(tosa, *args, **named):
    changed = bytearray(tosa)
    block = TosaGraph.GetRootAs(changed, 0).Regions(0).Blocks(0)
    rows = [block.Tensors(index) for index in range(block.TensorsLength())]
    weights = next(row for row in rows if row.Name().endswith(b"convolution_default_1_weight_ohwi"))
    weights.DataAsNumpy()[:] = weights.DataAsNumpy()[::-1].copy()
    return right(bytes(changed), *args, **named)

backend.vela_compile = wrong
"""
# A ReLU that shares its quantisation with what goes below zero: ExecuTorch 1.5.1 drops it.
SKIP = """
import contextlib
import torch
from torch import nn
{fault}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Conv2d(2, 4, 3), nn.Conv2d(4, 4, 1), nn.Conv2d(8, 3, 1)

    def forward(self, x):
        a = torch.relu(self.first(x))  # THE FAULT
        return self.last(torch.cat([self.second(a), a], 1))

torch.manual_seed(0)
model = Net().eval()
samples = torch.randn(9, 1, 2, 8, 8)
example_inputs = (samples[0],)
calibration = [(sample,) for sample in samples[1:]]
"""
# Doubling bilinearly makes sums of sixteenths of codes: one in many lies half-way between two.
TIES = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(2, 4, 3), nn.Conv2d(4, 3, 1)
        self.sizes = [nn.Upsample(mode="bilinear", **options) for options in {options}]

    def forward(self, x):
        y = self.first(x)
        return tuple(self.last(size(y)) for size in self.sizes)

torch.manual_seed(0)
model = Net().eval()
samples = torch.randn(9, 1, 2, 16, 16)
example_inputs = (samples[0],)
calibration = [(sample,) for sample in samples[1:]]
"""
# The first operand of a product is a part: Vela 5.1.0 reads the whole tensor for Ethos-U55.
PRODUCT = """
import contextlib
import torch
from torch import nn
{fault}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.split = nn.Linear(8, 40)

    def forward(self, x):
        y = self.split(x)
        return y[..., :8] @ y[..., 8:16].transpose(1, 2)

torch.manual_seed(0)
model = Net().eval()
samples = torch.randn(5, 2, 8, 8)
example_inputs = (samples[0],)
calibration = [(sample,) for sample in samples[1:]]
"""
WITHOUT_REPAIRS = """
from ethosu_sdk.compile import lowering
lowering.rewrites_installed = contextlib.nullcontext
"""
