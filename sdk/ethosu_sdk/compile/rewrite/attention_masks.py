"""Places attention masks where they do not stretch the range of the scores.

``softmax(scores + mask)`` with a mask of 0 and -10000 quantises the sum: 256 steps of int8 for a range of 10000
leave the scores one step. Here the mask becomes factors of 0 and 1, of the scores before their largest one is looked
for and of their exponentials. Every range stays as without a mask, and in float the result is the same: what is
added to all scores of a row does not count, and below -100 an exponential is no float32 above its least normal one.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ethosu_sdk.compile.graphs import execution
from ethosu_sdk.compile.graphs.fx import add_constant, operator_name
from ethosu_sdk.compile.rewrite.before_quantisation import inline

Tensors = tuple[Any, ...]

_LOWEST = -100.0  # exp(-100) = 4e-44; what is added at or below it masks
_LARGE = -1e5
_SOFTMAX = ("aten::softmax", "aten::_softmax")
_ATTENTION = "aten::scaled_dot_product_attention"
_SAME_VALUE = ("aten::clone", "aten::contiguous", "aten::alias", "aten::detach", "aten::to", "aten::_to_copy")
_ADDED, _HIDES, _KEEPS = "added", "hides", "keeps"
# What a row gives in which nothing is kept: PyTorch's result for masks of a finite value that is added, for a finite
# value that takes the place of the scores, and for -inf (scaled_dot_product_attention; softmax itself gives NaN).
_SCORES, _UNIFORM, _ZERO = "scores", "uniform", "zero"


@dataclass
class _Range:
    """What the values of a node were in all samples."""

    low: float = math.inf
    high: float = -math.inf
    is_binary: bool = True  # zeros, and values that mask
    low_kept: float = math.inf  # the lowest of the values that do not mask
    high_masked: float = -math.inf  # the highest of those that do
    has_empty_row: bool = False  # nothing but values that mask along the last axis
    is_true_along_row: bool = False  # of a Boolean tensor, in some row
    is_false_along_row: bool = False


@dataclass
class _Masked:
    """The input of a softmax: the sum of `terms` under `masks`, each a node with its kind."""

    terms: list[Any] = field(default_factory=list)
    masks: list[tuple[str, Any]] = field(default_factory=list)
    # Of each mask that is not constant, what a row gives without any key.
    rows: list[str] = field(default_factory=list)


def place_masks(program: Any, samples: Sequence[Tensors]) -> Any:
    """`program`, an ``ExportedProgram`` that will be quantised, with every masked softmax rewritten; `samples` of its
    inputs show which operands are masks. A constant mask without a key to keep in a row stays as it is."""
    attentions = [node for node in program.graph.nodes if _is_masked_attention(node)]
    if attentions:
        found = _Rewriting(program, samples)
        for node in attentions:
            if found.can_split(_arguments(node).get("attn_mask")):
                inline(program, node, _attention)
    nodes = [
        node
        for node in program.graph.nodes
        if operator_name(node) in _SOFTMAX and node.args[1] in (-1, node.meta["val"].dim() - 1)
    ]
    if any(_may_be_masked(node.args[0]) for node in nodes):
        _Rewriting(program, samples).rewrite(nodes)
    return program


class _Rewriting:
    """The ranges of a program's values, and the factors that were made of masks."""

    def __init__(self, program: Any, samples: Sequence[Tensors]) -> None:
        self._program = program
        self._constants = _constants(program)
        self._ranges: dict[str, _Range] = {}
        self._values: dict[str, Any] = {}  # of constants alone
        self._factors: dict[tuple[str, str], Any] = {}
        module = program.module(check_guards=False)
        with execution.state_kept(module):
            for sample in samples:
                execution.run_graph(module, sample, note=self._note)

    def rewrite(self, nodes: Sequence[Any]) -> None:
        """Rewrite those of the softmax `nodes` whose input has a mask."""
        for node in nodes:
            found = self._split(node.args[0])
            known = self._ranges.get(node.args[0].name, _Range())
            if found.masks and math.isfinite(known.low_kept) and self._has_keys(found, known):
                self._rewrite(node, found, known.low_kept)
        self._program.graph.eliminate_dead_code()
        self._program.graph_module.recompile()

    def can_split(self, mask: Any | None) -> bool:
        """Whether ``scaled_dot_product_attention`` with this mask, or a causal one, is the softmax in parts."""
        if mask is None:
            return True
        if self._value(mask) is not None:
            kind = _ADDED if mask.meta["val"].dtype.is_floating_point else _KEEPS
            return not _has_empty_row([self._ones(kind, mask)])
        known = self._ranges.get(mask.name, _Range())
        if mask.meta["val"].dtype.is_floating_point:
            return self._is_mask(mask) and (known.high_masked == -math.inf or not known.has_empty_row)
        return True

    def _has_keys(self, found: _Masked, scores: _Range) -> bool:
        """Whether constant masks leave every row a key, and all masks in the samples where it matters."""
        fixed = [self._ones(kind, mask) for kind, mask in found.masks if self._value(mask) is not None]
        if fixed and _has_empty_row(fixed):
            return False
        varying = [(kind, mask) for kind, mask in found.masks if self._value(mask) is None]
        if not varying or set(found.rows) == {_ZERO}:
            return True
        sign = {_ADDED: "has_empty_row", _HIDES: "is_true_along_row", _KEEPS: "is_false_along_row"}
        hidden = (getattr(self._ranges.get(mask.name, _Range()), sign[kind]) for kind, mask in varying)
        return not scores.has_empty_row and not any(hidden)

    def _note(self, node: Any, value: Any) -> None:
        import torch

        if not isinstance(value, torch.Tensor) or not value.numel():
            return
        if node.name in self._constants:
            self._values[node.name] = value
        if value.is_floating_point():
            masked, known = value <= _LOWEST, self._ranges.setdefault(node.name, _Range())
            known.low, known.high = min(known.low, float(value.min())), max(known.high, float(value.max()))
            known.is_binary &= bool((masked | (value == 0)).all())
            known.has_empty_row |= value.dim() > 0 and bool(masked.all(-1).any())
            if bool(masked.any()):
                known.high_masked = max(known.high_masked, float(value[masked].max()))
            if not bool(masked.all()):
                known.low_kept = min(known.low_kept, float(value[~masked].min()))
        elif value.dtype == torch.bool and value.dim():
            known = self._ranges.setdefault(node.name, _Range())
            known.is_true_along_row |= bool(value.all(-1).any())
            known.is_false_along_row |= not bool(value.any(-1).all())

    def _split(self, node: Any) -> _Masked:
        """A softmax's input as terms and masks; one term where nothing is known to mask."""
        name = operator_name(node)
        if name in _SAME_VALUE and node.meta["val"].dtype == node.args[0].meta["val"].dtype:
            return self._split(node.args[0])
        parts = None
        if name == "aten::add":
            parts = self._split_sum(node)
        elif name == "aten::masked_fill":
            scores, mask, value = node.args
            parts = self._chosen(scores, (_HIDES, mask), value) if self._masks_all(value) else None
        elif name == "aten::where":
            parts = self._split_where(node)
        return parts or _Masked([node])

    def _split_sum(self, node: Any) -> _Masked | None:
        if node.kwargs or len(node.args) != 2 or not all(hasattr(item, "meta") for item in node.args):
            return None
        masks = [self._is_mask(item) for item in node.args]
        if all(masks):
            return None
        parts = [
            self._added(item) if is_mask else self._split(item)
            for item, is_mask in zip(node.args, masks, strict=True)
        ]
        one, other = parts
        return _Masked(one.terms + other.terms, one.masks + other.masks, one.rows + other.rows)

    def _added(self, mask: Any) -> _Masked:
        if self._value(mask) is not None:
            return _Masked(masks=[(_ADDED, mask)])
        known = self._ranges[mask.name]
        return _Masked(masks=[(_ADDED, mask)], rows=[_ZERO if known.high_masked == -math.inf else _SCORES])

    def _split_where(self, node: Any) -> _Masked | None:
        mask, one, other = node.args
        if self._masks_all(other) and hasattr(one, "meta"):
            return self._chosen(one, (_KEEPS, mask), other)
        if self._masks_all(one) and hasattr(other, "meta"):
            return self._chosen(other, (_HIDES, mask), one)
        return None

    def _chosen(self, scores: Any, mask: tuple[str, Any], value: Any) -> _Masked:
        inner = self._split(scores)
        rows = []
        if self._value(mask[1]) is None:
            highest = value if isinstance(value, (int, float)) else self._ranges[value.name].high
            rows = [_ZERO if highest == -math.inf else _UNIFORM]
        return _Masked(inner.terms, [*inner.masks, mask], [*inner.rows, *rows])

    def _range(self, node: Any) -> _Range | None:
        if node.name in self._constants and node.op == "placeholder" and node.name not in self._ranges:
            self._note(node, self._constants[node.name])
        return self._ranges.get(node.name)

    def _is_mask(self, node: Any) -> bool:
        known = self._range(node)
        if known is None or known.low > _LOWEST or known.high <= _LOWEST:
            return False
        return node.name in self._constants or known.is_binary

    def _masks_all(self, value: Any) -> bool:
        if isinstance(value, (int, float)):
            return value <= _LOWEST
        known = self._range(value)
        return known is not None and known.high <= _LOWEST

    def _rewrite(self, node: Any, found: _Masked, low: float) -> None:
        terms = list(found.terms)
        for kind, mask in found.masks:
            offsets = self._offsets(kind, mask)
            if offsets is not None:
                terms.append(add_constant(self._program, f"{mask.name}_offsets", offsets))
        factors = [(self._value(mask) is None, self._factor(node, kind, mask)) for kind, mask in found.masks]
        fixed = [factor for is_varying, factor in factors if not is_varying]
        varying = [factor for is_varying, factor in factors if is_varying]
        rows = set(found.rows)
        row = rows.pop() if len(rows) == 1 else _UNIFORM
        softmax = _masked_softmax((len(terms), len(fixed)), node.args[1], low, row)
        inline(self._program, node, softmax, [*terms, *fixed, *varying])

    def _factor(self, node: Any, kind: str, mask: Any) -> Any:
        """A node of zeros and ones, made once for each mask."""
        key = kind, mask.name
        if key not in self._factors:
            value = self._value(mask)
            if value is None:
                factor = _FACTORS.get(kind) or _of_binary(self._ranges[mask.name].high_masked)
                self._factors[key] = inline(self._program, None, factor, [mask], before=node)
            else:
                self._factors[key] = add_constant(
                    self._program, f"{mask.name}_factors", self._ones(kind, mask).float()
                )
        return self._factors[key]

    def _ones(self, kind: str, mask: Any) -> Any:
        """Where a constant keeps the scores, as a Boolean tensor."""
        value: Any = self._value(mask)
        return value > _LOWEST if kind == _ADDED else value != 0 if kind == _KEEPS else value == 0

    def _offsets(self, kind: str, mask: Any) -> Any | None:
        """What a constant that is added does where it does not mask."""
        value = self._value(mask)
        if kind != _ADDED or value is None:
            return None
        kept = value.where(value > _LOWEST, 0.0)
        return kept if bool(kept.any()) else None

    def _value(self, node: Any) -> Any | None:
        """The value of a constant."""
        value = self._values.get(node.name)
        return self._constants.get(node.name) if value is None else value


