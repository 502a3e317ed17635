"""The state of a program in a run: what it is called, where it lies, and files that it comes from or goes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ethosu_sdk import npz, pte
from ethosu_sdk.errors import InputError, SdkError, UsageError
from ethosu_sdk.records import Record
from ethosu_sdk.results import locations, reading as results

PROGRAM, FILE = "program", "file"
_PREFIX, _SHA256, _STEPS = "state.", "program_sha256", "steps"


@dataclass(frozen=True)
class KeptTensor:
    """A tensor that a program keeps between inferences; `initial` is empty for the program's own value."""

    name: str
    tensor: pte.Tensor
    initial: bytes = b""

    @property
    def place(self) -> tuple[int, int, int]:
        """(planned buffer from 0, offset in it, bytes)."""
        assert self.tensor.allocation is not None
        return self.tensor.allocation.memory_id - 1, self.tensor.allocation.offset, self.tensor.nbytes


@dataclass(frozen=True)
class Kept:
    """The state of a run. `source` is the file that it begins with, empty: the program's own values. `steps` is how
    many steps led to it. With `is_watched` it is reported after every step, with `is_saved` sent at the end."""

    tensors: tuple[KeptTensor, ...] = ()
    source: str = ""
    steps: int = 0
    is_watched: bool = False
    is_saved: bool = False


def load(
    path: Path,
    program: pte.Pte,
    plan: pte.ExecutionPlan,
    state: Path | None,
    *,
    saves: bool,
    is_sequence: bool,
) -> Kept:
    """The state of the method `plan` in the `.pte` at `path`, with the values in the file `state`, if there is one.

    UsageError for a program without a state where one is given or asked for; InputError for a file that is not of
    this program.
    """
    tensors = plan.state_tensors()
    if not tensors and (state is not None or saves):
        raise UsageError(
            "the program keeps no state from one inference to the next",
            "leave --state and --save-state out",
        )
    names = _names(path, program, plan)
    rows = tuple(
        KeptTensor(names.get((row.allocation.memory_id - 1, row.allocation.offset)) or f"state{number}", row)
        for number, row in enumerate(tensors)
        if row.allocation is not None
    )
    kept = Kept(rows, is_watched=bool(rows) and (saves or is_sequence or state is not None), is_saved=saves)
    return kept if state is None else _from_file(kept, state, program)


def _names(path: Path, program: pte.Pte, plan: pte.ExecutionPlan) -> Mapping[tuple[int, int], str]:
    """The names of the buffers in the model by their place, as far as the compile record beside the program has
    them."""
    try:
        record = results.read(locations.compile_record(path))
    except SdkError:
        return {}
    if record["model"]["sha256"] != program.sha256:
        return {}
    methods = [record, *record.get("other_methods", ())]
    others = [row for row in methods[1:] if row.get("name") == plan.name]
    chosen: Record = others[0] if others else record
    return {(row["arena"], row["offset"]): row["name"] for row in chosen.get("state", ())}


def _from_file(kept: Kept, file: Path, program: pte.Pte) -> Kept:
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
    if steps.shape != () or steps.dtype != np.int64 or not 0 <= int(steps) < 1 << 32:
        raise InputError(f"{file} does not say how many steps led to the state")
    rows = []
    for row in kept.tensors:
        array = content[_PREFIX + row.name]
        if array.dtype.name != row.tensor.dtype or array.shape != row.tensor.sizes:
            raise InputError(f"{file} has '{row.name}' as {array.dtype.name}{list(array.shape)}")
        rows.append(replace(row, initial=array.transpose(row.tensor.dim_order).tobytes()))
    return replace(kept, tensors=tuple(rows), source=file.name, steps=int(steps))


def check_place(file: Path) -> None:
    """UsageError for a file that a state cannot be saved to; better before the run than after it."""
    if file.is_dir() or not file.parent.is_dir():
        what = "is a folder" if file.is_dir() else f"cannot be written: there is no folder {file.parent}"
        raise UsageError(f"--save-state: {file} {what}", "name a file, such as state.npz")


def save(kept: Kept, file: Path, program: pte.Pte, contents: Sequence[bytes], steps: int) -> None:
    """Write the state to `file`: what is in each tensor, after so many `steps` of this run."""
    arrays: dict[str, Any] = {
        _SHA256: np.frombuffer(bytes.fromhex(program.sha256), np.uint8),
        _STEPS: np.array(kept.steps + steps, np.int64),
    }
    for row, content in zip(kept.tensors, contents, strict=True):
        stored = np.frombuffer(content, row.tensor.dtype).reshape(
            [row.tensor.sizes[axis] for axis in row.tensor.dim_order]
        )
        arrays[_PREFIX + row.name] = stored.transpose(np.argsort(row.tensor.dim_order))
    npz.write_npz(file, arrays)


def part(kept: Kept, repeats: str, memory: str, crcs: Sequence[str]) -> Record:
    """The record's `state`; empty for a program that keeps none. `crcs` are those of the tensors after the last
    inference, where they are known; `repeats` is what a repeat begins with."""
    if not kept.tensors:
        return {}
    rows = []
    for number, row in enumerate(kept.tensors):
        arena, offset, size = row.place
        rows.append(
            {
                "name": row.name,
                "shape": list(row.tensor.sizes),
                "dtype": row.tensor.dtype,
                "bytes": size,
                "memory": memory,
                "arena": arena,
                "offset": offset,
                **({"crc32": crcs[number]} if crcs else {}),
            }
        )
    begins = {"begins_with": FILE, "file": kept.source} if kept.source else {"begins_with": PROGRAM}
    return {
        "state": {
            **begins,
            "steps_before": kept.steps,
            "between_sets": "kept",
            **({"between_repeats": repeats} if repeats else {}),
            "tensors": rows,
        }
    }
