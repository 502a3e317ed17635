"""Hooks into the tools: functions replaced for a time, errors translated, dropped facts kept, progress told."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ethosu_sdk.base import plain_text
from ethosu_sdk.base.errors import DISK_FULL, BuildError, SdkError

_ABSENT = object()
# The key under which a rejected node carries the reason: ExecuTorch's passes copy a node's `meta`.
REASON_KEY = "ethosu_sdk_rejected_because"
LOG_HINT = "compile.log holds what the tools printed"
_INTERVAL_S = 0.25
_Result = TypeVar("_Result")


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
        # The manager of ExecuTorch's passes lists the names of all passes in its own error.
        cause: BaseException = error
        while str(cause).startswith("An error occurred when running the") and cause.__cause__ is not None:
            cause = cause.__cause__
        raise BuildError(f"{what}: {plain_text.error(cause)}", hint) from error


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
    """While the block runs, nodes that the partitioner rejects are marked and TOSA operators are traced. ExecuTorch
    1.5.1 logs the rejections as a table of text, and writes the origin of TOSA operators into the TOSA file, or
    beside it, only with options that change the `.pte`."""
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


@contextlib.contextmanager
def progress_told(progress: Callable[[str], None]) -> Iterator[None]:
    """While the block runs, `progress` gets ``lower: delegate D, pass P of N``, or ``…, Vela``, as the lowering goes
    on: passes not more often than a person can read."""
    from executorch.backends.arm._passes import arm_pass_manager
    from executorch.backends.arm.ethosu import backend

    manager, adapter = arm_pass_manager.ArmPassManager, arm_pass_manager._ExportedProgramGraphPassAdapter
    transform, call, vela_compile = manager._transform, adapter.call, backend.vela_compile
    delegate = number = passes = 0
    told_at = 0.0

    def tell(what: str) -> None:
        nonlocal told_at
        told_at = time.monotonic()
        progress(f"lower: delegate {delegate}, {what}")

    def counted_transform(self: Any, *args: Any) -> Any:
        nonlocal delegate, number, passes
        delegate, number, passes = delegate + 1, 0, len(self.passes)
        return transform(self, *args)

    def counted_call(self: Any, exported_program: Any) -> Any:
        nonlocal number
        number += 1
        if time.monotonic() - told_at >= _INTERVAL_S:
            tell(f"pass {number} of {passes}")
        return call(self, exported_program)

    def told_vela(*args: Any, **kwargs: Any) -> Any:
        tell("Vela")
        return vela_compile(*args, **kwargs)

    with (
        patched(manager, _transform=counted_transform),
        patched(adapter, call=counted_call),
        patched(backend, vela_compile=told_vela),
    ):
        yield
