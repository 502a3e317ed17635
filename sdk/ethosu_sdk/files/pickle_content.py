"""What a pickle would build, read from its opcodes: nothing is unpickled, no class is imported."""

from __future__ import annotations

import pickletools
from typing import IO

_MAX_BYTES = 4 << 20
_MAX_OPCODES = 200_000
# torch.save before version 1.6 wrote this number as a pickle of its own.
_LEGACY_TORCH = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
# Modules whose names occur in a file of tensors, dicts and numbers.
_DATA_MODULES = (
    "torch",
    "torch._utils",
    "torch._tensor",
    "torch.storage",
    "torch.serialization",
    "collections",
    "numpy",
)
_DATA_PREFIXES = (
    "numpy.",
    "_codecs",
    "builtins",
    "__builtin__",
    "copyreg",
    "copy_reg",
    "datetime",
    "argparse",
)
_TORCH_DATA_CLASSES = ("torch.nn.parameter",)
_CHECKPOINT_KEYS = {
    "state_dict",
    "model_state_dict",
    "optimizer",
    "optimizer_state_dict",
    "pytorch-lightning_version",
}
_STRINGS = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE", "BINSTRING", "SHORT_BINSTRING")


def kind(stream: IO[bytes]) -> str:
    """``pickle``, or what :func:`torch_kind` says when torch's old format wrote it."""
    data = stream.read(_MAX_BYTES)
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
    return _classify(stream.read(_MAX_BYTES))


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
    names, strings = _read(data)
    of_data = (*_DATA_MODULES, *_TORCH_DATA_CLASSES)
    if any(module not in of_data and not module.startswith(_DATA_PREFIXES) for module, _ in names):
        return "pickled_module"
    if _CHECKPOINT_KEYS & set(strings):
        return "checkpoint"
    return "state_dict" if any(name.startswith("_rebuild") for _, name in names) else "torch_save"


def _read(data: bytes) -> tuple[list[tuple[str, str]], list[str]]:
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
