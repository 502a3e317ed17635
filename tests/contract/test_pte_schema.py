"""The SDK's view of the `.pte` format against ExecuTorch's own: its schema files and its Python reader."""

import functools
import re
import warnings
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from ethosu_sdk.base import filesystem, proc, tools
from ethosu_sdk.program import execution_plan, pte, pte_schema
from ethosu_sdk.program.execution_plan import List, Value
from ethosu_sdk.program.pte_schema import NUMPY_TYPES, RECORD_TYPES, SCALAR_TYPES
from ethosu_sdk.records import common
from tests import installed
from tests.places import GOLDEN_PTE, ROOT
from tests.pte_files import NAMES, golden

pytestmark = pytest.mark.torch


def schema_text(path: str) -> str:
    """A schema file of the installed package, without comments."""
    return re.sub(r"//[^\n]*", "", (installed.folder("executorch") / path).read_text(encoding="utf-8"))


@functools.cache
def declarations() -> tuple[tuple[str, str, str], ...]:
    """(keyword, name with its base type, body) of everything that the schema files declare."""
    text = schema_text("schema/program.fbs") + schema_text("schema/scalar_type.fbs")
    return tuple(re.findall(r"\b(table|union|enum|struct)\s+([\w :]+?)\s*\{(.*?)\}", text, re.S))


def bodies(keyword: str) -> dict[str, list[str]]:
    separator = ";" if keyword == "table" else ","
    return {
        name: [part.strip() for part in body.split(separator) if part.strip()]
        for found, name, body in declarations()
        if found == keyword
    }


def test_tables() -> None:
    declared: dict[str, dict[str, str]] = {}
    for name, fields in bodies("table").items():
        declared[name] = {}
        for field in fields:
            match = re.fullmatch(
                r"(\w+)\s*:\s*([\w\[\]]+)\s*(?:=\s*(\w+))?\s*(?:\(force_align: 16\))?", field
            )
            assert match is not None, field
            assert match[3] in (None, "0", "CPU"), f"{name}.{field}: a default other than zero"
            declared[name][match[1]] = match[2]
    assert declared == pte_schema.TABLES
    for name, fields in declared.items():
        assert list(fields) == list(pte_schema.TABLES[name]), f"order of {name}: slots are numbered by it"


def test_tables_of_data_files() -> None:
    text = schema_text("extension/flat_tensor/serialize/flat_tensor.fbs")
    text = text.replace("executorch_flatbuffer.", "")
    declared = {
        name: [tuple(re.split(r"\s*:\s*", row.strip())) for row in body.split(";") if row.strip()]
        for name, body in re.findall(r"\btable\s+(\w+)\s*\{(.*?)\}", text, re.S)
    }
    own = {name: list(fields.items()) for name, fields in pte_schema.DATA_TABLES.items()}
    assert declared == own, "slots are numbered by the order of the fields"
    assert re.findall(r'file_identifier\s+"(\w+)"', text) == [pte_schema.DATA_FILE_IDENTIFIER.decode()]
    assert re.findall(r"root_type\s+(\w+)", text) == [pte_schema.DATA_ROOT_TABLE]


def test_unions() -> None:
    assert {name: tuple(members) for name, members in bodies("union").items()} == pte_schema.UNIONS


def test_enums() -> None:
    declared = {}
    for name, members in bodies("enum").items():
        kind, base = (part.strip() for part in name.split(":"))
        assert base == "byte", name
        declared[kind] = {row.split("=")[0].strip(): int(row.split("=")[1]) for row in members}
    assert declared == pte_schema.ENUMS
    assert not bodies("struct")


def test_identifier_and_root() -> None:
    text = schema_text("schema/program.fbs")
    assert re.findall(r'file_identifier\s+"(\w+)"', text) == [pte_schema.FILE_IDENTIFIER.decode()]
    assert re.findall(r"root_type\s+(\w+)", text) == [pte_schema.ROOT_TABLE]


def generated(folder: Path, schema_file: Path, *options: str) -> list[str]:
    """What flatc makes of a schema: the lines of the header in the order of their text."""
    filesystem.make_directory(folder)
    options = ("--cpp", "--gen-all", "--scoped-enums", *options, "-o", str(folder))
    proc.run([str(tools.require("flatc").path), *options, str(schema_file)], timeout_s=60)
    lines = (folder / "program_generated.h").read_text(encoding="utf-8").splitlines()
    return sorted(line for line in lines if not line.lstrip().startswith("//"))


@pytest.mark.toolchain
def test_flatc_makes_the_same_of_the_sdks_schema(tmp_path: Path) -> None:
    own = tmp_path / pte_schema.FILE_NAME
    own.write_text(pte_schema.program_fbs(), encoding="utf-8")
    theirs = installed.folder("executorch") / "schema"
    expected = generated(tmp_path / "theirs", theirs / "program.fbs", "-I", str(theirs))
    assert len(expected) > 1000
    assert generated(tmp_path / "own", own) == expected


def test_scalar_types_have_torchs_sizes() -> None:
    import torch

    for row in SCALAR_TYPES:
        dtype = getattr(torch, row.dtype, None)
        if isinstance(dtype, torch.dtype):
            assert dtype.itemsize == row.element_bytes, row.name


def test_scalar_types_are_numpys_where_they_say_so() -> None:
    for row in NUMPY_TYPES:
        assert (np.dtype(row.dtype).name, np.dtype(row.dtype).itemsize) == (row.dtype, row.element_bytes)


