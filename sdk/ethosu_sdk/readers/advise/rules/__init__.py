"""The rules, in the order in which their advice is given where gains are alike.

A rule is a pure function of the facts. It says what it saw, what to change, and what that is expected to bring; each
has a test that compiles again with its advice followed and sees the gain (tests/integration/advise), and its line in
docs/guide/advise.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ethosu_sdk.readers.advise import facts
from ethosu_sdk.readers.advise.advice import Advice
from ethosu_sdk.readers.advise.facts import Facts
from ethosu_sdk.readers.advise.rules import (
    channels,
    conversions,
    fallback,
    layout,
    memory,
    numerics,
    operators,
    targets,
)


@dataclass(frozen=True)
class Rule:
    """A rule: its name, the pattern that it looks for in a line, the kinds of facts without which it is silent."""

    name: str
    pattern: str
    needs: tuple[str, ...]
    find: Callable[[Facts], list[Advice]]


RULES: Sequence[Rule] = (
    Rule(
        "sixteen-bits",
        "a layer's int8 steps are too coarse for its values, whatever layers before have lost",
        (facts.DEBUG,),
        numerics.sixteen_bits,
    ),
    Rule(
        "quantise",
        "the program is floating point, and nothing of it is delegated",
        (facts.COMPILE,),
        operators.quantise,
    ),
    Rule(
        "replaced-operator",
        "modules that run on the CPU between two delegates, where another module computes the same on the NPU",
        (facts.COMPILE,),
        operators.replaced_operators,
    ),
    Rule(
        "cortex-m-fallback",
        "operators on the CPU in floating point, between conversions, that the Cortex-M backend computes on int8",
        (facts.COMPILE,),
        fallback.cortex_m_fallback,
    ),
    Rule(
        "channels-last-input",
        "the NPU turns an NCHW input around before the first layer",
        (facts.COMPILE,),
        layout.channels_last_input,
    ),
    Rule(
        "flatten-as-convolution",
        "the NPU turns a feature map around because a linear layer flattens it",
        (),
        layout.flatten_as_convolution,
    ),
    Rule(
        "memory-mode",
        "another memory mode of the same system configuration costs fewer cycles, or less SRAM for the same",
        (facts.COMPILE, facts.MODES),
        memory.memory_mode,
    ),
    Rule(
        "quantised-io",
        "the CPU converts floating-point inputs and outputs of an int8 program",
        (facts.COMPILE,),
        conversions.quantised_io,
    ),
    Rule(
        "smaller-target",
        "the MAC unit waits for memories most of the time, so that half of it costs at most 5 % of the cycles",
        (facts.COMPILE,),
        targets.smaller_target,
    ),
    Rule(
        "channel-steps",
        "a convolution that keeps the MAC unit busy has output channels that do not fill its last step",
        (),
        channels.channel_steps,
    ),
)
