"""What the reader makes of real programs, of nonsense, of any damage, and of programs that were written again."""

import functools
import hashlib
import os
import random
import struct
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.targets import Target, accelerator
from ethosu_sdk.program import execution_plan, flatbuffer, pte
from ethosu_sdk.program.execution_plan import (
    ETHOSU_BACKEND,
    Allocation,
    DelegateCall,
    ExecutionPlan,
    KernelCall,
    List,
    Operator,
    Scalar,
    Tensor,
)
from ethosu_sdk.program.flatbuffer import FlatBuffer, Table
from ethosu_sdk.program.pte_tree import read_tree, write_tree
from tests.places import GOLDEN_PTE
from tests.pte_files import LIMIT_S, NAMES, changed, check, golden, locate
from tests.tables import each

PLAN = "execution_plan[0]"


def test_the_goldens_are_there() -> None:
    assert NAMES == ("add_u55", "add_u85_segment", "choice", "conv_u65_int8", "counter", "lists", "softmax")


@each("name", NAMES)
def test_identity_and_source(name: str) -> None:
    program = pte.read(GOLDEN_PTE / f"{name}.pte")
    assert program.size == len(golden(name))
    assert program.sha256 == hashlib.sha256(golden(name)).hexdigest()
    assert program == pte.parse(golden(name))


def test_softmax() -> None:
    program = pte.parse(golden("softmax"))
    plan = program.plan()
    assert program.target() is None
    assert not program.header.extended
    assert plan.operators == (Operator("aten::_softmax", "out"),)
    assert plan.called_operators() == {"aten::_softmax.out": 1}
    assert plan.instructions == (KernelCall(0, (0, 2, 3, 1, 1)),)
    (given,) = plan.input_tensors()
    assert (given.dtype, given.sizes, given.dim_order, given.nbytes) == ("float32", (4, 10), (0, 1), 160)
    assert given.dynamism == "STATIC"
    assert given.allocation == Allocation(1, 160)
    assert plan.values[2] == Scalar("Int", 1) or plan.values[2] == Scalar("Int", -1)
    assert plan.values[3] == Scalar("Bool", False)
    assert plan.non_const_buffer_sizes == (0, 320)
    (result,) = plan.output_tensors()
    assert result.sizes == (4, 10)


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("add_u55", Target("ethos-u55", 128, "Ethos_U55_High_End_Embedded", "Shared_Sram")),
        ("add_u85_segment", Target("ethos-u85", 256, "Ethos_U85_SYS_DRAM_Mid", "Sram_Only")),
        ("conv_u65_int8", Target("ethos-u65", 256, "Ethos_U65_High_End", "Dedicated_Sram_384KB")),
    ],
)
def test_targets_are_read_back(name: str, target: Target) -> None:
    assert pte.parse(golden(name)).target() == target


@pytest.mark.parametrize("name", ["add_u55", "add_u85_segment"])
def test_delegates(name: str) -> None:
    program = pte.parse(golden(name))
    (delegate,) = program.delegates
    assert delegate.id == ETHOSU_BACKEND
    assert bytes(delegate.payload[:16]) == b"vela_bin_stream\0"
    assert bytes(delegate.payload) == golden(name)[delegate.payload_offset :][: len(delegate.payload)]
    assert delegate.vela is not None
    assert [slot.nbytes for slot in delegate.vela.inputs] == [20]
    assert program.plan().instructions == (DelegateCall(0, (0, 1)),)
    assert any(segment.size for segment in program.segments) == (name == "add_u85_segment")


def test_constants_lists_and_optional_items() -> None:
    program = pte.parse(golden("lists"))
    plan = program.plan()
    weights = [value for value in plan.values if isinstance(value, Tensor) and value.is_constant]
    assert [row.sizes for row in weights] == [(3, 4), (3,)]
    stored = golden("lists")[program.segments[0].offset :][: program.segments[0].size]
    for row in weights:
        assert row.data is not None
        assert len(row.data) == row.nbytes
        assert bytes(row.data) in stored
    lists = {value.kind: value.items for value in plan.values if isinstance(value, List)}
    assert set(lists) == {"IntList", "TensorList", "OptionalTensorList"}
    assert all(isinstance(plan.values[int(i)], Tensor) for i in lists["TensorList"])
    assert len(lists["OptionalTensorList"]) == 2


