"""What a file is, by its content: magic bytes, members of a zip, fields of a protobuf, the opcodes of a pickle.

Nothing is loaded, unpickled or executed, and neither torch nor any other slow package is imported: this is for the
file that somebody gives in place of a model, and for the sentence that leads from there to here. Libraries that know
magic bytes (libmagic, puremagic) call most of these files "zip" or "data".
"""

from __future__ import annotations

import difflib
import functools
import io
import pickletools
import re
import struct
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PureWindowsPath
from typing import IO, BinaryIO

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import InputError

# What a pickle would build, read from its opcodes.

_MAX_PICKLE_BYTES = 4 << 20
_MAX_OPCODES = 200_000
# torch.save before version 1.6 wrote this number as a pickle of its own.
_LEGACY_TORCH = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
# Modules whose names occur in a file of tensors, dicts and numbers.
_DATA_MODULES = {
    *("torch", "torch._utils", "torch._tensor", "torch.nn.parameter", "torch.storage", "torch.serialization"),
    *("collections", "numpy"),
}
_DATA_PREFIXES = (
    *("numpy.", "_codecs", "builtins", "__builtin__"),
    *("copyreg", "copy_reg", "datetime", "argparse"),
)
_CHECKPOINT_KEYS = {
    *("state_dict", "model_state_dict", "optimizer", "optimizer_state_dict"),
    "pytorch-lightning_version",
}
_STRINGS = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE", "BINSTRING", "SHORT_BINSTRING")


def pickle_kind(stream: IO[bytes]) -> str:
    """``pickle``, or what :func:`torch_kind` says when torch's old format wrote it."""
    data = stream.read(_MAX_PICKLE_BYTES)
    if _LEGACY_TORCH not in data[:32]:
        return "pickle"
    # The number, the protocol's version and a description of the computer come first, each a pickle.
    rest = data
    for _ in range(3):
        rest = rest[_end(rest) :]
    return _classify(rest)


def torch_kind(stream: IO[bytes]) -> str:
    """What the ``data.pkl`` of torch.save holds: ``state_dict``, ``checkpoint``, ``pickled_module`` or, unless its
    opcodes tell, ``torch_save``."""
    return _classify(stream.read(_MAX_PICKLE_BYTES))


def _end(data: bytes) -> int:
    """Bytes of the first pickle in `data`."""
    position = len(data)
    try:
        for opcode, _, offset in pickletools.genops(data):
            if opcode.name == "STOP" and offset is not None:
                position = offset + 1
    except ValueError:
        pass
    return position


def _classify(data: bytes) -> str:
    names, strings = _read_opcodes(data)
    if any(module not in _DATA_MODULES and not module.startswith(_DATA_PREFIXES) for module, _ in names):
        return "pickled_module"
    if _CHECKPOINT_KEYS & set(strings):
        return "checkpoint"
    return "state_dict" if any(name.startswith("_rebuild") for _, name in names) else "torch_save"


def _read_opcodes(data: bytes) -> tuple[list[tuple[str, str]], list[str]]:
    """The classes and functions that a pickle names, and its strings: as much as can be read of one that may be
    damaged or longer than `data`."""
    names: list[tuple[str, str]] = []
    strings: list[str] = []
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if opcode.name == "GLOBAL":
                module, _, name = str(argument).partition(" ")
                names.append((module, name))
            elif opcode.name == "STACK_GLOBAL" and len(strings) > 1:
                names.append((strings[-2], strings[-1]))
            elif opcode.name in _STRINGS:
                strings.append(str(argument))
            if count > _MAX_OPCODES:
                break
    except ValueError:
        pass  # damaged or cut off: what was read so far tells what it is
    return names, strings


# What a file is.

_OWN = ("pte", "pt2", "tflite", "onnx")
_HEAD_BYTES = 4096
_MAX_MEMBERS = 100_000
_MAX_FIELDS = 10_000


@dataclass(frozen=True)
class FileKind:
    """What a file is (`what`, with its article) and which way leads from it to a program for the NPU, for a name with
    this `ending`."""

    id: str
    what: str
    way: str
    ending: str = ""
    suffixes: tuple[str, ...] = ()
    magics: tuple[tuple[int, bytes], ...] = ()


