"""Finds where a program begins to compute something else than its model, with the values of its TOSA graphs. Every
quantised value of the model, as PyTorch has it, is looked for among the values of the delegates' TOSA graphs, which
the TOSA reference model computes. The first in the order of execution that none of them holds, as near as rounding
allows, is where the lowering went wrong. A delegate that gives other outputs than its TOSA graph is Vela's fault,
which comes before any other."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ethosu_sdk.base.errors import BuildError
from ethosu_sdk.compile import check_references
from ethosu_sdk.compile.compile_facts import delegate_array
from ethosu_sdk.compile.graphs import execution, fx, tensor_arrays, tosa_graph
from ethosu_sdk.compile.graphs.source_lines import SourceFinder
from ethosu_sdk.compile.graphs.tensor_arrays import Array
from ethosu_sdk.compile.vela_capture import VelaCapture
from ethosu_sdk.records.common import SourceLine
from ethosu_sdk.records.compile import Start, StartTosa

Tensors = tuple[Any, ...]

_TRIALS = 3
_FACTOR = 2.0  # of what the worst trial shows, in amplitude, as for the outputs
_OUTPUTS_FIELD = 12  # of the table TosaBasicBlock: its place in the vtable
_CONSTANTS = ("CONST", "CONST_SHAPE")


@dataclass
class _Activation:
    """A quantised value of the model: its node, its stored values, how far rounding moves them (rms, in steps)."""

    node: Any
    values: Array
    noise: float = 0.0


@dataclass(frozen=True)
class _Claim:
    """A TOSA tensor that holds a quantised value of one of these `quantisations`."""

    tensor: str
    operator: str
    values: Array
    quantisations: Sequence[tuple[float, int]]


def fault_start(
    program: Any, inputs: Tensors, captures: Sequence[VelaCapture], folder: Path, finder: SourceFinder
) -> Start | None:
    """The first wrong operation of the lowered `program`; None when no place is found."""
    claims: list[_Claim] = []
    for capture in captures:
        given = list(_arrays(folder, capture.payload_sha256, "input"))
        if not given:
            continue
        values = tosa_values_of(capture.tosa, given)
        executed = _arrays(folder, capture.payload_sha256, "output")
        for index, (name, array) in enumerate(zip(values.outputs, executed, strict=False)):
            if values.tensors[name].tobytes() != array.tobytes():
                return _by_vela(values, index, capture, finder)
        claims += _claims(values, capture.nodes)
    found: set[str] = set()  # the nodes whose values were found
    for activation in _activations(program, inputs):
        start = _judge(activation, claims, found, finder)
        if start is not None:
            return start
    return None


def _arrays(folder: Path, payload_sha256: str, kind: str) -> Iterator[Array]:
    index = 0
    while (path := folder / delegate_array(payload_sha256, kind, index)).is_file():
        yield np.load(path)
        index += 1


def _by_vela(values: TosaValues, index: int, capture: VelaCapture, finder: SourceFinder) -> Start:
    name = values.outputs[index]
    source = finder.find(capture.nodes.get(name, {}))
    operator = values.operators.get(name, "an input")
    text = (
        f"first seen at a delegate's output {index} ({operator} {name}): the TOSA graph is right, but Vela's output "
        "for it computes other values"
    )
    return _start(text, StartTosa(operator=operator, tensor=name), source)


def _start(
    text: str, tosa: StartTosa, source: SourceLine | None, certain: bool = False, operator: str | None = None
) -> Start:
    place = f", {source.words}" if source is not None else ""
    return Start(text=text + place, certain=certain, tosa=tosa, operator=operator, source=source)


def _claims(values: TosaValues, nodes: Mapping[str, Mapping[str, Any]]) -> list[_Claim]:
    """The tensors of a graph for which it is known how they are quantised: the operators that one torch.fx node
    becomes share its handle, and one of them has the quantisation of its output."""
    forms: dict[Any, list[tuple[float, int]]] = {}
    for meta in nodes.values():
        for row in (meta.get("output_qparams") or {}).values():
            if isinstance(row.scale, float):
                forms.setdefault(meta.get("debug_handle"), []).append((row.scale, int(row.zp)))
    return [
        _Claim(name, values.operators.get(name, "an input"), array, forms[handle])
        for name, array in values.tensors.items()
        if (handle := nodes.get(name, {}).get("debug_handle")) in forms
    ]


def _activations(program: Any, inputs: Tensors) -> list[_Activation]:
    """The quantised values of `program` in the order of execution, those in branches left out."""
    module = program.module(check_guards=False)
    nodes = {node.name: node for node in module.graph.nodes if fx.is_quantize(node)}
    found: dict[str, _Activation] = {}

    def keep(name: str, array: Array) -> None:
        found[name] = _Activation(nodes[name], array)

    def measure(name: str, array: Array) -> None:
        error = array.astype(np.float64) - found[name].values
        found[name].noise = max(found[name].noise, float(np.sqrt(np.mean(error**2))))

    rows = [
        (keep, lambda node: None),
        *((measure, check_references.rounding_trial(n).replacement) for n in range(_TRIALS)),
    ]
    for take, replacement in rows:
        watched = _watching(set(nodes), replacement, take)
        with execution.state_kept(module), execution.targets_replaced(module, watched):
            execution.run_eager(module, inputs)
    return list(found.values())


def _watching(
    names: set[str], replacement: execution.Replacement, take: Callable[[str, Array], None]
) -> execution.Replacement:
    """`replacement`, with the results of the nodes `names` given to `take`."""

    def choose(node: Any) -> Callable[..., Any] | None:
        target = replacement(node)
        if node.name not in names or not fx.is_quantize(node):
            return target
        inner, name = target or node.target, node.name

        def call(*args: Any, **named: Any) -> Any:
            result = inner(*args, **named)
            take(name, tensor_arrays.as_numpy(result))
            return result

        return call

    return choose


def _judge(
    activation: _Activation, claims: Sequence[_Claim], found: set[str], finder: SourceFinder
) -> Start | None:
    """Where the fault starts, when no tensor that should hold the value does."""
    scale, zero_point = float(activation.node.args[1]), int(activation.node.args[2])
    candidates = [
        (_apart(activation.values, claim.values), claim)
        for claim in claims
        if claim.values.size == activation.values.size
        and claim.values.dtype == activation.values.dtype
        and any(zp == zero_point and np.isclose(s, scale, rtol=1e-6) for s, zp in claim.quantisations)
    ]
    if not candidates:
        return None
    apart, claim = min(candidates, key=lambda row: row[0])
    limit = float(np.hypot(_FACTOR * activation.noise, 1.0))
    if apart <= limit:
        found.add(activation.node.name)
        return None
    chain = _chain(activation.node)
    before = (next(iter(row.all_input_nodes), None) for part in chain for row in part.all_input_nodes)
    certain = all(
        row.name in found
        for row in before
        # The quantisations that the chain starts from, beside those of inputs and constants.
        if row is not None and fx.is_quantize(row) and row.args[0].op == "call_function"
    )
    source = next((line for node in reversed(chain) if (line := finder.find(node.meta))), None)
    operator = " → ".join(str(node.target).removesuffix(".default") for node in chain)
    text = (
        f"{'starts' if certain else 'first seen'} at {operator}, TOSA {claim.operator} {claim.tensor}: "
        f"error {apart:.3g} steps (rms), rounding explains {limit:.3g}"
    )
    tosa = StartTosa(operator=claim.operator, tensor=claim.tensor)
    return _start(text, tosa, source, certain=certain, operator=operator)


def _apart(values: Array, other: Array) -> float:
    wide = other.astype(np.float64).ravel()
    orders = [values]
    if values.ndim >= 3:
        orders += [np.moveaxis(values, 1, -1), np.moveaxis(values, 0, -1), np.moveaxis(values, -1, 1)]
    return min(float(np.sqrt(np.mean((order.astype(np.float64).ravel() - wide) ** 2))) for order in orders)


def _chain(node: Any) -> list[Any]:
    """The operators between the last quantised values and the quantisation `node`, the last of them last."""
    chain: list[Any] = []
    current = node.args[0]
    while (
        current is not None
        and current.op == "call_function"
        and not str(current.target).startswith(fx.QUANTIZED_NAMESPACE)
    ):
        chain.insert(0, current)
        current = next(iter(current.all_input_nodes), None)
    return chain


@dataclass(frozen=True)
class TosaValues:
    """The graph's outputs by name, in its order; tensors of 8 and 16 bits and the outputs with their values; the
    operator that gives each."""

    outputs: Sequence[str]
    tensors: Mapping[str, Array]
    operators: Mapping[str, str]


def tosa_values_of(data: bytes, inputs: Sequence[Array]) -> TosaValues:
    """The values of the graph `data` for `inputs`, in the graph's order; only their bytes matter. BuildError when the
    reference model refuses the graph."""
    import tosa_reference_model
    from tosa.DType import DType
    from tosa.TosaGraph import TosaGraph

    block = TosaGraph.GetRootAs(data, 0).Regions(0).Blocks(0)
    dtypes = {DType.BOOL: np.bool_, DType.INT8: np.int8, DType.INT16: np.int16, DType.INT32: np.int32}
    layouts = {}
    for index in range(block.TensorsLength()):
        row = block.Tensors(index)
        layouts[row.Name().decode()] = row.Type(), tuple(row.Shape(i) for i in range(row.ShapeLength()))
    operators = {
        name: row.name
        for row in tosa_graph.read_operators(data)
        if row.name not in _CONSTANTS
        for name in row.outputs
    }
    outputs = [block.Outputs(index).decode() for index in range(block.OutputsLength())]
    between = [
        name for name in operators if name not in outputs and layouts[name][0] in (DType.INT8, DType.INT16)
    ]
    named = [block.Inputs(index).decode() for index in range(block.InputsLength())]
    given = [
        np.frombuffer(np.ascontiguousarray(array).tobytes(), dtypes[layouts[name][0]]).reshape(
            layouts[name][1]
        )
        for name, array in zip(named, inputs, strict=True)
    ]
    results, status = tosa_reference_model.run(
        with_outputs(data, block, [*outputs, *between]), given, initialize_variable_tensor_from_numpy=True
    )
    if status != tosa_reference_model.GraphStatus.TOSA_VALID:
        raise BuildError(f"the TOSA reference model says {status}")
    return TosaValues(outputs, dict(zip([*outputs, *between], results, strict=True)), operators)


def with_outputs(data: bytes, block: Any, names: Sequence[str]) -> bytes:
    """The flatbuffer `data` with other outputs of its `block`: a new vector at the end, to which the field points.
    Offsets in a flatbuffer lead forward, each from where it stands."""
    field = block._tab.Pos + block._tab.Offset(_OUTPUTS_FIELD)
    vector = -(-len(data) // 4) * 4
    texts = []
    places = []
    position = vector + 4 + 4 * len(names)
    for name in names:
        text = struct.pack("<I", len(name)) + name.encode() + b"\0"
        text += bytes(-len(text) % 4)
        texts.append(text)
        places.append(position)
        position += len(text)
    offsets = [place - (vector + 4 + 4 * index) for index, place in enumerate(places)]
    changed = bytearray(data)
    struct.pack_into("<I", changed, field, vector - field)
    changed += bytes(vector - len(data))
    return bytes(changed) + struct.pack(f"<{len(names) + 1}I", len(names), *offsets) + b"".join(texts)
