"""The commit that a wheel is made of: written into it, so that ``ethosu-sdk --version`` and records name it.

A checkout knows its commit. Where git or its folder is missing, as in the image's build, ``ETHOSU_SDK_COMMIT`` names
it; without either the wheel names none.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_DESCRIBE = ("git", "describe", "--always", "--dirty", "--abbrev=12")


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    """Adds ``_data/commit`` to wheels."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the commit to a file of the build's folder, and list it for the wheel. An editable one has none."""
        commit = os.environ.get("ETHOSU_SDK_COMMIT") or self._described()
        if version == "editable" or not commit:
            return
        made = Path(self.directory) / "commit"
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(f"{commit}\n", encoding="ascii")
        build_data["force_include"][str(made)] = "ethosu_sdk/_data/commit"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file."""
        (Path(self.directory) / "commit").unlink(missing_ok=True)

    def _described(self) -> str | None:
        if not (Path(self.root) / ".git").exists():
            return None
        try:
            return subprocess.run(
                _DESCRIBE, cwd=self.root, check=True, capture_output=True, text=True
            ).stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return None
