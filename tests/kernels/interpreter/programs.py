"""Programs that between them use every feature of the `.pte` format that the interpreter reads."""

from typing import Any

import numpy

from ethosu_sdk.program import pte
from tests.conftest import ZooPte
from tests.kernels.interpreter.backend import ACCEPTED_ID, OWN_ID, lower_with_delegates
from tests.kernels.interpreter.cases import floats, special_floats
from tests.kernels.interpreter.models import Array, Case, lower

FEATURES = ("net", "branch", "lists", "quantized", "delegates", "ds_cnn")


def small_net(torch: Any) -> Any:
    """Convolution, pooling, linear and softmax: constants, aliased views and a reused arena."""
    torch.manual_seed(1)
    layers = torch.nn
    return layers.Sequential(
        layers.Conv2d(2, 4, 3, padding=1), layers.ReLU(), layers.MaxPool2d(2), layers.Flatten(),
        layers.Linear(4 * 4 * 4, 10), layers.Softmax(dim=-1),
    )  # fmt: skip


def net_case() -> Case:
    """The small network with one image."""
    import torch

    return Case(small_net(torch), (floats(1, 2, 8, 8),))


def branches(torch: Any, condition: Any, x: Any) -> Any:
    """Two outputs by torch.cond."""
    return torch.cond(condition, lambda x: (x + x, x * 3), lambda x: (x - 1, x * x), (x,))


def two_additions(torch: Any, x: Any, y: Any) -> Any:
    """Additions, which the tests' backend takes, between multiplications."""
    return ((x + y) * y + y) * x


def quantized_pool(torch: Any, x: Any) -> Any:
    """int8 between quantize and dequantize."""
    twins = torch.ops.quantized_decomposed
    small = twins.quantize_per_tensor(x, 0.05, 3, -128, 127, torch.int8)
    pooled = torch.nn.functional.max_pool2d(small, 2)
    return twins.dequantize_per_tensor(pooled, 0.05, 3, -128, 127, torch.int8)


def every_feature(zoo_pte: ZooPte) -> dict[str, tuple[bytes, list[Array]]]:
    """Programs of every feature: constants, control flow, state, delegates in segments and inline, lists, IO."""
    branch = Case(branches, (numpy.array(True), floats(6)), outputs=2)
    lists = Case(
        lambda torch, a, b: torch.cat([a.permute(1, 0), b.view(3, 2)], 1).mean(dim=(0,)),
        (floats(2, 3), floats(6)),
    )
    quantized = Case(quantized_pool, (special_floats(128).reshape(1, 2, 8, 8),))
    added = Case(two_additions, (floats(6), floats(6, seed=1)))
    net = net_case()
    programs = {
        "net": (lower({"forward": [net]}), list(net.inputs)),
        "branch": (lower({"forward": [branch]}), list(branch.inputs)),
        "lists": (lower({"forward": [lists]}), list(lists.inputs)),
        "quantized": (lower({"forward": [quantized]}), list(quantized.inputs)),
        "delegates": (
            lower_with_delegates([added], segments=True).replace(OWN_ID, ACCEPTED_ID),
            list(added.inputs),
        ),
    }
    program = zoo_pte("ds_cnn").pte.read_bytes()
    inputs = [floats(*tensor.sizes) for tensor in pte.parse(program).plan().input_tensors()]
    return {**programs, "ds_cnn": (program, inputs)}
