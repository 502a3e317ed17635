"""Files of ``torch.save`` that hold tensors, containers and numbers, and nothing that runs code when it is unpickled.

The globals are those that torch's own ``weights_only`` unpickler lets through, without the classes that packages add
(``torch/_weights_only_unpickler.py``); so are the opcodes.
"""

from __future__ import annotations

import pickletools
import re

from ethosu_sdk.aot.model.saved_program import archive
from ethosu_sdk.aot.model.saved_program.finding import UnsafeError, plain, shown

# dtypes and the classes of storages, of which there is one for each dtype.
_TORCH_TYPES = re.compile(
    r"torch\.(?:[A-Z][A-Za-z0-9]*Storage|bool|q?u?int\d+(?:x\d)?|b?float\d+(?:_[a-z0-9_]+)?|complex\d+|half|"
    r"double|long)"
)


def check(name: str, content: memoryview) -> None:
    """UnsafeError unless `content`, the member `name`, is a file of torch.save with tensors and containers only."""
    if not content:
        return  # torch takes it for no example inputs
    try:
        inner = archive.members(bytes(content))
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
            if opcode.name in plain("pickles", "refused_opcodes"):
                raise UnsafeError(
                    f"the pickle {where} has the opcode {opcode.name}, which tensors do not need"
                )
            if opcode.name == "GLOBAL":
                wanted = ".".join(str(argument).split(" ", 1))
                if wanted not in plain("pickles", "globals") and not _TORCH_TYPES.fullmatch(wanted):
                    raise UnsafeError(
                        f"the pickle {where} would call {shown(wanted)}, which tensors and containers do not need"
                    )
    except (ValueError, IndexError) as error:
        raise UnsafeError(f"the pickle {where} is damaged ({error})") from error
