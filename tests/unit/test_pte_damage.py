"""Damaged programs: whatever is done to a file, it is refused with an InputError or read as a sound value."""

import functools
import random
import struct
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings, strategies as st

from ethosu_sdk import pte
from ethosu_sdk.errors import InputError
from ethosu_sdk.pte import flatbuffer
from ethosu_sdk.pte.flatbuffer import FlatBuffer, Table
from tests.pte_files import LIMIT_S, NAMES, check, golden, locate

SEED = 20
MIN_FLIPS = 200

Range = tuple[int, int]


@functools.cache
def visited(name: str) -> tuple[Range, ...]:
    """The byte ranges of every vtable, table, vector and string that reading a golden file touches."""
    ranges: set[Range] = set()
    claim, read_vtable = FlatBuffer.claim, FlatBuffer._read_vtable

    def recording_claim(self: FlatBuffer, start: int, end: int, holder: Table) -> None:
        ranges.add((start, end))
        claim(self, start, end, holder)

    def recording_vtable(self: FlatBuffer, table: Table, position: int) -> tuple[int, tuple[int, ...]]:
        ranges.add((position, position + struct.unpack_from("<H", self.data, position)[0]))
        return read_vtable(self, table, position)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FlatBuffer, "claim", recording_claim)
        patch.setattr(FlatBuffer, "_read_vtable", recording_vtable)
        pte.parse(golden(name))
    return tuple(sorted(ranges))


def flips(name: str) -> Iterator[tuple[int, int]]:
    """(position, new byte): some in every structure, all of its first bytes among them; and in the head."""
    generator = random.Random(f"{SEED} {name}")
    ranges = ((0, 40), *visited(name))
    each = max(8, MIN_FLIPS // len(ranges) + 1)
    for start, end in ranges:
        head = list(range(start, min(end, start + each)))
        others = [generator.randrange(start, end) for _ in range(each)]
        for position in head + others:
            yield position, generator.choice([0x00, 0x01, 0x7F, 0x80, 0xFF, generator.randrange(256)])


@pytest.mark.parametrize("name", NAMES)
def test_single_bytes_in_every_structure(name: str) -> None:
    data = bytearray(golden(name))
    refused = total = 0
    for position, value in flips(name):
        old = data[position]
        if old == value:
            continue
        data[position] = value
        refused += not check(data)
        total += 1
        data[position] = old
    assert total >= MIN_FLIPS
    assert refused > total // 4, "hardly anything is refused: the checks cannot be at work"
    assert check(data)


@pytest.mark.parametrize("name", NAMES)
def test_every_truncation_is_refused(name: str) -> None:
    # A file without an extended header does not know its length; what ends it may be text that nobody reads.
    data = golden(name)
    last = max(end for _, end in visited(name))
    for end in [*range(0, 80), *range(80, len(data), 13), len(data) - 1]:
        assert not check(data[:end]) or end > last


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_random_damage(name: str, data: st.DataObject) -> None:
    damaged = bytearray(golden(name))
    for _ in range(data.draw(st.integers(1, 8))):
        start, end = data.draw(st.sampled_from(visited(name)))
        damaged[data.draw(st.integers(start, end - 1))] = data.draw(st.integers(0, 255))
    check(damaged)


@given(st.binary(max_size=400))
def test_random_files(tail: bytes) -> None:
    assert not check(b"\x10\0\0\0ET12" + tail)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 0xFFFFFFFF), max_size=100), st.integers(0, 99))
def test_random_words(words: list[int], root: int) -> None:
    """Small numbers make offsets that hit something."""
    small = [word % 256 for word in words]
    for body in (words, small):
        data = struct.pack("<I4s", root * 4, b"ET12") + struct.pack(f"<{len(body)}I", *body)
        check(data)


def amplified(kind: str, count: int) -> bytes:
    """A program whose execution_plan vector refers `count` times to the same plan, which has many values."""
    data = bytearray(golden("softmax"))
    data.extend(bytes(-len(data) % 4))
    base = struct.unpack_from("<I", data)[0]
    vector_start, _ = locate(data, "execution_plan#len")
    plan = vector_start + 4 + struct.unpack_from("<I", data, vector_start + 4)[0]
    if kind == "values":
        many_start, _ = locate(data, "execution_plan[0].values#len")
        value = many_start + 4 + struct.unpack_from("<I", data, many_start + 4)[0]
        redirect(data, locate(data, "execution_plan[0].values#ref")[0], [value] * count)
    redirect(data, locate(data, "execution_plan#ref")[0], [plan] * count)
    assert struct.unpack_from("<I", data)[0] == base
    return bytes(data)


def redirect(data: bytearray, reference: int, targets: list[int]) -> None:
    """Let the reference refer to a new vector of references at the end, moved to lie before its targets."""
    # References only go forward, so the targets are copied behind the vector first.
    start = len(data)
    shift = start + 4 + 4 * len(targets)
    shift += -(shift - 0) % 8
    image = bytes(data)
    data.extend(bytes(shift - start))
    data.extend(image)
    struct.pack_into("<I", data, reference, start - reference)
    struct.pack_into("<I", data, start, len(targets))
    for index, target in enumerate(targets):
        struct.pack_into("<I", data, start + 4 + 4 * index, shift + target - (start + 4 + 4 * index))


def test_more_numbers_than_any_program_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flatbuffer, "_MAX_ELEMENTS", 20)
    with pytest.raises(InputError, match="more than 20 numbers"):
        pte.parse(golden("lists"))
    monkeypatch.setattr(flatbuffer, "_MAX_TABLES", 20)
    with pytest.raises(InputError, match="comes after 20 other tables"):
        pte.parse(golden("lists"))


@pytest.mark.parametrize("kind", ["plans", "values"])
def test_tables_that_are_referred_to_over_and_over(kind: str) -> None:
    data = amplified(kind, 20_000)
    start = time.process_time()
    with pytest.raises(InputError, match="shares its bytes with other tables"):
        pte.parse(data)
    assert time.process_time() - start < LIMIT_S


def test_large_files_are_read_quickly() -> None:
    data = golden("softmax") + bytes(4 << 20)
    times = []
    for _ in range(3):
        start = time.process_time()
        pte.parse(data)
        times.append(time.process_time() - start)
    assert min(times) < 0.05


def test_a_vtable_may_be_shared_by_tables_of_different_sizes() -> None:
    """ExecuTorch's writer does that: a Double behind the vtable of a smaller table."""
    plan = pte.parse(golden("conv_u65_int8")).plan("input0_scale")
    assert [value.kind for value in plan.values] == ["Double"]


def test_fields_of_a_newer_schema_are_refused() -> None:
    tables = {"Program": {"version": "uint"}}
    data = memoryview(golden("softmax"))
    root = FlatBuffer(data, flatbuffer.make_schema({"Program": {**tables["Program"], **FILLER}}, {}, {})).root
    assert root("Program").integer("version") == 0
    with pytest.raises(InputError, match="has a field that is not known") as caught:
        FlatBuffer(data, flatbuffer.make_schema(tables, {}, {})).root("Program")
    assert "newer ExecuTorch" in caught.value.hint


FILLER = {f"field{index}": "uint" for index in range(7)}
