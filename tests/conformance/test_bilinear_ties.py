"""Bilinear resizing on Ethos-U85 against PyTorch's: they differ where the exact value is half-way, and nowhere else.

A value between two that can be stored is a sum of sixteenths here, so that one in many is a tie. The NPU rounds these
up, as TOSA's RESCALE does. PyTorch rounds them to the even neighbour, after the noise of its float32 arithmetic.
"""

import numpy as np
import pytest

from ethosu_sdk import npu
from tests.conformance.conftest import Corpus
from tests.conformance.selection import Pair
from tests.conformance.tosa_operators import NUMERIC

pytestmark = pytest.mark.torch

SCALE = 0.022443380206823349  # that of a U-Net's feature map
LIMITS = (-128, 127)


@pytest.mark.parametrize("pair", [Pair(NUMERIC, "bilinear_x2_centres", "ethos-u85-256")], ids=str)
def test_ties_alone_differ(corpus: Corpus, pair: Pair) -> None:
    import torch
    from torch.ao.quantization.fx._decomposed import quantized_decomposed_lib

    del quantized_decomposed_lib  # importing it registers the operators
    (delegate,) = corpus(pair)
    program = npu.load(delegate.payload)
    values = np.random.default_rng(0).integers(
        *LIMITS, program.blocks.inputs[0].shape, np.int8, endpoint=True
    )
    height, width, channels = values.shape[-3:]
    stored = torch.from_numpy(values.reshape(1, height, width, channels)).permute(0, 3, 1, 2)
    executed = npu.run(program, [values]).outputs[0].reshape(1, 2 * height, 2 * width, channels)
    executed = executed.transpose(0, 3, 1, 2)

    def resized(tensor: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.interpolate(tensor, scale_factor=2.0, mode="bilinear", align_corners=False)

    exact = resized(stored.double()).numpy()
    np.testing.assert_array_equal(executed, np.floor(exact + 0.5))

    operators = torch.ops.quantized_decomposed
    floats = operators.dequantize_per_tensor(stored, SCALE, 0, *LIMITS, torch.int8)
    eager = operators.quantize_per_tensor(resized(floats), SCALE, 0, *LIMITS, torch.int8).numpy()
    distance = np.abs(executed.astype(np.int16) - eager)
    ties = exact - np.floor(exact) == 0.5
    assert distance[ties].max() == 1
    assert not distance[~ties].any()
