"""Changes that are worth a try: by options of `compile`, by lines of the model's file, and what rules advise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from ethosu_sdk.base.targets import families
from ethosu_sdk.compile.program_options import CORTEX_M
from ethosu_sdk.records.advice import CandidateKind, Item
from ethosu_sdk.records.trials import Candidate
from ethosu_sdk.reporting.advise import cpu_rules, npu_rules
from ethosu_sdk.reporting.advise.advice_facts import Facts
from ethosu_sdk.reporting.advise.replacements import OPERATOR_CHANGES

_TRAIN = "train the model with it: values that are changed afterwards cost accuracy"
# Rules whose lines are tried as they are.
_RULES: Mapping[str, tuple[CandidateKind, str]] = {
    "replaced-operator": ("model", "another module that the NPU computes"),
    "flatten-as-convolution": ("model", "a convolution in place of a flatten and a linear layer"),
    "sixteen-bits": ("precision", "16 bits"),
}

_PRUNE = (
    "from torch.nn.utils import prune",
    "for layer in model.modules():",
    "    if isinstance(layer, (nn.Conv2d, nn.Linear)):",
    '        prune.l1_unstructured(layer, "weight", 0.5)',
    '        prune.remove(layer, "weight")',
)
_CLUSTER = (
    "for layer in model.modules():",
    "    if isinstance(layer, (nn.Conv2d, nn.Linear)):",
    "        weight = layer.weight.data",
    "        values = torch.linspace(weight.min(), weight.max(), 16)",
    "        layer.weight.data = values[torch.bucketize(weight, (values[1:] + values[:-1]) / 2)]",
)


def candidates_of(facts: Facts, advice: Sequence[Item]) -> tuple[Candidate, ...]:
    """What can be tried for a program that was compiled here, the likeliest gains first; `advice` is of the rules."""
    found = [row for make in _KINDS for row in make(facts)]
    names = {row.name for row in found}
    found += [row for row in _by_rules(advice) if row.name not in names]
    return tuple(sorted(found, key=lambda row: row.kind in ("weights", "target", "precision")))


def _layout(facts: Facts) -> Iterator[Candidate]:
    # The NPU turns feature maps around, and there is an input whose order of axes could be why.
    has_images = any(len(row.shape) == 4 for row in facts.compiled.inputs)
    if has_images and any(row.operator == "TRANSPOSE" for row in facts.npu_rows):
        yield Candidate(
            "channels-last-input",
            "program",
            "inputs with their channels last (NHWC)",
            lines=(npu_rules.CHANNELS_LAST,),
            limits=npu_rules.CHANNELS_LAST_LIMITS,
        )


def _io(facts: Facts) -> Iterator[Candidate]:
    options = facts.compiled.options
    has_floats = any(row.dtype == "float32" for row in (*facts.compiled.inputs, *facts.compiled.outputs))
    if options.io == "float" and options.quantize == "int8" and has_floats:
        yield Candidate(
            "int8-io",
            "program",
            "int8 inputs and outputs",
            {"io": "int8"},
            limits=("the application quantises inputs and reads outputs as (q - zero_point) * scale",),
        )


def _fallback(facts: Facts) -> Iterator[Candidate]:
    rows = facts.compiled.cpu_operators if facts.compiled.target is not None else ()
    replaced = frozenset(row.name for row in rows if any(site.cortex_m for site in row.sites))
    if replaced:
        yield Candidate(
            "cortex-m-fallback",
            "program",
            "int8 kernels of the Cortex-M backend for what the NPU leaves to the CPU",
            {"fallback": CORTEX_M},
            limits=(cpu_rules.LAYOUT_LIMIT,),
            replaces=replaced,
        )


def _optimise(facts: Facts) -> Iterator[Candidate]:
    """The other of Vela's two goals; Performance is its default."""
    flags = facts.compiled.options.vela_flags
    if not facts.compiled.delegates:
        return
    rest = tuple(row for row in flags if not row.startswith("--optimise"))
    goal = "Performance" if "--optimise=Size" in flags else "Size"
    yield Candidate(
        f"optimise-{goal.lower()}",
        "program",
        f"Vela schedules for {'speed' if goal == 'Performance' else 'the least SRAM'}",
        {"vela_flags": (*rest, f"--optimise={goal}")},
    )


