"""Hooks into the tools: functions replaced for a time, errors translated, dropped facts kept, progress told."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ethosu_sdk.base import plain_text
from ethosu_sdk.base.errors import DISK_FULL, BuildError, SdkError

# ---- aot.graph.patching
# Replaces attributes of the tools' modules and classes for the time of a `with` block.

_ABSENT = object()


@contextlib.contextmanager
def patched(owner: Any, **attributes: Any) -> Iterator[None]:
    """While the block runs, `owner` has these `attributes`; afterwards its own, or those that it inherits."""
    before = {name: vars(owner).get(name, _ABSENT) for name in attributes}
    for name, value in attributes.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


# ---- aot.lowering.guarding
# Turns exceptions of the tools into errors of the SDK.

LOG_HINT = "compile.log holds what the tools printed"
_PASS_MANAGER = "An error occurred when running the"
_Result = TypeVar("_Result")


def guarded(what: str, action: Callable[[], _Result], hint: str = LOG_HINT) -> _Result:
    """The result of `action`; anything it raises becomes a BuildError with `hint`. Vela ends with SystemExit."""
    try:
        return action()
    except SdkError:
        raise
    except OSError as error:
        if error.errno in DISK_FULL:
            raise
        raise BuildError(f"{what}: {plain_text.error(error)}", hint) from error
    except (Exception, SystemExit) as error:
        raise BuildError(f"{what}: {plain_text.error(_cause(error))}", hint) from error


def _cause(error: BaseException) -> BaseException:
    """What failed inside of one of ExecuTorch's passes: their manager's own error lists the names of all passes."""
    while str(error).startswith(_PASS_MANAGER) and error.__cause__ is not None:
        error = error.__cause__
    return error


# ---- aot.graph.lowering_trace
# Records facts that ExecuTorch drops after lowering: why a node was rejected, and which node each TOSA operator was
# made from.
#
# ExecuTorch 1.5.1 logs the rejections as a table of text, and writes the origin of TOSA operators into the TOSA
# file, or beside it, only with options that change the `.pte`. So two of its functions are wrapped instead.

# The key under which a rejected node carries the reason: ExecuTorch's passes copy a node's `meta`.
REASON_KEY = "ethosu_sdk_rejected_because"


@dataclass
class LoweringTrace:
    """The nodes of the delegate that is being lowered, by the name of the TOSA tensor that they made first."""

    nodes: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def take(self) -> dict[str, Mapping[str, Any]]:
        """The `meta` of each node since the last call, by TOSA tensor."""
        found, self.nodes = self.nodes, {}
        return found


@contextlib.contextmanager
def lowering_traced() -> Iterator[LoweringTrace]:
    """While the block runs, nodes that the partitioner rejects are marked and TOSA operators are traced."""
    from executorch.backends.arm.operators.node_visitor import NodeVisitor
    from executorch.backends.arm.tosa import partitioner

    trace = LoweringTrace()
    reporter, serialize = partitioner.WhyNoPartitionReporter, NodeVisitor._serialize_operator

    class MarkingReporter(reporter):  # type: ignore[misc, valid-type]
        """Reports as its base does, and leaves the first reason at the node."""

        def report_reject(self, node: Any, reason: str) -> None:
            super().report_reject(node, reason)
            node.meta.setdefault(REASON_KEY, reason)

    def serialize_operator(
        self: Any, node: Any, tosa_graph: Any, tosa_op: Any, inputs: Any, outputs: Any, attributes: Any = None
    ) -> None:
        trace.nodes[str(outputs[0])] = dict(node.meta)
        serialize(self, node, tosa_graph, tosa_op, inputs, outputs, attributes)

    with (
        patched(partitioner, WhyNoPartitionReporter=MarkingReporter),
        patched(NodeVisitor, _serialize_operator=serialize_operator),
    ):
        yield trace


# ---- aot.lowering.substeps
# Reports which pass of which delegate ExecuTorch is working on, for a user who waits for a long lowering.

_STAGE = "lower"
_INTERVAL_S = 0.25


class _Position:
    """Reports where the lowering is, but not more often than a person can read."""

    def __init__(self, progress: Callable[[str], None]) -> None:
        self._progress = progress
        self._told_at = 0.0
        self._delegate = self._pass = self._passes = 0

    def delegate(self, passes: int) -> None:
        """The next delegate, which takes that many passes."""
        self._delegate, self._pass, self._passes = self._delegate + 1, 0, passes

    def next_pass(self) -> None:
        """The next pass of it."""
        self._pass += 1
        if time.monotonic() - self._told_at >= _INTERVAL_S:
            self._tell(f"pass {self._pass} of {self._passes}")

    def vela(self) -> None:
        """Vela, whose turn is after the passes."""
        self._tell("Vela")

    def _tell(self, what: str) -> None:
        self._told_at = time.monotonic()
        self._progress(f"{_STAGE}: delegate {self._delegate}, {what}")


@contextlib.contextmanager
def progress_told(progress: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, `progress` gets ``lower: delegate D, pass P of N`` as the lowering goes on."""
    from executorch.backends.arm._passes import arm_pass_manager
    from executorch.backends.arm.ethosu import backend

    manager, adapter = arm_pass_manager.ArmPassManager, arm_pass_manager._ExportedProgramGraphPassAdapter
    transform, call, vela_compile = manager._transform, adapter.call, backend.vela_compile
    position = _Position(progress)

    def counted_transform(self: Any, *args: Any) -> Any:
        position.delegate(len(self.passes))
        return transform(self, *args)

    def counted_call(self: Any, exported_program: Any) -> Any:
        position.next_pass()
        return call(self, exported_program)

    def told_vela(*args: Any, **kwargs: Any) -> Any:
        position.vela()
        return vela_compile(*args, **kwargs)

    with (
        patched(manager, _transform=counted_transform),
        patched(adapter, call=counted_call),
        patched(backend, vela_compile=told_vela),
    ):
        yield
