"""Reading and writing of `.npz`: sound files, for which NumPy is the oracle, and unusual, damaged and hostile
ones.
"""

import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from ethosu_sdk.base import npz
from ethosu_sdk.base.errors import BuildError, InputError
from tests.npz_files import FLAG, IMAGE, PLAIN, Type, archive, equal, flag, image, npy
from tests.tables import each


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in.npz"


def read(path: Path, *tensors: Type, prefix: str = "input") -> npz.SampleSet:
    return npz.read_samples(path, prefix, tensors)


ARRAYS = {
    "scalar": np.array(2.5),
    "vector": np.arange(5, dtype=np.int64),
    "big_endian": np.arange(6, dtype=">i2").reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(24.0).reshape(2, 3, 4)),
    "half": np.array([1.5, np.inf], np.float16),
    "empty": np.zeros((0, 3), np.uint8),
    "bools": np.array([True, False, True]),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_reads_what_numpy_writes(path: Path, save: Any) -> None:
    save(path, **ARRAYS)
    loaded = npz.read_npz(path)
    assert loaded.keys() == ARRAYS.keys()
    for name, array in loaded.items():
        assert equal(array, ARRAYS[name]), name
        assert array.flags.c_contiguous
        assert array.flags.writeable


def test_numpy_reads_what_it_writes(path: Path) -> None:
    npz.write_npz(path, ARRAYS)
    with np.load(path, allow_pickle=False) as loaded:
        assert list(loaded) == list(ARRAYS)
        for name, array in ARRAYS.items():
            assert equal(loaded[name], array), name


@settings(max_examples=60, deadline=None)
@given(
    array=hnp.arrays(
        st.one_of(
            hnp.integer_dtypes(), hnp.unsigned_integer_dtypes(), hnp.floating_dtypes(sizes=(16, 32, 64))
        ),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    )
)
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, array: npt.NDArray[Any]) -> None:
    path = tmp_path_factory.getbasetemp() / "round.npz"
    npz.write_npz(path, {"input0": array})
    assert equal(npz.read_npz(path)["input0"], array)
    with np.load(path) as loaded:
        assert equal(loaded["input0"].astype(array.dtype.newbyteorder("=")), array)


def test_equal_arrays_give_equal_aligned_bytes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npz.write_npz(path, ARRAYS)
    first = path.read_bytes()
    monkeypatch.setattr("time.time", lambda: 2_000_000_000.0)
    npz.write_npz(path, {name: array.copy(order="F") for name, array in ARRAYS.items()})
    assert path.read_bytes() == first
    npz.write_npz(path, {"bools": ~ARRAYS["bools"]})
    assert path.read_bytes() != first
    npz.write_npz(path, {"input0": np.zeros((3, 1, 224, 224), np.int8)})
    with zipfile.ZipFile(path) as archive:
        stored = archive.read("input0.npy")
    length = struct.unpack_from("<H", stored, 8)[0]
    assert (10 + length) % 64 == 0
    assert stored[9 + length] == ord("\n")


def test_nothing_half_written_is_left(path: Path) -> None:
    path.write_bytes(b"old")
    with pytest.raises(InputError, match="'b' cannot be stored: its type <U1 is not numeric"):
        npz.write_npz(path, {"a": np.zeros(3), "b": np.array(["x"])})
    assert path.read_bytes() == b"old"
    with pytest.raises(BuildError, match="cannot write"):
        npz.write_npz(path.parent / "missing" / "a.npz", {"a": np.zeros(3)})
    assert sorted(os.listdir(path.parent)) == ["in.npz"]


def test_one_inference_and_the_outputs_beside_it(path: Path) -> None:
    np.savez(path, input1=flag(), input0=image(), output0=np.zeros(3))
    found = read(path, IMAGE, FLAG)
    assert not found.stacked
    ((first, second),) = found.samples
    assert equal(first, image())
    assert equal(second, flag())
    np.savez(path, input0=image(), output0=flag())
    assert equal(read(path, FLAG, prefix="output").samples[0][0], flag())
    np.savez(path, input0=np.array([1.0, 2.0]))
    found = read(path, Type("float64", ()))
    assert [row[0].shape for row in found.samples] == [(), ()]
    np.savez(path)
    assert read(path).samples == ((),)


