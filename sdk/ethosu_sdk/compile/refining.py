"""What is done for the accuracy of int8 where the calibration samples show that it helps: channels of very different
ranges are equalised, and biases take up the mean error of a layer. Neither costs anything at run time.

A graph with observers is executed with its values rounded, with and without the change, and compared with itself in
floating point. A change is kept where every output gains by more than chance explains.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ethosu_sdk.compile.chain import rounded
from ethosu_sdk.compile.graphs import execution
from ethosu_sdk.compile.graphs.fx import operator_name
from ethosu_sdk.records.compile import Refinement

Tensors = tuple[Any, ...]
Change = Callable[[Any, list[Any]], list[Any]]  # a node and its values, by sample → its values

_LEAST_SAMPLES, _MOST_SAMPLES = 8, 32
_MOST_VALUES = 2**25  # of all nodes and samples together
_LEAST_GAIN_DB = 1.0  # P-Net, 0.9 dB nearer, lost one of the faces that the float model finds
_NO_NOISE = 1e-30
_CHANNEL_AXIS = {  # operator → the axis of its result that its bias runs along
    "aten::linear": -1,
    "aten::conv1d": 1,
    "aten::conv2d": 1,
    "aten::conv_transpose2d": 1,
}
_INPUT, _WEIGHT, _BIAS, _GROUPS = 0, 1, 2, 6  # arguments

# Operators f with f(s x) = s f(x) for every s > 0 of a channel; those with a window need it outside of the channels.
_SCALES_ELEMENTS = ("aten::relu", "aten::leaky_relu", "aten::clone", "aten::dropout")
_SCALES_IMAGES = ("aten::max_pool2d", "aten::avg_pool2d", "aten::adaptive_avg_pool2d")
_EQUALISED = ("aten::linear", "aten::conv1d", "aten::conv2d")
# Channels that use less than this share of their tensor's range are worth a trial; far less is no signal.
_NARROW, _DEAD = 1 / 8, 2.0**-14
_HEADROOM = 2.0  # for values of a narrow channel that the samples do not show


@dataclass(frozen=True)
class _Group:
    """Channels that may be scaled: the layer that makes them, those of its values that are stored, and the layers
    that take them."""

    source: Any
    stored: tuple[Any, ...]
    users: tuple[Any, ...]


def equalised(prepared: Any, samples: Sequence[Tensors]) -> tuple[Any, list[Refinement]]:
    """`prepared`, a graph whose observers have seen nothing yet, or a copy with equalised channels; what was done.

    The factors are powers of two: in floating point the result is the same, bit for bit.
    """
    chosen = _chosen(prepared, samples)
    groups = _groups(prepared)
    if not chosen or not groups:
        return prepared, []
    axes = {value: _CHANNEL_AXIS[operator_name(group.source)] for group in groups for value in group.stored}
    largest: dict[Any, Any] = {}

    def note(node: Any, values: list[Any]) -> list[Any]:
        for value in values if node in axes else ():
            found = _by_channel(value.abs(), axes[node]).amax(1)
            largest[node] = found.maximum(largest.get(node, found))
        return values

    wanted = run_together(prepared, chosen, change=note)
    factors = {
        group: _factors(prepared, group, [largest[value] for value in group.stored]) for group in groups
    }
    changed = {group: factor for group, factor in factors.items() if factor is not None}
    if not changed:
        return prepared, []
    scaled = copy.deepcopy(prepared)
    for group, factor in changed.items():
        _scale(scaled, group, factor)
    before, after = (_noise(wanted, _calibrated_run(module, chosen)) for module in (prepared, scaled))
    if not _gains(before, after):
        return prepared, []
    return scaled, [_refinement("equalised channels", len(changed), before, after)]


def correct_biases(prepared: Any, samples: Sequence[Tensors]) -> list[Refinement]:
    """Correct the biases of `prepared`, a graph whose observers have seen all `samples`; what was done.

    Each half of the samples is judged with biases that the other half gave.
    """
    chosen = _chosen(prepared, samples)
    layers = _biases(prepared)
    if not chosen or not layers:
        return []
    means: dict[Any, list[Any]] = {}

    def note(node: Any, values: list[Any]) -> list[Any]:
        if node in layers:
            means[node] = [_channel_means(node, value) for value in values]
        return values

    wanted = run_together(prepared, chosen, change=note)
    before = _noise(wanted, run_rounded(prepared, chosen))
    halves = slice(0, None, 2), slice(1, None, 2)
    outputs, deltas = zip(*(_run_corrected(prepared, chosen, means, half) for half in halves), strict=True)
    judged = [outputs[1 - number % 2][number] for number in range(len(chosen))]
    after = _noise(wanted, judged)
    if not _gains(before, after):
        return []
    for node, name in layers.items():
        set_constant(prepared, name, constant(prepared, name) + (deltas[0][node] + deltas[1][node]) / 2)
    return [_refinement("corrected biases", len(layers), before, after)]


def _chosen(prepared: Any, samples: Sequence[Tensors]) -> list[Tensors]:
    """Evenly spread samples, fewer for large graphs; none where they are too few to judge by."""
    sizes = (getattr(node.meta.get("val"), "numel", int)() for node in prepared.graph.nodes)
    most = min(_MOST_SAMPLES, _MOST_VALUES // max(sum(sizes), 1))
    if min(len(samples), most) < _LEAST_SAMPLES:
        return []
    return list(samples[:: math.ceil(len(samples) / most)])


# Judgement


def _noise(wanted: Sequence[Tensors], given: Sequence[Tensors]) -> list[list[tuple[float, float]]]:
    """The power of each output with floating-point values and of its error, for each sample."""
    found = []
    for index, output in enumerate(wanted[0]):
        if output.is_floating_point():
            rows = [
                (one[index].double(), other[index].double()) for one, other in zip(wanted, given, strict=True)
            ]
            found.append([(float(r.square().sum()), float((c - r).square().sum())) for r, c in rows])
    return found


def _ratio(rows: Sequence[tuple[float, float]]) -> float:
    """The SQNR over samples, in dB."""
    power, noise = (sum(column) + _NO_NOISE for column in zip(*rows, strict=True))
    return 10.0 * math.log10(power / noise)


def _gains(before: list[list[tuple[float, float]]], after: list[list[tuple[float, float]]]) -> bool:
    """Whether every output is nearer, by more than the standard error of the gain (jackknife)."""
    return bool(before) and all(map(_is_gain, before, after))


def _is_gain(before: list[tuple[float, float]], after: list[tuple[float, float]]) -> bool:
    count = len(before)
    without = [
        _ratio(after[:number] + after[number + 1 :]) - _ratio(before[:number] + before[number + 1 :])
        for number in range(count)
    ]
    mean = sum(without) / count
    error = math.sqrt((count - 1) / count * sum((gain - mean) ** 2 for gain in without))
    return _ratio(after) - _ratio(before) - error > _LEAST_GAIN_DB


def _refinement(name: str, layers: int, before: list[Any], after: list[Any]) -> Refinement:
    worst = min(range(len(after)), key=lambda index: _ratio(after[index]))
    old, new = (round(_ratio(rows[worst]), 1) for rows in (before, after))
    return Refinement(name=name, layers=layers, before_db=old, after_db=new)


# Execution of a graph with observers on all samples together, node by node.


def run_together(
    prepared: Any, samples: Sequence[Tensors], *, observe: Any = None, change: Change | None = None
) -> list[Tensors]:
    """The outputs of a graph for each sample. No observer learns anything: `observe` gives the result of one from its
    node, itself and the value; `change` those of another node, from what they are on all samples."""
    import torch
    from torch.utils import _pytree

    graphs = [torch.fx.Interpreter(prepared) for _ in samples]
    for graph, sample in zip(graphs, samples, strict=True):
        graph.args_iter = iter([item.clone() for item in sample])
    results: list[Any] = []
    for node in prepared.graph.nodes:
        observer = execution.observer_of(prepared, node)
        if observer is None:
            results = [graph.run_node(node) for graph in graphs]
            results = results if change is None else change(node, results)
        else:
            values = [graph.fetch_args_kwargs_from_env(node)[0][0] for graph in graphs]
            results = [
                value.clone() if observe is None else observe(node, observer, value) for value in values
            ]
        for graph, result in zip(graphs, results, strict=True):
            graph.env[node] = result
            for passed in graph.user_to_last_uses.get(node, ()):
                del graph.env[passed]
    return [tuple(item.clone() for item in _pytree.tree_leaves(result)) for result in results]


def run_rounded(prepared: Any, samples: Sequence[Tensors], change: Change | None = None) -> list[Tensors]:
    """The same with every value, but biases, rounded as its observer says."""
    constants: dict[str, Any] = {}

    def observe(node: Any, observer: Any, value: Any) -> Any:
        if not value.is_floating_point() or observer.quant_max > 2**16:
            return value.clone()
        if constant_name(node) is None:
            return rounded(observer, value)
        if node.target not in constants:
            constants[node.target] = rounded(observer, value)
        return constants[node.target]

    return run_together(prepared, samples, observe=observe, change=change)


def _calibrated_run(prepared: Any, samples: Sequence[Tensors]) -> list[Tensors]:
    """The rounded outputs of a copy that has seen the samples."""
    module = copy.deepcopy(prepared)
    for sample in samples:
        execution.run_eager(module, sample)
    return run_rounded(module, samples)


# Constants


def constant_name(node: Any) -> str | None:
    """The name of the constant that a node gives, observed or not; None for a computed value."""
    while node.op == "call_module":
        node = node.args[0]
    return node.target if node.op == "get_attr" else None


def constant(prepared: Any, name: str | None) -> Any:
    assert name is not None
    return functools.reduce(getattr, name.split("."), prepared).detach()


def set_constant(prepared: Any, name: str | None, value: Any) -> None:
    """Give a constant another value; the tensor that it was may be the user's."""
    import torch

    assert name is not None
    place, _, last = name.rpartition(".")
    owner = prepared.get_submodule(place)
    is_parameter = isinstance(getattr(owner, last), torch.nn.Parameter)
    setattr(owner, last, torch.nn.Parameter(value, requires_grad=False) if is_parameter else value)