def test_branches() -> None:
    instructions = pte.parse(golden("choice")).plan().instructions
    kinds = [row.kind for row in instructions]
    assert kinds.count("JumpFalseCall") == 2
    assert kinds.count("MoveCall") == 2
    assert [
        row.destination_instruction for row in instructions if isinstance(row, execution_plan.JumpFalseCall)
    ] == [
        6,
        8,
    ]


def test_state_and_constant_methods() -> None:
    plan = pte.parse(golden("counter")).plan()
    (state,) = [v for v in plan.values if isinstance(v, Tensor) and v.allocation and v.data is not None]
    assert state.data is not None
    assert struct.unpack("<2f", state.data) == (3.0, 5.0)
    assert not state.is_constant
    program = pte.parse(golden("conv_u65_int8"))
    plan = program.plan("input0_zp")
    assert plan.instructions == ()
    (value,) = [plan.values[index] for index in plan.outputs]
    assert isinstance(value, Scalar)
    assert value.kind == "Int"
    with pytest.raises(InputError, match="no method 'input0_zq'") as caught:
        program.plan("input0_zq")
    assert "did you mean 'input0_zp'" in caught.value.hint


NONSENSE = [
    ("softmax", "version", 1, "version is 1, the SDK reads version 0"),
    ("softmax", f"{PLAN}.inputs[0]", 4, "inputs refers to number 4 of 4 values"),
    ("softmax", f"{PLAN}.outputs[0]", -1, "outputs refers to number -1 of 4 values"),
    (
        "softmax",
        f"{PLAN}.values[0].val.scalar_type",
        8,
        "scalar_type is 8, which is not a value of ScalarType",
    ),
    ("softmax", f"{PLAN}.values[0].val.scalar_type", -1, "scalar_type is -1"),
    ("softmax", f"{PLAN}.values[0].val.scalar_type", 7, "puts 320 bytes at 160 into a buffer of 320"),
    ("softmax", f"{PLAN}.values[0].val.sizes[0]", -4, r"sizes is \[-4, 10\]"),
    ("softmax", f"{PLAN}.values[0].val.sizes[0]", 5, "puts 200 bytes at 160"),
    ("softmax", f"{PLAN}.values[0].val.sizes[0]", 0x7FFFFFFF, "more than 4 GiB"),
    ("softmax", f"{PLAN}.values[0].val.sizes#len", 1, r"dim_order is \[0, 1\] for 1 dimensions"),
    ("softmax", f"{PLAN}.values[0].val.sizes#len", 17, "has 17 dimensions, at most 16"),
    ("softmax", f"{PLAN}.values[0].val.sizes#len", 1 << 28, r"sizes has \d+ elements"),
    ("softmax", f"{PLAN}.values[0].val.sizes#len", 0xFFFFFFFF, r"sizes has \d+ elements"),
    ("softmax", f"{PLAN}.values[0].val.dim_order[0]", 1, r"dim_order is \[1, 1\] for 2 dimensions"),
    ("softmax", f"{PLAN}.values[0].val.dim_order[1]", 2, r"dim_order is \[0, 2\]"),
    ("softmax", f"{PLAN}.values[0].val.allocation_info.memory_id", 2, "memory_id is 2, there are 1 buffers"),
    ("softmax", f"{PLAN}.values[0].val.allocation_info.memory_id", 0, "memory_id is 0"),
    ("softmax", f"{PLAN}.values[0].val.allocation_info.memory_offset_low", 0xFFFFFFFF, "puts 160 bytes at"),
    ("softmax", f"{PLAN}.values[0].val#type", 12, "type number 12, which is not a type of KernelTypes"),
    ("softmax", f"{PLAN}.values[0].val#type", 0, "has a value but no type"),
    ("softmax", f"{PLAN}.values[3].val#ref", 0, r"refers to byte \d+ of 960"),
    ("softmax", f"{PLAN}.values[3].val#ref", 0xFFFFFFFC, r"refers to byte \d+ of 960"),
    ("softmax", f"{PLAN}.values[3].val#ref", 2, r"refers to byte \d+ of 960"),
    ("softmax", f"{PLAN}.values#ref", 0x7FFFFFF0, r"values refers to byte \d+"),
    ("softmax", f"{PLAN}.values#len", 0x40000000, r"values has 1073741824 elements"),
    ("softmax", f"{PLAN}.chains#len", 0, r"chains is empty"),
    ("softmax", f"{PLAN}.chains[0].instructions[0].instr_args.op_index", 1, "number 1 of 1 operators"),
    ("softmax", f"{PLAN}.chains[0].instructions[0].instr_args.args[1]", 4, "number 4 of 4 values"),
    ("softmax", f"{PLAN}.chains[0].instructions[0].instr_args#type", 6, "not a type of InstructionArguments"),
    ("softmax", f"{PLAN}.non_const_buffer_sizes[1]", 319, "into a buffer of 319 bytes"),
    ("softmax", f"{PLAN}.non_const_buffer_sizes[1]", -1, "non_const_buffer_sizes is"),
    ("softmax", f"{PLAN}.operators[0].name#len", 3, "name does not end with a zero byte"),
    ("softmax", "execution_plan#len", 0, "execution_plan is empty"),
    ("choice", f"{PLAN}.chains[0].instructions[5].instr_args.destination_instruction", 9, "number 9 of 9"),
    ("choice", f"{PLAN}.chains[0].instructions[5].instr_args.destination_instruction", -1, "number -1 of"),
    ("choice", f"{PLAN}.chains[0].instructions[5].instr_args.cond_value_index", 99, "number 99 of"),
    ("choice", f"{PLAN}.chains[0].instructions[7].instr_args.move_to", 99, "move_to refers to number 99"),
    ("choice", f"{PLAN}.chains[0].instructions[7].instr_args.move_from", -2, "move_from refers to number -2"),
    ("lists", "constant_segment.offsets[1]", 1 << 40, "of a segment of 60 bytes"),
    ("lists", "constant_segment.offsets[1]", 2, r"data at byte 2306, not on 4 bytes"),
    ("lists", "segments[0].size", 61, "segments.0. ends at byte 2365 of a file of 2364"),
    ("lists", "segments[0].size", (1 << 64) - 1, "ends at byte"),
    ("lists", f"{PLAN}.values[0].val.data_buffer_idx", 3, "data_buffer_idx is 3, there are 3 buffers"),
    ("add_u85_segment", f"{PLAN}.delegates[0].processed.index", 2, "index is 2, there are 2 payloads"),
    (
        "add_u85_segment",
        f"{PLAN}.delegates[0].processed.location",
        2,
        "location is 2, which is not a value of DataLocation",
    ),
    ("add_u85_segment", "segments[1].size", 719, "ends inside a block header"),
    ("add_u55", f"{PLAN}.delegates[0].processed.index", 1, "index is 1, there are 1 payloads"),
    ("add_u55", f"{PLAN}.delegates[0].id#len", 0, "id"),
    ("add_u55", f"{PLAN}.chains[0].instructions[0].instr_args.delegate_index", 1, "number 1 of 1 delegates"),
    ("add_u55", f"{PLAN}.chains[0].instructions[0].instr_args.args#len", 1, "the delegate takes 2"),
    ("add_u55", f"{PLAN}.values[0].val.sizes[0]", 4, "gives a tensor of 16 bytes where the delegate has 20"),
    ("add_u55", "backend_delegate_data[0].data#len", 100, "Ethos-U delegate payload"),
]


