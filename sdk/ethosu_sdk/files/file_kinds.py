"""What a file is, by its content: magic bytes, members of a zip, fields of a protobuf, the opcodes of a pickle.

Nothing is loaded, unpickled or executed, and neither torch nor any other slow package is imported: this is for the
file that somebody gives in place of a model, and for the sentence that leads from there to here.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from ethosu_sdk.errors import InputError
from ethosu_sdk.files import opening, pickle_content

_HEAD_BYTES = 4096
_MAX_MEMBERS = 100_000
_MAX_FIELDS = 10_000


@dataclass(frozen=True)
class Kind:
    """What a file is (`what`, with its article) and which way leads from it to a program for the NPU."""

    id: str
    what: str
    way: str


_REBUILD = "compile a FILE.py:model with `def model(): net = Net(); net.load_state_dict({}); return net`"
_LOAD = "torch.load('NAME', weights_only=True)"
_TENSORFLOW = (
    "there is no way from TensorFlow to here but through PyTorch: build the network there and load the weights "
    "(tf2onnx and onnx2torch may do it), then compile the FILE.py"
)
_FLATBUFFER_WAY = "give the model that it was made from: FILE.py[:NAME] or FILE.pt2"

KINDS = {
    kind.id: kind
    for kind in (
        Kind(
            "pte",
            "a compiled ExecuTorch program (.pte)",
            "run it: `ethosu-sdk run NAME`; it is compiled already",
        ),
        Kind(
            "pt2",
            "a program saved by torch.export.save (.pt2)",
            "`ethosu-sdk compile NAME`; its name must end in .pt2",
        ),
        Kind(
            "aoti",
            "a library compiled by AOTInductor for this computer's processor",
            "save the exported program itself: torch.export.save(torch.export.export(model, inputs), 'model.pt2')",
        ),
        Kind("python", "a Python file", "`ethosu-sdk compile NAME`; its name must end in .py"),
        Kind(
            "torchscript",
            "a TorchScript module (torch.jit.save)",
            "TorchScript cannot be exported: take the nn.Module that it was scripted or traced from, in a FILE.py, "
            "or torch.export.save of it; its weights load with torch.jit.load('NAME').state_dict()",
        ),
        Kind(
            "state_dict",
            "a state dict or other tensors saved by torch.save, without the network",
            _REBUILD.format(_LOAD),
        ),
        Kind(
            "checkpoint",
            "a training checkpoint saved by torch.save, without the network",
            _REBUILD.format(_LOAD + "['state_dict']"),
        ),
        Kind(
            "pickled_module",
            "a module pickled by torch.save",
            "loading it runs code of its own and needs its classes; write a FILE.py that imports them: "
            "`def model(): return torch.load('NAME', weights_only=False)`, or torch.export.save the module to a .pt2",
        ),
        Kind(
            "torch_save",
            "a file of torch.save",
            _REBUILD.format(_LOAD),
        ),
        Kind("pickle", "a Python pickle", "it is no model by itself; write a FILE.py that builds the module"),
        Kind(
            "safetensors",
            "weights in safetensors format, without the network",
            _REBUILD.format("safetensors.torch.load_file('NAME')"),
        ),
        Kind(
            "tflite",
            "a TensorFlow Lite model",
            "Vela compiles it by itself (`vela NAME`), for TensorFlow Lite Micro; here, compile the PyTorch model "
            "that it stands for",
        ),
        Kind(
            "onnx",
            "an ONNX model",
            "take the PyTorch model that it was exported from, or convert it: FILE.py with "
            "`def model(): return onnx2torch.convert('NAME')`, and compile FILE.py:model",
        ),
        Kind("saved_model", "a TensorFlow SavedModel", _TENSORFLOW),
        Kind("graph_def", "a TensorFlow graph (frozen .pb)", _TENSORFLOW),
        Kind("keras", "a Keras model", _TENSORFLOW),
        Kind("hdf5", "an HDF5 file, such as Keras writes", _TENSORFLOW),
        Kind(
            "ptd",
            "tensor data of an ExecuTorch program (.ptd), without the program",
            "give the .pte that it belongs to, exported with its data inside",
        ),
        Kind(
            "bpte",
            "a bundled ExecuTorch program (.bpte): a program with test inputs around it",
            "give the .pte that was bundled; the inputs go into an .npz, for --inputs",
        ),
        Kind("tosa", "a TOSA graph", _FLATBUFFER_WAY),
        Kind("etdump", "a profile of an ExecuTorch run (ETDump)", _FLATBUFFER_WAY),
        Kind(
            "gguf",
            "a GGUF language model",
            "it holds weights for llama.cpp; compile the PyTorch model that it was made from",
        ),
        Kind(
            "coreml",
            "a Core ML package",
            "compile the PyTorch model that it was converted from",
        ),
        Kind(
            "transformers",
            "a folder of a Hugging Face model",
            "write a FILE.py with `def model(): return AutoModel.from_pretrained('NAME')` and example_inputs, and "
            "compile FILE.py:model",
        ),
        Kind(
            "npz",
            "NumPy arrays",
            "arrays go with --inputs or --calibration; the model is FILE.py[:NAME] or FILE.pt2",
        ),
        Kind(
            "notebook",
            "a Jupyter notebook",
            "save the cells that build the model as a FILE.py (`jupyter nbconvert --to script NAME`)",
        ),
        Kind("elf", "a program or library for a processor (ELF)", _FLATBUFFER_WAY),
        Kind("gzip", "a gzip archive", "unpack it first"),
        Kind("tar", "a tar archive", "unpack it first"),
        Kind("zip", "a zip archive of another kind", "unpack it first, if the model is inside"),
        Kind("cut_zip", "a zip archive that is damaged or cut off", "fetch or write the file again"),
        Kind("html", "a web page", "the download went wrong: fetch the file itself"),
        Kind(
            "lfs",
            "a Git LFS pointer, not the file itself",
            "fetch the content: `git lfs pull`",
        ),
        Kind("json", "a JSON file", _FLATBUFFER_WAY),
        Kind("empty", "an empty file", "fetch or write the file again"),
        Kind("folder", "a folder", "give one file: FILE.py[:NAME], FILE.pt2 or FILE.pte"),
    )
}

# (offset, bytes, kind): what begins so is that.
_MAGICS = (
    (4, b"TFL3", "tflite"),
    (4, b"ET12", "pte"),
    (4, b"FT01", "ptd"),
    (8, b"FH01", "ptd"),
    (4, b"BP08", "bpte"),
    (4, b"TOSA", "tosa"),
    (4, b"ED00", "etdump"),
    (0, b"\x89HDF\r\n\x1a\n", "hdf5"),
    (0, b"GGUF", "gguf"),
    (0, b"\x93NUMPY", "npz"),
    (0, b"\x7fELF", "elf"),
    (0, b"\x1f\x8b", "gzip"),
    (257, b"ustar", "tar"),
    (0, b"version https://git-lfs", "lfs"),
)
# What a file's name says, when its content says nothing: the content may be damaged.
NAMES = {
    ".tflite": "tflite",
    ".lite": "tflite",
    ".onnx": "onnx",
    ".pb": "graph_def",
    ".h5": "keras",
    ".hdf5": "keras",
    ".keras": "keras",
    ".safetensors": "safetensors",
    ".pt": "torch_save",
    ".pth": "torch_save",
    ".bin": "torch_save",
    ".ckpt": "checkpoint",
    ".pkl": "pickle",
    ".pte": "pte",
    ".ptd": "ptd",
    ".bpte": "bpte",
    ".pt2": "pt2",
    ".tosa": "tosa",
    ".gguf": "gguf",
    ".mlpackage": "coreml",
    ".ipynb": "notebook",
    ".npz": "npz",
}


def recognise(path: Path) -> Kind | None:
    """What the file or folder at `path` is, by its content alone; None when it is nothing known.

    Raises InputError when it cannot be read.
    """
    if path.is_dir():
        found: str | None = _folder(path)
    else:
        try:
            with opening.regular(path) as stream:
                found = _content(stream)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from error
    return None if found is None else _for_file(KINDS[found], path)


def by_name(path: Path) -> Kind | None:
    """What the name of `path` says that it is; None when it says nothing."""
    named = NAMES.get(path.suffix.lower())
    return None if named is None else _for_file(KINDS[named], path)


def not_a(path: Path, wanted: str, fallback: str) -> InputError:
    """The error for a file that is not `wanted` (with its article): what it is instead, and the way from there.

    `fallback` is the hint when nothing is known about it.
    """
    kind = recognise(path)
    if kind is not None:
        return InputError(f"{path} is {kind.what}, not {wanted}", kind.way)
    named = by_name(path)
    if named is None or named.what == wanted:
        return InputError(f"{path} is not {wanted}: its content is nothing known", fallback)
    return InputError(
        f"{path} is not {wanted}: it has the name of {named.what}, and a content that is nothing known",
        named.way,
    )


def _for_file(kind: Kind, path: Path) -> Kind:
    return replace(kind, way=kind.way.replace("NAME", path.name))


def _folder(path: Path) -> str:
    def has(pattern: str) -> bool:
        return next(path.glob(pattern), None) is not None

    if has("saved_model.pb"):
        return "saved_model"
    if has("Manifest.json") and path.suffix == ".mlpackage":
        return "coreml"
    if has("config.json") and (has("*.safetensors") or has("pytorch_model*.bin")):
        return "transformers"
    return "folder"


def _content(stream: BinaryIO) -> str | None:
    head = stream.read(_HEAD_BYTES)
    size = stream.seek(0, io.SEEK_END)
    if not head:
        return "empty"
    for offset, magic, kind in _MAGICS:
        if head[offset : offset + len(magic)] == magic:
            return kind
    if head.startswith(b"PK\x03\x04"):
        return _zip(stream)
    if _is_safetensors(head, size):
        return "safetensors"
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        stream.seek(0)
        return pickle_content.kind(stream)
    return _text(head) or _protobuf(stream, size)


def _is_safetensors(head: bytes, size: int) -> bool:
    """Eight bytes with the length of a JSON object, and the object."""
    length = int.from_bytes(head[:8], "little")
    return len(head) > 8 and head[8:9] == b"{" and 2 <= length <= size - 8


def _text(head: bytes) -> str | None:
    if b"\0" in head:
        return None
    try:
        text = head.decode("utf-8", errors="strict" if len(head) < _HEAD_BYTES else "ignore")
    except UnicodeDecodeError:
        return None
    start = text.lstrip("\ufeff \t\r\n").lower()
    if start.startswith(("<!doctype html", "<html")):
        return "html"
    if start.startswith("{"):
        return "notebook" if re.search(r'"(nbformat|cell_type)"', text) else "json"
    return "python" if re.search(r"^\s*(import|from|def|class)\s+\w", text, re.MULTILINE) else None


def _zip(stream: BinaryIO) -> str:
    try:
        with zipfile.ZipFile(stream) as archive:
            names = archive.namelist()[:_MAX_MEMBERS]
            # Members of torch's files lie in a folder with the name of the file.
            inner = {name.partition("/")[2] for name in names}
            whole = _zip_by_members(set(names), inner)
            if whole is not None:
                return whole
            pickles = [name for name in names if name.endswith("data.pkl")]
            if pickles and ("version" in inner or ".data/serialization_id" in inner or "byteorder" in inner):
                with archive.open(pickles[0]) as member:
                    return pickle_content.torch_kind(member)
    except (
        zipfile.BadZipFile,
        OSError,
        EOFError,
        RuntimeError,
        NotImplementedError,
        ValueError,
        struct.error,
    ):
        return "cut_zip"  # ValueError: a name that is not in the encoding that it says
    return "zip"


def _zip_by_members(names: set[str], inner: set[str]) -> str | None:
    if "serialized_exported_program.json" in names:  # torch before 2.8
        return "pt2"
    if "archive_format" in inner:
        exported = any(re.fullmatch(r"models/[^/]+\.json", name) for name in inner)
        return "pt2" if exported else "aoti"
    if any(name.startswith("code/") for name in inner) and "constants.pkl" in inner:
        return "torchscript"
    if {"config.json", "metadata.json"} <= names and any(name.endswith(".h5") for name in names):
        return "keras"
    if names and all(name.endswith(".npy") for name in names):
        return "npz"
    return None


def _protobuf(stream: BinaryIO, size: int) -> str | None:
    """The kind of a protobuf message, by the numbers and types of its outermost fields, up to the file's end."""
    fields = set()
    try:
        for row in _fields(stream, size):
            fields.add(row)
    except ValueError:
        return None
    # ONNX's ModelProto: ir_version 1, graph 7, opset_import 8.
    if {(1, 0), (7, 2)} <= fields and all(number <= 25 for number, _ in fields):
        return "onnx"
    # TensorFlow's SavedModel: version 1, meta_graphs 2; GraphDef: node 1, versions 4, library 2.
    if fields == {(1, 0), (2, 2)}:
        return "saved_model"
    if (1, 2) in fields and fields <= {(1, 2), (2, 2), (3, 0), (4, 2), (5, 2)}:
        return "graph_def"
    return None


def _fields(stream: BinaryIO, size: int) -> Iterator[tuple[int, int]]:
    """(number, wire type) of each outermost field. ValueError for what is no protobuf message."""
    position = stream.seek(0)
    for _ in range(_MAX_FIELDS):
        if position == size:
            return
        key = _varint(stream)
        number, wire = key >> 3, key & 7
        if number == 0 or wire not in (0, 1, 2, 5):
            raise ValueError("not a field")
        length = _varint(stream) if wire in (0, 2) else {1: 8, 5: 4}[wire]
        position = stream.tell() if wire == 0 else stream.seek(length, io.SEEK_CUR)
        if position > size:
            raise ValueError("a field reaches past the end")
        yield number, wire


def _varint(stream: BinaryIO) -> int:
    value = 0
    for shift in range(0, 64, 7):
        byte = stream.read(1)
        if not byte:
            raise ValueError("cut off")
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    raise ValueError("not a number")