def _own_constant(prepared: Any, layer: Any, argument: int) -> str | None:
    """The name of a layer's weight or bias, if nothing else reads it."""
    given = layer.args[argument] if len(layer.args) > argument else None
    if given is None:
        return None
    name = constant_name(given)
    readers = [node for node in prepared.graph.find_nodes(op="get_attr") if node.target == name]
    return name if len(readers) == len(given.users) == 1 else None


# Channels


def _groups(prepared: Any) -> list[_Group]:
    layers = [node for node in prepared.graph.nodes if operator_name(node) in _EQUALISED]
    return [group for group in (_group(prepared, node) for node in layers) if group is not None]


def _group(prepared: Any, source: Any) -> _Group | None:
    """The channels that the layer `source` makes; None where something reads them that no factor passes."""
    axis = _CHANNEL_AXIS[operator_name(source)]
    passing = (*_SCALES_ELEMENTS, *(_SCALES_IMAGES if axis == 1 else ()))
    has_bias = len(source.args) > _BIAS and source.args[_BIAS] is not None
    if not _own_constant(prepared, source, _WEIGHT) or (
        has_bias and not _own_constant(prepared, source, _BIAS)
    ):
        return None
    values, users = [source], []
    for value in values:
        for user in value.users:
            name = operator_name(user)
            if name in _EQUALISED and user.args[_INPUT] is value and _CHANNEL_AXIS[name] == axis:
                users.append(user)
            elif user.op == "call_module" or name.removesuffix("_") in passing:
                values.append(user)
            else:
                return None
    stored = tuple(value for value in values if any(user.op == "call_module" for user in value.users))
    takers = all(_own_constant(prepared, user, _WEIGHT) for user in users)
    return _Group(source, stored, tuple(users)) if users and stored and takers else None


