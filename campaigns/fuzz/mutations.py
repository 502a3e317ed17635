"""Ways to damage a command stream and its weights. All randomness comes from the generator that is passed in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.base.targets import Generation
from ethosu_sdk.npu.tables import CommandType, command_types

Words = NDArray[np.uint32]
Random = np.random.Generator

# Values that registers' limits lie near.
_INTERESTING = np.array([0, 1, 2, 7, 15, 16, 31, 127, 128, 255, 256, 0x7FFF, 0x8000, 0xFFFF], np.uint32)
_TWO_WORDS = 1 << 14


@dataclass(frozen=True)
class Sample:
    """What one run is given: the commands of a stream, and the bytes of region 0."""

    commands: tuple[Words, ...]
    weights: NDArray[np.uint8]

    @property
    def stream(self) -> bytes:
        """The commands as the machine reads them."""
        return np.concatenate(self.commands).tobytes() if self.commands else b""


def sample(stream: bytes, weights: bytes) -> Sample:
    """A sample from an intact stream."""
    words = np.frombuffer(stream, np.uint32)
    commands, position = [], 0
    while position < words.size:
        count = 2 if words[position] & _TWO_WORDS else 1
        commands.append(words[position : position + count].copy())
        position += count
    return Sample(tuple(commands), np.frombuffer(weights, np.uint8))


def _place(random: Random, commands: Sequence[Words]) -> int:
    return int(random.integers(len(commands)))


def flip_bits(random: Random, given: Sample, other: Sample) -> Sample:
    """Up to eight bits anywhere in the stream."""
    commands = list(given.commands)
    for _ in range(random.integers(1, 9)):
        place = _place(random, commands)
        changed = commands[place].copy()
        changed[random.integers(changed.size)] ^= np.uint32(1 << int(random.integers(32)))
        commands[place] = changed
    return Sample(tuple(commands), given.weights)


def change_values(random: Random, given: Sample, other: Sample) -> Sample:
    """Up to four parameters or payloads become a value near a limit, or near what they were."""
    commands = list(given.commands)
    for _ in range(random.integers(1, 5)):
        place = _place(random, commands)
        changed = commands[place].copy()
        value = int(random.choice(_INTERESTING))
        if changed.size == 2:
            near = int(changed[1]) + int(random.integers(-64, 65))
            changed[1] = (near if random.integers(2) else value) & 0xFFFF_FFFF
        else:
            changed[0] = changed[0] & 0xFFFF | np.uint32(value << 16)
        commands[place] = changed
    return Sample(tuple(commands), given.weights)


def drop_commands(random: Random, given: Sample, other: Sample) -> Sample:
    """Up to eight commands are missing."""
    commands = list(given.commands)
    for _ in range(random.integers(1, 9)):
        if len(commands) > 1:
            del commands[_place(random, commands)]
    return Sample(tuple(commands), given.weights)


def move_commands(random: Random, given: Sample, other: Sample) -> Sample:
    """A run of commands stands in another place, also twice."""
    commands = list(given.commands)
    start, target = _place(random, commands), _place(random, commands)
    run = commands[start : start + int(random.integers(1, 12))]
    return Sample(tuple(commands[:target] + run + commands[target:]), given.weights)


def splice(random: Random, given: Sample, other: Sample) -> Sample:
    """The head of one stream and the tail of another."""
    head = given.commands[: _place(random, given.commands)]
    return Sample(head + other.commands[_place(random, other.commands) :], given.weights)


def truncate(random: Random, given: Sample, other: Sample) -> Sample:
    """The stream ends early."""
    return Sample(given.commands[: _place(random, given.commands)], given.weights)


def damage_weights(random: Random, given: Sample, other: Sample) -> Sample:
    """Bits of the weights and scales, or a stretch of them, are random."""
    weights = given.weights.copy()
    if not weights.size:
        return given
    for _ in range(random.integers(1, 5)):
        start = int(random.integers(weights.size))
        length = int(random.choice([1, 1, 4, 16, 256]))
        stretch = weights[start : start + length]
        stretch[:] = random.integers(0, 256, stretch.size)
    return Sample(given.commands, weights)


def _random_command(random: Random, rows: Sequence[CommandType]) -> Words:
    row = rows[int(random.integers(len(rows)))]
    value = int(random.choice(_INTERESTING)) if random.integers(2) else int(random.integers(1 << 16))
    first = row.opcode | value << 16
    if row.words == 1:
        return np.array([first], np.uint32)
    return np.array([first | _TWO_WORDS, random.integers(1 << 32, dtype=np.uint64)], np.uint32)


def insert_commands(generation: Generation) -> Callable[[Random, Sample, Sample], Sample]:
    """Random commands of one generation, put in anywhere."""
    rows = [row for row in command_types(generation).values() if row.name != "OP_STOP"]

    def inserted(random: Random, given: Sample, other: Sample) -> Sample:
        commands = list(given.commands)
        for _ in range(random.integers(1, 6)):
            commands.insert(_place(random, commands), _random_command(random, rows))
        return Sample(tuple(commands), given.weights)

    return inserted


def random_stream(generation: Generation) -> Callable[[Random, Sample, Sample], Sample]:
    """Nothing but random commands."""
    rows = list(command_types(generation).values())

    def made(random: Random, given: Sample, other: Sample) -> Sample:
        count = int(random.integers(1, 200))
        return Sample(tuple(_random_command(random, rows) for _ in range(count)), given.weights)

    return made


def mutations(generation: Generation) -> list[Callable[[Random, Sample, Sample], Sample]]:
    """All ways to damage a sample of one generation."""
    return [
        flip_bits,
        change_values,
        drop_commands,
        move_commands,
        splice,
        truncate,
        damage_weights,
        insert_commands(generation),
        random_stream(generation),
    ]
