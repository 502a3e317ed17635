"""Compares the outputs of a stage with those of the stage before, over several samples, from eager PyTorch on."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ethosu_sdk.base import plain_text
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.compile import model_state
from ethosu_sdk.compile.compile_facts import EQUAL, ROUNDING
from ethosu_sdk.compile.distance import distance, equal_elements, linked_output, moved
from ethosu_sdk.compile.graphs import execution, tensor_arrays
from ethosu_sdk.compile.graphs.execution import RecordedValues
from ethosu_sdk.compile.graphs.fx import is_mutable, operator_name
from ethosu_sdk.compile.graphs.source_lines import SourceFinder
from ethosu_sdk.compile.graphs.tensor_arrays import Array
from ethosu_sdk.compile.model_state import Change, InitialState
from ethosu_sdk.records.compile import LinkOutput

Tensors = tuple[Any, ...]
Rows = Sequence[Tensors]  # for each sample its outputs

_CLOSE = 2.0**-14  # of the largest value: what the order of float32 sums changes in a deep network
SAMPLE_COUNT = 3
SAMPLE_STEPS = 16  # of a model with a state
EXAMPLE, CALIBRATION, SHUFFLED = "example", "calibration", "shuffled"
_SEED = 20


@dataclass(frozen=True)
class Sample:
    inputs: Tensors
    source: str
    calibrated: bool


def chosen_samples(inputs: Tensors, calibration: Sequence[Tensors]) -> list[Sample]:
    """SAMPLE_COUNT samples that differ, the example inputs first; fewer only when the inputs have no two orders."""
    found = [Sample(inputs, EXAMPLE, any(_equal(inputs, row) for row in calibration))]
    half = len(calibration) // 2
    for row in [*calibration[:1], *calibration[half:], *calibration[1:half]]:
        if len(found) < SAMPLE_COUNT and not any(_equal(row, known.inputs) for known in found):
            found.append(Sample(row, CALIBRATION, True))
    for number in range(SAMPLE_COUNT - len(found)):
        row = _shuffled(inputs, number)
        if not any(_equal(row, known.inputs) for known in found):
            found.append(Sample(row, SHUFFLED, False))
    return found


def longer_samples(samples: Sequence[Sample], calibration: Sequence[Tensors]) -> list[Sample]:
    """A sequence of SAMPLE_STEPS for a model with a state: the calibration samples in their order behind the
    example, as a sequence that was calibrated. If these are too few, `samples` and what follows them: the
    calibration samples again and again, or without any the samples themselves."""
    if len(calibration) >= SAMPLE_STEPS:
        first = 1 if _equal(samples[0].inputs, calibration[0]) else 0
        return [
            samples[0],
            *(Sample(row, CALIBRATION, True) for row in calibration[first:][: SAMPLE_STEPS - 1]),
        ]
    found = list(samples)
    rows = [Sample(row, CALIBRATION, True) for row in calibration] or list(samples)
    while len(found) < SAMPLE_STEPS:
        found.append(rows[(len(found) - len(samples)) % len(rows)])
    return found


def _equal(one: Tensors, other: Tensors) -> bool:
    import torch

    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def _shuffled(inputs: Tensors, number: int) -> Tensors:
    """Inputs with the elements of the example in another order, so that their range stays the same."""
    import torch

    generator = torch.Generator().manual_seed(_SEED + number)
    rows = []
    for item in inputs:
        if item.numel() == 1 and item.is_floating_point():
            rows.append(item * (0.75 - 0.5 * number))
            continue
        order = torch.randperm(item.numel(), generator=generator)
        shuffled = item.reshape(-1)[order].reshape(item.shape)
        rows.append(torch.empty_like(item).copy_(shuffled))
    return tuple(rows)


@dataclass(frozen=True)
class Difference:
    """The first output that is not what it should be, in words, and the sample where it is seen."""

    output: int
    sample: int
    text: str


def form_difference(reference: Rows, candidate: Rows) -> Difference | None:
    import torch

    for number, (wanted, given) in enumerate(zip(reference, candidate, strict=True)):
        if len(wanted) != len(given):
            return Difference(0, number, f"it has {len(given)} outputs, but the model has {len(wanted)}")
        for index, (one, other) in enumerate(zip(wanted, given, strict=True)):
            # Arm's passes make int32 of int64: the values are compared.
            held = other.dtype == one.dtype or (other.dtype, one.dtype) == (torch.int32, torch.int64)
            if one.shape != other.shape or not held:
                return Difference(
                    index, number, f"output {index} is {_type(other)}, the model's is {_type(one)}"
                )
    return None


@dataclass(frozen=True)
class Trials:
    """An execution, and others of the same graph in which each result is moved by a few units in the last place."""

    base: Rows
    moved: Sequence[Rows]


def within_rounding(
    reference: Rows, candidate: Rows, trials: Callable[[], Trials]
) -> tuple[str, Difference | None]:
    """Whether outputs are ``equal``, or differ by what arithmetic leaves open; `trials` are made when needed."""
    verdict, far = EQUAL, None
    for number, (wanted, given) in enumerate(zip(reference, candidate, strict=True)):
        for index, (one, other) in enumerate(zip(wanted, given, strict=True)):
            e, r = tensor_arrays.as_numpy(other), tensor_arrays.as_numpy(one)
            if _identical(e, r):
                continue
            verdict = ROUNDING
            if far is None and not is_close(e, r):
                far = (index, number)
    if far is None:
        return verdict, None
    return verdict, _unexplained(reference, candidate, trials())


def _unexplained(reference: Rows, candidate: Rows, trials: Trials) -> Difference | None:
    steady = {index for index in range(len(reference[0])) if _is_steady(trials, index)}
    for number, (wanted, given) in enumerate(zip(reference, candidate, strict=True)):
        for index, (one, other) in enumerate(zip(wanted, given, strict=True)):
            wanted_array, base = (
                tensor_arrays.as_numpy(one),
                tensor_arrays.as_numpy(trials.base[number][index]),
            )
            lost = int(np.count_nonzero(np.isfinite(wanted_array) & ~np.isfinite(base)))
            if lost:  # what the graph itself makes infinite has no rounding to be compared with
                return Difference(
                    index,
                    number,
                    f"output {index}: {plain_text.counted(lost, 'element')} not finite, but finite in the model",
                )
            around = [
                moved(wanted_array, base, tensor_arrays.as_numpy(rows[number][index]))
                for rows in trials.moved
            ]
            exact = index in steady and wanted_array.dtype.kind != "f"
            found = distance(tensor_arrays.as_numpy(other), wanted_array, around, None, exact=exact)
            if not found.explained:
                return Difference(index, number, f"output {index}: {found.detail}")
    return None


def _is_steady(trials: Trials, index: int) -> bool:
    return all(
        _identical(tensor_arrays.as_numpy(one[index]), tensor_arrays.as_numpy(other[index]))
        for rows in trials.moved
        for one, other in zip(trials.base, rows, strict=True)
    )


def linked_outputs(reference: Rows, candidate: Rows, names: Sequence[str]) -> tuple[LinkOutput, ...]:
    return tuple(
        linked_output(
            index,
            name,
            np.stack([tensor_arrays.as_numpy(row[index]) for row in candidate]),
            np.stack([tensor_arrays.as_numpy(row[index]) for row in reference]),
        )
        for index, name in enumerate(names)
    )


def _identical(one: Array, other: Array) -> bool:
    return bool(np.all(equal_elements(one, other)))


def is_close(one: Array, other: Array) -> bool:
    """Whether `one` is `other` but for the order of sums; integers must be equal."""
    if _identical(one, other):
        return True
    if other.dtype.kind != "f":
        return False
    finite = np.isfinite(other)
    if not np.array_equal(finite, np.isfinite(one)) or not np.all(equal_elements(one, other)[~finite]):
        return False
    e, r = one[finite].astype(np.float64), other[finite].astype(np.float64)
    return bool(np.all(np.abs(e - r) <= _CLOSE * np.abs(r).max(initial=0.0)))


def _type(tensor: Any) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def place_of_loss(
    graph_module: Any, values: RecordedValues, other: RecordedValues, output: int, finder: SourceFinder
) -> str:
    """Words for the operator of `graph_module` at which `other` stops to have its `values`; empty when unknown."""
    from torch.utils import _pytree

    results = [
        node for node in _pytree.tree_leaves(graph_module.graph.output_node().args) if hasattr(node, "op")
    ]
    if output >= len(results):
        return ""
    lost = _deepest(graph_module, results[output], values, other)
    if lost is None:
        return ""
    writer = _writer(graph_module, lost, values)
    return node_place(writer or lost, finder)


def node_place(node: Any, finder: SourceFinder) -> str:
    """An operator and its line: ``aten::copy_ (model.py, line 12)``."""
    place = finder.place(node.meta)
    name = operator_name(node) or str(node.target)
    return f"{name} ({place})" if place else name


def _deepest(graph_module: Any, node: Any, values: RecordedValues, other: RecordedValues) -> Any | None:
    """The first lost node on the ways back from `node` through lost ones; None when it is not lost itself."""

    def is_close_tensor(one: Any, two: Any) -> bool:
        return is_close(tensor_arrays.as_numpy(one), tensor_arrays.as_numpy(two))

    pending, lost = [node], set()
    while pending:
        current = pending.pop()
        if current in lost or current.op != "call_function":
            continue
        leaves = execution.tensors_of(values.by_node.get(current.name))
        if any(not other.hold(leaf, is_close_tensor) for leaf in leaves):
            lost.add(current)
            pending += current.all_input_nodes
    return next((current for current in graph_module.graph.nodes if current in lost), None)


def _writer(graph_module: Any, node: Any, values: RecordedValues) -> Any | None:
    """The first operator that writes to the memory of a node's value."""
    places = {leaf.untyped_storage().data_ptr() for leaf in execution.tensors_of(values.by_node[node.name])}
    for user in graph_module.graph.nodes:
        if not is_mutable(user) or not user.all_input_nodes:
            continue
        written = values.by_node.get(user.all_input_nodes[0].name)
        if any(leaf.untyped_storage().data_ptr() in places for leaf in execution.tensors_of(written)):
            return user
    return None


