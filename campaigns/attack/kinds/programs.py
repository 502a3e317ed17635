"""Damaged programs: read, described, and run with the outputs that the intact program has as the expectation."""

import json
import os
import random
import shlex
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from campaigns.attack import damage
from campaigns.attack.case import Case, Context, Kind, Probe
from campaigns.attack.process import Ended, Limits
from ethosu_sdk.base import filesystem, npz
from ethosu_sdk.program import pte
from tests.pte_files import changed, check, golden

_READ = ("add_u55", "add_u85_segment", "choice", "conv_u65_int8", "counter", "lists", "softmax")
_RUN = ("add_u55", "conv_u65_int8", "choice", "softmax")  # whose inputs may be any numbers
_LIMITS = Limits(seconds=300.0)
# Fields that the reader's and the runtime's decisions hang on; N and M stand for indices.
_FIELDS = (
    "execution_plan[0].inputs[0]",
    "execution_plan[0].outputs[0]",
    "execution_plan[0].inputs#len",
    "execution_plan[0].values#len",
    "execution_plan[0].non_const_buffer_sizes[1]",
    "execution_plan[0].chains[0].instructions#len",
    "execution_plan[0].chains[0].instructions[N].instr_args#type",
    "execution_plan[0].chains[0].instructions[N].instr_args.op_index",
    "execution_plan[0].chains[0].instructions[N].instr_args.args[M]",
    "execution_plan[0].chains[0].instructions[N].instr_args.destination_instruction",
    "execution_plan[0].chains[0].instructions[N].instr_args.cond_value_index",
    "execution_plan[0].chains[0].instructions[N].instr_args.move_to",
    "execution_plan[0].values[N].val#type",
    "execution_plan[0].values[N].val.scalar_type",
    "execution_plan[0].values[N].val.sizes[M]",
    "execution_plan[0].values[N].val.sizes#len",
    "execution_plan[0].values[N].val.dim_order[M]",
    "execution_plan[0].values[N].val.data_buffer_idx",
    "execution_plan[0].values[N].val.allocation_info.memory_id",
    "execution_plan[0].values[N].val.allocation_info.memory_offset_low",
    "execution_plan[0].values[N].val.allocation_info.memory_offset_high",
    "execution_plan[0].delegates[0].processed.index",
    "execution_plan[0].delegates[0].processed.location",
    "version",
)


def _structural(choice: random.Random, data: bytes) -> bytes:
    """Another value in up to three fields, those that the program has."""
    copy = bytearray(data)
    for _ in range(choice.randint(1, 3)):
        path = (
            choice.choice(_FIELDS)
            .replace("N", str(choice.randrange(6)))
            .replace("M", str(choice.randrange(3)))
        )
        value = choice.choice((0, 1, 2, 3, 5, 7, 16, 100, 127, -1, 1 << 20, 1 << 31, 1 << 62))
        try:
            copy = changed(bytes(copy), (path, value))
        except (
            AssertionError,
            LookupError,
            TypeError,
            struct.error,
        ):  # a field it lacks, or too large a value
            copy = bytearray(damage.words(choice, bytes(copy)))
    return bytes(copy)


def mutated(choice: random.Random, data: bytes) -> bytes:
    """A damaged program: in half of the cases by its fields, else by its bytes."""
    return _structural(choice, data) if choice.random() < 0.5 else damage.damaged(choice, data)


def _probe(context: Context, choice: random.Random) -> Probe:
    name = choice.choice(_READ)
    data = mutated(choice, golden(name))
    return Probe(f"read {name}", {"given.pte": data}, lambda _: _read(data))


def _read(data: bytes) -> None:
    if not check(data):
        pte.parse(data)  # what it raised


def _inputs(context: Context, name: str) -> Path:
    path = context.shared / f"{name}-inputs.npz"
    if not path.is_file():
        arrays = {}
        generator = np.random.default_rng(1)
        for number, tensor in enumerate(pte.parse(golden(name)).plan().input_tensors()):
            values = generator.integers(0, 2, tensor.sizes) if tensor.dtype != "float32" else None
            drawn = generator.standard_normal(tensor.sizes) if values is None else values
            arrays[f"input{number}"] = drawn.astype(tensor.dtype)
        npz.write_npz(path, arrays)
    return path


