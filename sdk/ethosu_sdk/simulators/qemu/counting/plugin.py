"""Whether QEMU can count executed blocks: the plugin qemu/plugin/block-counts.c, and a QEMU that takes it."""

from __future__ import annotations

import functools
from pathlib import Path

from ethosu_sdk import tools
from ethosu_sdk.errors import InputError
from ethosu_sdk.files import opening

_PLUGIN = "block-counts.so"
# A function of version 1 of QEMU's plugin interface, which newer ones have replaced. Programs export it by name.
_FUNCTION = b"\0qemu_plugin_register_vcpu_tb_exec_inline\0"
_MOST_BYTES = 1 << 28  # of a QEMU


def require() -> Path:
    """The plugin. ToolError, with the way to get it, when it is missing."""
    path = tools.require(_PLUGIN).path
    assert path is not None, "it was found"
    return path


def unavailable(program: Path | None) -> str:
    """Why the QEMU `program` cannot count blocks, and how to get what can; empty if it can."""
    found = tools.probe(_PLUGIN)
    if found.status != "found":
        return f"QEMU's plugin {_PLUGIN} is {found.status}: {found.tool.fix}"
    if program is None or not _takes_plugins(program):
        return (
            f"{program} does not take plugins of QEMU 7.2: Debian 12's qemu-system-arm does, and the SDK's own "
            "build does after `scripts/build-qemu`"
        )
    return ""


@functools.cache
def _takes_plugins(program: Path) -> bool:
    try:
        return _FUNCTION in opening.content(program, _MOST_BYTES)
    except InputError:
        return False
