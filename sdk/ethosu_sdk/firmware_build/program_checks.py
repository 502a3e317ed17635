"""What is refused of a program before it is built or run: kernel calls, delegates, hazards, fast scratch."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ethosu_sdk.base.errors import InputError, SdkError
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.npu import vela_blocks
from ethosu_sdk.npu.vela_blocks import VelaBlocks
from ethosu_sdk.program import execution_plan
from ethosu_sdk.program.execution_plan import ExecutionPlan, KernelCall, List, Operator, Tensor

if TYPE_CHECKING:
    from ethosu_sdk.npu.program import Reach


# Kernel calls of which two runtimes could make different things are refused. A kernel writes its output, and that
# lies on none of its inputs. Its overload says whether an input is a tensor or a number: the firmware has one kernel
# for both.

_PRIMITIVES = "executorch_prim::"  # they return nothing, and a view's output is its input's memory
_OUT = "out"  # in the overload of an operator with an output of its own
_LISTS = ("TensorList", "OptionalTensorList")
_NUMBER = "Scalar"  # in the overload of an operator that takes a number
_NUMBER_AT = {"aten::pow.Scalar_out": 0, "aten::masked_fill.Scalar_out": 2}  # of the others it is argument 1
_TWO_TENSORS = {
    *(f"aten::{name}.Tensor_out" for name in ("eq", "ne", "lt", "le", "gt", "ge", "remainder", "fmod")),
    *(f"aten::bitwise_{name}.Tensor_out" for name in ("and", "or", "xor", "left_shift", "right_shift")),
    *("aten::pow.Tensor_Tensor_out", "aten::atan2.out", "aten::floor_divide.out", "aten::div.out_mode"),
}
_COMPILE_AGAIN = "compile the model again: the file is damaged"


def refuse_kernel_calls(plans: Iterable[ExecutionPlan]) -> None:
    """InputError for a call whose output is a constant, lies on an input, or is not what the call returns, and for a
    number in place of a tensor."""
    for plan in plans:
        for number, call in enumerate(plan.instructions):
            if isinstance(call, KernelCall):
                _check_kernel_call(plan, call, f"instruction {number} of method '{plan.name}'")


def _check_kernel_call(plan: ExecutionPlan, call: KernelCall, where: str) -> None:
    operator = plan.operators[call.op_index]
    if operator.name.startswith(_PRIMITIVES) or len(call.args) < 2:
        return
    where = f"{where}, {operator.full_name},"
    _check_operands(plan, operator, call, where)
    *_, output, returned = call.args  # a call ends with what the operator returns
    if _OUT in operator.overload and isinstance(plan.values[returned], Tensor) and output != returned:
        raise InputError(
            f"{where} returns value {returned}, but its output is value {output}", _COMPILE_AGAIN
        )
    written = dict(_tensors(plan, [returned]))
    constant = next((index for index, row in written.items() if row.is_constant), None)
    if constant is not None:
        raise InputError(f"{where} writes value {constant}, which is a constant", _COMPILE_AGAIN)
    for index, row in _tensors(plan, call.args[:-1]):
        for other, target in written.items():
            if index not in written and _collide(row, target):
                raise InputError(
                    f"{where} writes value {other} over value {index}, which it reads: the memory plan has both "
                    "at the same place",
                    _COMPILE_AGAIN,
                )


def _check_operands(plan: ExecutionPlan, operator: Operator, call: KernelCall, where: str) -> None:
    """InputError for a number where the overload has a tensor, and the other way round."""
    number = None
    if _NUMBER in operator.overload.split("_"):
        number = _NUMBER_AT.get(operator.full_name, 1)
    elif operator.full_name not in _TWO_TENSORS:
        return
    for place, index in enumerate(call.args[: max(2, (number or 0) + 1)]):
        value, wanted = plan.values[index], "number" if place == number else "tensor"
        if isinstance(value, execution_plan.Scalar if place == number else Tensor):
            continue
        kind = "number" if isinstance(value, execution_plan.Scalar) else type(value).__name__.lower()
        raise InputError(
            f"{where} needs a {wanted} as argument {place}, but value {index} is a {kind}", _COMPILE_AGAIN
        )


def _tensors(plan: ExecutionPlan, indices: Iterable[int]) -> Iterator[tuple[int, Tensor]]:
    """The tensors among these values, and those of lists."""
    for index in indices:
        value = plan.values[index]
        if isinstance(value, Tensor):
            yield index, value
        elif isinstance(value, List) and value.kind in _LISTS:
            yield from _tensors(plan, (int(item) for item in value.items if item >= 0))


def _collide(one: Tensor, other: Tensor) -> bool:
    first, second = one.allocation, other.allocation
    if first is None or second is None or first.memory_id != second.memory_id:
        return False
    if first == second and _is_state(one, other):
        return False  # two names of the program's state
    return first.offset < second.offset + other.nbytes and second.offset < first.offset + one.nbytes


def _is_state(one: Tensor, other: Tensor) -> bool:
    same = (one.dtype, one.sizes, one.dim_order) == (other.dtype, other.sizes, other.dim_order)
    return same and (one.data is not None or other.data is not None)


def refuse_delegates(plan: ExecutionPlan) -> None:
    """InputError for a delegate that is no Ethos-U's, or that the NPU model does not run."""
    plan.check_backends()
    # Here and not above: NumPy comes with it, and a command's --help must not wait for that.
    from ethosu_sdk import npu

    for row in plan.delegates:
        if row.vela is not None:
            npu.load(row.payload)


