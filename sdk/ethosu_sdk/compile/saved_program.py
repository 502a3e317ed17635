"""Checks a ``.pt2`` file for code that could run when ``torch.export.load`` reads it.

torch unpickles members with ``weights_only=False`` (tensor subclasses, the state of old files, example inputs that
are no plain tensors), gives symbolic expressions to ``sympy.sympify`` and guards to ``exec``, both of which evaluate
Python, puts names into source code that it generates, imports modules that a tree of inputs names, calls whatever
function of ``torch`` a node names, and loads shared libraries. What plain ``torch.export.save`` writes of a network
needs none of that: it passes, and everything else is refused unless the user trusts the file. The author of a
``.pt2`` is not trusted (docs/internals/threat-model.md), and torch has no loader that does none of it.

Sources: torch 2.13, ``torch/export/__init__.py``, ``torch/export/_unlift.py``, ``torch/utils/_pytree.py``,
``torch/export/pt2_archive/_package.py`` and ``torch/_export/serde/serialize.py``.
"""

from __future__ import annotations

import ast
import functools
import io
import json
import pickletools
import re
import struct
import sys
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import InputError

_SHOWN = 120
_HINT = (
    "save the model again with torch.export.save, or give it as FILE.py, whose code you can read; --trust loads the "
    "file unchecked and may run code in it: use it only if you trust the source of the file"
)


class UnsafeError(Exception):
    """One sentence, without a full stop, that names the place and what is wrong there."""


def read_saved_program(path: Path, *, trust: bool) -> bytes:
    """The content of the ``.pt2``, checked unless `trust`: load these bytes. InputError when that could run code."""
    data = filesystem.file_content(path, sys.maxsize - 1)
    if trust:
        return data
    try:
        found = archive_members(data)
    except UnsafeError as finding:
        raise InputError(f"{path} is not a well-formed ZIP archive: {finding}", _HINT) from finding
    try:
        check_members(found)
    except UnsafeError as finding:
        raise InputError(f"{path} is not loaded, because it could run code: {finding}", _HINT) from finding
    return data


def shown(text: object) -> str:
    """`text` of a file for a message: quoted, on one line, cut to what fits there."""
    quoted = repr(text)
    return quoted if len(quoted) <= _SHOWN else f"{quoted[:_SHOWN]}…"


@functools.cache
def plain_facts(part: str, name: str) -> frozenset[str]:
    """The list `name` under `part` of saved_program.toml."""
    return frozenset(_plain_table()[part][name])


@functools.cache
def _plain_table() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(Path(__file__).with_name("saved_program.toml").read_text(encoding="utf-8"))


# Plain arithmetic passes, by an allow-list of syntax. torch writes a symbolic size as sympy's ``srepr``
# (``Mul(Integer(2), Symbol('s0', positive=True))``), older versions as ``2*s0``; reading it, ``sympy.sympify``
# evaluates the text as Python with everything that sympy and ``builtins`` define. Guards (``L['x'].size()[0] // 2 !=
# 1``) become the source of a function.

_MAX_CHARACTERS = 100_000
_MAX_DIGITS = 40
_MAX_EXPONENT = 64
_SYMBOL = re.compile(r"[a-z]{1,4}[0-9]{1,9}(?:_[0-9]{1,9})?")
_NUMBER = re.compile(r"[+-]?[0-9]{0,40}(?:\.[0-9]{0,400})?(?:[eE][+-]?[0-9]{1,3})?")
_WORD = re.compile(r"[A-Za-z0-9_.\- ]{1,200}")
_OPERATORS = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)
_ARITHMETIC = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, *_OPERATORS)


def check_symbolic(text: str) -> None:
    """UnsafeError unless `text` is an expression of symbols and numbers."""
    for node in _nodes(text):
        good = isinstance(node, _ARITHMETIC)
        if isinstance(node, ast.Name):
            known = plain_facts("expressions", "constants") | plain_facts("expressions", "functions")
            good = node.id in known or bool(_SYMBOL.fullmatch(node.id))
        elif isinstance(node, ast.Constant):
            good = _is_symbolic_constant(node.value)
        elif isinstance(node, ast.Call):
            good = isinstance(node.func, ast.Name) and node.func.id in plain_facts("expressions", "functions")
        elif isinstance(node, ast.keyword):
            good = node.arg is not None and isinstance(node.value, ast.Constant)
        elif isinstance(node, ast.Tuple):
            good = True  # a case of Piecewise
        if not good or _is_huge(node):
            raise UnsafeError(f"the symbolic expression {shown(text)} is not plain arithmetic")


