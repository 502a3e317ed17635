"""A line of the model's own source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SourceLine:
    """Where in the model something comes from; None for what torch did not record.

    `file` is relative to the folder of the model's file, or begins with the name of the installed `package` that it
    belongs to; it is never one of torch's. `function` is the function of that line, with its class
    (``Block.forward``). `module` is the name below the model, as in ``named_modules()`` (empty for the model itself),
    `module_type` its class.
    """

    file: str | None
    line: int | None
    module: str | None
    module_type: str | None
    function: str | None = None
    package: str | None = None

    @property
    def words(self) -> str:
        """The place in an error: ``net.py, line 7, in Block.forward, module 'layers.2.conv'``, or the module."""
        module = f"module '{self.module}'" if self.module else ""
        if self.file is None:
            return f"{module} ({self.module_type})" if module else str(self.module_type)
        line = f"{self.file}, line {self.line}"
        line += f", in {self.function}" if self.function else ""
        return f"{line}, {module}" if module else line