@pytest.mark.parametrize("count", [1, 3])
def test_several_inferences(path: Path, count: int) -> None:
    np.savez(path, input0=image(count), input1=flag(count))
    found = read(path, IMAGE, FLAG)
    assert found.stacked
    assert len(found.samples) == count
    for index, (first, second) in enumerate(found.samples):
        assert equal(first, image(count)[index])
        assert second.shape == (2,)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_rows_are_those_of_the_whole_array(path: Path, save: Any) -> None:
    save(path, **ARRAYS)
    with npz.open_rows(path) as reader:
        assert {name: shape for name, (_, shape) in reader.arrays.items()} == {
            name: array.shape for name, array in ARRAYS.items()
        }
        for name, array in ARRAYS.items():
            assert equal(reader.read(name), array)
            if array.ndim:
                rows = list(reader.rows(name))
                assert len(rows) == len(array)
                assert all(equal(row, want) for row, want in zip(rows, array, strict=True)), name


def test_rows_may_be_more_than_memory_is_given_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "_MAX_TOTAL_BYTES", 1 << 10)
    np.savez(path, input0=image(9), input1=np.asfortranarray(image(9)))
    with npz.open_rows(path) as reader:
        assert len(list(reader.rows("input0"))) == 9
        with pytest.raises(InputError, match="Fortran order"):
            list(reader.rows("input1"))


@each(
    ("arrays", "message", "hint"),
    [
        ({"input0": image()}, "has no array 'input1'; it has 'input0'", "'input0', 'input1'"),
        ({"input1": flag()}, "has no array 'input0'", ""),
        ({}, "has no array 'input0', 'input1'; it has none", ""),
        ({"input0": image(), "inputl": flag()}, "has an array 'inputl'", "did you mean 'input"),
        ({"input0": image(), "input1": flag(), "input2": flag()}, "has an array 'input2'", "did you mean"),
        ({"input0": image(), "input01": flag()}, "has an array 'input01'", "did you mean 'input"),
        ({"input0": image(), "input1": flag(), "labels": flag()}, "has an array 'labels'", "leave the array"),
        (
            {"input0": image().astype(np.float64), "input1": flag()},
            "expected float32 [1, 8, 8], got float64",
            "asty",
        ),
        (
            {"input0": image(), "input1": flag().astype(np.uint8)},
            "expected int8 [2], got uint8 [2]",
            "astype('int8')",
        ),
        (
            {"input0": image()[0], "input1": flag()},
            "expected float32 [1, 8, 8], got float32 [8, 8]",
            "array[None]",
        ),
        ({"input0": image().reshape(8, 8, 1), "input1": flag()}, "got float32 [8, 8, 1]", ""),
        ({"input0": image(2, 3), "input1": flag()}, "got float32 [2, 3, 1, 8, 8]", ""),
        ({"input0": image(), "input1": np.int8(3)}, "got int8 []", ""),
        ({"input0": image(0), "input1": flag(0)}, "holds no inference", ""),
        (
            {"input0": image(2), "input1": flag(3)},
            "has arrays for different numbers of inferences (input0: 2, input1: 3)",
            "leading axis",
        ),
        ({"input0": image(2), "input1": flag()}, "(input0: 2, input1: no such axis)", "leading axis"),
    ],
)
def test_arrays_that_do_not_fit(path: Path, arrays: dict[str, Any], message: str, hint: str) -> None:
    np.savez(path, **arrays)
    with pytest.raises(InputError) as caught:
        read(path, IMAGE, FLAG)
    assert message in caught.value.message
    assert hint in caught.value.hint


# --- Reading of `.npz` files that NumPy would not write: unusual, damaged, hostile.


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_format_versions(path: Path, version: tuple[int, int]) -> None:
    archive(path, ("input0.npy", npy(PLAIN, version=version)))
    assert equal(npz.read_npz(path)["input0"], np.zeros(4, np.float32))