def test_the_firmware_has_the_same_scalar_types() -> None:
    header = (ROOT / "firmware" / "kernels" / "support" / "kernel_api.hpp").read_text(encoding="utf-8")
    source = (ROOT / "firmware" / "kernels" / "support" / "kernel_api.cpp").read_text(encoding="utf-8")
    body = header.split("enum class ScalarType")[1].partition("};")[0]
    numbers = {name: int(number) for name, number in re.findall(r"(\w+) = (\d+),", body)}
    facts = re.findall(r'\{ScalarType::(\w+), (\d), "(\w+)"\}', source)
    assert {(numbers[member], name, int(size)) for member, size, name in facts} == {
        (row.number, row.dtype, row.element_bytes)
        for row in SCALAR_TYPES
        if row.in_numpy or row.dtype == "bfloat16"
    }
    assert len(facts) == len(numbers)


def test_records_name_the_types_that_they_may() -> None:
    assert set(get_args(common.Dtype)) == {row.dtype for row in RECORD_TYPES}


@functools.cache
def reference(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of torch and ExecuTorch at import
        from executorch.exir._serialize._program import deserialize_pte_binary

    return deserialize_pte_binary(golden(name))


def test_files_are_read_alike(subtests: pytest.Subtests) -> None:
    for name in NAMES:
        with subtests.test(name):
            check_plans(name)
            check_values(name)
            check_data(name)


def check_plans(name: str) -> None:
    plans = reference(name).program.execution_plan
    ours = pte.read(GOLDEN_PTE / f"{name}.pte").plans
    assert [plan.name for plan in ours] == [plan.name for plan in plans]
    for plan, other in zip(ours, plans, strict=True):
        assert list(plan.inputs) == other.inputs
        assert list(plan.outputs) == other.outputs
        assert list(plan.non_const_buffer_sizes) == other.non_const_buffer_sizes
        operators = [(row.name, row.overload) for row in plan.operators]
        assert operators == [(row.name, row.overload) for row in other.operators]
        assert [instruction_facts(row) for row in plan.instructions] == [
            instruction_facts(row.instr_args) for chain in other.chains for row in chain.instructions
        ]


def instruction_facts(row: Any) -> tuple[Any, ...]:
    """Type and fields of an instruction, ours or ExecuTorch's: both use the schema's names."""
    fields = pte_schema.TABLES[type(row).__name__]
    return type(row).__name__, *(
        list(value) if isinstance(value := getattr(row, field), tuple) else value for field in fields
    )


def check_values(name: str) -> None:
    plans = reference(name).program.execution_plan
    kinds = set()
    for plan, other in zip(pte.parse(golden(name)).plans, plans, strict=True):
        assert len(plan.values) == len(other.values)
        for value, wrapped in zip(plan.values, other.values, strict=True):
            kinds.add(value.kind)
            assert value.kind == type(wrapped.val).__name__
            assert value_facts(value) == reference_facts(wrapped.val)
    assert "Tensor" in kinds


def value_facts(value: Value) -> Any:
    if isinstance(value, execution_plan.Tensor):
        place = value.allocation and (value.allocation.memory_id, value.allocation.offset)
        order = list(value.dim_order)
        return value.dtype, list(value.sizes), order, value.dynamism, value.data_buffer_idx, place, value.name
    return list(value.items) if isinstance(value, List) else value.value


def reference_facts(value: Any) -> Any:
    kind = type(value).__name__
    if kind == "Tensor":
        place = value.allocation_info
        extra = value.extra_tensor_info
        return (
            next(row.dtype for row in SCALAR_TYPES if row.name == value.scalar_type.name),
            list(value.sizes),
            list(value.dim_order),
            value.shape_dynamism.name,
            value.data_buffer_idx,
            place and (place.memory_id, place.memory_offset_high << 32 | place.memory_offset_low),
            (extra and extra.fully_qualified_name) or "",
        )
    if kind == "Null":
        return None
    (field,) = pte_schema.TABLES[kind]
    return getattr(value, field)


def check_data(name: str) -> None:
    """Payloads, compile specifications, constants and initial states."""
    file = reference(name)
    program = pte.parse(golden(name))
    theirs = [row for plan in file.program.execution_plan for row in plan.delegates]
    for delegate, other in zip(program.delegates, theirs, strict=True):
        assert delegate.id == other.id
        assert dict(delegate.compile_specs) == {row.key: bytes(row.value) for row in other.compile_specs}
        inline = file.program.backend_delegate_data[other.processed.index].data
        assert bytes(delegate.payload) == bytes(inline)
    assert constants_of(program) == reference_constants(file, program)


def constants_of(program: pte.Pte) -> dict[int, bytes]:
    values = [value for plan in program.plans for value in plan.values]
    return {
        value.data_buffer_idx: bytes(value.data)
        for value in values
        if isinstance(value, execution_plan.Tensor) and value.data is not None
    }


def reference_constants(file: Any, program: pte.Pte) -> dict[int, bytes]:
    """The buffers by index, cut to the size of the tensor: ExecuTorch's reader keeps the padding."""
    buffers = [*(file.program.constant_buffer or [])]
    mutable = [*(file.mutable_data or [])]
    sizes = {
        value.data_buffer_idx: (value.nbytes, value.allocation is not None)
        for plan in program.plans
        for value in plan.values
        if isinstance(value, execution_plan.Tensor) and value.data_buffer_idx
    }
    return {
        index: bytes((mutable if planned else buffers)[index].storage[:nbytes])
        for index, (nbytes, planned) in sizes.items()
    }