def check_guard(text: str) -> None:
    """UnsafeError unless `text` compares sizes of inputs with numbers."""
    for node in _nodes(text):
        good = isinstance(node, (*_ARITHMETIC, ast.Subscript))
        if isinstance(node, ast.Name):
            good = node.id == "L" or node.id in _guard_names() | {"math", "torch"}
        elif isinstance(node, ast.Constant):
            value = node.value
            good = value is None or (
                bool(_WORD.fullmatch(value)) if isinstance(value, str) else _is_number(value)
            )
        elif isinstance(node, ast.Call):
            good = _is_guard_call(node)
        elif isinstance(node, ast.Attribute):
            good = node.attr in plain_facts("guards", "methods") or ast.unparse(node) in _guard_names()
        if not good or _is_huge(node):
            raise UnsafeError(f"the guard {shown(text)} does not only compare sizes")


def _guard_names() -> frozenset[str]:
    return plain_facts("guards", "functions") | plain_facts("guards", "constants")


def _nodes(text: str) -> Iterator[ast.AST]:
    printable = text.isascii() and text.isprintable() and "#" not in text and "\\" not in text
    if not printable or len(text) > _MAX_CHARACTERS:
        raise UnsafeError(
            f"the expression {shown(text)} is too long, or has characters that are not allowed in arithmetic"
        )
    try:
        return ast.walk(ast.parse(text, mode="eval"))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnsafeError(f"the expression {shown(text)} cannot be read ({type(error).__name__})") from error


def _is_symbolic_constant(value: object) -> bool:
    if isinstance(value, str):  # Symbol('s0'), Float('1.5')
        return bool(_SYMBOL.fullmatch(value) or (value and _NUMBER.fullmatch(value)))
    return _is_number(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (bool, float)) or (isinstance(value, int) and abs(value) < 10**_MAX_DIGITS)


def _is_guard_call(node: ast.Call) -> bool:
    method = isinstance(node.func, ast.Attribute) and node.func.attr in plain_facts("guards", "methods")
    return not node.keywords and (method or ast.unparse(node.func) in plain_facts("guards", "functions"))


