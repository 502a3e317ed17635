"""What a file is, by its content: each kind from a file made here, byte by byte, without the tool that writes it."""

import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path

import pytest

from ethosu_sdk.base import file_kinds
from tests.tables import each


def zipped(*names: str, content: bytes = b"x") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in names:
            archive.writestr(name, content)
    return stream.getvalue()


def field(number: int, wire: int, value: bytes | int) -> bytes:
    """A field of a protobuf message with a small number or up to 127 bytes."""
    key = bytes([number << 3 | wire])
    return key + (bytes([value]) if isinstance(value, int) else bytes([len(value)]) + value)


def opcodes(names: Iterable[tuple[str, str]], strings: Iterable[str] = ()) -> bytes:
    """A pickle of protocol 2 that names classes and strings, as torch.save writes them."""
    body = b"".join(f"c{module}\n{name}\n".encode() for module, name in names)
    return (
        b"\x80\x02"
        + body
        + b"".join(b"X" + len(s).to_bytes(4, "little") + s.encode() for s in strings)
        + b"."
    )


TENSORS = (("collections", "OrderedDict"), ("torch._utils", "_rebuild_tensor_v2"), ("torch", "FloatStorage"))
LEGACY = (
    pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2) + pickle.dumps({"little_endian": True}, 2)
)
MADE = [
    ("net.tflite", b"\x1c\0\0\0TFL3" + bytes(20), "tflite"),
    ("net.py", b"\x1c\0\0\0TFL3" + bytes(20), "tflite"),
    ("net.pte", b"\x1c\0\0\0ET12eh00", "pte"),
    ("net.ptd", b"\x1c\0\0\0FT01", "ptd"),
    ("net.ptd", b"\x1c\0\0\0xxxxFH01", "ptd"),
    ("net.bpte", b"\x1c\0\0\0BP08", "bpte"),
    ("net.tosa", b"\x1c\0\0\0TOSA", "tosa"),
    ("net.h5", b"\x89HDF\r\n\x1a\n" + bytes(8), "hdf5"),
    ("net.pth", zipped("net/data.pkl", "net/version", content=opcodes(TENSORS)), "state_dict"),
    (
        "net.pt",
        zipped("net/data.pkl", "net/version", content=opcodes(TENSORS, ["epoch", "state_dict"])),
        "checkpoint",
    ),
    (
        "net.pt",
        zipped("net/data.pkl", "net/version", content=opcodes([("__main__", "Net"), *TENSORS])),
        "pickled_module",
    ),
    ("net.pth", LEGACY + opcodes(TENSORS), "state_dict"),
    ("net.pth", LEGACY + opcodes([("mine.nets", "Net"), *TENSORS]), "pickled_module"),
    ("net.pt2", zipped("net/data.pkl", "net/constants.pkl", "net/code/__torch__.py"), "torchscript"),
    ("net.pt2", zipped("net/archive_format", "net/models/model.json"), "pt2"),
    ("net.pt2", zipped("serialized_exported_program.json", "version"), "pt2"),
    ("net.pt2", zipped("net/archive_format", "net/data/aotinductor/model/net.so"), "aoti"),
    ("net.pt2", zipped("readme.txt"), "zip"),
    ("net.pt2", zipped("net/archive_format", "net/models/model.json")[:-30], "cut_zip"),
    ("net.keras", zipped("metadata.json", "config.json", "model.weights.h5"), "keras"),
    ("x.npz", zipped("input0.npy"), "npz"),
    ("net.safetensors", (2).to_bytes(8, "little") + b"{}", "safetensors"),
    (
        "net.onnx",
        field(1, 0, 8) + field(2, 2, b"pytorch") + field(7, 2, b"graph") + field(8, 2, b"op"),
        "onnx",
    ),
    ("saved_model.pb", field(1, 0, 1) + field(2, 2, b"meta"), "saved_model"),
    ("frozen.pb", field(1, 2, b"node") * 3 + field(4, 2, b"versions"), "graph_def"),
    ("net.pkl", pickle.dumps({"a": 1}), "pickle"),
    ("net.py", b'{"cells": [], "nbformat": 4}', "notebook"),
    ("net.py", b"<!DOCTYPE html><html>", "html"),
    ("net.pt2", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "lfs"),
    ("net.txt", b"import torch\n", "python"),
    ("net.pt2", b"", "empty"),
    ("net.pt2", b"\x7fELF", "elf"),
]


@each(("name", "content", "kind"), MADE)
def test_a_kind_is_recognised(name: str, content: bytes, kind: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    found = file_kinds.recognise(path)
    assert found is not None
    assert found.id == kind
    assert found.what
    assert found.way
    assert "{file}" not in found.way


@each(
    "content",
    [b"\0\1\2\3" * 9, b"some words", b"\x08", b"\x08\x01\x3a\x7f cut off", b"\xff" * 40, b"\x09" + bytes(7)],
)
def test_what_is_nothing_known(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(content)
    assert file_kinds.recognise(path) is None
    error = file_kinds.not_a(path, "a model", "")
    assert "it has the name of an ONNX model, but its format is not recognised" in error.message


def test_folders(tmp_path: Path) -> None:
    def kind() -> str:
        found = file_kinds.recognise(tmp_path)
        assert found is not None
        return found.id

    assert kind() == "folder"
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_text("")
    assert kind() == "transformers"
    (tmp_path / "saved_model.pb").write_text("")
    assert kind() == "saved_model"


class Trap:
    """Leaves a trace if it is ever unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_nothing_is_unpickled(protocol: int, tmp_path: Path) -> None:
    data = pickle.dumps(OrderedDict(state_dict=Trap(tmp_path / "trace")), protocol)
    (tmp_path / "a.pkl").write_bytes(data)
    (tmp_path / "b.pt").write_bytes(zipped("b/data.pkl", "b/version", content=data))
    (tmp_path / "c.pth").write_bytes(LEGACY + data)
    kinds = [file_kinds.recognise(tmp_path / name) for name in ("a.pkl", "b.pt", "c.pth")]
    assert [kind.id for kind in kinds if kind] == ["pickle", "pickled_module", "pickled_module"]
    assert not (tmp_path / "trace").exists()
    pickle.loads(data)
    assert (tmp_path / "trace").exists()  # the trap would have been sprung


def test_files_that_are_cut_off_are_survived(tmp_path: Path) -> None:
    path = tmp_path / "cut"
    for _, content, _ in MADE:
        for size in range(0, len(content), 11):
            path.write_bytes(content[:size])
            file_kinds.recognise(path)


def test_an_archive_with_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    content = zipped("é.json")
    assert content.count("é".encode()) == 2
    (tmp_path / "a.pt2").write_bytes(content.replace("é".encode(), b"\xff\xff"))
    kind = file_kinds.recognise(tmp_path / "a.pt2")
    assert kind is not None
    assert kind.id == "cut_zip"
