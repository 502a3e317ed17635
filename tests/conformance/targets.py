"""Targets as ExecuTorch 1.5.1 compiles for them when nothing else is said.

Those are the SDK's defaults but for Ethos-U85's memory mode. Counts and cycles of this suite, and what is said of
them, are for ExecuTorch's; the SDK's own is what runs on QEMU (zoo_matrix, integration/qemu_models).
"""

from ethosu_sdk.base.targets import Target, parse_target


def executorch_target(name: str) -> Target:
    """The target called `name` in ExecuTorch's own default memory mode."""
    return parse_target(name, memory_mode="Sram_Only" if name.startswith("ethos-u85") else None)
