"""Prebuilt runtimes: they run programs as a second opinion to the SDK's own firmware."""

from ethosu_sdk.runtimes.adapter import Adapted, AdaptedOperator, adapt
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
    "Adapted",
    "AdaptedOperator",
    "Placed",
    "PrebuiltRunner",
    "Window",
    "adapt",
    "executable",
    "licence",
    "package_name",
    "place",
    "runner_for",
    "runners",
]
