"""Ways to damage bytes that know nothing of their format."""

import random
import struct

_WORDS = (
    0,
    1,
    2,
    7,
    8,
    0x7F,
    0x80,
    0xFF,
    0x100,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
)


def flip(choice: random.Random, data: bytes) -> bytes:
    """Up to eight bits."""
    changed = bytearray(data)
    for _ in range(choice.randint(1, 8)):
        changed[choice.randrange(len(changed))] ^= 1 << choice.randrange(8)
    return bytes(changed)


def words(choice: random.Random, data: bytes) -> bytes:
    """Up to four words of one, two, four or eight bytes that lie near a limit, or near what they were."""
    changed = bytearray(data)
    for _ in range(choice.randint(1, 4)):
        code, size = choice.choice((("B", 1), ("H", 2), ("I", 4), ("Q", 8)))
        if len(changed) < size:
            continue
        place = choice.randrange(0, len(changed) - size + 1) // size * size
        old = struct.unpack_from(f"<{code}", changed, place)[0]
        new = choice.choice((*_WORDS, old + choice.randint(-4, 4), -1))
        struct.pack_into(f"<{code}", changed, place, new % (1 << (8 * size)))
    return bytes(changed)


def truncate(choice: random.Random, data: bytes) -> bytes:
    """The end is missing."""
    return data[: choice.randrange(len(data))]


def splice(choice: random.Random, data: bytes) -> bytes:
    """A stretch stands in another place, instead of what was there or before it."""
    start, target = choice.randrange(len(data)), choice.randrange(len(data))
    stretch = data[start : start + choice.choice((1, 4, 16, 64, 1024))]
    return data[:target] + stretch + data[target + choice.choice((0, len(stretch))) :]


def noise(choice: random.Random, data: bytes) -> bytes:
    """A stretch of random bytes."""
    start = choice.randrange(len(data))
    stretch = choice.randbytes(min(len(data) - start, choice.choice((1, 4, 32, 512))))
    return data[:start] + stretch + data[start + len(stretch) :]


WAYS = (flip, words, truncate, splice, noise)


def damaged(choice: random.Random, data: bytes) -> bytes:
    """`data` after one to three of all ways; never empty to begin with."""
    for _ in range(choice.randint(1, 3)):
        if data:
            data = choice.choice(WAYS)(choice, data)
    return data
