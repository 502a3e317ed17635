"""A bare command stream, as Arm's driver takes it: the driver actions of one job (COP1), without weights.

Vela writes them into its custom operator, and some vendors ship them as C arrays. Nothing in them names a system
configuration; the lengths of weights and memories are what the commands reach.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

from ethosu_sdk.base import file_kinds, filesystem
from ethosu_sdk.base.errors import InputError, SdkError
from ethosu_sdk.npu import vela_blocks
from ethosu_sdk.npu.vela_blocks import VelaBlocks
from ethosu_sdk.program.execution_plan import (
    ENTRY,
    ETHOSU_BACKEND,
    Chain,
    Delegate,
    DelegateCall,
    ExecutionPlan,
    Header,
)
from ethosu_sdk.program.pte import Pte

SUFFIX = ".cop1"
NO_WEIGHTS = "a bare command stream has no weights and does not say where inputs and outputs lie"
_FOURCC = b"COP1"
_MOST_BYTES = 64 << 20
_HINT = "give the driver actions as Vela writes them: COP1, then configuration and commands"


def is_stream(path: Path) -> bool:
    """Whether the name of `path` says that it is a bare command stream."""
    return path.suffix.lower() == SUFFIX


def read(path: Path) -> Pte:
    """The stream at `path` as a program of one delegate without weights, inputs and outputs.

    InputError for a file that is none or is damaged.
    """
    if not path.exists():
        raise InputError(f"there is no file {path}", file_kinds.nearest_file(path, SUFFIX))
    data = filesystem.file_content(path, _MOST_BYTES)
    if len(data) > _MOST_BYTES:
        raise InputError(f"{path} is too large for a command stream", _HINT)
    if data[:4] != _FOURCC:
        raise file_kinds.not_a(path, "a command stream (COP1)", _HINT)
    try:
        return parse(data)
    except SdkError as error:
        raise InputError(f"{path}: {error.message}", _HINT) from error


def reached_bytes(vela: VelaBlocks) -> Counter[int]:
    """Region → bytes from its base to behind the last one that the commands read or write, up to a branch."""
    from ethosu_sdk.npu import program  # NumPy comes with it, and a command's --help must not wait for that
    from ethosu_sdk.npu.config import NpuConfig

    config = NpuConfig.from_word(vela.config_word)
    return Counter(program.reached_bytes(bytes(vela.command_stream), config))


def parse(data: bytes) -> Pte:
    """Check the driver actions `data`. InputError for what is malformed, or is for an NPU that does not exist."""
    view = memoryview(data).toreadonly()
    config_word, arch_word, stream = vela_blocks.driver_actions(view)
    bare = VelaBlocks((), view, memoryview(b""), 0, (), (), config_word, arch_word, stream)
    blocks = replace(bare, scratch_bytes=reached_bytes(bare)[vela_blocks.REGION_SCRATCH])
    plan = ExecutionPlan(
        name=ENTRY,
        values=(),
        inputs=(),
        outputs=(),
        chains=(Chain((), (), (DelegateCall(0, ()),)),),
        operators=(),
        delegates=(Delegate(ETHOSU_BACKEND, 0, view, {}, blocks),),
        non_const_buffer_sizes=(),
    )
    return program_of(plan, hashlib.sha256(view).hexdigest(), len(view), view)


def program_of(plan: ExecutionPlan, sha256: str, size: int, data: memoryview) -> Pte:
    """What Vela wrote, in a file of `size` bytes, as a program: one method, and no settings."""
    return Pte(
        sha256=sha256,
        size=size,
        header=Header(False, size, 0, 0),
        version=0,
        plans=(plan,),
        segments=(),
        named_data={},
        data=data,
        is_stream=True,
    )