@each(("name", "path", "value", "message"), NONSENSE)
def test_nonsense_is_refused_by_name(name: str, path: str, value: float, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        pte.parse(changed(golden(name), (path, value)))
    assert caught.value.hint


def payload_without_output(data: bytes) -> bytes:
    """`data` with a delegate whose payload lists no outputs; its weights grow by what that saves."""
    head, _, tail = data.partition(b"vela_bin_stream")
    blocks = tail.index(b"weight_data"), tail.index(b"outputs"), tail.index(b"vela_end_stream")
    weights, outputs, end = blocks
    header = struct.Struct("<16sIB11s")
    longer = header.pack(b"weight_data", 33, 0, bytes(11)) + bytes(48)
    fewer = header.pack(b"outputs", 4, 0, bytes(11)) + bytes(16)
    kept = tail[tail.index(b"scratch_size") : outputs]
    return head + b"vela_bin_stream" + tail[:weights] + longer + kept + fewer + tail[end:]


def test_outputs_that_the_compiler_lost_are_no_damage() -> None:
    data = payload_without_output(golden("add_u55"))
    assert len(data) == len(golden("add_u55"))
    with pytest.raises(
        InputError, match=r"has 1 outputs, but Vela's commands .* write 0 .* the file is intact"
    ) as caught:
        pte.parse(data)
    assert "damaged" not in caught.value.message
    assert "ethosu-sdk compile" in caught.value.hint
    other_input = changed(data, (f"{PLAN}.values[0].val.sizes[0]", 4))
    with pytest.raises(InputError, match=r"damaged .* has 2 values, but the delegate takes 1"):
        pte.parse(other_input)


@pytest.mark.parametrize("path", [f"{PLAN}.name", f"{PLAN}.operators[0].name"])
def test_empty_names(path: str) -> None:
    data = changed(golden("softmax"), (f"{path}#len", 0))
    position, _ = locate(data, f"{path}#len")
    data[position + 4] = 0
    with pytest.raises(InputError, match="name is empty"):
        pte.parse(data)


def test_text_and_keys_that_are_none() -> None:
    data = bytearray(golden("softmax"))
    position, _ = locate(data, f"{PLAN}.name#len")
    data[position + 4] = 0xFF
    with pytest.raises(InputError, match=r"execution_plan\[0\].name is not UTF-8 text"):
        pte.parse(data)
    data = replaced(golden("add_u55"), b"output_format", b"compile_flags")
    with pytest.raises(InputError, match="is 'compile_flags', which is used twice"):
        pte.parse(data)


def test_list_items_must_be_what_the_list_holds() -> None:
    data = golden("lists")
    values = pte.parse(data).plan().values
    index = next(i for i, value in enumerate(values) if value.kind == "TensorList")
    number = next(i for i, value in enumerate(values) if value.kind == "Int")
    path = f"{PLAN}.values[{index}].val.items[0]"
    with pytest.raises(InputError, match=f"lists value {number}, a Int, in a TensorList"):
        pte.parse(changed(data, (path, number)))
    with pytest.raises(InputError, match=f"lists value {len(values)}, there are {len(values)}"):
        pte.parse(changed(data, (path, len(values))))
    with pytest.raises(InputError, match="lists value -1"):
        pte.parse(changed(data, (path, -1)))


@each(
    ("position", "value", "message"),
    [
        (4, b"ET11", "not a .pte file"),
        (12, struct.pack("<I", 23), "header claims 23 bytes"),
        (12, struct.pack("<I", 0xFFFFFFFF), "header claims 4294967295 bytes"),
        (16, struct.pack("<Q", 2365), "its program has 2,365 bytes, but the file has 2,364"),
        (16, struct.pack("<Q", 7), "which is not a possible size for a FlatBuffer"),
        (24, struct.pack("<Q", 16), "segments start inside its program"),
        (32, struct.pack("<Q", 1 << 63), "its segments end at byte"),
        (32, struct.pack("<Q", 59), "segments.0. ends at byte"),
        (0, struct.pack("<I", 0), "Program lies at byte 0"),
        (0, struct.pack("<I", 0xFFFFFFFC), "Program lies at byte 4294967292"),
        (0, struct.pack("<I", 50), "Program lies at byte 50"),
    ],
)
def test_damaged_heads(position: int, value: bytes, message: str) -> None:
    data = bytearray(golden("lists"))
    data[position : position + len(value)] = value
    with pytest.raises(InputError, match=message):
        pte.parse(data)


def test_segments_need_a_header_and_may_not_overlap() -> None:
    data = bytearray(golden("add_u85_segment"))
    first, second = (locate(data, f"segments[{index}]")[0] for index in (0, 1))
    target = second + struct.unpack_from("<I", data, second)[0]
    struct.pack_into("<I", data, first, target - first)  # both are now the one with the payload
    with pytest.raises(InputError, match=r"segments\[1\] starts at byte 1408, before the one before it ends"):
        pte.parse(data)
    data = bytearray(golden("lists"))
    data[8:12] = b"none"
    with pytest.raises(InputError, match="no header with the start of the segments"):
        pte.parse(data)


@pytest.mark.parametrize("data", [b"", b"ET12", b"\0" * 7, b"\0\0\0\0ET12", b"PK\3\4" + b"\0" * 100])
def test_other_files(data: bytes) -> None:
    with pytest.raises(InputError):
        pte.parse(data)


def replaced(data: bytes, old: bytes, new: bytes) -> bytes:
    assert len(old) == len(new)
    assert data.count(old) == 1
    return data.replace(old, new)


@each(
    ("old", "new", "message"),
    [
        (b"=ethos-u55-128 ", b"=ethos-u55-256 ", "contradicts itself: Vela was called for 'ethos-u55-256'"),
        (b"\0ethos-u55-128\0", b"\0ethos-u55-064\0", "the stored target is 'ethos-u55-064'"),
        (b"COP1\1\0\x10\0\7", b"COP1\1\0\x10\0\6", "the command stream is for 'ethos-u55-64'"),
        (b"Ethos_U55_High_End_Embedded", b"Ethos_U55_High_End_Embeddee", "system configuration"),
        (b"--memory-mode=Shared_Sram", b"--memory-mode=Sharad_Sram", "memory mode 'Sharad_Sram'"),
        (b"--memory-mode=Shared_Sram", b"--memary-mode=Shared_Sram", "does not record Vela's --memory-mode"),
        (b"--memory-mode=Shared_Sram", b"--memory-mode=\xff\xfeared_Sram", "is not text"),
        (b"compile_flags", b"compile_flogs", "has no compile specification 'compile_flags'"),
    ],
)
def test_contradictory_targets(old: bytes, new: bytes, message: str) -> None:
    program = pte.parse(replaced(golden("add_u55"), old, new))
    with pytest.raises(InputError, match=message):
        program.target()


@each(
    ("word", "name"),
    [
        (0x1005, "ethos-u55-32"),
        (0x3008, "ethos-u55-256"),
        (0x10003008, "ethos-u65-256"),
        (0x10006009, "ethos-u65-512"),
        (0x20000117, "ethos-u85-128"),
        (0x2000261B, "ethos-u85-2048"),
        (0x50000007, "unknown product 5-128"),
    ],
)
def test_accelerators(word: int, name: str) -> None:
    """CONFIG words that Vela 5.1.0 wrote."""
    assert accelerator(word) == name


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        pte.read(tmp_path / "missing.pte")
    with pytest.raises(InputError, match="a folder"):
        pte.read(tmp_path)
    pipe = tmp_path / "pipe.pte"
    os.mkfifo(pipe)
    with pytest.raises(InputError, match="a named pipe"):
        pte.read(pipe)
    huge = tmp_path / "huge.pte"
    with huge.open("wb") as stream:
        stream.truncate((1 << 30) + 1)
    with pytest.raises(InputError, match="too large"):
        pte.read(huge)


def test_data_that_is_not_in_the_file_is_named() -> None:
    program = pte.parse(golden("conv_u65_int8"))
    program.check_data()
    plan = program.plan()
    values = tuple(
        replace(value, external_name=name, data=None) if isinstance(value, Tensor) else value
        for value, name in zip(plan.values, ("weight", "bias"), strict=False)
    )
    missing = replace(program, plans=(replace(plan, values=values),))
    with pytest.raises(
        InputError, match=r"data 'bias' and 1 more is not in the program and not in its data files"
    ):
        missing.check_data()


# --- Programs that are written again from a tree of their values.


def content(plan: ExecutionPlan) -> tuple[object, ...]:
    """All of `plan` but the places in its file."""
    delegates = [(row.id, bytes(row.payload), row.compile_specs) for row in plan.delegates]
    return (
        *(plan.name, plan.values, plan.inputs, plan.outputs, plan.chains, plan.operators, delegates),
        plan.non_const_buffer_sizes,
    )


@each("name", NAMES)
def test_a_program_is_written_as_it_was_read(name: str) -> None:
    program = pte.parse(golden(name))
    again = pte.parse(write_tree(program, read_tree(program)))
    assert list(map(content, again.plans)) == list(map(content, program.plans))
    assert again.named_data == program.named_data
    assert [row.size for row in again.segments] == [row.size for row in program.segments]
    # Payloads stay aligned as the NPU's driver needs it.
    assert all(row.payload_offset % 16 == 0 for row in again.delegates)


@each("name", NAMES)
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


# --- Damaged programs: whatever is done to a file, it is refused with an InputError or read as a sound value.

SEED = 20
MIN_FLIPS = 200

Range = tuple[int, int]


@functools.cache
def visited(name: str) -> tuple[Range, ...]:
    """The byte ranges of every vtable, table, vector and string that reading a golden file touches."""
    ranges: set[Range] = set()
    claim, read_vtable = FlatBuffer.claim, FlatBuffer._read_vtable

    def recording_claim(self: FlatBuffer, start: int, end: int, holder: Table) -> None:
        ranges.add((start, end))
        claim(self, start, end, holder)

    def recording_vtable(self: FlatBuffer, table: Table, position: int) -> tuple[int, tuple[int, ...]]:
        ranges.add((position, position + struct.unpack_from("<H", self.data, position)[0]))
        return read_vtable(self, table, position)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FlatBuffer, "claim", recording_claim)
        patch.setattr(FlatBuffer, "_read_vtable", recording_vtable)
        pte.parse(golden(name))
    return tuple(sorted(ranges))


