"""Where in the user's files each module was constructed.

The forward of an ``nn.Sequential``, or of any module of torch's own that is the model itself, has no line of the
user's: what names its layers is the line that made them.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import types
import weakref
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ethosu_sdk.aot.graph.patching import patched
from ethosu_sdk.aot.graph.source_lines import Line


class ConstructionLines:
    """The innermost line below `root` that constructed each module, for modules made while :meth:`recording`. Files
    are named by `folder`, which is empty for those of the user, and their path below `root`."""

    def __init__(self, root: Path, folder: str = "") -> None:
        self._root, self._folder = root, folder
        self._prefix = f"{root}{os.sep}"
        self._lines: weakref.WeakKeyDictionary[Any, Line] = weakref.WeakKeyDictionary()

    def recording(self) -> AbstractContextManager[None]:
        """While the block runs, every new ``nn.Module`` is noted."""
        import torch

        original = torch.nn.Module.__init__

        @functools.wraps(original)
        def noted(module: Any, *args: Any, **kwargs: Any) -> None:
            self._note(module, sys._getframe(1))
            original(module, *args, **kwargs)

        return patched(torch.nn.Module, __init__=noted)

    def of(self, model: Any) -> dict[str, Line]:
        """(file relative to the root, line, function) by the name of each module of `model`."""
        found = {}
        for name, module in model.named_modules():
            with contextlib.suppress(KeyError, TypeError):
                found[name] = self._lines[module]
        return found

    def _note(self, module: Any, frame: types.FrameType | None) -> None:
        while frame is not None:
            name = frame.f_code.co_filename
            inside = name.removeprefix(self._prefix)
            if inside != name and "site-packages" not in inside:
                with contextlib.suppress(TypeError):  # a class that cannot be hashed
                    file = f"{self._folder}{Path(inside).as_posix()}"
                    self._lines[module] = file, frame.f_lineno, _function(frame.f_code)
                return
            frame = frame.f_back


def _function(code: types.CodeType) -> str | None:
    """The function with its classes; None for a line of the file itself."""
    return None if code.co_name == "<module>" else code.co_qualname.rpartition("<locals>.")[2]
