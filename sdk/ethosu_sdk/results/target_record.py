"""What a record says of a program's target, and of a program that has none."""

from __future__ import annotations

from msgspec import convert

from ethosu_sdk.records import Record, common
from ethosu_sdk.targets import Target

_NO_NPU = "the program delegates nothing to an NPU"


def lacking(path: str) -> common.Unavailable:
    """Why the member `path`, which needs an NPU, is absent."""
    return common.Unavailable(path=path, reason=_NO_NPU)


def content(target: Target | None) -> common.Target | None:
    """The member `target` of a record."""
    return None if target is None else convert(part(target), common.Target)


def part(target: Target) -> Record:
    """The `target` object of a record as JSON."""
    return {
        "npu": target.npu,
        "macs": target.macs,
        "system_config": target.system_config,
        "memory_mode": target.memory_mode,
    }


def members(target: Target | None) -> Record:
    """The member `target` of a record, which a program without an NPU does not have."""
    return {} if target is None else {"target": part(target)}


def without_npu(path: str) -> Record:
    """The row of `unavailable` for the member `path`, which needs an NPU."""
    return lacking(path).to_json()
