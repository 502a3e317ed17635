"""The comparisons from the user's model to the program that is lowered; of a quantised graph, layer by layer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import convert

from ethosu_sdk.base import plain_text
from ethosu_sdk.base.errors import VerdictError
from ethosu_sdk.compile import check_references, stage_comparison
from ethosu_sdk.compile.compile_facts import (
    CONVERTED_LINK,
    EXPLAINED,
    GRAPH_LINK,
    PREPARED_LINK,
    QUANTISED_LINK,
    ChainFacts,
)
from ethosu_sdk.compile.graphs import execution, tensor_arrays
from ethosu_sdk.compile.graphs.execution import RecordedValues
from ethosu_sdk.compile.graphs.fx import is_dequantize, is_mutable, is_quantize
from ethosu_sdk.compile.graphs.source_lines import SourceFinder
from ethosu_sdk.compile.model_state import InitialState
from ethosu_sdk.compile.stage_comparison import Difference, EagerRun, Rows, Trials
from ethosu_sdk.records.compile import Link, LinkName, LinkVerdict, NoisyLayer, SampleOrigin

if TYPE_CHECKING:
    from ethosu_sdk.compile.front_ends.onnx_model import OnnxModel

Tensors = tuple[Any, ...]
Constants = dict[tuple[str, int, int], Any]  # by observer, place in memory and number of writes to it

_TRIALS = 3
_NOISY = 3  # layers that are named
_FACTOR = 2.0  # of a step, for the rms of errors whose rounding alone is 0.29 of a step
_FLOAT_STEP = 2.0**-18  # of the largest value: float32 arithmetic of two graphs
_SCALES_AGREE = 1e-3
# What observers without a range, or of a kind that nobody foresaw, raise when they are asked for one.
_NOT_KNOWN = (AttributeError, TypeError, RuntimeError, AssertionError, NotImplementedError)


class Chain:
    """The comparisons of one compilation, made as its stages come to be."""

    def __init__(self, eager: EagerRun, finder: SourceFinder) -> None:
        self._eager = eager
        self._finder = finder
        self._links: list[Link] = []
        self._noisy: list[NoisyLayer] = []
        self._graph: Any = None
        self._moved: Trials | None = None
        self.example: Tensors = ()  # what the quantised graph gives for the example inputs

    @property
    def facts(self) -> ChainFacts:
        samples = convert([row.source for row in self._eager.samples], tuple[SampleOrigin, ...])
        start = "onnxruntime" if any(row.link == CONVERTED_LINK for row in self._links) else ""
        return ChainFacts(samples, tuple(self._links), tuple(self._noisy), start)

    @property
    def samples(self) -> list[Tensors]:
        return [row.inputs for row in self._eager.samples]

    def graph(self, program: Any, origin: OnnxModel | None = None) -> None:
        """float eager → the exported `program`. VerdictError when it computes something else, or when the module that
        was converted from its `origin` does."""
        self._graph = program
        if origin is not None:
            self._converted(origin)
        module = program.module(check_guards=False)
        difference = self._add_link(GRAPH_LINK, _sequence(module, self.samples), self._other_structure())
        if difference is not None:
            self._fail("the exported graph", difference, self._lost_of_eager(module, difference))

    def prepared(self, prepared: Any) -> None:
        """The exported graph → the graph with observers, each of which copies. VerdictError as above."""
        with execution.state_kept(prepared):
            given = [execution.run_graph(prepared, inputs) for inputs in self.samples]
        difference = self._add_link(PREPARED_LINK, given)
        if difference is not None:
            graph, values = self._graph.module(check_guards=False), self._values(prepared, difference)
            place = self._lost(graph, values, difference)
            self._fail("the graph that is prepared for quantisation", difference, place)

    def _converted(self, origin: OnnxModel) -> None:
        wanted = origin.outputs(self.samples)
        difference = self._add_link(CONVERTED_LINK, self._eager.outputs, wanted=wanted)
        if difference is None:
            return
        place = origin.place_of_loss(self.samples[difference.sample], stage_comparison.is_close)
        where = f", first at {place}" if place else ""
        raise VerdictError(
            f"the PyTorch module does not compute what {origin.file.path} does in onnxruntime{where}: "
            f"{difference.text} (sample {difference.sample})",
            "nothing was written. onnx2torch converts this operator to one that differs: export the model with other "
            "options, or compile the PyTorch model that the file was exported from; --no-check compiles without the "
            "comparison",
        )

    def _add_link(
        self,
        link: LinkName,
        given: Rows,
        other_form: Difference | None = None,
        wanted: Rows | None = None,
    ) -> Difference | None:
        wanted = self._eager.outputs if wanted is None else wanted
        difference = stage_comparison.form_difference(wanted, given) or other_form
        if difference is None:
            verdict, difference = stage_comparison.within_rounding(wanted, given, self._trials)
        if difference is None:
            found = stage_comparison.linked_outputs(wanted, given, self._names)
            self._links.append(
                Link(link=link, status="pass", verdict=convert(verdict, LinkVerdict), outputs=found)
            )
        return difference

    def not_prepared(self, reason: str) -> None:
        self._links.append(Link(link=PREPARED_LINK, status="unavailable", reason=reason))

    def quantised(self, quantized: Any, prepared: Any | None) -> None:
        """The prepared graph → the quantised one, layer by layer. VerdictError for a layer whose error neither its
        steps nor its inputs explain."""
        rows: list[StoredLayers] = []
        judged: list[JudgedLayer] = []
        constants: Constants = {}
        reason = "" if prepared is not None else "its branches are quantised one by one"
        with execution.state_kept(quantized):
            for number, sample in enumerate(self._eager.samples):
                state = InitialState(quantized)
                rows.append(stored_layers(quantized, sample.inputs))
                few = number < stage_comparison.SAMPLE_COUNT
                if prepared is None or reason or not (sample.calibrated and few):
                    continue
                try:
                    state.restore(prepared)
                    judged += judged_layers(prepared, sample.inputs, rows[-1], constants)
                except Exception as error:  # observers of another kind, from a quantiser of somebody else's
                    reason = f"its layers could not be compared: {plain_text.error(error)}"
        wanted, given = self._eager.outputs, [row.outputs for row in rows]
        self.example = given[0]
        difference = stage_comparison.form_difference(wanted, given)
        if difference is not None:
            self._fail("the quantised graph", difference, "")
        self._refuse_unexplained(judged)
        self._noisy = self._noisiest(judged)
        self._links.append(
            Link(
                link=QUANTISED_LINK,
                status="pass",
                verdict=EXPLAINED,
                outputs=stage_comparison.linked_outputs(wanted, given, self._names),
                layers=len({row.node for row in judged}),
                reason=reason or None,
            )
        )

    def _trials(self) -> Trials:
        if self._moved is None:
            module = self._graph.module(check_guards=False)
            base, rows = _sequence(module, self.samples), []
            for number in range(_TRIALS):
                with execution.targets_replaced(module, check_references.rounding_trial(number).replacement):
                    rows.append(_sequence(module, self.samples))
            self._moved = Trials(base, rows)
        return self._moved

    def _refuse_unexplained(self, judged: Sequence[JudgedLayer]) -> None:
        wrong = next((row for row in judged if not row.explained), None)
        if wrong is None:
            return
        why = wrong.wrong_scale or (
            f"its error is {wrong.error:.3g} (rms) of {wrong.signal:.3g}, but its step and range explain only "
            f"{wrong.limit:.3g}"
        )
        raise VerdictError(
            "the quantised model does not compute what the float model does: "
            f"{stage_comparison.node_place(wrong.node, self._finder)}: {why}",
            "nothing was written. Leave this operator out of quantisation with a 'quantizer' in the model's file "
            "(docs/guide/model-files.md), or give calibration samples with its whole range; --no-check compiles "
            "without the comparison",
        )

    def _noisiest(self, judged: Sequence[JudgedLayer]) -> list[NoisyLayer]:
        worst: dict[Any, float] = {}
        for row in judged:
            worst[row.node] = min(worst.get(row.node, row.sqnr_db), row.sqnr_db)
        ranked = sorted((ratio, number, node) for number, (node, ratio) in enumerate(worst.items()))
        return [
            NoisyLayer(operator=str(node.target), place=self._finder.place(node.meta), sqnr_db=ratio)
            for ratio, _, node in ranked[:_NOISY]
            if math.isfinite(ratio)
        ]

    @property
    def _names(self) -> list[str]:
        return [str(name) for name in self._graph.graph_signature.user_outputs]

    def _other_structure(self) -> Difference | None:
        spec = self._graph.call_spec.out_spec
        if self._eager.structure is None or spec is None or spec == self._eager.structure:
            return None
        return Difference(
            0, 0, f"its outputs have the structure {spec}, but the model's have {self._eager.structure}"
        )

    def _fail(self, stage: str, difference: Difference, place: str) -> None:
        where = f", first at {place}" if place else ""
        raise VerdictError(
            f"{stage} does not compute what the model does{where}: {difference.text} (sample {difference.sample})",
            "nothing was written. Write the named line with operators that return new tensors and keep state in "
            "buffers (docs/guide/verdict.md); --no-check compiles without the comparison",
        )

    def _lost_of_eager(self, module: Any, difference: Difference) -> str:
        if self._eager.untouched is None:
            return ""
        for sample in self.samples[: difference.sample]:
            execution.call_module(self._eager.untouched, sample)
        values = execution.eager_values(self._eager.untouched, self.samples[difference.sample])
        return self._lost(module, values, difference)

    def _lost(self, module: Any, other: RecordedValues, difference: Difference) -> str:
        """The operator of `module` at which `other` values stop to be its own, or else the first that writes."""
        place = stage_comparison.place_of_loss(
            module, self._values(module, difference), other, difference.output, self._finder
        )
        first = next(filter(is_mutable, module.graph.nodes), None)
        if place or first is None:
            return place
        return stage_comparison.node_place(first, self._finder)

    def _values(self, module: Any, difference: Difference) -> RecordedValues:
        values = RecordedValues()
        with execution.state_kept(module):
            for sample in self.samples[: difference.sample]:
                execution.run_graph(module, sample)
            execution.run_graph(module, self.samples[difference.sample], note=values.note)
        for value in values.by_node.values():
            values.add(value)  # as it is in the end
        return values


def _sequence(module: Any, samples: Sequence[Tensors]) -> list[Tensors]:
    with execution.state_kept(module):
        return [tuple(item.clone() for item in execution.run_eager(module, sample)) for sample in samples]


# The layers of a quantised graph. The prepared graph is executed with the values of the quantised one: at each
# observer the two are compared, and the quantised value goes on. A layer's error is then its own: rounding to its
# steps, and what its range cuts off.


@dataclass(frozen=True)
class CodeStep:
    """How the quantised graph stores a value: scale, zero point, least and greatest code."""

    scale: float
    zero_point: int
    low: int
    high: int

    @property
    def limits(self) -> tuple[float, float]:
        return (self.low - self.zero_point) * self.scale, (self.high - self.zero_point) * self.scale


@dataclass(frozen=True)
class JudgedLayer:
    """A layer on one sample: its `node` in the prepared graph; rms of its own `error`, of its `signal`, and the
    `limit` that its step and the range of its values explain; what is wrong with its scale, in words."""

    node: Any
    error: float
    signal: float
    limit: float
    wrong_scale: str

    @property
    def explained(self) -> bool:
        return not self.wrong_scale and self.error <= self.limit

    @property
    def sqnr_db(self) -> float:
        """Signal to own noise; infinite without noise."""
        if not self.error:
            return math.inf
        return 20.0 * math.log10(self.signal / self.error) if self.signal else -math.inf


@dataclass(frozen=True)
class StoredLayers:
    """The values of a quantised graph for one sample: its outputs, and by name of each quantised node what is stored,
    dequantised, and how."""

    outputs: Tensors
    values: dict[str, list[tuple[CodeStep, Any]]]


def stored_layers(quantized: Any, inputs: Tensors) -> StoredLayers:
    """Execute a quantised graph and keep what it stores."""
    import torch

    values: dict[str, list[tuple[CodeStep, Any]]] = {}

    def note(node: Any, result: Any) -> None:
        if is_quantize(node):
            scale, zero_point, low, high = node.args[1:5]
            step = CodeStep(float(scale), int(zero_point), int(low), int(high))
            value = (result.to(torch.float32) - step.zero_point) * step.scale
            values.setdefault(_origin(node.args[0]).name, []).append((step, value))

    return StoredLayers(execution.run_graph(quantized, inputs, note=note), values)


def _origin(node: Any) -> Any:
    """The node whose value `node` holds, even if it was observed or stored several times on the way."""
    while node.op == "call_module" or is_quantize(node) or is_dequantize(node):
        node = node.args[0]
    return node


def judged_layers(
    prepared: Any, inputs: Tensors, stored: StoredLayers, constants: Constants
) -> list[JudgedLayer]:
    """The layers of the sample whose values are `stored`, in the order of execution. The graph keeps its state.
    `constants` keeps quantised weights from sample to sample."""
    found: list[JudgedLayer] = []

    def observe(node: Any, observer: Any, value: Any) -> Any:
        source = _origin(node.args[0])
        own = _step_of(observer)
        if not value.is_floating_point():
            return value.clone()
        if source.name not in stored.values:
            key = (node.name, value.data_ptr(), value._version)
            if key not in constants:
                constants[key] = rounded(observer, value)  # a constant, which conversion has stored as such
            return constants[key]
        step, given = _nearest(stored.values[source.name], own)
        if given.shape != value.shape:
            return value.clone()
        if source.op == "call_function":
            # What is stored a second time is stored so for the operator that reads it.
            at = source if node.args[0] is source else next(iter(node.users), source)
            found.append(_layer(at, value, given, step, observer))
        return given.to(value.dtype)

    with execution.state_kept(prepared):
        execution.run_graph(prepared, inputs, observe=observe)
    return found


def _layer(node: Any, value: Any, given: Any, step: CodeStep, observer: Any) -> JudgedLayer:
    own = _step_of(observer)
    wanted, got = (tensor_arrays.as_numpy(item).astype(np.float64) for item in (value, given))
    finite = np.isfinite(wanted)
    wanted, got = wanted[finite], got[finite]
    size = max(wanted.size, 1)
    spread = float(wanted.max(initial=0.0) - wanted.min(initial=0.0)) / max(step.high - step.low, 1)
    # What calibration saw and cut off, it weighed against the steps of all other values. A range that was fixed
    # beforehand has no such excuse.
    calibrated = hasattr(observer, "min_val") and hasattr(observer, "max_val")
    kept = wanted.clip(*step.limits) if calibrated else wanted
    error = got - kept
    scale, wrong_scale = step.scale if own is None else own.scale, ""
    if abs(step.scale - scale) > _SCALES_AGREE * scale:
        wrong_scale = f"it is stored in steps of {step.scale:.4g}, but calibration chose {scale:.4g}"
    return JudgedLayer(
        node,
        error=math.sqrt(float(error @ error) / size),
        signal=math.sqrt(float(wanted @ wanted) / size),
        limit=_FACTOR * max(scale, spread) + _FLOAT_STEP * float(np.abs(wanted).max(initial=0.0)),
        wrong_scale=wrong_scale,
    )


def _nearest(rows: Sequence[tuple[CodeStep, Any]], own: CodeStep | None) -> tuple[CodeStep, Any]:
    """The stored form that matches an observer best, among those of one value."""
    if own is None:
        return rows[0]
    return min(rows, key=lambda row: (abs(row[0].scale - own.scale), abs(row[0].zero_point - own.zero_point)))


def _step_of(observer: Any) -> CodeStep | None:
    """The quantisation of one scale that an observer asks for; None for one that has none."""
    import torch

    try:
        scale, zero_point = observer.calculate_qparams()[:2]
        if not isinstance(scale, torch.Tensor) or scale.numel() != 1:
            return None
        low, high = int(observer.quant_min), int(observer.quant_max)
        return CodeStep(float(scale), int(zero_point), low, high)
    except _NOT_KNOWN:
        return None


def rounded(observer: Any, value: Any) -> Any:
    """A value as its observer quantises it; a copy where that is not known."""
    import torch

    try:
        scale, zero_point = observer.calculate_qparams()[:2]
        low, high = int(observer.quant_min), int(observer.quant_max)
        if scale.numel() == 1:
            return torch.fake_quantize_per_tensor_affine(value, float(scale), int(zero_point), low, high)
        axis = int(getattr(observer, "ch_axis", 0))
        points = zero_point.to(torch.int32)
        return torch.fake_quantize_per_channel_affine(value, scale.float(), points, axis, low, high)
    except _NOT_KNOWN:
        return value.clone()
