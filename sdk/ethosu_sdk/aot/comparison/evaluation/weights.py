"""What quantisation costs the weights of each operator."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ethosu_sdk.aot.comparison.evaluation.histories import counterpart
from ethosu_sdk.aot.facts.layers import WeightLoss
from ethosu_sdk.aot.graph import interpreting, tensors
from ethosu_sdk.aot.graph.arrays import Array
from ethosu_sdk.aot.graph.conversions import DEQUANTIZE, DEQUANTIZE_CHANNELS

_LEAST_AXES = 2  # of weights; biases have one
_DEQUANTISATIONS = (DEQUANTIZE, DEQUANTIZE_CHANNELS)

Weights = dict[tuple[str, int], Array]  # by the node that reads them, and the place of the argument


def before(prepared: Any) -> Weights:
    """The weights of a model that is prepared for quantisation."""
    found: Weights = {}
    for node in prepared.graph.nodes:
        for place, observed in enumerate(node.args):
            if (
                getattr(observed, "op", "") != "call_module"
                or interpreting.observer_of(prepared, observed) is None
            ):
                continue
            source = observed.args[0]
            if source.op == "get_attr":
                _take(found, node, place, _attribute(prepared, source))
    return found


def after(module: Any) -> Weights:
    """The weights of a quantised `module`, as it computes with them."""
    found: Weights = {}
    for node in module.graph.nodes:
        for place, source in enumerate(node.args):
            if str(getattr(source, "target", "")) in _DEQUANTISATIONS and source.args[0].op == "get_attr":
                arguments = (
                    _attribute(module, item) if getattr(item, "op", "") == "get_attr" else item
                    for item in source.args
                )
                _take(found, node, place, source.target(*arguments, **source.kwargs))
    return found


def _attribute(module: Any, node: Any) -> Any:
    found = module
    for part in node.target.split("."):
        found = getattr(found, part)
    return found


def _take(found: Weights, node: Any, place: int, value: Any) -> None:
    if value.dim() >= _LEAST_AXES:
        found[node.name, place] = tensors.as_numpy(value)


def losses(quantised: Weights, exact: Weights, nodes: Mapping[str, Any], graph: Any) -> dict[str, WeightLoss]:
    """The loss of the weights that the `quantised` model's `nodes` read, by their names; `graph` has the nodes that
    read the `exact` ones."""
    found = {}
    for (name, place), array in quantised.items():
        reader = counterpart(graph, nodes[name])
        weights = None if reader is None else exact.get((reader.name, place))
        if weights is not None and weights.shape == array.shape:
            found[name] = _loss(array, weights)
    return found


def _loss(array: Array, exact: Array) -> WeightLoss:
    wide = exact.astype(np.float64)
    power, noise = (float(np.sum(np.square(part))) for part in (wide, array - wide))
    return WeightLoss(
        elements=array.size, sqnr_db=10 * math.log10(power / noise) if power and noise else None
    )
