"""Arm's prebuilt ExecuTorch runners: which there are (arm_runners.toml), and a program in the form and place that
one takes.
"""

from __future__ import annotations

import functools
import importlib.metadata
import secrets
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ethosu_sdk.base import filesystem, tools
from ethosu_sdk.base.errors import BuildError, ToolError, UsageError
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import ExecutionPlan, KernelCall, List, Operator, Scalar, Tensor, Value
from ethosu_sdk.program.pte_tree import Node, read_tree, write_tree


@dataclass(frozen=True)
class Window:
    """A part of the board's memory that the runner and its user share."""

    address: int
    size_bytes: int


@dataclass(frozen=True)
class PrebuiltRunner:
    """One runner: the board and NPUs it is for, the simulators that have this board, and its memory."""

    board: str
    npus: tuple[str, ...]
    default_macs: int
    simulators: tuple[str, ...]
    folder: str
    sha256: str
    program: Window
    inputs: Window
    outputs: Window
    method_pool_bytes: int
    temporary_pool_bytes: int


@functools.cache
def _table() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / "arm_runners.toml").read_text(encoding="utf-8"))


@functools.cache
def all_runners() -> tuple[PrebuiltRunner, ...]:
    """All runners, that for programs without an NPU first."""
    return msgspec.convert(_table()["runners"], tuple[PrebuiltRunner, ...])


def runners_package() -> str:
    return str(_table()["package"]["name"])


def runners_licence() -> str:
    """The licence of the runners, as an SPDX expression."""
    return str(_table()["package"]["licence"])


def runner_for(npu: str | None) -> PrebuiltRunner:
    """The runner for programs that use `npu`, or none. UsageError when Arm built none."""
    for row in all_runners():
        if npu is None or npu in row.npus:
            return row
    others = ", ".join(name for row in all_runners() for name in row.npus)
    raise UsageError(
        f"Arm publishes no ExecuTorch runner for {npu}: its package has runners for {others}",
        "leave --runtime out: the SDK's own firmware can run the program",
    )


def runner_executable(runner: PrebuiltRunner) -> Path:
    """The installed ELF of `runner`. ToolError, with the fix, when the package lacks or holds another file."""
    package: dict[str, str] = _table()["package"]
    found = tools.require(package["name"])
    distribution = importlib.metadata.distribution(package["name"])
    path = Path(str(distribution.locate_file(package["folder"]))) / runner.folder / package["executable"]
    if not path.is_file():
        raise ToolError(f"the installed {package['name']} has no runner for {runner.board}", found.tool.fix)
    digest = filesystem.sha256_file(path)
    if digest != runner.sha256:
        raise ToolError(
            f"{path} is not the runner that {package['name']} {found.version} was published with: its SHA-256 is "
            f"{digest}, not {runner.sha256}",
            f"install the package again: {found.tool.fix}",
        )
    return path


# The `cortex_m` operators of ExecuTorch 1.5.1 in the forms that Arm's older build has. Only the copy of the program
# that the runner gets is changed. What has no such form is left as it is: the runner then names the operator that it
# lacks.

_NHWC = "_nhwc"
_PAD, _COPY = "cortex_m::pad.out", "cortex_m::maximum"
_OUTPUTS = 2  # the last two values of a call are its output: `out`, and what the call returns


@dataclass(frozen=True)
class _Dropped:
    """An argument that the runner's form of an operator lacks. With `only`, other values cannot be expressed."""

    place: int
    name: str
    only: int | bool | None = None


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


def adapted_program(program: pte.Pte, plan: ExecutionPlan) -> Adapted:
    """A copy of `program` whose method `plan` calls `cortex_m` operators in the runner's forms.

    BuildError for a call that these forms cannot express, with the operator and the reason.
    """
    calls: list[list[KernelCall]] = [[] for _ in plan.operators]
    for row in plan.instructions:
        if isinstance(row, KernelCall):
            calls[row.op_index].append(row)
    found = (_runner_form(plan, *pair) for pair in zip(plan.operators, calls, strict=True))
    forms = {form.name: form for form in found if form is not None}
    if not forms:
        return Adapted(program, ())
    tree = read_tree(program)
    node = tree["execution_plan"][program.plans.index(plan)]
    editor = _Editor(plan, node)
    for operator, content in zip(plan.operators, node["operators"], strict=True):
        if operator.full_name in forms:
            content["name"] = forms[operator.full_name].called.removesuffix(f".{operator.overload}")
    for chain in node["chains"]:
        for instruction in chain.get("instructions", ()):
            kind, call = instruction["instr_args"]
            editor.change(kind, call, forms)
    return Adapted(pte.parse(write_tree(program, tree)), tuple(forms.values()))


class _Editor:
    """Changes the calls of the method `node`, which is `plan` in a tree, and adds the tensors that they need."""

    def __init__(self, plan: ExecutionPlan, node: Node) -> None:
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
        base, nhwc = _base_name(name)
        dropped = _dropped_places(self._plan, name, _DROPPED.get(base, ()), args)
        if nhwc:
            for place in (0, -2, -1):
                args[place] = self._as_channels_last(args[place], name)
        call["args"] = tuple(value for place, value in enumerate(args) if place not in dropped)

    def _as_channels_last(self, index: int, name: str) -> int:
        """A tensor N, C, H, W in channels-last order on the memory of number `index`, which is N, H, W, C."""
        if index not in self._channels_last:
            value = self._plan.values[index]
            if not isinstance(value, Tensor) or value.dim_order != (0, 1, 2, 3):
                raise _refused(name, f"value {index} is not a contiguous tensor of four dimensions")
            if value.allocation is None or value.dynamism != "STATIC":
                raise _refused(name, f"value {index} has no place in the memory plan, or no fixed shape")
            batch, height, width, channels = value.sizes
            _, content = self._values[index]["val"]
            alias: dict[str, Any] = {
                **{key: item for key, item in content.items() if key != "data_buffer_idx"},
                "sizes": (batch, channels, height, width),
                "dim_order": bytes((0, 2, 3, 1)),
            }
            self._channels_last[index] = len(self._values)
            self._values.append({"val": ("Tensor", alias)})
        return self._channels_last[index]


