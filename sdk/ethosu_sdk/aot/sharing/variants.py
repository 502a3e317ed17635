"""For which targets ExecuTorch lowers alike, and with the same repairs."""

from __future__ import annotations

from ethosu_sdk.aot.repairs import lost_lookup_tables
from ethosu_sdk.targets import AnyTarget, Target, parse_target

# TOSA extensions in ExecuTorch 1.5.1's EthosUCompileSpec, by family.
_VARIANTS = {"ethos-u55": "u55", "ethos-u65": "u55", "ethos-u85": "cf"}
# A target of each: which one it is makes no difference to what is lowered.
_REPRESENTATIVES = {"u55": "ethos-u55-128", "u55-small": "ethos-u55-64", "cf": "ethos-u85-256"}


def tosa_variant(target: Target) -> str:
    """The name of the TOSA specification that a program for `target` is lowered to; of those whose look-up tables
    need care, a name of their own."""
    return "u55-small" if target.name in lost_lookup_tables.TARGETS else _VARIANTS[target.npu]


def variant(target: AnyTarget) -> str:
    """The same of any target: each processor is lowered for by itself."""
    return tosa_variant(target) if isinstance(target, Target) else target.name


def representative(target: AnyTarget) -> AnyTarget:
    """The target that programs for `target`, and for all that are lowered alike, are lowered for."""
    if not isinstance(target, Target):
        return target
    return parse_target(_REPRESENTATIVES[tosa_variant(target)])