def _is_huge(node: ast.AST) -> bool:
    """Whether `node` is a power of numbers alone, or has an exponent that makes it take forever."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Pow, ast.LShift)):
        base, exponent = node.left, node.right
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in plain_facts("expressions", "powers")
    ):
        if len(node.args) != 2:
            return True
        base, exponent = node.args
    else:
        return False
    numbers = [part.value for part in ast.walk(exponent) if isinstance(part, ast.Constant)]
    small = all(not isinstance(value, (int, float)) or abs(value) <= _MAX_EXPONENT for value in numbers)
    return not small or not (_has_symbol(base) or _has_symbol(exponent))


def _has_symbol(node: ast.AST) -> bool:
    names = (
        part.id if isinstance(part, ast.Name) else part.value
        for part in ast.walk(node)
        if isinstance(part, (ast.Name, ast.Constant))
    )
    return any(isinstance(name, str) and (name == "L" or _SYMBOL.fullmatch(name)) for name in names)


# The program itself is a JSON object of torch's export schema (``torch/_export/serde/schema.py``). Whatever torch
# turns into source code, looks up or evaluates must be of the plain form that a network has: by the key it stands
# under, every text is a name, an operator, an expression or a tree of inputs. A text under an unknown key must be
# plain too, so that what a later schema adds is not let through by accident.

_MAX_PLAIN = 4096
# Nothing that ends a literal, a line or a statement of Python.
_PLAIN = re.compile(r"[\w.:+/@<>=,\- ()\[\]|*~%$&!?]*")
_OPERATOR = re.compile(r"torch\.ops\.([a-z][a-z0-9_]*)\.([A-Za-z0-9_]+)(?:\.([A-Za-z0-9]\w*))?", re.ASCII)


def check_graph(name: str, program: dict[str, Any]) -> None:
    """UnsafeError that names the member `name` and the first text in `program` that torch could run as code."""
    pending: list[tuple[str, Any, bool]] = [("", program, False)]
    while pending:  # no recursion: JSON may be deeper than Python's stack
        key, value, in_node = pending.pop()
        if isinstance(value, dict):
            for inner, part in value.items():
                if inner == "metadata" and key in ("nodes", "graph_module"):
                    continue  # texts about where a node comes from: torch keeps them, and shows them
                check_plain(name, inner)
                _refuse_objects(inner, part, name)
                pending.append((inner, part, in_node or (key, inner) == ("graph", "nodes")))
        elif isinstance(value, list):
            pending += ((key, part, in_node) for part in value)
        elif isinstance(value, str):
            _check_text(key, value, in_node, name)


def check_plain(name: str, text: str) -> None:
    """UnsafeError unless `text`, in the member `name`, could stand in a Python string of any kind."""
    if len(text) > _MAX_PLAIN or not _PLAIN.fullmatch(text):
        raise UnsafeError(f"{name}: the text {shown(text)} has characters that are not allowed in names")


def _check_text(key: str, text: str, in_node: bool, name: str) -> None:
    if in_node and key in ("as_string", "as_strings"):
        return  # an operator's argument, which torch puts into source code with repr()
    known = _CHECKS.get(key)
    if known is None:
        check_plain(name, text)
        return
    try:
        known(text)
    except UnsafeError as finding:
        raise UnsafeError(f"{name}: {finding}") from finding


def _refuse_objects(key: str, value: Any, name: str) -> None:
    if key in ("as_custom_obj", "custom_obj") or (key == "custom_obj_values" and value):
        raise UnsafeError(f"{name}: the program takes an object of a custom class ({key})")


def _check_name(text: str) -> None:
    if text and not (text.isascii() and text.isidentifier()):
        raise UnsafeError(
            f"the name {shown(text)} is not a Python identifier, and torch would insert it into source code"
        )


def _check_operator(text: str) -> None:
    match = _OPERATOR.fullmatch(text)
    namespace, operator, overload = match.groups() if match else ("", "", None)
    if namespace == "higher_order":
        good = operator in plain_facts("operators", "higher_order") and overload is None
    else:
        hidden = operator.startswith("__") and operator not in plain_facts("operators", "with_underscores")
        refused = operator in plain_facts("operators", "refused") or overload in plain_facts(
            "operators", "refused_overloads"
        )
        good = namespace in plain_facts("operators", "namespaces") and not hidden and not refused
    if not good and text not in plain_facts("operators", "arithmetic"):
        raise UnsafeError(
            f"the program calls {shown(text)}, which is not one of the allowed operators on tensors; if another "
            "package defines it, give a FILE.py that imports that package"
        )


def _check_tree(text: str) -> None:
    try:
        _, tree = json.loads(text)
        nodes = [tree]
        for node in nodes:  # grows while it is walked
            if node["type"] is not None and node["type"] not in plain_facts("trees", "types"):
                raise UnsafeError(
                    f"the inputs' tree has the type {shown(node['type'])}, which is not a plain container"
                )
            _check_context(node["context"])
            nodes += node["children_spec"]
        _check_keywords(tree)
    except (ValueError, TypeError, KeyError, RecursionError, IndexError) as error:
        raise UnsafeError(
            f"the inputs' tree {shown(text)} cannot be read ({type(error).__name__})"
        ) from error


def _check_context(context: Any) -> None:
    """Keys of a dict and the like: torch imports what an ``__enum__`` names, and writes keys into guards."""
    pending = [json.loads(context) if isinstance(context, str) and context[:1] in '[{"' else context]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            raise UnsafeError(f"the inputs' tree names an object to import: {shown(value)}")
        if isinstance(value, list):
            pending += value
        elif isinstance(value, str):
            check_plain("the inputs' tree", value)


def _check_keywords(tree: dict[str, Any]) -> None:
    """The names of keyword inputs, which become those of a function's parameters."""
    children = tree["children_spec"]
    if tree["type"] == "builtins.tuple" and len(children) == 2 and children[1]["type"] == "builtins.dict":
        for key in json.loads(children[1]["context"]):
            if isinstance(key, str):
                _check_name(key)