def flips(name: str) -> Iterator[tuple[int, int]]:
    """(position, new byte): some in every structure, all of its first bytes among them; and in the head."""
    generator = random.Random(f"{SEED} {name}")
    ranges = ((0, 40), *visited(name))
    each = max(8, MIN_FLIPS // len(ranges) + 1)
    for start, end in ranges:
        head = list(range(start, min(end, start + each)))
        others = [generator.randrange(start, end) for _ in range(each)]
        for position in head + others:
            yield position, generator.choice([0x00, 0x01, 0x7F, 0x80, 0xFF, generator.randrange(256)])


@each("name", NAMES)
def test_single_bytes_in_every_structure(name: str) -> None:
    data = bytearray(golden(name))
    refused = total = 0
    for position, value in flips(name):
        old = data[position]
        if old == value:
            continue
        data[position] = value
        refused += not check(data)
        total += 1
        data[position] = old
    assert total >= MIN_FLIPS
    assert refused > total // 4, "hardly anything is refused: the checks cannot be at work"
    assert check(data)


@each("name", NAMES)
def test_every_truncation_is_refused(name: str) -> None:
    # A file without an extended header does not know its length; what ends it may be text that nobody reads.
    data = golden(name)
    last = max(end for _, end in visited(name))
    for end in [*range(0, 80), *range(80, len(data), 13), len(data) - 1]:
        assert not check(data[:end]) or end > last


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_random_damage(name: str, data: st.DataObject) -> None:
    damaged = bytearray(golden(name))
    for _ in range(data.draw(st.integers(1, 8))):
        start, end = data.draw(st.sampled_from(visited(name)))
        damaged[data.draw(st.integers(start, end - 1))] = data.draw(st.integers(0, 255))
    check(damaged)


@given(st.binary(max_size=400))
def test_random_files(tail: bytes) -> None:
    assert not check(b"\x10\0\0\0ET12" + tail)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 0xFFFFFFFF), max_size=100), st.integers(0, 99))