def _memory_modes(facts: Facts) -> Iterator[Candidate]:
    target = facts.compiled.target
    if target is None or not facts.compiled.delegates or facts.compiled.board_profile is not None:
        return
    limits = ("the board has to have the memory as the mode uses it",)
    for mode in families()[target.npu].system_configs.get(target.system_config, ()):
        if mode != target.memory_mode:
            name, options = f"memory-mode-{mode.lower().replace('_', '-')}", {"memory_mode": mode}
            yield Candidate(name, "program", f"memory mode {mode}", options, limits=limits)


def _targets(facts: Facts) -> Iterator[Candidate]:
    """The next smaller and the next larger NPU. A board's NPU is what it is."""
    target = facts.compiled.target
    if target is None or facts.compiled.board_profile is not None or not facts.compiled.delegates:
        return
    sizes = families()[target.npu].macs
    smaller = sorted(n for n in sizes if n < target.macs)[-1:]
    for macs in (*smaller, *sorted(n for n in sizes if n > target.macs)[:1]):
        name, limits = f"{target.npu}-{macs}", ("it is about a design that is not fixed yet",)
        yield Candidate(f"target-{name}", "target", f"another NPU: {name}", {"target": name}, limits=limits)


def _precision(facts: Facts) -> Iterator[Candidate]:
    options = facts.compiled.options
    if facts.compiled.prequantized or options.quantizer is not None:
        return
    if options.quantize == "int8" and options.io == "float":
        yield Candidate("sixteen-bit-activations", "precision", "16-bit activations", {"quantize": "int16"})
    if options.quantize == "int16":
        yield Candidate("eight-bit-activations", "precision", "8-bit activations", {"quantize": "int8"})
    if options.quantize_per == "tensor":
        words = "weights with a scale for each output channel"
        yield Candidate("quantize-per-channel", "precision", words, {"quantize_per": "channel"})
    if options.quantize == "none":
        yield Candidate("quantise", "precision", "8-bit quantisation", {"quantize": "int8"})


def _weights(facts: Facts) -> Iterator[Candidate]:
    """Weights that Vela compresses better. They are made from those of the model, without training."""
    if facts.compiled.prequantized or not facts.compiled.delegates:
        return
    words = "half of the weights zero"
    yield Candidate("prune-half", "weights", words, {}, _PRUNE, (_TRAIN,), keeps_results=False)
    if facts.compiled.options.quantizer is None:
        yield Candidate(
            "cluster-16",
            "weights",
            "16 different values for the weights of a layer",
            {"quantize_per": "tensor"},
            _CLUSTER,
            (_TRAIN, "with a scale for each output channel, the values would be as many again"),
            keeps_results=False,
        )


def _operators(facts: Facts) -> Iterator[Candidate]:
    """Operators on the CPU that another one could replace, wherever the model calls them."""
    target = facts.compiled.target
    if target is None:
        return
    for row in facts.compiled.cpu_operators:
        for other in OPERATOR_CHANGES.get(row.name, ()):
            if target.npu in other.npus:
                yield Candidate(
                    other.name,
                    "model",
                    other.words,
                    lines=other.lines,
                    limits=(other.results,),
                    replaces=frozenset((row.name,)),
                    keeps_results=False,
                )


_KINDS: Sequence[Callable[[Facts], Iterator[Candidate]]] = (
    *(_layout, _operators, _fallback, _io, _optimise),
    *(_memory_modes, _precision, _weights, _targets),
)


def _by_rules(advice: Sequence[Item]) -> Iterator[Candidate]:
    counts: Counter[str] = Counter()
    for item in advice:
        counts[item.rule] += 1
        if item.rule not in _RULES or not item.code or counts[item.rule] > 8:  # of one rule
            continue
        kind, change = _RULES[item.rule]
        where = f" ({item.where})" if item.where else ""
        yield Candidate(
            f"{item.rule}{where}",
            kind,
            f"{change}{where}",
            lines=tuple(item.code),
            limits=tuple(text for text in item.limits if text != cpu_rules.NOT_ESTIMATED),
        )
