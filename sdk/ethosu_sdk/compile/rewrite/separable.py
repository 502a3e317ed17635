"""Products with a constant matrix along each axis of a feature map, as convolutions with a kernel of one element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ethosu_sdk.compile.rewrite.before_quantisation import Function

_MAPS = 4  # the axes of a batch of feature maps


def product(node: Any, matrices: Sequence[Any]) -> Function:
    """The input of `node`, [batch, channels, …], times a matrix along each axis behind the channels, a row of it for
    each result.

    An axis takes the place of the channels for its product. Convolutions as high as the map, which transpose nothing,
    take a quarter less of an Ethos-U55's cycles, but Vela computed some of them wrong between other layers.
    """
    made = tuple(node.meta["val"].shape)
    weights = [matrix[:, :, None, None].contiguous() for matrix in matrices]

    def multiply(x: Any, *_: Any) -> Any:
        from torch.nn import functional

        x = x if x.dim() == _MAPS else x.unsqueeze(2)
        for axis, weight in enumerate(weights, _MAPS - len(weights)):
            x = functional.conv2d(x.transpose(1, axis), weight).transpose(1, axis)
        return x.reshape(made)

    return multiply
