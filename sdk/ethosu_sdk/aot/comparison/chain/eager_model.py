"""Executes the user's model in eager PyTorch before any other step changes it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ethosu_sdk.aot.comparison.chain.chain_samples import SHUFFLED, Sample
from ethosu_sdk.aot.comparison.chain.comparison import is_close
from ethosu_sdk.aot.graph import execution, tensors
from ethosu_sdk.aot.model import model_state
from ethosu_sdk.aot.model.initial_state import InitialState
from ethosu_sdk.aot.model.model_state import Change
from ethosu_sdk.errors import InputError

Tensors = tuple[Any, ...]


@dataclass(frozen=True)
class EagerRun:
    """The `samples` that the model ran on, one after the other; its outputs for each, and the structure that they
    come in; what the model changed of itself; a copy of it from before, None where torch cannot copy it.

    `filled` is a copy with the tables that the first inference filled for all others, None where there are none.
    `repeats` says that another copy gives the same outputs for the first sample: nothing outside of it has changed.
    """

    samples: tuple[Sample, ...]
    outputs: tuple[Tensors, ...]
    structure: Any
    changes: tuple[Change, ...]
    untouched: Any = field(repr=False)
    filled: Any = field(default=None, repr=False)
    repeats: bool = True


def execute(
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
    changed = [] if untouched is None else model_state.changes(untouched, running)
    carried = changed if warm is None else _without_caches(changed, warm, running)
    filled = None
    if len(run.samples) > 1 and len(carried) < len(changed):
        InitialState(untouched).restore(warm)
        if _gives(copy.deepcopy(warm), run):
            changed, filled = carried, warm
    if changed:
        run = _sequence(untouched, run, longer(run.samples))
    repeats = untouched is None or _gives(copy.deepcopy(untouched), run)
    outputs = tuple(run.outputs)
    return EagerRun(tuple(run.samples), outputs, run.structure, tuple(changed), untouched, filled, repeats)


def _sequence(untouched: Any, run: _Execution, samples: Sequence[Sample]) -> _Execution:
    """A run on `samples`: the one that there is, which goes on, or a new one where it took others first."""
    if any(one is not other for one, other in zip(run.samples, samples, strict=False)):
        run = _Execution(copy.deepcopy(untouched))
    run.go_on(samples[len(run.samples) :])
    return run


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
                result = execution.call(self._module, sample.inputs)
            except InputError:
                if sample.source == SHUFFLED:
                    break
                raise
            leaves, shape = _pytree.tree_flatten(result)
            self.structure = self.structure or shape
            self.samples.append(sample)
            kept = execution.as_outputs(leaves, self._module)
            self.outputs.append(tuple(item.detach().clone() for item in kept))


def _gives(module: Any, run: _Execution) -> bool:
    """Whether a module gives for the first sample of a run what the run's did."""
    from torch.utils import _pytree

    again = _pytree.tree_leaves(execution.call(module, run.samples[0].inputs))
    return _all_close(execution.as_outputs(again), run.outputs[0])


def _after_first(untouched: Any, running: Any) -> Any:
    """A copy of the module after its first inference if that changed anything but tensors; else the module before."""
    if all(row.kind != model_state.OTHER for row in model_state.changes(untouched, running)):
        return untouched
    try:
        return copy.deepcopy(running)
    except Exception:  # it may hold what Python cannot copy now
        return untouched


def _without_caches(changed: list[Change], warm: Any, running: Any) -> list[Change]:
    """The changes without those that the first inference alone makes: a flag, or a table that is filled once and read
    ever after, is no state."""
    later = {row.path for row in model_state.changes(warm, running)}
    return [row for row in changed if row.kind != model_state.OTHER or row.path in later]


def _all_close(given: Tensors, wanted: Tensors) -> bool:
    pairs = zip(given, wanted, strict=True)
    return all(is_close(tensors.as_numpy(one), tensors.as_numpy(other)) for one, other in pairs)