@dataclass(frozen=True)
class EagerRun:
    """The `samples` that the model ran on, one after the other; its outputs for each, and the structure that they
    come in; what the model changed of itself; a copy of it from before, None where torch cannot copy it. `filled` is
    a copy with the tables that the first inference filled for all others, None where there are none. `repeats` says
    that another copy gives the same outputs for the first sample: nothing outside of it has changed."""

    samples: tuple[Sample, ...]
    outputs: tuple[Tensors, ...]
    structure: Any
    changes: tuple[Change, ...]
    untouched: Any = field(repr=False)
    filled: Any = field(default=None, repr=False)
    repeats: bool = True


def executed_eagerly(
    module: Any, samples: Sequence[Sample], longer: Callable[[Sequence[Sample]], Sequence[Sample]]
) -> EagerRun:
    """Run a copy of `module`; one that changes itself goes on with what `longer` makes of the samples that it ran.
    InputError when the model fails on its own samples; shuffled ones it may refuse."""
    try:
        running, untouched = copy.deepcopy(module), copy.deepcopy(module)
    except Exception:  # a module may hold what Python cannot copy
        running, untouched = module, None
    run = _Execution(running)
    run.go_on(samples[:1])
    warm = None if untouched is None else _after_first(untouched, running)
    run.go_on(samples[1:])
    changed = [] if untouched is None else model_state.state_changes(untouched, running)
    carried = changed
    if warm is not None:
        # A flag, or a table that the first inference fills and all others read, is no state.
        later = {row.path for row in model_state.state_changes(warm, running)}
        carried = [row for row in changed if row.kind != model_state.OTHER or row.path in later]
    filled = None
    if len(run.samples) > 1 and len(carried) < len(changed):
        InitialState(untouched).restore(warm)
        if _gives(copy.deepcopy(warm), run):
            changed, filled = carried, warm
    if changed:
        wanted = longer(run.samples)
        if any(one is not other for one, other in zip(run.samples, wanted, strict=False)):
            run = _Execution(copy.deepcopy(untouched))  # it took other samples first
        run.go_on(wanted[len(run.samples) :])
    repeats = untouched is None or _gives(copy.deepcopy(untouched), run)
    outputs = tuple(run.outputs)
    return EagerRun(tuple(run.samples), outputs, run.structure, tuple(changed), untouched, filled, repeats)