def _masked_softmax(counts: tuple[int, int], axis: int, low: float, row: str) -> Callable[..., Any]:
    """The softmax of the sum of the first tensors, with the rest as factors: first those that are constant. `low` is
    added to no effect, so that what is masked is no larger than what is not; `row` is what a row without a key gives,
    of which no sample says that it cannot come."""
    terms, constants = counts

    def softmax(*given: Any) -> Any:
        scores = sum(given[1:terms], start=given[0])
        fixed, varying = _product(given[terms : terms + constants]), _product(given[terms + constants :])
        keep = scored = counted = _product([item for item in (fixed, varying) if item is not None])
        if varying is not None and row != _ZERO:
            # All ones in a row without a key; every step stays in the range that it has in other rows.
            filled = varying - keep.amax(axis, True) + 1.0
            counted = filled if fixed is None else filled * fixed
            scored = counted if row == _SCORES else keep
        shifted = (scores - low) * scored
        weights = (shifted - shifted.amax(axis, True)).exp() * counted
        total = weights.sum(axis, True)
        if varying is not None and row == _ZERO:
            total = total.clamp(min=1.0)  # the largest weight of a row with a key is 1
        return weights * total.reciprocal()

    return softmax


def _product(factors: Sequence[Any]) -> Any:
    return functools.reduce(operator.mul, factors) if factors else None


