"""A model's layers in PyTorch, value by value, and which tensors of the delegates hold them.

Quantised values are those of the program that is lowered. The float ones are seen by the observers of the model that
is prepared for quantisation, before it is converted: there it computes with its own weights, decomposed and with
batch normalisation folded as it will be quantised. The quantised model rounds as the NPU does, where that can be
computed (:mod:`ethosu_sdk.aot.comparison.ties_up`): differences from PyTorch's own rounding add up in a deep model
until they hide a fault. Each node that becomes a TOSA tensor has its history with it (``from_node``), so that the two
are joined by names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ethosu_sdk import plain_text
from ethosu_sdk.aot.comparison.evaluation import quantised_graph, tensor_origins, weights
from ethosu_sdk.aot.comparison.evaluation.histories import counterpart
from ethosu_sdk.aot.comparison.ties_up import replacements
from ethosu_sdk.aot.facts.evaluation import FLOAT, QUANTISED
from ethosu_sdk.aot.facts.layers import LayerFacts, LayerRequest, LayerValue
from ethosu_sdk.aot.graph import arrays, interpreting, tensors
from ethosu_sdk.aot.graph.arrays import Array
from ethosu_sdk.aot.graph.conversions import is_quantize
from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.aot.model.initial_state import InitialState
from ethosu_sdk.aot.vela.capture import VelaCapture
from ethosu_sdk.errors import InputError

Tensors = tuple[Any, ...]

_NOT_PREPARED = (
    "there is no float model: it came quantised, or has branches, each of which is quantised by itself"
)
_NOT_QUANTISED = "the model is not quantised"


class LayerValues:
    """The values of one execution, collected while the model is compiled."""

    def __init__(self, request: LayerRequest, examples: Tensors) -> None:
        """`examples` are the model's example inputs. InputError for inputs that do not fit them."""
        self._folder = request.folder
        self._inputs = examples
        if request.inputs is not None:
            given = arrays.read_inputs(request.inputs)
            arrays.check_inputs(given, [tensors.as_numpy(item) for item in examples], request.inputs)
            self._inputs = tensors.like(given, examples)
        self._float: dict[str, Array] = {}
        self._weights: weights.Weights = {}
        self._prepared: Any = None  # the graph of that model, whose id nodes of later ones have
        self._not_seen = _NOT_PREPARED

    def take_float(self, prepared: Any, state: InitialState) -> None:
        """Execute the model that is prepared for quantisation from `state` on, as the program begins. Its observers
        and its own state, which calibration changed, stay as they are."""
        self._prepared = prepared.graph
        self._weights = weights.before(prepared)
        try:
            with interpreting.state_kept(prepared):
                state.restore(prepared)
                self._float = _observed(prepared, self._inputs)
        except InputError as error:
            self._not_seen = error.message

    def finish(
        self, program: Any, cpu_calls: Iterable[str], captures: Sequence[VelaCapture], finder: SourceFinder
    ) -> None:
        """Execute the lowered `program`, which calls the operators `cpu_calls` on the CPU, and fill the folder."""
        for index, tensor in enumerate(self._inputs):
            np.save(self._folder / f"input{index}.npy", tensors.as_numpy(tensor))
        module = program.module(check_guards=False)
        quantised, ties_up = _quantised(module, self._inputs, cpu_calls)
        nodes = {node.name: node for node in program.graph.nodes}
        places = {name: index for index, name in enumerate(quantised)}
        shared = quantised_graph.shared_scales(nodes, places, quantised)
        losses = (
            {}
            if self._prepared is None
            else weights.losses(weights.after(module), self._weights, nodes, self._prepared)
        )
        values: list[LayerValue] = []
        for index, (name, array) in enumerate(quantised.items()):
            np.save(self._folder / f"quantised{index}.npy", array)
            before = self._before(nodes[name], array)
            if before is not None:
                np.save(self._folder / f"float{index}.npy", before)
            chain = quantised_graph.chain(nodes[name].args[0])
            value = replace(
                _value(nodes[name], before is not None, finder),
                operands=quantised_graph.operands(nodes[name], places),
                shared=shared.get(index),
                weights=next((losses[node.name] for node in chain if node.name in losses), None),
            )
            values.append(value)
        missing = {} if values else {QUANTISED: _NOT_QUANTISED}
        if not self._float:
            missing[FLOAT] = self._not_seen if values else _NOT_QUANTISED
        LayerFacts(
            values=tuple(values),
            tensors={
                capture.payload_sha256: tensor_origins.find(program.graph, capture, places)
                for capture in captures
            },
            missing=missing,
            ties_up=ties_up,
            outputs=quantised_graph.outputs(program, nodes, places),
        ).write(self._folder)

    def _before(self, quantisation: Any, array: Array) -> Array | None:
        """What an observer saw in the place of a quantisation."""
        node = None if self._prepared is None else counterpart(self._prepared, quantisation.args[0])
        found = None if node is None else self._float.get(node.name)
        return found if found is not None and found.shape == array.shape else None


def _observed(prepared: Any, inputs: Tensors) -> dict[str, Array]:
    """What each observer would see, by the name of the node that it observes."""
    import torch

    found: dict[str, Array] = {}

    def observe(node: Any, _observer: Any, value: Any) -> Any:
        source = node.args[0]
        if isinstance(value, torch.Tensor) and source.op != "get_attr":
            found[source.name] = tensors.as_numpy(value)
        return value

    _interpret(prepared, inputs, observe=observe)
    return found


def _quantised(module: Any, inputs: Tensors, cpu_calls: Iterable[str]) -> tuple[dict[str, Array], bool]:
    """The values that `module` quantises, those of weights left out, by the names of the quantisations; and whether
    they are rounded as on the NPU."""
    names = {node.name for node in module.graph.nodes if is_quantize(node) and node.args[0].op != "get_attr"}
    try:
        with interpreting.state_kept(module), interpreting.replaced(module, replacements(module, cpu_calls)):
            return _results(module, inputs, names), True
    except InputError:  # an operator that has no float64
        with interpreting.state_kept(module):
            return _results(module, inputs, names), False


def _results(module: Any, inputs: Tensors, names: Collection[str]) -> dict[str, Array]:
    """The results of the nodes `names`."""
    found: dict[str, Array] = {}

    def note(node: Any, result: Any) -> None:
        if node.name in names:
            found[node.name] = tensors.as_numpy(result)

    _interpret(module, inputs, note=note)
    return found


def _interpret(graph_module: Any, inputs: Tensors, **hooks: Callable[..., Any]) -> None:
    """:func:`interpreting.run`; InputError when the model fails."""
    try:
        interpreting.run(graph_module, inputs, **hooks)
    except Exception as error:
        raise InputError(f"the model failed in PyTorch, node by node: {plain_text.error(error)}") from error


def _value(quantisation: Any, has_float: bool, finder: SourceFinder) -> LayerValue:
    source = quantisation.args[0]
    scale, zero_point, _, _, dtype = quantisation.args[1:6]
    return LayerValue(
        node=source.name,
        operator=str(source.target).removesuffix(".default") if source.op == "call_function" else source.op,
        scale=float(scale),
        zero_point=int(zero_point),
        dtype=str(dtype).removeprefix("torch."),
        has_float=has_float,
        source=finder.find(source.meta),
    )
