"""Damaged command streams and programs on both sides: host and board end alike, with the same bytes where they pass.

Both run in this process; the board's firmware is the resident one, as building one for each program takes seconds.
"""

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from campaigns.attack.case import Context, Kind, Probe
from campaigns.attack.kinds import programs
from campaigns.fuzz.mutations import mutations, sample
from ethosu_sdk import api, npu
from ethosu_sdk.base import npz
from ethosu_sdk.base.errors import (
    BuildError,
    InputError,
    SdkError,
    SimulationError,
    ToolError,
    UsageError,
    VerdictError,
)
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import KernelCall, List, Tensor
from tests.pte_files import NAMES, changed, golden

SIDES = ("host", "qemu")
_LIMIT_S = 8.0
# On one side alone: the time is up, or the resident firmware has less fast scratch memory than the host.
_ONE_SIDE_ALONE = ("time limit", "did not end within", "but its memory ends after")
_DELEGATES = ("add_u55", "conv_u65_int8", "add_u85_segment")
_WORD = 4
_STOP = b"\0"  # NPU_OP_STOP is a word of zeros; it fills a stream that has become shorter
_GIVEN = "given.npz"
_VALUE = "execution_plan[0].values[{}].val"


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit code, what it said, and the outputs of one that passed."""

    code: int
    message: str
    outputs: tuple[tuple[str, tuple[int, ...], bytes], ...] = ()


def ended(program: Path, inputs: Path, side: str) -> Ended:
    """Run `program` on one of the sides, in the folder where it lies."""
    folder = program.parent / side
    on_board = side != SIDES[0]
    try:
        done = api.run(
            program,
            inputs,
            simulator=side,
            timeout_s=_LIMIT_S,
            resident=on_board,
            allow_spill=on_board,
            repeat=2,
            out=folder,
        )
    except SdkError as error:
        return Ended(error.exit_code, f"{type(error).__name__}: {error.message}")
    found = sorted(done.outputs.items())
    return Ended(0, done.status, tuple((row.dtype.str, row.shape, row.tobytes()) for _, row in found))


def compare(program: Path, inputs: Path) -> None:
    """Raise AssertionError where the two sides do not end alike, and what both raise."""
    host, board = (ended(program, inputs, side) for side in SIDES)
    excused = (row for row in (host, board) if any(words in row.message for words in _ONE_SIDE_ALONE))
    if (row := next(excused, None)) is not None:
        raise SimulationError(row.message)
    assert host.code == board.code, f"host {host.code}: {host.message}\nboard {board.code}: {board.message}"
    assert host.outputs == board.outputs, "both pass, with other outputs"
    if host.code:
        raise _error(host)


def _error(host: Ended) -> SdkError:
    kinds = (UsageError, InputError, ToolError, BuildError, SimulationError, VerdictError)
    return next(kind for kind in kinds if kind.exit_code == host.code)(host.message)


def written_inputs(path: Path, data: bytes, choice: random.Random) -> Path:
    """Inputs for the program `data`, or for none where it cannot be read."""
    generator = np.random.default_rng(choice.getrandbits(32))
    arrays = {}
    try:
        tensors = pte.parse(data).plan().input_tensors()
        for number, tensor in enumerate(tensors):
            drawn = generator.integers(-2, 3, tensor.sizes)
            if tensor.dtype == "int64":  # indices; a few are beyond the end
                drawn = np.where(generator.random(tensor.sizes) < 0.1, 9, np.abs(drawn))
            arrays[f"input{number}"] = drawn.astype(tensor.dtype)
        npz.write_npz(path, arrays)
    except (SdkError, MemoryError, TypeError, ValueError):
        npz.write_npz(path, {"input0": np.zeros(1, np.int8)})
    return path


def damaged_stream(choice: random.Random, data: bytes) -> bytes:
    """The program `data` with a damaged command stream, of the same length, and damaged weights."""
    delegate = pte.parse(data).delegates[0]
    assert delegate.vela is not None
    commands, weights = bytes(delegate.vela.command_stream), bytes(delegate.vela.weights)
    place, constants = data.index(commands), data.index(weights) if len(weights) > _WORD else 0
    if choice.random() < 0.3:  # two bytes, as accidents do
        accident = bytearray(commands)
        for _ in range(2):
            accident[choice.randrange(len(accident))] = choice.randrange(256)
        return data[:place] + bytes(accident) + data[place + len(commands) :]
    generator = np.random.default_rng(choice.getrandbits(63))
    given = other = sample(commands, weights)
    ways = mutations(npu.NpuConfig.from_word(delegate.vela.config_word).generation)
    for _ in range(choice.choice((1, 1, 2, 3))):
        if given.commands:
            given = ways[choice.randrange(len(ways))](generator, given, other)
    filled = given.stream[: len(commands)].ljust(len(commands), _STOP)
    data = data[:place] + filled + data[place + len(commands) :]
    if constants:
        data = data[:constants] + given.weights.tobytes() + data[constants + len(weights) :]
    return data


def damaged_plan(choice: random.Random, data: bytes) -> bytes:
    """The program `data` with other places in memory, arguments, list elements or shapes, all of which exist."""
    plan, copy = pte.parse(data).plan(), bytearray(data)
    tensors = [
        (number, row)
        for number, row in enumerate(plan.values)
        if isinstance(row, Tensor) and row.allocation is not None
    ]
    lists = [number for number, row in enumerate(plan.values) if isinstance(row, List) and row.items]
    calls = [number for number, row in enumerate(plan.instructions) if isinstance(row, KernelCall)]
    for _ in range(choice.choice((1, 1, 2))):
        way = choice.randrange(4)
        if way == 0 or not calls:
            number, tensor = choice.choice(tensors)
            last = plan.non_const_buffer_sizes[1] - tensor.nbytes
            place = choice.randrange(0, max(1, last + 1), choice.choice((4, 8, 16)))
            change = (f"{_VALUE.format(number)}.allocation_info.memory_offset_low", place)
        elif way == 1 and lists:
            number = choice.choice(lists)
            changed_part = choice.choice(("items#len", "items[0]"))
            change = (f"{_VALUE.format(number)}.{changed_part}", choice.randrange(3))
        elif way == 2:
            number, tensor = choice.choice(tensors)
            if not tensor.sizes:
                continue
            axis = choice.randrange(len(tensor.sizes))
            change = (f"{_VALUE.format(number)}.sizes[{axis}]", choice.randrange(tensor.sizes[axis] + 1))
        else:
            number = choice.choice(calls)
            argument = choice.randrange(len(plan.instructions[number].args))  # type: ignore[union-attr]
            path = f"execution_plan[0].chains[0].instructions[{number}].instr_args.args[{argument}]"
            change = (path, choice.randrange(len(plan.values)))
        copy = changed(bytes(copy), change)
    return bytes(copy)


def mutant(choice: random.Random) -> tuple[str, bytes]:
    """A damaged program, and the name of the one that it was."""
    if choice.random() < 0.6:
        name = choice.choice(_DELEGATES)
        return name, damaged_stream(choice, golden(name))
    name = choice.choice(NAMES)
    way = choice.choice((programs.mutated, damaged_plan, damaged_plan))
    return name, way(choice, golden(name))


def _probe(context: Context, choice: random.Random) -> Probe:
    name, data = mutant(choice)
    seed = choice.getrandbits(32)

    def call(folder: Path) -> None:
        inputs = written_inputs(folder / _GIVEN, data, random.Random(seed))
        compare(folder / "given.pte", inputs)

    return Probe(f"host and board run {name}", {"given.pte": data}, call)


KIND = Kind("bounds", probe=_probe)
