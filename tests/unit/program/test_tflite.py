"""The reader of .tflite files: what it reads of files of others' writer, and what it refuses."""

import importlib
import re
import struct
from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base.errors import InputError
from ethosu_sdk.program import tflite_schema
from ethosu_sdk.program.tflite import Quantisation, parse_tflite, read_tflite
from tests.tflite_files import Model

VELA = "ethosu.vela.tflite"
#: What the schema calls a type, by what generated readers of a field call.
FLAGS = {
    **{"Int8Flags": ("byte", "TensorType", "CustomOptionsFormat"), "Uint8Flags": ("ubyte",)},
    **{"Int32Flags": ("int",), "Uint32Flags": ("uint",), "Int64Flags": ("long",), "Uint64Flags": ("uint64",)},
    **{"BoolFlags": ("bool",), "Float32Flags": ("float",)},
}


def small_model() -> Model:
    model = Model()
    x = model.input("x", (1, 4, 4, 2), "int8", 0.05, -3)
    weights = np.arange(-12, 12, dtype=np.int8).reshape(3, 2, 2, 2)
    w = model.constant(weights, [0.5, 0.25, 0.125], axis=0)
    b = model.constant(np.array([1, -2, 3], np.int32), [0.025, 0.0125, 0.00625], axis=0)
    y = model.tensor((1, 2, 2, 3), "int8", 0.1, 5)
    model.operator("CONV_2D", [x, w, b], y, padding="VALID", stride_w=2, stride_h=2)
    model.output(y, name="found")
    return model


def test_it_says_what_the_file_says(tmp_path: Path) -> None:
    model = read_tflite(small_model().write(tmp_path / "small.tflite"))
    (operator,) = model.main.operators
    assert operator.name == "CONV_2D"
    assert operator.options["padding"] == 1
    assert (operator.options["stride_w"], operator.options["dilation_w_factor"]) == (
        2,
        1,
    )  # a default that is 1
    x, w, b = (model.main.tensors[index] for index in operator.inputs)
    assert (x.shape, x.dtype, x.quantisation) == (
        (1, 4, 4, 2),
        "int8",
        Quantisation((float(np.float32(0.05)),), (-3,)),
    )
    assert w.quantisation is not None
    assert (w.quantisation.scales, w.quantisation.axis) == ((0.5, 0.25, 0.125), 0)
    assert np.array_equal(w.array, np.arange(-12, 12).reshape(3, 2, 2, 2))
    assert np.array_equal(b.array, [1, -2, 3])
    assert model.names(model.main.outputs, of="outputs") == ("found",)
    assert model.vela_version is None


def test_tables_have_the_slots_that_vela_reads() -> None:
    for table, fields in tflite_schema.TABLES.items():
        if table == "Unread":
            continue
        source = Path(str(importlib.import_module(f"{VELA}.{table}").__file__)).read_text(encoding="utf-8")
        slot = 4
        for name, kind in fields.items():
            word = "".join(part.capitalize() for part in name.split("_"))
            if name != "deprecated_tag":
                found = re.search(rf"def {word}\(self.*?_tab\.Offset\((\d+)\)", source, re.DOTALL)
                expected = slot + 2 if kind in tflite_schema.UNIONS else slot  # behind the union's type
                assert found is not None, (table, name)
                assert int(found[1]) == expected, (table, name)
            slot += 4 if kind in tflite_schema.UNIONS else 2


def test_names_have_the_numbers_that_vela_knows() -> None:
    for module, names in (
        ("BuiltinOperator", tflite_schema.OPERATORS),
        ("ActivationFunctionType", tflite_schema.ACTIVATIONS),
    ):
        members = getattr(importlib.import_module(f"{VELA}.{module}"), module)
        assert all(getattr(members, name) == number for number, name in enumerate(names)), module
    options = importlib.import_module(f"{VELA}.BuiltinOptions").BuiltinOptions
    for number, name in enumerate(tflite_schema.UNIONS["BuiltinOptions"], 1):
        assert name == "Unread" or getattr(options, name) == number
    types = importlib.import_module(f"{VELA}.TensorType").TensorType
    for number, name in enumerate(tflite_schema.TENSOR_TYPES):
        assert getattr(types, name, number) == number


def test_every_byte_can_be_wrong() -> None:
    """A damaged file is read, or refused with a sentence."""
    whole = small_model().to_bytes()
    random = np.random.default_rng(7)
    hints = []
    for position in range(0, len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= int(random.integers(1, 256))
        try:
            parse_tflite(bytes(damaged))
        except InputError as error:
            hints.append(error.hint)
    assert len(hints) > len(whole) // 20
    assert all(hints)
    for end in range(8, len(whole), 37):
        with pytest.raises(InputError):
            parse_tflite(whole[:end])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda data: data.replace(b"TFL3", b"TFL2"), "is not a .tflite file"),
        (lambda data: b"TFL3", "is not a .tflite file"),
        (lambda data: struct.pack("<I", 1 << 30) + data[4:], "lies at byte"),
    ],
)
def test_what_is_no_model_is_refused(change, words: str, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "m.tflite"
    path.write_bytes(change(small_model().to_bytes()))
    with pytest.raises(InputError, match=words):
        read_tflite(path)


def test_a_buffer_of_another_size_is_refused() -> None:
    model = Model()
    x = model.input("x", (1, 8), "int8", 1.0, 0)
    w = model.constant(np.zeros((4, 8), np.int8), [1.0])
    y = model.tensor((1, 4), "int8", 1.0, 0)
    model.operator("FULLY_CONNECTED", [x, w], y)
    model.output(y, name="y")
    data = model.to_bytes()
    place = data.index(struct.pack("<III", 2, 4, 8))  # the shape of the weights
    damaged = data[: place + 4] + struct.pack("<I", 5) + data[place + 8 :]
    with pytest.raises(InputError, match=r"has 32 bytes, but INT8 \[5, 8\] takes 40"):
        parse_tflite(damaged)
