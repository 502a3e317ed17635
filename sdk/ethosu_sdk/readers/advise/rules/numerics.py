"""Layers whose eight bits are too few."""

from __future__ import annotations

from collections.abc import Iterator

from ethosu_sdk.readers.advise.advice import NPU_CYCLES, SQNR, Advice, Change, Figure
from ethosu_sdk.readers.advise.facts import Facts, modelled, module, stages
from ethosu_sdk.records import Record

_LEAST_DROP_DB = 6.0  # less is what any layer of eight bits may cost
_FAITHFUL_DB = (
    30.0  # from the quantised model: below that the NPU computes something else, and bits do not help
)
_PASSES = 3  # of the MAC unit on Ethos-U55; fewer where it has wider products
_SLOWER = f"with 16 bits the MAC unit takes up to {_PASSES} times the cycles in these modules"


def sixteen_bits(facts: Facts) -> list[Advice]:
    """The first layer that breaks against the floating-point model although its inputs do not: it and the module
    whose eight bits it reads."""
    layers = facts.debug["layers"]
    floats = [row for row in facts.debug["comparisons"] if row["against"] == "float"]
    step: Record = next((row["first_break"] for row in floats if "first_break" in row), {})
    if not {"input_db", "output_db"} <= set(step) or step["input_db"] - step["output_db"] < _LEAST_DROP_DB:
        return []
    layer = layers[step["layer"]]
    own, source = module(layer), _before(layers, step["layer"])
    if layer["dtype"] != "int8" or not own or not source or not _is_faithful(layer):
        return []
    return [_advice(facts, step, layer, (source, own))]


def _before(layers: list[Record], index: int) -> str:
    """The module of the nearest compared layer in front of the one that is numbered `index`; empty without one."""
    names = (module(row) for row in reversed(layers[:index]) if "float" in row)
    return next((name for name in names if name and name != module(layers[index])), "")


def _is_faithful(layer: Record) -> bool:
    near = layer.get("quantised", {})
    return bool(near.get("differing", 1) == 0 or near.get("sqnr_db", 0.0) >= _FAITHFUL_DB)


def _advice(facts: Facts, step: Record, layer: Record, modules: tuple[str, str]) -> Advice:
    source, module = modules
    before, after = step["output_db"], step["input_db"]
    return Advice(
        finding=f"its inputs have {after:.1f} dB against floating point, its output {before:.1f} dB; "
        f"eight bits are too few for what {source} hands over",
        where=module,
        evidence=tuple(_evidence(facts, step, layer)),
        code=(
            "from executorch.backends.arm.quantizer import get_symmetric_a16w8_quantization_config",
            "def quantizer(q):",
            f"    for name in ({source!r}, {module!r}):",
            "        q.set_module_name(name, get_symmetric_a16w8_quantization_config())",
        ),
        gains=(
            Change(
                SQNR, before, after, "at least what its inputs have, if sixteen bits lose nothing", "modelled"
            ),
        ),
        costs=_costs(facts, modules),
        limits=(
            f"{source} is the layer that ran before: where {module} reads others too, name those as well",
            "what layers before have lost does not come back; extend a quantizer that the file has",
        ),
    )


def _evidence(facts: Facts, step: Record, layer: Record) -> Iterator[Figure]:
    yield Figure("SQNR of its inputs", step["input_db"], "dB", "modelled")
    yield Figure("SQNR of its output", step["output_db"], "dB", "modelled")
    if "rounding_db" in layer.get("own", {}):
        yield Figure(
            "SQNR that rounding its output leaves by itself", layer["own"]["rounding_db"], "dB", "modelled"
        )
    floats = [row["float"] for row in facts.debug["layers"] if "sqnr_db" in row.get("float", {})]
    if floats:
        yield Figure("SQNR of the last layer", floats[-1]["sqnr_db"], "dB", "modelled")


def _costs(facts: Facts, modules: tuple[str, ...]) -> tuple[Change, ...]:
    rows = [row for row in facts.npu_rows if row.get("source", {}).get("module") in modules]
    more = sum(min(stages(row)["mac"] * row["calls"], modelled(row)) for row in rows)
    whole = facts.npu_cycles
    return (Change(NPU_CYCLES, whole, whole + (_PASSES - 1) * more, _SLOWER, "modelled"),) if more else ()
