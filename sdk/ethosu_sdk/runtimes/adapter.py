"""Gives Arm's runner the `cortex_m` operators of ExecuTorch 1.5.1 in the forms that its older build has.

Only the copy of the program that the runner gets is changed. What has no such form is left as it is: the runner then
names the operator that it lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ethosu_sdk import pte
from ethosu_sdk.errors import BuildError
from ethosu_sdk.pte.tree import Node, read_tree, write_tree

_NHWC = "_nhwc"
_PAD, _COPY = "cortex_m::pad.out", "cortex_m::maximum"
_OUTPUTS = 2  # the last two values of a call are its output: `out`, and what the call returns


@dataclass(frozen=True)
class _Dropped:
    """An argument that the runner's form of an operator lacks. With `only`, other values cannot be expressed."""

    place: int
    name: str
    only: int | bool | None = None

    def change(self) -> str:
        """What is done, for the record."""
        return f"{self.name}{'' if self.only is None else f' ({self.only})'} left out"


# What the forms lack: the schemas of ExecuTorch 1.5.1 (backends/cortex_m/ops/operators.yaml) beside the signatures in
# the runner's symbol table.
_DROPPED: dict[str, tuple[_Dropped, ...]] = {
    "cortex_m::quantized_add": (_Dropped(11, "activation_min", -128), _Dropped(12, "activation_max", 127)),
    "cortex_m::quantized_conv2d": (_Dropped(12, "scratch"),),
    "cortex_m::quantized_depthwise_conv2d": (_Dropped(13, "scratch"),),
    "cortex_m::quantized_avg_pool2d": (_Dropped(4, "ceil_mode", False), _Dropped(8, "scratch")),
}


@dataclass(frozen=True)
class AdaptedOperator:
    """Calls of the operator `name`, which the runner has as `called`, and what was changed for that."""

    name: str
    called: str
    calls: int
    changes: tuple[str, ...]


@dataclass(frozen=True)
class Adapted:
    """The program as the runner gets it; `operators` is empty when that is the program itself."""

    program: pte.Pte
    operators: tuple[AdaptedOperator, ...]


def adapt(program: pte.Pte, plan: pte.ExecutionPlan) -> Adapted:
    """A copy of `program` whose method `plan` calls `cortex_m` operators in the runner's forms.

    BuildError for a call that these forms cannot express, with the operator and the reason.
    """
    found = (_form(plan, *pair) for pair in zip(plan.operators, _calls(plan), strict=True))
    rows = [row for row in found if row is not None]
    if not rows:
        return Adapted(program, ())
    tree = read_tree(program)
    node = tree["execution_plan"][program.plans.index(plan)]
    editor = _Editor(plan, node)
    forms = {row.name: row for row in rows}
    for operator, content in zip(plan.operators, node["operators"], strict=True):
        if operator.full_name in forms:
            content["name"] = forms[operator.full_name].called.removesuffix(f".{operator.overload}")
    for chain in node["chains"]:
        for instruction in chain.get("instructions", ()):
            kind, call = instruction["instr_args"]
            editor.change(kind, call, forms)
    return Adapted(pte.parse(write_tree(program, tree)), tuple(forms.values()))


def _calls(plan: pte.ExecutionPlan) -> list[list[pte.KernelCall]]:
    """The calls of each operator of `plan`."""
    calls: list[list[pte.KernelCall]] = [[] for _ in plan.operators]
    for row in plan.instructions:
        if isinstance(row, pte.KernelCall):
            calls[row.op_index].append(row)
    return calls