def _runner_form(plan: ExecutionPlan, operator: Operator, calls: list[KernelCall]) -> AdaptedOperator | None:
    """The runner's form of `operator`, None where it needs none or there is none."""
    name = operator.full_name
    base, nhwc = _base_name(name)
    if name == _PAD and calls and not any(_pads(plan, row) for row in calls):
        return AdaptedOperator(name, f"{_COPY}.out", len(calls), ("a copy, because nothing is padded",))
    if base not in _DROPPED or not calls:
        return None
    layout = ("N, H, W, C tensors described as N, C, H, W in channels-last order",) if nhwc else ()
    dropped = (f"{row.name}{'' if row.only is None else f' ({row.only})'} left out" for row in _DROPPED[base])
    return AdaptedOperator(name, f"{base}.out", len(calls), (*layout, *dropped))


def _base_name(name: str) -> tuple[str, bool]:
    """(operator without overload and layout, whether it has the explicit layout N, H, W, C)."""
    base = name.removesuffix(".out")
    return base.removesuffix(_NHWC), base.endswith(_NHWC)


def _pads(plan: ExecutionPlan, call: KernelCall) -> bool:
    """Whether a call of `pad` (input, before, behind, value, output) makes its input larger."""
    if len(call.args) != 4 + _OUTPUTS:
        return True
    lists = [plan.values[index] for index in call.args[1:3]]
    return any(row.kind != "IntList" or any(_numbers(plan, row)) for row in lists)


def _numbers(plan: ExecutionPlan, row: Value) -> list[object]:
    items = row.items if isinstance(row, List) else ()
    values = (plan.values[int(index)] for index in items)
    return [value.value for value in values if isinstance(value, Scalar)]


def _dropped_places(
    plan: ExecutionPlan, name: str, dropped: tuple[_Dropped, ...], args: list[int]
) -> set[int]:
    """The places of the arguments that are `dropped`. BuildError when one has a value that changes the result."""
    if dropped and len(args) != dropped[-1].place + 1 + _OUTPUTS:
        raise _refused(name, f"it is called with {len(args)} values, not as ExecuTorch 1.5.1 calls it")
    for row in dropped:
        value = plan.values[args[row.place]]
        found = value.value if isinstance(value, Scalar) else None
        if row.only is not None and found != row.only:
            raise _refused(name, f"{row.name} is {found}, and the runner's older form knows only {row.only}")
    return {row.place for row in dropped}


def _refused(name: str, reason: str) -> BuildError:
    return BuildError(
        f"Arm's runner cannot execute {name}: {reason}",
        "leave --runtime out: the SDK's own firmware has the operator",
    )


_GUARD_BYTES = 64
_LEAVE = "leave --runtime out: the SDK's own firmware is built for the program"


@dataclass(frozen=True)
class Placed:
    """What lies in memory before the run, and what is read after it.

    `blank`, random bytes, fills the outputs' place and the guard behind it: what the runner does not write stays so.
    """

    images: tuple[tuple[int, bytes], ...] = field(repr=False)
    read_back: tuple[tuple[int, int], ...]
    blank: bytes = field(repr=False)
    outputs_bytes: int


def placed_inference(
    runner: PrebuiltRunner, plan: ExecutionPlan, program: bytes, inputs: Sequence[bytes]
) -> Placed:
    """Lay out one inference. BuildError, which names the limit, for what the runner has no room for."""
    tensors = plan.output_tensors()
    if len(tensors) != len(plan.outputs) or len(plan.input_tensors()) != len(plan.inputs):
        raise BuildError(
            "Arm's runner supports only tensors, but the program has other inputs or outputs", _LEAVE
        )
    if any(not row.sizes for row in (*plan.input_tensors(), *tensors)):
        raise BuildError(
            "an input or output of the program is a tensor without dimensions: Arm's runner fails when it lists one",
            _LEAVE,
        )
    outputs_bytes = sum(row.nbytes for row in tensors)
    content = b"".join(inputs)
    scratch = (row.vela.scratch_bytes for row in plan.delegates if row.vela)
    for what, need, room in (
        ("the program", len(program), runner.program.size_bytes),
        ("its inputs", len(content), runner.inputs.size_bytes),
        ("its outputs", outputs_bytes, runner.outputs.size_bytes - _GUARD_BYTES),
        ("its planned memory", sum(plan.non_const_buffer_sizes), runner.method_pool_bytes),
        ("a delegate's scratch memory", max(scratch, default=0), runner.temporary_pool_bytes),
    ):
        if need > room:
            raise BuildError(
                f"{what} takes {need:,} bytes, but Arm's runner for {runner.board} has room for {room:,}",
                _LEAVE,
            )
    blank = secrets.token_bytes(outputs_bytes + _GUARD_BYTES)
    images = [(runner.program.address, program), (runner.outputs.address, blank)]
    if content:
        images.append((runner.inputs.address, content))
    return Placed(
        images=tuple(images),
        read_back=((runner.program.address, len(program)), (runner.outputs.address, len(blank))),
        blank=blank,
        outputs_bytes=outputs_bytes,
    )
