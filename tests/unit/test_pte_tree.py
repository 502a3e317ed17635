"""Programs that are written again from a tree of their values."""

import struct

import pytest

from ethosu_sdk import pte
from ethosu_sdk.pte.tree import read_tree, write_tree
from tests.pte_files import NAMES, golden, locate


def content(plan: pte.ExecutionPlan) -> tuple[object, ...]:
    """All of `plan` but the places in its file."""
    delegates = [(row.id, bytes(row.payload), row.compile_specs) for row in plan.delegates]
    return (
        *(plan.name, plan.values, plan.inputs, plan.outputs, plan.chains, plan.operators, delegates),
        plan.non_const_buffer_sizes,
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_program_is_written_as_it_was_read(name: str) -> None:
    program = pte.parse(golden(name))
    again = pte.parse(write_tree(program, read_tree(program)))
    assert list(map(content, again.plans)) == list(map(content, program.plans))
    assert again.named_data == program.named_data
    assert [row.size for row in again.segments] == [row.size for row in program.segments]
    # Payloads stay aligned as the NPU's driver needs it.
    assert all(row.payload_offset % 16 == 0 for row in again.delegates)


@pytest.mark.parametrize("name", NAMES)
def test_a_change_is_where_another_reader_finds_it(name: str) -> None:
    program = pte.parse(golden(name))
    tree = read_tree(program)
    plan = tree["execution_plan"][0]
    plan["values"].append({"val": ("Int", {"int_val": -(1 << 40)})})
    plan["non_const_buffer_sizes"] = (*plan["non_const_buffer_sizes"], 1 << 20)
    written = write_tree(program, tree)
    for path, value in (
        (f"execution_plan[0].values[{len(plan['values']) - 1}].val.int_val", -(1 << 40)),
        (f"execution_plan[0].non_const_buffer_sizes[{len(plan['non_const_buffer_sizes']) - 1}]", 1 << 20),
    ):
        position, code = locate(written, path)
        assert struct.unpack_from(f"<{code}", written, position) == (value,)
    assert bytes(program.data) == golden(name)