def test_random_words(words: list[int], root: int) -> None:
    """Small numbers make offsets that hit something."""
    small = [word % 256 for word in words]
    for body in (words, small):
        data = struct.pack("<I4s", root * 4, b"ET12") + struct.pack(f"<{len(body)}I", *body)
        check(data)


def amplified(kind: str, count: int) -> bytes:
    """A program whose execution_plan vector refers `count` times to the same plan, which has many values."""
    data = bytearray(golden("softmax"))
    data.extend(bytes(-len(data) % 4))
    base = struct.unpack_from("<I", data)[0]
    vector_start, _ = locate(data, "execution_plan#len")
    plan = vector_start + 4 + struct.unpack_from("<I", data, vector_start + 4)[0]
    if kind == "values":
        many_start, _ = locate(data, "execution_plan[0].values#len")
        value = many_start + 4 + struct.unpack_from("<I", data, many_start + 4)[0]
        redirect(data, locate(data, "execution_plan[0].values#ref")[0], [value] * count)
    redirect(data, locate(data, "execution_plan#ref")[0], [plan] * count)
    assert struct.unpack_from("<I", data)[0] == base
    return bytes(data)


def redirect(data: bytearray, reference: int, targets: list[int]) -> None:
    """Let the reference refer to a new vector of references at the end, moved to lie before its targets."""
    # References only go forward, so the targets are copied behind the vector first.
    start = len(data)
    shift = start + 4 + 4 * len(targets)
    shift += -(shift - 0) % 8
    image = bytes(data)
    data.extend(bytes(shift - start))
    data.extend(image)
    struct.pack_into("<I", data, reference, start - reference)
    struct.pack_into("<I", data, start, len(targets))
    for index, target in enumerate(targets):
        struct.pack_into("<I", data, start + 4 + 4 * index, shift + target - (start + 4 + 4 * index))