# The key of a text → its check; a text under another key must be plain.
_CHECKS: dict[str, Callable[[str], None]] = {
    "name": _check_name,
    "as_name": _check_name,
    "forward_arg_names": _check_name,
    "target": _check_operator,
    "as_operator": _check_operator,
    "expr_str": check_symbolic,
    "guards_code": check_guard,
    "in_spec": _check_tree,
    "out_spec": _check_tree,
}


# torch reads a ``.pt2`` with miniz, a check in Python with :mod:`zipfile`: where an archive says a thing twice, the
# two may believe different copies. So only what torch's writer makes is taken: whole members, stored as they are,
# one behind the other from the file's first byte to the directory, which the file ends with. Source: PKWARE's
# APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.

_END, _LOCATOR, _END64 = struct.Struct("<4s4H2LH"), struct.Struct("<4sLQL"), struct.Struct("<4sQ2H2L4Q")
_LOCAL = struct.Struct("<4s5H3L2H")
_DESCRIPTORS = (struct.Struct("<4s3L"), struct.Struct("<4sL2Q"))
_DESCRIPTOR_FLAG, _UTF8_FLAG = 0x0008, 0x0800
_ZIP64_EXTRA = 1
_ALL_ONES = (0xFFFF, 0xFFFFFFFF)
_NAME = re.compile(r"(?:[A-Za-z0-9_.+@=, ()\[\]~-]+/)*[A-Za-z0-9_.+@=, ()\[\]~-]+")


def archive_members(data: bytes) -> dict[str, memoryview]:
    """Each member's content, a view of `data`, by its name. UnsafeError when the archive is ambiguous."""
    directory_at, entries = _directory(data)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            rows = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
        raise UnsafeError(f"its directory is damaged ({error})") from error
    if len(rows) != entries:
        raise UnsafeError(f"its directory claims {entries} members but lists {len(rows)}")
    _check_names(rows)
    position = 0
    found = {}
    for row in sorted(rows, key=lambda row: row.header_offset):
        found[row.filename], position = _member(data, row, position)
    if position != directory_at:
        raise UnsafeError("there are bytes between its last member and its directory")
    return {row.filename: found[row.filename] for row in rows}


def _directory(data: bytes) -> tuple[int, int]:
    at = len(data) - _END.size
    if at < 0 or data[at : at + 4] != b"PK\x05\x06":
        raise UnsafeError("it has no end record, or bytes follow it")
    _, disk, first_disk, here, total, size, offset, comment = _END.unpack_from(data, at)
    fields: tuple[int, ...] = (disk, first_disk, here, total, size, offset)
    locator_at = at - _LOCATOR.size
    if locator_at >= 0 and data[locator_at : locator_at + 4] == b"PK\x06\x07":
        at, fields = _directory64(data, locator_at, fields)
    disk, first_disk, here, total, size, offset = fields
    if comment or disk or first_disk or here != total:
        raise UnsafeError("it has a comment, or more than one part")
    if offset + size != at:
        raise UnsafeError(
            "its directory is not where its end record says: bytes were inserted before or after it"
        )
    return offset, total