class _Execution:
    """A module that runs on samples in a row, with what it ran on and gave."""

    def __init__(self, module: Any) -> None:
        self._module = module
        self.samples: list[Sample] = []
        self.outputs: list[Tensors] = []
        self.structure: Any = None

    def go_on(self, samples: Sequence[Sample]) -> None:
        """Run on more samples, up to a shuffled one that the module refuses."""
        from torch.utils import _pytree

        for sample in samples:
            try:
                result = execution.call_module(self._module, sample.inputs)
            except InputError:
                if sample.source == SHUFFLED:
                    break
                raise
            leaves, shape = _pytree.tree_flatten(result)
            self.structure = self.structure or shape
            self.samples.append(sample)
            kept = execution.flat_outputs(leaves, self._module)
            self.outputs.append(tuple(item.detach().clone() for item in kept))


def _gives(module: Any, run: _Execution) -> bool:
    from torch.utils import _pytree

    again = _pytree.tree_leaves(execution.call_module(module, run.samples[0].inputs))
    pairs = zip(execution.flat_outputs(again), run.outputs[0], strict=True)
    return all(is_close(tensor_arrays.as_numpy(one), tensor_arrays.as_numpy(other)) for one, other in pairs)


def _after_first(untouched: Any, running: Any) -> Any:
    """A copy of the module after its first inference if that changed anything but tensors; else the module before."""
    if all(row.kind != model_state.OTHER for row in model_state.state_changes(untouched, running)):
        return untouched
    try:
        return copy.deepcopy(running)
    except Exception:  # it may hold what Python cannot copy now
        return untouched