class _Editor:
    """Changes the calls of the method `node`, which is `plan` in a tree, and adds the tensors that they need."""

    def __init__(self, plan: pte.ExecutionPlan, node: Node) -> None:
        self._plan = plan
        self._values: list[Node] = node["values"]
        self._channels_last: dict[int, int] = {}

    def change(self, kind: str, call: Node, forms: Mapping[str, AdaptedOperator]) -> None:
        """Give the instruction `call` the arguments of its operator's form, when it has another one."""
        name = self._plan.operators[call.get("op_index", 0)].full_name if kind == "KernelCall" else ""
        if name not in forms:
            return
        args: list[int] = list(call.get("args", ()))
        if name == _PAD:
            args = [args[0], args[0], *args[-_OUTPUTS:]]
        base, nhwc = _base(name)
        dropped = _check(self._plan, name, _DROPPED.get(base, ()), args)
        if nhwc:
            for place in (0, -2, -1):
                args[place] = self._as_channels_last(args[place], name)
        call["args"] = tuple(value for place, value in enumerate(args) if place not in dropped)

    def _as_channels_last(self, index: int, name: str) -> int:
        """A tensor N, C, H, W in channels-last order on the memory of number `index`, which is N, H, W, C."""
        if index not in self._channels_last:
            value = self._plan.values[index]
            if not isinstance(value, pte.Tensor) or value.dim_order != (0, 1, 2, 3):
                raise _refused(name, f"value {index} is not a contiguous tensor of four dimensions")
            if value.allocation is None or value.dynamism != "STATIC":
                raise _refused(name, f"value {index} has no place in the memory plan, or no fixed shape")
            batch, height, width, channels = value.sizes
            _, content = self._values[index]["val"]
            alias: dict[str, Any] = {
                **{key: part for key, part in content.items() if key != "data_buffer_idx"},
                "sizes": (batch, channels, height, width),
                "dim_order": bytes((0, 2, 3, 1)),
            }
            self._channels_last[index] = len(self._values)
            self._values.append({"val": ("Tensor", alias)})
        return self._channels_last[index]


def _form(
    plan: pte.ExecutionPlan, operator: pte.Operator, calls: list[pte.KernelCall]
) -> AdaptedOperator | None:
    """The runner's form of `operator`, None where it needs none or there is none."""
    name = operator.full_name
    base, nhwc = _base(name)
    if name == _PAD and calls and not any(_pads(plan, row) for row in calls):
        return AdaptedOperator(name, f"{_COPY}.out", len(calls), ("a copy, because nothing is padded",))
    if base not in _DROPPED or not calls:
        return None
    layout = ("N, H, W, C tensors described as N, C, H, W in channels-last order",) if nhwc else ()
    changes = (*layout, *(row.change() for row in _DROPPED[base]))
    return AdaptedOperator(name, f"{base}.out", len(calls), changes)


def _base(name: str) -> tuple[str, bool]:
    """(operator without overload and layout, whether it has the explicit layout N, H, W, C)."""
    base = name.removesuffix(".out")
    return base.removesuffix(_NHWC), base.endswith(_NHWC)


def _pads(plan: pte.ExecutionPlan, call: pte.KernelCall) -> bool:
    """Whether a call of `pad` (input, before, behind, value, output) makes its input larger."""
    if len(call.args) != 4 + _OUTPUTS:
        return True
    lists = [plan.values[index] for index in call.args[1:3]]
    return any(row.kind != "IntList" or any(_numbers(plan, row)) for row in lists)


def _numbers(plan: pte.ExecutionPlan, row: pte.Value) -> list[object]:
    items = row.items if isinstance(row, pte.List) else ()
    values = (plan.values[int(index)] for index in items)
    return [value.value for value in values if isinstance(value, pte.Scalar)]


def _check(plan: pte.ExecutionPlan, name: str, dropped: tuple[_Dropped, ...], args: list[int]) -> set[int]:
    """The places of the arguments that are `dropped`. BuildError when one has a value that changes the result."""
    if dropped and len(args) != dropped[-1].place + 1 + _OUTPUTS:
        raise _refused(name, f"it is called with {len(args)} values, not as ExecuTorch 1.5.1 calls it")
    for row in dropped:
        value = plan.values[args[row.place]]
        found = value.value if isinstance(value, pte.Scalar) else None
        if row.only is not None and found != row.only:
            raise _refused(name, f"{row.name} is {found}, and the runner's older form knows only {row.only}")
    return {row.place for row in dropped}


def _refused(name: str, reason: str) -> BuildError:
    return BuildError(
        f"Arm's runner cannot execute {name}: {reason}",
        "leave --runtime out: the SDK's own firmware has the operator",
    )
