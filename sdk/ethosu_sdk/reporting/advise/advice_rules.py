"""All rules: what they advise for a program, the best first, and why the others are silent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from ethosu_sdk.records.advice import Item, MetricName, SilentRule
from ethosu_sdk.records.time_line import headline
from ethosu_sdk.reporting.advise import advice_facts, cpu_rules, npu_rules
from ethosu_sdk.reporting.advise.advice_facts import COMPILE, Facts, expected_change


@dataclass(frozen=True)
class AdviceRule:
    """A rule: its name, the change that it advises, the pattern that it looks for, and the kinds of facts without
    which it is silent."""

    name: str
    change: str
    pattern: str
    needs: tuple[str, ...]
    find: Callable[[Facts], list[Item]]


# In the order in which their advice is given where gains are alike. A rule is a pure function of the facts. It says
# what it saw, what to change, and what that is expected to bring; each has a test that compiles again with its advice
# followed and sees the gain (tests/integration/advise), and its line in docs/guide/advise.md.
RULES: Sequence[AdviceRule] = (
    AdviceRule(
        "sixteen-bits",
        "16 bits for a layer",
        "a layer's int8 steps are too coarse for its values, whatever layers before have lost",
        (advice_facts.DEBUG,),
        npu_rules.sixteen_bits,
    ),
    AdviceRule(
        "quantise",
        "int8 in place of floating point",
        "the program is floating point, and nothing of it is delegated",
        (COMPILE,),
        cpu_rules.quantise,
    ),
    AdviceRule(
        "replaced-operator",
        "a module for the NPU",
        "modules that run on the CPU between two delegates, where another module computes the same on the NPU",
        (COMPILE,),
        cpu_rules.replaced_operators,
    ),
    AdviceRule(
        "cortex-m-fallback",
        "int8 kernels on the CPU",
        "operators on the CPU in floating point, between conversions, that the Cortex-M backend computes on int8",
        (COMPILE,),
        cpu_rules.cortex_m_fallback,
    ),
    AdviceRule(
        "channels-last-input",
        "input with its channels last",
        "the NPU turns an NCHW input around before the first layer",
        (COMPILE,),
        npu_rules.channels_last_input,
    ),
    AdviceRule(
        "flatten-as-convolution",
        "flatten as convolution",
        "the NPU turns a feature map around because a linear layer flattens it",
        (),
        npu_rules.flatten_as_convolution,
    ),
    AdviceRule(
        "memory-mode",
        "another memory mode",
        "another memory mode of the same system configuration costs fewer cycles, or less SRAM for the same",
        (COMPILE, advice_facts.MODES),
        npu_rules.memory_mode,
    ),
    AdviceRule(
        "quantised-io",
        "int8 inputs and outputs",
        "the CPU converts floating-point inputs and outputs of an int8 program",
        (COMPILE,),
        cpu_rules.quantised_io,
    ),
    AdviceRule(
        "smaller-target",
        "a smaller NPU",
        "the MAC unit waits for memories most of the time, so that half of it costs at most 5 % of the cycles",
        (COMPILE,),
        npu_rules.smaller_target,
    ),
    AdviceRule(
        "channel-steps",
        "channels that fill the MAC unit",
        "a convolution that keeps the MAC unit busy has output channels that do not fill its last step",
        (),
        npu_rules.channel_steps,
    ),
)


# What advice is ranked by: what is wrong before what is slow, that before what is large.
_ORDER: tuple[MetricName, ...] = (
    *("SQNR", "operators that compute on the CPU", "delegates", "time of an inference", "NPU cycles"),
    *("CPU instructions", "CPU cycles", "CPU operators", "SRAM", "inputs and outputs", "output channels"),
    "MACs per cycle that the NPU has",
)


@dataclass(frozen=True)
class AdviceVerdict:
    """What the rules advise, what saves most first, and the silent rules."""

    advice: tuple[Item, ...]
    silent: tuple[SilentRule, ...]


def judge_facts(facts: Facts) -> AdviceVerdict:
    """Apply all rules to the facts."""
    advice: list[Item] = []
    silent: list[SilentRule] = []
    for rule in RULES:
        missing = next((facts.missing[kind] for kind in rule.needs if kind in facts.missing), "")
        found = [] if missing else [replace(row, rule=rule.name) for row in rule.find(facts)]
        advice += [_timed(row, facts) for row in found]
        if missing:
            silent.append(SilentRule(rule=rule.name, state="unknown", reason=missing))
        elif not found:
            silent.append(SilentRule(rule=rule.name, state="absent", reason=f"not seen: {rule.pattern}"))
    advice.sort(key=_rank)  # stable: the table's order where gains are alike
    return AdviceVerdict(tuple(advice), tuple(silent))


def _timed(item: Item, facts: Facts) -> Item:
    """`item` with what its cycles are of the time of an inference, where that is known and something is saved: the
    first of the gains, by which advice is ranked, unless the advice is about wrong results."""
    time = headline(facts.profile)
    if time is None or item.gains[0].metric == advice_facts.SQNR.name:
        return item
    clocks = {advice_facts.CPU_CYCLES.name: time.clocks.cpu, advice_facts.NPU_CYCLES.name: time.clocks.npu}
    saved_s = sum(
        (row.before - row.after) / clock.hz
        for row in (*item.gains, *item.costs)
        if (clock := clocks.get(row.metric)) is not None
    )
    if saved_s <= 0:
        return item
    before = time.total.duration_s * 1e3
    after = max(0.0, before - saved_s * 1e3)
    how = "the cycles of CPU and NPU that are saved, each by its clock"
    saved = expected_change(advice_facts.TIME, before, after, how, "modelled")
    return replace(item, gains=(saved, *item.gains))


def _rank(advice: Item) -> tuple[int, float]:
    """By the metric of the first gain, then by its share."""
    gain = advice.gains[0]
    share = abs(gain.after - gain.before) / abs(gain.before) if gain.before else 1.0
    return _ORDER.index(gain.metric), -share
