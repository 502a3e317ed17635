"""The links of the chain that are computed in PyTorch. Each raises its own error when the two stages differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ethosu_sdk import plain_text
from ethosu_sdk.aot.comparison.chain import chain_samples, comparison, layers, locating
from ethosu_sdk.aot.comparison.chain.comparison import Difference, Trials
from ethosu_sdk.aot.comparison.chain.eager_model import EagerRun
from ethosu_sdk.aot.comparison.chain.layers import Layer, Stored
from ethosu_sdk.aot.comparison.check import rounding
from ethosu_sdk.aot.facts.chain import EXPLAINED, GRAPH, PREPARED, QUANTISED, ChainFacts, Link, NoisyLayer
from ethosu_sdk.aot.graph import execution, interpreting
from ethosu_sdk.aot.graph.fx import is_mutable
from ethosu_sdk.aot.graph.interpreting import Values
from ethosu_sdk.aot.graph.source_lines import SourceFinder
from ethosu_sdk.aot.model.initial_state import InitialState
from ethosu_sdk.errors import VerdictError

Tensors = tuple[Any, ...]

_TRIALS = 3
_NOISY = 3  # layers that are named
_HINT = (
    "nothing was written. Write the named line with operators that return new tensors and keep state in buffers "
    "(docs/guide/verdict.md); --no-check compiles without the comparison"
)


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
        """What was found so far."""
        return ChainFacts(
            tuple(row.source for row in self._eager.samples), tuple(self._links), tuple(self._noisy)
        )

    @property
    def samples(self) -> list[Tensors]:
        """The inputs of the samples."""
        return [row.inputs for row in self._eager.samples]

    def graph(self, program: Any) -> None:
        """float eager → the exported `program`. VerdictError when it computes something else."""
        self._graph = program
        module = program.module(check_guards=False)
        given = _sequence(module, self.samples)
        wanted = self._eager.outputs
        difference = comparison.form(wanted, given) or self._other_structure(program)
        verdict = ""
        if difference is None:
            verdict, difference = comparison.within_rounding(wanted, given, self._trials)
        if difference is not None:
            self._fail("the exported graph", difference, self._lost_of_eager(module, difference))
        self._links.append(Link(GRAPH, verdict, comparison.outputs(wanted, given, self._names)))

    def prepared(self, prepared: Any) -> None:
        """The exported graph → the graph with observers, each of which copies. VerdictError as above."""
        with interpreting.state_kept(prepared):
            given = [interpreting.run(prepared, inputs) for inputs in self.samples]
        wanted = self._eager.outputs
        verdict = ""
        difference = comparison.form(wanted, given)
        if difference is None:
            verdict, difference = comparison.within_rounding(wanted, given, self._trials)
        if difference is not None:
            place = self._lost_of_graph(self._graph.module(check_guards=False), prepared, difference)
            self._fail("the graph that is prepared for quantisation", difference, place)
        self._links.append(Link(PREPARED, verdict, comparison.outputs(wanted, given, self._names)))

    def not_prepared(self, reason: str) -> None:
        """Say why the second link does not exist."""
        self._links.append(Link(PREPARED, "", unavailable=reason))

    def quantised(self, quantized: Any, prepared: Any | None) -> None:
        """The prepared graph → the quantised one, layer by layer. VerdictError for a layer whose error neither its
        steps nor its inputs explain."""
        rows: list[Stored] = []
        judged: list[Layer] = []
        constants: layers.Constants = {}
        reason = "" if prepared is not None else "its branches are quantised one by one"
        with interpreting.state_kept(quantized):
            for number, sample in enumerate(self._eager.samples):
                state = InitialState(quantized)
                rows.append(layers.stored(quantized, sample.inputs))
                if not sample.calibrated or prepared is None or reason or number >= chain_samples.COUNT:
                    continue
                try:
                    state.restore(prepared)
                    judged += layers.judge(prepared, sample.inputs, rows[-1], constants)
                except Exception as error:  # observers of another kind, from a quantiser of somebody else's
                    reason = f"its layers could not be compared: {plain_text.error(error)}"
        wanted, given = self._eager.outputs, [row.outputs for row in rows]
        self.example = given[0]
        difference = comparison.form(wanted, given)
        if difference is not None:
            self._fail("the quantised graph", difference, "")
        self._refuse_unexplained(judged)
        self._noisy = self._noisiest(judged)
        found = comparison.outputs(wanted, given, self._names)
        self._links.append(Link(QUANTISED, EXPLAINED, found, len({row.node for row in judged}), reason))

    def _trials(self) -> Trials:
        """The exported graph on the samples, as it is and with other roundings."""
        if self._moved is None:
            module = self._graph.module(check_guards=False)
            base, rows = _sequence(module, self.samples), []
            for number in range(_TRIALS):
                with interpreting.replaced(module, rounding.trial(number).replacement):
                    rows.append(_sequence(module, self.samples))
            self._moved = Trials(base, rows)
        return self._moved

    def _refuse_unexplained(self, judged: Sequence[Layer]) -> None:
        wrong = next((row for row in judged if not row.explained), None)
        if wrong is None:
            return
        why = wrong.wrong_scale or (
            f"its error is {wrong.error:.3g} (rms) of {wrong.signal:.3g}, but its step and range explain only "
            f"{wrong.limit:.3g}"
        )
        raise VerdictError(
            "the quantised model does not compute what the float model does: "
            f"{locating.words(wrong.node, self._finder)}: {why}",
            "nothing was written. Leave this operator out of quantisation with a 'quantizer' in the model's file "
            "(docs/guide/model-files.md), or give calibration samples with its whole range; --no-check compiles "
            "without the comparison",
        )

    def _noisiest(self, judged: Sequence[Layer]) -> list[NoisyLayer]:
        worst: dict[Any, float] = {}
        for row in judged:
            worst[row.node] = min(worst.get(row.node, row.sqnr_db), row.sqnr_db)
        ranked = sorted((ratio, number, node) for number, (node, ratio) in enumerate(worst.items()))
        return [
            NoisyLayer(str(node.target), self._finder.place(node.meta), ratio)
            for ratio, _, node in ranked[:_NOISY]
            if ratio not in (float("inf"), float("-inf"))
        ]

    @property
    def _names(self) -> list[str]:
        return [str(name) for name in self._graph.graph_signature.user_outputs]

    def _other_structure(self, program: Any) -> Difference | None:
        """Whether names and order of outputs are others than the model's."""
        spec = program.call_spec.out_spec
        if self._eager.structure is None or spec is None or spec == self._eager.structure:
            return None
        return Difference(
            0, 0, f"its outputs have the structure {spec}, but the model's have {self._eager.structure}"
        )

    def _fail(self, stage: str, difference: Difference, place: str) -> None:
        where = f", first at {place}" if place else ""
        raise VerdictError(
            f"{stage} does not compute what the model does{where}: {difference.text} (sample {difference.sample})",
            _HINT,
        )

    def _lost_of_eager(self, module: Any, difference: Difference) -> str:
        if self._eager.untouched is None:
            return ""
        earlier, inputs = self.samples[: difference.sample], self.samples[difference.sample]
        for sample in earlier:
            execution.call(self._eager.untouched, sample)
        known = interpreting.of_eager(self._eager.untouched, inputs)
        return locating.find(
            module, _values(module, earlier, inputs), known, difference.output, self._finder
        ) or _first_write(module, self._finder)

    def _lost_of_graph(self, module: Any, prepared: Any, difference: Difference) -> str:
        earlier, inputs = self.samples[: difference.sample], self.samples[difference.sample]
        other = _values(prepared, earlier, inputs)
        values = _values(module, earlier, inputs)
        return locating.find(module, values, other, difference.output, self._finder) or _first_write(
            module, self._finder
        )


def _values(module: Any, earlier: Sequence[Tensors], inputs: Tensors) -> Values:
    values = Values()
    with interpreting.state_kept(module):
        for sample in earlier:
            interpreting.run(module, sample)
        interpreting.run(module, inputs, note=values.note)
    for value in values.by_node.values():
        values.add(value)  # as it is in the end
    return values


def _first_write(module: Any, finder: SourceFinder) -> str:
    first = next(filter(is_mutable, module.graph.nodes), None)
    return "" if first is None else locating.words(first, finder)


def _sequence(module: Any, samples: Sequence[Tensors]) -> list[Tensors]:
    with interpreting.state_kept(module):
        return [tuple(item.clone() for item in execution.run_eager(module, sample)) for sample in samples]