def test_more_numbers_than_any_program_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flatbuffer, "_MAX_ELEMENTS", 20)
    with pytest.raises(InputError, match="more than 20 numbers"):
        pte.parse(golden("lists"))
    monkeypatch.setattr(flatbuffer, "_MAX_TABLES", 20)
    with pytest.raises(InputError, match="comes after 20 other tables"):
        pte.parse(golden("lists"))


@pytest.mark.parametrize("kind", ["plans", "values"])
def test_tables_that_are_referred_to_over_and_over(kind: str) -> None:
    data = amplified(kind, 20_000)
    start = time.process_time()
    with pytest.raises(InputError, match="shares its bytes with other tables"):
        pte.parse(data)
    assert time.process_time() - start < LIMIT_S


def test_large_files_are_read_quickly() -> None:
    data = golden("softmax") + bytes(4 << 20)
    times = []
    for _ in range(3):
        start = time.process_time()
        pte.parse(data)
        times.append(time.process_time() - start)
    assert min(times) < 0.05


def test_newer_fields_are_refused_and_vtables_may_be_shared() -> None:
    """ExecuTorch's writer does that: a Double behind the vtable of a smaller table."""
    plan = pte.parse(golden("conv_u65_int8")).plan("input0_scale")
    assert [value.kind for value in plan.values] == ["Double"]
    tables = {"Program": {"version": "uint"}}
    data = memoryview(golden("softmax"))
    root = FlatBuffer(data, flatbuffer.make_schema({"Program": {**tables["Program"], **FILLER}}, {}, {})).root
    assert root("Program").integer("version") == 0
    with pytest.raises(InputError, match="has a field that is not known") as caught:
        FlatBuffer(data, flatbuffer.make_schema(tables, {}, {})).root("Program")
    assert "newer ExecuTorch" in caught.value.hint


FILLER = {f"field{index}": "uint" for index in range(7)}
