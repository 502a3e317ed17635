"""The state of a program in a run: its names, places and files, and what the firmware says of it."""

from __future__ import annotations

import contextlib
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from ethosu_sdk.base import npz
from ethosu_sdk.base.errors import InputError, UsageError
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import ExecutionPlan, Tensor
from ethosu_sdk.records import bundle
from ethosu_sdk.records.common import Dtype
from ethosu_sdk.records.run import RunState, StateTensor
from ethosu_sdk.run import uart
from ethosu_sdk.run.uart import ProtocolError, UartLog

_PREFIX, _SHA256, _STEPS = "state.", "program_sha256", "steps"
_NAME = re.compile(r"[A-Za-z_][\w.]{0,199}", re.ASCII)
_MOST_STEPS = (1 << 32) - 1  # what the firmware's block of a sequence holds


class StateSeen(Struct, frozen=True):
    """What a firmware says of its program's state: CRCs by inference, then by tensor; `contents` by tensor, where
    they were sent."""

    crcs: tuple[tuple[str, ...], ...] = ()
    contents: tuple[bytes, ...] = ()


def state_seen(log: UartLog, sizes: Sequence[int], inferences: int, *, is_sent: bool) -> StateSeen:
    """The state of tensors with these sizes in bytes. ProtocolError for anything missing or contradictory."""
    rows = log.of_type("state")
    due = [(number, index, size) for number in range(inferences) for index, size in enumerate(sizes)]
    if [(row["inference"], row["index"], row["bytes"]) for row in rows] != due:
        raise ProtocolError(f"the state of {len(rows)} tensors is reported, but {len(due)} were due")
    crcs = tuple(
        tuple(row["crc32"] for row in rows[at : at + len(sizes)])
        for at in range(0, len(rows), len(sizes) or 1)
    )
    pieces = log.of_type("state_data")
    contents = []
    for index, size in enumerate(sizes if is_sent else ()):
        data = uart.joined_chunks(
            [row for row in pieces if row["index"] == index], f"tensor {index} of the state"
        )
        if len(data) != size or f"{zlib.crc32(data):08x}" != crcs[-1][index]:
            raise ProtocolError(f"the CRC of tensor {index} of the state does not match its bytes")
        contents.append(data)
    return StateSeen(crcs, tuple(contents))


class KeptTensor(Struct, frozen=True):
    """A tensor that a program keeps between inferences; `initial` is empty for the program's own value."""

    name: str
    tensor: Tensor
    initial: bytes = b""

    @property
    def place(self) -> tuple[int, int, int]:
        """(planned buffer from 0, offset in it, bytes)."""
        assert self.tensor.allocation is not None
        return self.tensor.allocation.memory_id - 1, self.tensor.allocation.offset, self.tensor.nbytes


class KeptState(Struct, frozen=True):
    """The state of a run. `source` is the file that it begins with, empty: the program's own values. `steps` is how
    many steps led to it. With `is_watched` it is reported after every step, with `is_saved` sent at the end."""

    tensors: tuple[KeptTensor, ...] = ()
    source: str = ""
    steps: int = 0
    is_watched: bool = False
    is_saved: bool = False


def load_state(
    program: pte.Pte, plan: ExecutionPlan, state: Path | None, *, saves: bool, is_sequence: bool, steps: int
) -> KeptState:
    """The state of the method `plan` in a run of so many `steps`, with the values in the file `state`, if there is
    one. UsageError for a program without a state where one is given or asked for; InputError for a file that is not
    of this program, or whose steps and these are more than a state counts."""
    tensors = plan.state_tensors()
    if not tensors and (state is not None or saves):
        raise UsageError(
            "the program keeps no state from one inference to the next", "leave --state and --save-state out"
        )
    names = [row.name for row in tensors]
    if len(set(names)) < len(names) or not all(map(_NAME.fullmatch, names)):
        names = [f"state{number}" for number in range(len(tensors))]
    rows = tuple(KeptTensor(name, row) for name, row in zip(names, tensors, strict=True))
    is_watched = bool(rows) and (saves or is_sequence or state is not None)
    kept = KeptState(rows, is_watched=is_watched, is_saved=saves)
    if state is None:
        return kept
    kept = _from_file(kept, state, program)
    if kept.steps + steps > _MOST_STEPS:
        raise InputError(
            f"{kept.steps:,} steps led to the state in {kept.source}, and {steps:,} more are above the limit of "
            f"{_MOST_STEPS:,}",
            "begin again without --state",
        )
    return kept


