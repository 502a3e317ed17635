"""Reading of `.npz` files that NumPy would not write: unusual, damaged, hostile."""

import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ethosu_sdk import npz
from ethosu_sdk.errors import InputError
from tests.npz_files import FLAG, IMAGE, PLAIN, archive, equal, flag, image, npy


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in.npz"


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_format_versions(path: Path, version: tuple[int, int]) -> None:
    archive(path, ("input0.npy", npy(PLAIN, version=version)))
    assert equal(npz.read_npz(path)["input0"], np.zeros(4, np.float32))


@pytest.mark.parametrize(
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
@pytest.mark.parametrize(
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
    assert npz.reading._MAX_TOTAL_BYTES == 1 << 29
    monkeypatch.setattr(npz.reading, "_MAX_TOTAL_BYTES", 10 << 20)
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


@pytest.mark.parametrize(
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
