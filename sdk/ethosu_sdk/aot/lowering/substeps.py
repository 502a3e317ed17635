"""Reports which pass of which delegate ExecuTorch is working on, for a user who waits for a long lowering."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from ethosu_sdk.aot.graph.patching import patched

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
def told(progress: Callable[[str], None]) -> Iterator[None]:
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