def _from_file(kept: KeptState, file: Path, program: pte.Pte) -> KeptState:
    content = npz.read_npz(file)
    wanted = {_SHA256, _STEPS, *(_PREFIX + row.name for row in kept.tensors)}
    if set(content) != wanted:
        raise InputError(
            f"{file} is not a saved state of this program: it has {', '.join(sorted(content)) or 'no arrays'}",
            "`run --save-state FILE.npz` writes one",
        )
    if content[_SHA256].tobytes() != bytes.fromhex(program.sha256):
        raise InputError(f"{file} is the state of another program", "save it with the program that goes on")
    steps = content[_STEPS]
    if steps.shape != () or steps.dtype != np.int64 or not 0 <= int(steps) <= _MOST_STEPS:
        raise InputError(f"{file} does not say how many steps led to the state")
    rows = []
    for row in kept.tensors:
        array = content[_PREFIX + row.name]
        if array.dtype.name != row.tensor.dtype or array.shape != row.tensor.sizes:
            raise InputError(f"{file} has '{row.name}' as {array.dtype.name}{list(array.shape)}")
        rows.append(replace(row, initial=array.transpose(row.tensor.dim_order).tobytes()))
    return replace(kept, tensors=tuple(rows), source=file.name, steps=int(steps))


def check_place(file: Path) -> None:
    """UsageError for a file that no state can be saved to: it would take the place of something else."""
    hint = "name a file that is new or a saved state, such as state.npz"
    if not file.parent.is_dir():
        raise UsageError(
            f"--save-state: {file} cannot be written: there is no folder {file.parent}", "name a file in one"
        )
    if file.is_dir():
        raise UsageError(f"--save-state: {file} is a folder", hint)
    if file.exists() and not _is_replaceable(file):
        raise UsageError(f"--save-state: {file} exists and is no saved state: it would be lost", hint)


def _is_replaceable(file: Path) -> bool:
    try:
        return {_SHA256, _STEPS} <= npz.read_npz(file).keys()
    except InputError:
        return file.is_file() and not file.stat().st_size


@contextlib.contextmanager
def saving(
    kept: KeptState, file: Path | None, program: pte.Pte, contents: Sequence[bytes], steps: int
) -> Iterator[Callable[[], None]]:
    """The state after so many `steps` lies beside `file`; the block gets the function that puts it in its place."""
    if file is None:
        yield lambda: None
        return
    arrays: dict[str, Any] = {
        _SHA256: np.frombuffer(bytes.fromhex(program.sha256), np.uint8),
        _STEPS: np.array(kept.steps + steps, np.int64),
    }
    for row, content in zip(kept.tensors, contents, strict=True):
        stored = np.frombuffer(content, row.tensor.dtype).reshape(
            [row.tensor.sizes[axis] for axis in row.tensor.dim_order]
        )
        arrays[_PREFIX + row.name] = stored.transpose(np.argsort(row.tensor.dim_order))
    check_place(file)
    with npz.staged_npz(file, arrays) as publish:

        def take_place() -> None:
            with bundle.listed(file, "run --save-state"):
                publish()

        yield take_place


def state_part(
    kept: KeptState, between_repeats: Literal["reset", "kept", ""], memory: str, crcs: Sequence[str]
) -> RunState | None:
    """The record's `state`; None for a program that keeps none. `crcs` are those of the tensors after the last
    inference, where they are known; `between_repeats` is what a repeat begins with."""
    if not kept.tensors:
        return None
    rows = []
    for number, row in enumerate(kept.tensors):
        arena, offset, size = row.place
        rows.append(
            StateTensor(
                name=row.name,
                shape=row.tensor.sizes,
                dtype=cast(Dtype, row.tensor.dtype),
                bytes=size,
                memory=memory,
                arena=arena,
                offset=offset,
                crc32=crcs[number] if crcs else None,
            )
        )
    return RunState(
        begins_with="file" if kept.source else "program",
        file=kept.source or None,
        steps_before=kept.steps,
        between_repeats=between_repeats or None,
        tensors=tuple(rows),
    )