def reference(context: Context, name: str) -> Path:
    """The outputs of the intact program `name` on ExecuTorch's own runtime, made once."""
    folder = context.shared / f"{name}-reference"
    if not (folder / "outputs.npz").is_file():
        program = filesystem.make_directory(folder) / "intact.pte"
        program.write_bytes(golden(name))
        words = ["run", program, "--simulator", "host", "--inputs", _inputs(context, name), "-o", folder]
        subprocess.run(
            [*context.command, *map(str, words)],
            env={**os.environ, **context.env},
            check=True,
            capture_output=True,
        )
    return folder / "outputs.npz"


def expected_run(
    context: Context, choice: random.Random, data: bytes, name: str, simulator: str = "host"
) -> Case:
    """A run of the program `data`, damaged from `name`, that must give what `name` gives."""
    wanted, given = reference(context, name), _inputs(context, name)
    words = ("run", "given.pte", "--simulator", simulator, "--inputs", given, "--expect", wanted, "-o", "out")
    return Case(
        f"{simulator} runs {name}",
        {"given.pte": data},
        (*words, "--timeout", "60", "--json"),
        limits=_LIMITS,
        judge=lambda ended, folder: false_green(ended, folder / "out" / "outputs.npz", wanted),
    )


def false_green(ended: Ended, got: Path, wanted: Path) -> list[str]:
    """A command that ends well has given the outputs `wanted`, bit for bit, and said so in its record."""
    if ended.code != 0:
        return []
    if json.loads(ended.out)["status"] != "pass":
        return ["exit code 0 and a record that is no pass"]
    return [] if _same(got, wanted) else ["exit code 0, but the outputs are not the expected ones"]


def _same(one: Path, other: Path) -> bool:
    if not (one.is_file() and other.is_file()):
        return False
    with np.load(one, allow_pickle=False) as ours, np.load(other, allow_pickle=False) as theirs:
        return ours.files == theirs.files and all(
            (ours[key].dtype, ours[key].shape, ours[key].tobytes())
            == (theirs[key].dtype, theirs[key].shape, theirs[key].tobytes())
            for key in ours.files
        )


def both(context: Context, title: str, files: Mapping[str, bytes], options: Sequence[object]) -> Case:
    """The board and the host run the same program, given.pte: their outputs agree where both take it."""
    run = [*context.command, "run", "given.pte", *map(str, options), "--timeout", "60", "-q"]
    lines = [
        f"{shlex.join([*run, '--simulator', 'host', '-o', 'host'])}; host=$?",
        f"{shlex.join([*run, '--simulator', 'qemu', '-o', 'qemu'])}; qemu=$?",
        '[ "$qemu" -ne 0 ] || [ "$host" -ne 0 ] || touch both',
        'exit "$qemu"',
    ]
    return Case(
        f"host and qemu run {title}",
        files,
        argv=("sh", "-c", "\n".join(lines)),
        limits=_LIMITS,
        judge=_agree,
    )


def _agree(ended: Ended, folder: Path) -> list[str]:
    if not (folder / "both").is_file() or _same(
        folder / "host" / "outputs.npz", folder / "qemu" / "outputs.npz"
    ):
        return []
    return ["both simulators take the program, and their outputs differ"]


def _case(context: Context, choice: random.Random) -> Case:
    way = choice.random()
    name = choice.choice(_READ if way < 0.3 else _RUN)
    data = mutated(choice, golden(name))
    if way < 0.3:
        words = (
            "inspect",
            "given.pte",
            *choice.sample(("--commands", "--hazards", "--json"), choice.randint(0, 3)),
        )
        return Case(f"inspect {name}", {"given.pte": data}, words)
    if way < 0.5:
        return both(context, name, {"given.pte": data}, ("--inputs", _inputs(context, name)))
    return expected_run(context, choice, data, name)


KIND = Kind("programs", _case, _probe)