@functools.cache
def _kinds() -> dict[str, FileKind]:
    """The table of `file_kinds.toml`."""
    table = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {
        name: FileKind(
            name,
            row["what"],
            row.get("way") or table[row["way_of"]]["way"],
            row.get("ending", ""),
            tuple(row.get("suffixes", ())),
            tuple((magic["offset"], magic["bytes"].encode("latin-1")) for magic in row.get("magics", ())),
        )
        for name, row in table.items()
    }


def recognise(path: Path) -> FileKind | None:
    """What the file or folder at `path` is, by its content; None when its format is not recognised.

    Raises InputError when it cannot be read.
    """
    if path.is_dir():
        found: str | None = _folder(path)
    else:
        try:
            with filesystem.open_regular(path) as stream:
                found = _content(stream)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from error
    return None if found is None else _for_file(_kinds()[found], path)


def kind_by_name(path: Path) -> FileKind | None:
    """What the name of `path` says that it is; None when it says nothing."""
    suffix = path.suffix.lower()
    named = next((kind for kind in _kinds().values() if suffix in kind.suffixes), None)
    return None if named is None else _for_file(named, path)


def not_a(path: Path, wanted: str, fallback: str) -> InputError:
    """The error for a file that is not `wanted` (with its article): what it is instead, and what to do.

    `fallback` is the hint when nothing is known about it.
    """
    kind = recognise(path)
    if kind is not None:
        return InputError(f"{path} is {kind.what}, not {wanted}", kind.way)
    named = kind_by_name(path)
    if named is None or named.what == wanted:
        return InputError(f"{path} is not {wanted}: its format is not recognised", fallback)
    # The way of what needs no conversion is to use it, which is what was tried.
    way = f"it is damaged, or something else: {fallback}" if named.id in _OWN else named.way
    return InputError(
        f"{path} is not {wanted}: it has the name of {named.what}, but its format is not recognised", way
    )


def _for_file(kind: FileKind, path: Path) -> FileKind:
    way = kind.way.replace("{file}", path.name)
    if path.suffix != kind.ending != "":
        way += f"; its name must end in {kind.ending}"
    return replace(kind, way=way)


def nearest_file(path: Path, *suffixes: str) -> str:
    """A hint for a file that does not exist: the file nearest to its name in its folder, of one of the `suffixes`, or
    how its name is written here; empty without either."""
    text = str(path)
    if "\\" in text:  # as Windows has it
        plain = PureWindowsPath(text)
        there = plain.relative_to(plain.anchor).as_posix()
        if not plain.drive.endswith(":"):
            return f"on this system, paths have /: {there}"
        where = f"/mnt/{plain.drive[0].lower()}/{there}"
        return (
            f"this is a path of Windows: in WSL it is {where}; in a container, only mounted folders are there"
        )
    try:
        names = sorted(row.name for row in path.parent.iterdir() if row.suffix in suffixes)
    except OSError:
        return ""
    same = [name for name in names if name.lower() == path.name.lower() or Path(name).stem == path.name]
    near = same or difflib.get_close_matches(path.name, names, n=1, cutoff=0.6)
    return f"did you mean {path.with_name(near[0])}?" if near else ""


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
    for kind in _kinds().values():
        if any(head.startswith(magic, offset) for offset, magic in kind.magics):
            return kind.id
    if head.startswith(b"PK\x03\x04"):
        return _zip(stream)
    # Safetensors: eight bytes with the length of a JSON object, and the object.
    if head[8:9] == b"{" and 2 <= int.from_bytes(head[:8], "little") <= size - 8:
        return "safetensors"
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        stream.seek(0)
        return pickle_kind(stream)
    return _text(head) or _protobuf(stream, size)


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
                    return torch_kind(member)
    except (zipfile.BadZipFile, OSError, EOFError, RuntimeError, ValueError, struct.error):
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
    try:
        fields = set(_fields(stream, size))
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