def _factors(prepared: Any, group: _Group, largest: Sequence[Any]) -> Any | None:
    """What to divide each channel by, a power of two of at most one; None where they are alike.

    A channel that only depthwise layers take gets the whole range: their weights have a scale for each channel. Other
    layers have one scale for the weights of all channels, so that half of the factor, in bits, goes to the weights.
    """
    import torch

    factor = torch.stack([found / found.max().clamp(min=_NO_NOISE) for found in largest]).amax(0)
    is_dead = factor < _DEAD
    shares = [
        share for share in (_weight_shares(prepared, user) for user in group.users) if share is not None
    ]
    if shares:
        factor = (factor / torch.stack(shares).amax(0).clamp(min=_DEAD)).sqrt()
    factor = (
        torch.where(is_dead, 1.0, factor / factor[~is_dead].amax())
        if not bool(is_dead.all())
        else is_dead + 1.0
    )
    if bool((factor > _NARROW).all()):
        return None
    return torch.exp2(torch.ceil(torch.log2(factor * _HEADROOM))).clamp(max=1.0)


def _by_input_channel(layer: Any, weight: Any) -> Any:
    """The weights as groups, output channels of a group, input channels of a group, and the kernel."""
    groups = layer.args[_GROUPS] if len(layer.args) > _GROUPS else 1
    return weight.reshape(groups, weight.shape[0] // groups, weight.shape[1], -1)


def _weight_shares(prepared: Any, layer: Any) -> Any | None:
    """How large the weights of each input channel are at most, as a share of the largest for the same output; None
    for a depthwise layer."""
    sizes = _by_input_channel(layer, constant(prepared, constant_name(layer.args[_WEIGHT]))).abs().amax(3)
    if sizes.shape[2] == 1:
        return None
    return (sizes / sizes.amax(2, keepdim=True).clamp(min=_NO_NOISE)).amax(1).flatten()


def _scale(prepared: Any, group: _Group, factor: Any) -> None:
    """Divide the channels of a group by `factor`."""
    for argument in (_WEIGHT, _BIAS):
        name = _own_constant(prepared, group.source, argument)
        if name is not None:
            value = constant(prepared, name)
            set_constant(prepared, name, value / factor.reshape(-1, *[1] * (value.dim() - 1)))
    for layer in group.users:
        name = _own_constant(prepared, layer, _WEIGHT)
        weight = constant(prepared, name)
        parts = _by_input_channel(layer, weight)
        scaled = parts * factor.reshape(parts.shape[0], 1, parts.shape[2], 1)
        set_constant(prepared, name, scaled.reshape(weight.shape))


# Biases


def _biases(prepared: Any) -> dict[Any, str]:
    """The layers with a bias of their own, and the name of that."""
    layers = [node for node in prepared.graph.nodes if operator_name(node) in _CHANNEL_AXIS]
    named = {node: _own_constant(prepared, node, _BIAS) for node in layers}
    return {node: name for node, name in named.items() if name is not None}


def _by_channel(value: Any, axis: int) -> Any:
    """The values of each channel in a row."""
    return value.movedim(axis, 0).reshape(value.shape[axis], -1)


def _channel_means(node: Any, value: Any) -> Any:
    return _by_channel(value.double(), _CHANNEL_AXIS[operator_name(node)]).mean(1)


def _run_corrected(
    prepared: Any, samples: Sequence[Tensors], means: dict[Any, list[Any]], fitted: slice
) -> tuple[list[Tensors], dict[Any, Any]]:
    """The rounded outputs with a correction at each bias, and the corrections. A channel's is the mean error that the
    layers before and its own weights leave on the `fitted` samples, less what may be chance."""
    import torch

    deltas: dict[Any, Any] = {}

    def change(node: Any, values: list[Any]) -> list[Any]:
        if node not in means:
            return values
        given = [_channel_means(node, value) for value in values]
        errors = torch.stack(means[node])[fitted] - torch.stack(given)[fitted]
        error = errors.mean(0)
        chance = errors.var(0) / errors.shape[0]
        certain = (1.0 - chance / error.square().clamp(min=_NO_NOISE)).clamp(min=0.0)
        deltas[node] = (error * certain).to(values[0].dtype)
        shape = [1] * values[0].dim()
        shape[_CHANNEL_AXIS[operator_name(node)]] = -1
        return [value + deltas[node].reshape(shape) for value in values]

    return run_rounded(prepared, samples, change), deltas