def reach_of_streams(
    plans: Iterable[ExecutionPlan], pieces: Mapping[int, Iterable[bytes]] | None = None
) -> dict[bytes, Reach]:
    """What each command stream may reach, and each of the `pieces` of those of the first method, by delegate."""
    from ethosu_sdk.npu.program import reach_of

    found: dict[bytes, Reach] = {}
    for number, plan in enumerate(plans):
        for index, vela in _velas(plan):
            reach = reach_of(vela)
            parts = (pieces or {}).get(index, ()) if number == 0 else ()
            for stream in parts:
                _add(found, stream, replace(reach, begins=False))
            _add(found, bytes(vela.command_stream), reach)
    return found


def _velas(plan: ExecutionPlan) -> Iterator[tuple[int, VelaBlocks]]:
    """The Ethos-U delegates of `plan` with their numbers."""
    for index, row in enumerate(plan.delegates):
        if row.vela is not None:
            yield index, row.vela


def _add(found: dict[bytes, Reach], stream: bytes, reach: Reach) -> None:
    """Where two delegates have the same commands, those reach what either does."""
    other = found.setdefault(stream, reach)
    if other != reach:
        sizes = {region: max(size, other.sizes[region]) for region, size in reach.sizes.items()}
        begins = reach.begins and other.begins and reach.inputs == other.inputs
        found[stream] = replace(reach, sizes=sizes, begins=begins)


# Hazards are commands that hardware, which runs operations in parallel, may start too early.
_SHOWN_HAZARDS = 3
HAZARDS_HINT = "`ethosu-sdk inspect MODEL.pte --hazards` lists them"


def refuse_lost_tables(plans: Iterable[ExecutionPlan]) -> None:
    """InputError for a command stream that loads a look-up table to where the NPU has no memory."""
    from ethosu_sdk.npu import hazards
    from ethosu_sdk.npu.config import NpuConfig
    from ethosu_sdk.npu.hazards import HazardKind

    for index, vela in itertools.chain.from_iterable(map(_velas, plans)):
        try:
            config = NpuConfig.from_word(vela.config_word)
            found = hazards.table_hazards(bytes(vela.command_stream), config)
        except SdkError:
            continue  # whoever runs it says why
        beyond = [hazard for hazard in found if hazard.kind is HazardKind.LUT_BEYOND_MEMORY]
        if beyond:
            raise InputError(
                f"delegate {index} cannot run on {config.npu}-{config.macs}: {beyond[0].describe()}",
                "Vela 4.5.0 to 5.2.0 write such a stream for an activation after a change of the order of axes: "
                "`ethosu-sdk compile` avoids it, and so does another target, such as ethos-u55-128",
            )


def hazard_sentences(vela: VelaBlocks) -> list[str]:
    """A sentence for each hazard of a delegate's command stream; none for a stream that cannot be read."""
    from ethosu_sdk.npu import hazards
    from ethosu_sdk.npu.config import NpuConfig

    try:
        found = hazards.check(bytes(vela.command_stream), NpuConfig.from_word(vela.config_word))
    except SdkError:
        return []  # whoever runs it says why
    return [hazard.describe() for hazard in found]


def hazard_warnings(plan: ExecutionPlan) -> Iterator[str]:
    """What to say of the delegates of a program whose results on hardware may differ from the model's."""
    for index, vela in _velas(plan):
        found = hazard_sentences(vela)
        if found:
            more = f"; and {len(found) - _SHOWN_HAZARDS} more" if len(found) > _SHOWN_HAZARDS else ""
            yield (
                f"delegate {index} has {counted(len(found), 'hazard')}: hardware may compute something else than the "
                f"NPU model, which runs operations one by one: {'; '.join(found[:_SHOWN_HAZARDS])}{more}"
            )


def fast_scratch_bytes(plans: Iterable[ExecutionPlan]) -> int | None:
    """What the delegates of `plans` write to fast scratch memory, at most: payloads do not say it, their commands do.

    None when the NPU model cannot read them, which need not concern who runs the program elsewhere.
    """
    # Here and not above: NumPy comes with it, and a command's --help must not wait for that.
    from ethosu_sdk.npu import config, program

    most = 0
    for _, vela in itertools.chain.from_iterable(map(_velas, plans)):
        try:
            npu = config.NpuConfig.from_word(vela.config_word)
            written = program.written_bytes(bytes(vela.command_stream), npu)
        except SdkError:
            return None
        most = max(most, written.get(vela_blocks.REGION_FAST_SCRATCH, 0))
    return most