def _directory64(data: bytes, locator_at: int, narrow: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    at = locator_at - _END64.size
    _, disk, position, disks = _LOCATOR.unpack_from(data, locator_at)
    if at < 0 or position != at or disk or disks > 1 or data[at : at + 4] != b"PK\x06\x06":
        raise UnsafeError("its ZIP64 end record is not where its locator says")
    _, size, _, _, *fields = _END64.unpack_from(data, at)
    if size != _END64.size - 12:  # without the signature and the size itself
        raise UnsafeError("its ZIP64 end record has an unknown form")
    if any(old != new and old not in _ALL_ONES for old, new in zip(narrow, fields, strict=True)):
        raise UnsafeError("its two end records contradict each other")
    return at, tuple(fields)


def _check_names(rows: Sequence[zipfile.ZipInfo]) -> None:
    seen: set[str] = set()
    for row in rows:
        name = row.filename
        if row.orig_filename != name or not _NAME.fullmatch(name) or {"..", "."} & set(name.split("/")):
            raise UnsafeError(
                f"the name of member {shown(row.orig_filename)} has parts or characters that are not allowed"
            )
        if name.lower() in seen:  # miniz tells upper from lower case no more than Windows does
            raise UnsafeError(f"it has two members {shown(name)}")
        seen.add(name.lower())


def _member(data: bytes, row: zipfile.ZipInfo, position: int) -> tuple[memoryview, int]:
    """The content of a member whose local header must lie at `position`, and where the next one begins."""
    what = f"member {shown(row.filename)}"
    if row.compress_type != zipfile.ZIP_STORED or row.compress_size != row.file_size:
        raise UnsafeError(f"{what} is compressed, which torch.export.save does not do")
    if row.flag_bits & ~(_DESCRIPTOR_FLAG | _UTF8_FLAG):
        raise UnsafeError(f"{what} is encrypted or has unknown flags")
    if row.header_offset != position or position + _LOCAL.size > len(data):
        raise UnsafeError(f"{what} does not begin where the one before it ends")
    _check_extra(row, what)
    signature, _, flags, method, _, _, crc, packed, size, name_bytes, extra_bytes = _LOCAL.unpack_from(
        data, position
    )
    start = position + _LOCAL.size + name_bytes + extra_bytes
    end = start + row.file_size
    late = bool(flags & _DESCRIPTOR_FLAG)
    if (
        (signature, flags, method) != (b"PK\x03\x04", row.flag_bits, row.compress_type)
        or data[position + _LOCAL.size : start - extra_bytes] != row.filename.encode()
        or any(
            given != row.file_size and given not in _ALL_ONES and not (late and given == 0)
            for given in (packed, size)
        )
        or (crc != row.CRC and not (late and crc == 0))
    ):
        raise UnsafeError(f"{what} has a local header that contradicts the directory")
    return memoryview(data)[start:end], _behind(data, row, end, what) if late else end


def _check_extra(row: zipfile.ZipInfo, what: str) -> None:
    """Only one field with sizes of 64 bits may stand in the directory: readers differ in which of two they take."""
    extra = row.extra
    if not extra:
        return
    if len(extra) < 4 or int.from_bytes(extra[:2], "little") != _ZIP64_EXTRA:
        raise UnsafeError(f"{what} has extra fields in the directory")
    if int.from_bytes(extra[2:4], "little") != len(extra) - 4:
        raise UnsafeError(f"{what} has several extra fields in the directory")


def _behind(data: bytes, row: zipfile.ZipInfo, end: int, what: str) -> int:
    wanted = (b"PK\x07\x08", row.CRC, row.compress_size, row.file_size)
    for layout in _DESCRIPTORS:
        if data[end : end + layout.size] == layout.pack(*wanted):
            return end + layout.size
    raise UnsafeError(f"{what} has a data descriptor that contradicts the directory")


# Files of ``torch.save`` may hold tensors, containers and numbers: the globals are those that torch's own
# ``weights_only`` unpickler lets through, without the classes that packages add
# (``torch/_weights_only_unpickler.py``); so are the opcodes.

# dtypes and the classes of storages, of which there is one for each dtype.
_TORCH_TYPES = re.compile(
    r"torch\.(?:[A-Z][A-Za-z0-9]*Storage|bool|q?u?int\d+(?:x\d)?|b?float\d+(?:_[a-z0-9_]+)?|complex\d+|half|"
    r"double|long)"
)


def check_pickle(name: str, content: memoryview) -> None:
    """UnsafeError unless `content`, the member `name`, is a file of torch.save with tensors and containers only."""
    if not content:
        return  # torch takes it for no example inputs
    try:
        inner = archive_members(bytes(content))
    except UnsafeError as finding:
        raise UnsafeError(f"{name} is not a plain file of torch.save: {finding}") from finding
    for member, data in inner.items():
        lower = member.lower()  # torch's reader tells no more
        if lower.endswith(("constants.pkl", ".py")) or "/code/" in lower:
            raise UnsafeError(f"{name} is a TorchScript module, with code in {member}")
        if lower.endswith(".pkl"):
            _check_opcodes(f"{member} in {name}", bytes(data))


def _check_opcodes(where: str, data: bytes) -> None:
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name in plain_facts("pickles", "refused_opcodes"):
                raise UnsafeError(
                    f"the pickle {where} has the opcode {opcode.name}, which tensors do not need"
                )
            if opcode.name == "GLOBAL":
                wanted = ".".join(str(argument).split(" ", 1))
                if wanted not in plain_facts("pickles", "globals") and not _TORCH_TYPES.fullmatch(wanted):
                    raise UnsafeError(
                        f"the pickle {where} would call {shown(wanted)}, which tensors and containers do not need"
                    )
    except (ValueError, IndexError) as error:
        raise UnsafeError(f"the pickle {where} is damaged ({error})") from error


_Check = Callable[[str, memoryview], None]


def check_members(found: Mapping[str, memoryview]) -> None:
    """UnsafeError when one of the members `found`, by their names, could run code when torch loads the program."""
    first = next(iter(found), "")
    if any(name.endswith("/archive_format") for name in found):
        root = first.partition("/")[0] + "/"  # torch takes the first member's, and is blind to all others
        stray = [name for name in found if not name.startswith(root)]
        if stray:
            raise UnsafeError(f"member {shown(stray[0])} lies outside of the archive's folder {shown(root)}")
        table, rows = _NOW, {name.removeprefix(root): data for name, data in found.items()}
    else:
        table, rows = _BEFORE_2_8, dict(found)
    for name, data in rows.items():
        check = next((check for pattern, check in table.items() if re.fullmatch(pattern, name)), None)
        if check is None:
            raise UnsafeError(f"torch.export.save writes no member {shown(name)}")
        check(name, data)
    _check_payloads(rows)


def _nothing(name: str, data: memoryview) -> None:
    """Bytes, numbers and texts that torch does not interpret."""


def _object(name: str, data: memoryview) -> None:
    raise UnsafeError(f"{name} is a pickled object of a custom class")


def _library(name: str, data: memoryview) -> None:
    raise UnsafeError(f"{name} belongs to a library compiled by AOTInductor, which torch would load and run")


_FACTS = r"(?:\.data/(?:version|serialization_id)|\.format_version|\.storage_alignment|byteorder|version)"
# Patterns of names inside the archive's folder → the check. The first one that fits counts.
_NOW: dict[str, _Check] = {
    _FACTS + r"|archive_(?:format|version)": _nothing,
    r"models/[^/]+\.json": lambda name, data: check_graph(name, json_object(name, data)),
    r"data/weights/weight_\d+|data/constants/tensor_\d+": _nothing,  # those that are pickles: see _check_payloads
    r"data/(?:weights/[^/]+_weights|constants/[^/]+_constants)_config\.json": _nothing,
    r"data/(?:weights|constants|sample_inputs)/[^/]+\.pt": check_pickle,
    r"data/constants/(?:custom_obj|opaque_obj)_\d+": _object,
    r"data/aotinductor/.*": _library,
    r"(?:extra|data/executorch)/.*": _nothing,
}
# What torch before 2.8 wrote, in no folder.
_BEFORE_2_8: dict[str, _Check] = {
    _FACTS: _nothing,
    r"serialized_exported_program\.json": lambda name, data: check_graph(name, json_object(name, data)),
    r"serialized_(?:state_dict|constants|example_inputs)\.(?:pt|json)": check_pickle,
    r"extra_files/.*": _nothing,
}


def json_object(name: str, data: memoryview) -> dict[str, Any]:
    try:
        value = json.loads(bytes(data).decode())
    except (ValueError, RecursionError) as error:
        raise UnsafeError(f"{name} is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise UnsafeError(f"{name} is not a JSON object")
    return value


def _check_payloads(rows: Mapping[str, memoryview]) -> None:
    """What the configurations of weights and constants say is pickled, as torch unpickles it without any check."""
    for name, data in rows.items():
        if not re.fullmatch(r"data/(?:weights|constants)/[^/]+_config\.json", name):
            continue
        folder = name.rpartition("/")[0]
        config = json_object(name, data).get("config")
        if not isinstance(config, dict):
            raise UnsafeError(f"{name} has no configuration")
        for fqn, row in config.items():
            path = row.get("path_name") if isinstance(row, dict) else None
            if not isinstance(path, str) or not re.fullmatch(r"(?:weight|tensor)_\d+", path):
                raise UnsafeError(
                    f"{name}: {shown(fqn)} is stored in {shown(path)}, which is not a plain tensor"
                )
            check_plain(name, fqn)
            if row.get("use_pickle") is not False and f"{folder}/{path}" in rows:
                check_pickle(f"{folder}/{path}", rows[f"{folder}/{path}"])