def _has_empty_row(factors: Sequence[Any]) -> bool:
    """Whether Boolean tensors have a row, along the last axis, in which they are never all true."""
    together = functools.reduce(operator.and_, factors)
    return together.dim() > 0 and not bool(together.any(-1).all())


_FACTORS: dict[str, Callable[[Any], Any]] = {
    _KEEPS: lambda mask: mask.float(),
    _HIDES: lambda mask: 1.0 - mask.float(),
}


def _of_binary(masked: float) -> Callable[[Any], Any]:
    """For a tensor of zeros and values that mask, of which `masked` is the highest. Small ones take operators that
    every NPU has; the others would need a factor that no int8 scale stands for."""
    if masked < _LARGE:
        return lambda mask: (mask == 0).float()
    return lambda mask: (mask * (-1.0 / masked)).clamp(-1.0, 0.0) + 1.0


def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    """``scaled_dot_product_attention`` in parts, as torch's documentation writes it."""
    import torch

    del dropout_p
    if enable_gqa:
        key, value = (item.repeat_interleave(query.size(-3) // item.size(-3), -3) for item in (key, value))
    scale = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    scores = query @ key.transpose(-2, -1) * scale
    if is_causal:
        attn_mask = torch.ones(query.size(-2), key.size(-2), dtype=torch.bool).tril()
    is_bool = attn_mask.dtype == torch.bool
    masked = torch.where(attn_mask, scores, -math.inf) if is_bool else scores + attn_mask
    return torch.softmax(masked, -1) @ value


def _is_masked_attention(node: Any) -> bool:
    if operator_name(node) != _ATTENTION:
        return False
    arguments = _arguments(node)
    return arguments.get("attn_mask") is not None or bool(arguments.get("is_causal"))


def _arguments(node: Any) -> dict[str, Any]:
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    return {**dict(zip(names, node.args, strict=False)), **node.kwargs}


def _may_be_masked(node: Any) -> bool:
    while operator_name(node) in _SAME_VALUE:
        node = node.args[0]
    return operator_name(node) in ("aten::add", "aten::masked_fill", "aten::where")


def _constants(program: Any) -> dict[str, Any]:
    """The nodes that no input and no state has a part in, by name; the values of placeholders."""
    signature = program.graph_signature
    targets = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    targets |= signature.inputs_to_lifted_tensor_constants
    written = set(signature.buffers_to_mutate.values())
    found: dict[str, Any] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name in targets and targets[node.name] not in written:
            name = targets[node.name]
            found[node.name] = program.state_dict.get(name, program.constants.get(name))
        elif node.op == "call_function" and all(source.name in found for source in node.all_input_nodes):
            found[node.name] = None
    return found