@each(
    ("data", "message"),
    [
        (b"", "does not start like a .npy file"),
        (b"\x93NUMPY", "does not start like"),
        (npy(PLAIN, version=(4, 0)), "does not start like"),
        (npy(PLAIN, version=(1, 1)), "does not start like"),
        (npy(PLAIN)[:30], "no header of a plain array"),
        (npy(PLAIN, bytes(15)), "has 15 bytes of data, its shape [4] of float32 needs 16"),
        (npy(PLAIN, bytes(17)), "has 17 bytes of data"),
        (npy(PLAIN.replace("(4,)", "(4, 1000000000)")), "needs 16000000000"),
        (npy(PLAIN.replace("(4,)", f"({'9' * 18}, {'9' * 18})")), "bytes of data, its shape"),
        (npy(PLAIN.replace("(4,)", f"({'9' * 19},)")), "no header of a plain array"),
        (npy(PLAIN.replace("(4,)", "(-4,)")), "no header of a plain array"),
        (npy(PLAIN.replace("(4,)", "(" + "1, " * 40 + "4)")), "has 41 dimensions"),
        (npy(PLAIN.replace("<f4", "|O")), "has the type '|O', which is not a numeric type"),
        (npy(PLAIN.replace("<f4", "<U1")), "has the type '<U1'"),
        (npy(PLAIN.replace("<f4", "<c8")), "has the type '<c8'"),
        (npy(PLAIN.replace("<f4", "|V4")), "has the type '|V4'"),
        (npy(PLAIN.replace("<f4", "<f3")), "has the type '<f3'"),
        (npy(PLAIN.replace("'<f4'", "[('a', '<f4')]")), "no header of a plain array"),
        (npy(PLAIN.replace("False", "__import__('os')")), "no header of a plain array"),
        (npy(PLAIN + " " * 5000), "has a header of 5058 bytes"),
        (npy("(" * 3000), "no header of a plain array"),
        (npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", b"\0\2"), "other than 0 and 1"),
    ],
)
def test_damaged_arrays(path: Path, data: bytes, message: str) -> None:
    archive(path, ("input0.npy", data))
    with pytest.raises(InputError) as caught:
        npz.read_npz(path)
    assert message in caught.value.message


@pytest.mark.filterwarnings("ignore:Duplicate name:UserWarning")
@each(
    ("names", "method", "words"),
    [
        *(
            ((name,), zipfile.ZIP_STORED, "is not a .npy file")
            for name in ("input0", "input0.txt", "../input0", "input0.npy/")
        ),
        (("input0.npy", "input0.npy"), zipfile.ZIP_STORED, "appears twice"),
        (("input0.npy",), zipfile.ZIP_LZMA, "compressed in an unusual way"),
    ],
)
def test_other_entries(path: Path, names: tuple[str, ...], method: int, words: str) -> None:
    archive(path, *((name, npy(PLAIN)) for name in names), method=method)
    with pytest.raises(InputError) as caught:
        npz.read_npz(path)
    assert words in caught.value.message


def test_zip_bombs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert npz._MAX_TOTAL_BYTES == 1 << 29
    monkeypatch.setattr(npz, "_MAX_TOTAL_BYTES", 10 << 20)
    size = 6 << 20
    shape = f"({size},)"
    head = npy(f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}", b"")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name in ("input0.npy", "input1.npy"):
            with out.open(name, "w") as stream:
                stream.write(head)
                for _ in range(size >> 20):
                    stream.write(bytes(1 << 20))
    assert path.stat().st_size < 20_000
    with pytest.raises(InputError, match="holds more than 10 MiB"):
        npz.read_npz(path)


def central(data: bytearray) -> int:
    return data.index(b"PK\1\2")


@each(
    ("offset", "value", "message"),
    [
        (24, struct.pack("<I", 0x20000000), "claims to expand to 536870912 bytes, which is impossible"),
        (8, struct.pack("<H", 1), "is encrypted"),
        (16, struct.pack("<I", 0), "not a valid .npz file: Bad CRC-32"),
        (42, struct.pack("<I", 7), "not a valid .npz file"),
        (42, struct.pack("<I", 0x7FFFFFFF), "not a valid .npz file"),
        (10, struct.pack("<H", 99), "compressed in an unusual way"),
        (20, struct.pack("<I", 3), "input0.npy"),
    ],
)
def test_damaged_directories(path: Path, offset: int, value: bytes, message: str) -> None:
    archive(path, ("input0.npy", npy(PLAIN)))
    data = bytearray(path.read_bytes())
    data[central(data) + offset : central(data) + offset + len(value)] = value
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        npz.read_npz(path)
    assert message in caught.value.message


def test_every_truncation_is_refused(path: Path) -> None:
    npz.write_npz(path, {"input0": flag()})
    data = path.read_bytes()
    for end in range(len(data)):
        path.write_bytes(data[:end])
        with pytest.raises(InputError):
            npz.read_npz(path)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_damage_is_an_input_error_or_the_same_values(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    np.savez_compressed(path, input0=image(), input1=flag())
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        found = npz.read_samples(path, "input", (IMAGE, FLAG))
    except InputError:
        return
    ((first, second),) = found.samples
    assert equal(first, image())
    assert equal(second, flag())


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\5\6" + bytes(18)[:10], np.lib.format.MAGIC_PREFIX])
def test_other_files(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"not a valid \.npz file"):
        npz.read_npz(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    for name, words in (("missing.npz", "there is no file"), (".", "a folder"), ("pipe.npz", "a named pipe")):
        with pytest.raises(InputError, match=words):
            npz.read_npz(tmp_path / name)
