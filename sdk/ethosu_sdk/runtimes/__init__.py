"""Prebuilt runtimes: they run programs unchanged, as a second opinion to the SDK's own firmware."""

from ethosu_sdk.runtimes.image import Placed, place
from ethosu_sdk.runtimes.runners import (
    PrebuiltRunner,
    Window,
    executable,
    licence,
    package_name,
    runner_for,
    runners,
)

__all__ = [
    "Placed",
    "PrebuiltRunner",
    "Window",
    "executable",
    "licence",
    "package_name",
    "place",
    "runner_for",
    "runners",
]
