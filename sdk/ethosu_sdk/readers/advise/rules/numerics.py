"""Layers whose eight bits are too few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ethosu_sdk.readers.advise.advice import NPU_CYCLES, SQNR, Advice, change, figure
from ethosu_sdk.readers.advise.facts import Facts, modelled
from ethosu_sdk.records.advice import Change, Evidence
from ethosu_sdk.records.debug import Layer
from ethosu_sdk.results.source_place import module

_LEAST_DROP_DB = 6.0  # less is what any layer of eight bits may cost
_FAITHFUL_DB = (
    30.0  # from the quantised model: below that the NPU computes something else, and bits do not help
)
_PASSES = 3  # of the MAC unit on Ethos-U55; fewer where it has wider products
_SLOWER = f"with 16 bits the MAC unit takes up to {_PASSES} times the cycles in these modules"


def sixteen_bits(facts: Facts) -> list[Advice]:
    """The first layer that breaks against the floating-point model although its inputs do not: it and the module
    whose eight bits it reads."""
    layers = facts.debug.layers
    floats = [row.first_break for row in facts.debug.comparisons if row.against == "float"]
    step = next((row for row in floats if row is not None), None)
    if step is None or step.reliable_input_db is None or step.output_db is None:
        return []
    layer = layers[step.layer]
    own, source = module(layer.source), _before(layers, step.layer)
    if layer.dtype != "int8" or not own or not source or not _is_faithful(layer):
        return []
    if step.reliable_input_db - step.output_db < _LEAST_DROP_DB:
        return []
    return [_advice(facts, (step.reliable_input_db, step.output_db), layer, (source, own))]


def _before(layers: Sequence[Layer], index: int) -> str:
    """The module of the nearest compared layer in front of the one that is numbered `index`; empty without one."""
    names = (module(row.source) for row in reversed(layers[:index]) if row.float is not None)
    return next((name for name in names if name and name != module(layers[index].source)), "")


def _is_faithful(layer: Layer) -> bool:
    near = layer.quantised
    return near is not None and (near.differing == 0 or (near.sqnr_db or 0.0) >= _FAITHFUL_DB)


def _advice(facts: Facts, ratios: tuple[float, float], layer: Layer, modules: tuple[str, str]) -> Advice:
    """The advice for `layer`, whose inputs and output have `ratios`, and `modules`: the one before, and its own."""
    source, module = modules
    after, before = ratios
    return Advice(
        finding=f"its inputs have {after:.1f} dB against floating point, its output {before:.1f} dB; "
        f"eight bits are too few for what {source} hands over",
        where=module,
        evidence=tuple(_evidence(facts, ratios, layer)),
        code=(
            "from executorch.backends.arm.quantizer import get_symmetric_a16w8_quantization_config",
            "def quantizer(q):",
            f"    for name in ({source!r}, {module!r}):",
            "        q.set_module_name(name, get_symmetric_a16w8_quantization_config())",
        ),
        gains=(
            change(
                SQNR, before, after, "at least what its inputs have, if sixteen bits lose nothing", "modelled"
            ),
        ),
        costs=_costs(facts, modules),
        limits=(
            f"{source} is the layer that ran before: where {module} reads others too, name those as well",
            "what layers before have lost does not come back; extend a quantizer that the file has",
        ),
    )


def _evidence(facts: Facts, ratios: tuple[float, float], layer: Layer) -> Iterator[Evidence]:
    yield figure("SQNR of its inputs", ratios[0], "dB", "modelled")
    yield figure("SQNR of its output", ratios[1], "dB", "modelled")
    if layer.own is not None and layer.own.rounding_db is not None:
        yield figure(
            "SQNR that rounding its output leaves by itself", layer.own.rounding_db, "dB", "modelled"
        )
    floats = [row.float.sqnr_db for row in facts.debug.layers if row.float is not None]
    known = [value for value in floats if value is not None]
    if known:
        yield figure("SQNR of the last layer", known[-1], "dB", "modelled")


def _costs(facts: Facts, modules: tuple[str, ...]) -> tuple[Change, ...]:
    rows = [row for row in facts.npu_rows if module(row.source) in modules]
    more = sum(min(row.busy.mac * row.calls, modelled(row)) for row in rows)
    whole = facts.npu_cycles
    return (change(NPU_CYCLES, whole, whole + (_PASSES - 1) * more, _SLOWER, "modelled"),) if more else ()
