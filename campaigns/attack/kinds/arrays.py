"""Damaged and hostile `.npz` files."""

import io
import pickle
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from campaigns.attack import damage
from campaigns.attack.case import Case, Context, Kind, Probe
from campaigns.attack.process import Ended
from ethosu_sdk.base import npz
from ethosu_sdk.base.errors import InputError
from tests.npz_files import PLAIN, npy
from tests.pte_files import golden

_TYPES = ("<f4", ">f4", "<i4", "<i8", "|b1", "<f8", "<f2", "|O", "<U1", "<c8", "|V4", "<f3", "|i1", "<M8[s]")
_SHAPES = ("()", "(5,)", "(1, 5)", "(0,)", "(5, 0)", "(1000000000, 1000000000)", "(-1,)", "(1e3,)", "(True,)")
_SHAPES += ("(" + "1, " * 40 + "5)", f"({'9' * 18}, {'9' * 18})", "(5,), 'x': (5,)")
EVIL = "evil"  # the file that a pickle makes if anybody loads it


class _Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return open, (EVIL, "w")


def _array(choice: random.Random) -> bytes:
    head = PLAIN.replace("<f4", choice.choice(_TYPES)).replace("(4,)", choice.choice(_SHAPES))
    body = choice.choice((bytes(20), bytes(5), bytes(40), b"", choice.randbytes(20), pickle.dumps(_Evil())))
    return npy(head, body, choice.choice(((1, 0), (2, 0), (3, 0), (9, 9))))


def archive(choice: random.Random, entries: list[tuple[str, bytes]]) -> bytes:
    """A ZIP archive, in a third of the cases with a central directory that lies."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        for name, data in entries:
            method = choice.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))
            out.writestr(zipfile.ZipInfo(name), data, compress_type=method)
    whole = bytearray(buffer.getvalue())
    directory = whole.find(b"PK\1\2")
    if directory >= 0 and choice.random() < 0.33:  # sizes, offsets, flags and methods
        code, offset = choice.choice((("<I", 20), ("<I", 24), ("<I", 42), ("<H", 8), ("<H", 10), ("<I", 16)))
        struct.pack_into(code, whole, directory + offset, choice.choice((0, 1, 7, 99, 0x7FFF, 0xFFFF)))
    return bytes(whole)


def _file(choice: random.Random) -> bytes:
    way = choice.random()
    if way < 0.1:  # four megabytes of zeros that are four kilobytes
        data = npy(PLAIN.replace("(4,)", "(1048576,)"), bytes(4 << 20))
        return archive(choice, [("input0.npy", data)])
    if way < 0.6:
        names = choice.choice(
            (("input0.npy",), ("input0.npy", "input1.npy"), ("../x.npy",), ("input0.npy",) * 2)
        )
        return archive(choice, [(name, _array(choice)) for name in dict.fromkeys(names)])
    good = archive(choice, [("input0.npy", npy(PLAIN.replace("(4,)", "(5,)"), bytes(20)))])
    return damage.damaged(choice, good)


def _compare(path: Path) -> None:
    """What is read is what NumPy reads, where that reads it."""
    read = npz.read_npz(path)
    try:
        with np.load(path, allow_pickle=False) as arrays:
            theirs = {key: arrays[key] for key in arrays.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError):
        return
    for name, array in read.items():
        other = theirs[name]
        assert (array.shape, array.dtype) == (other.shape, other.dtype.newbyteorder("=")), name
        assert array.tobytes() == other.astype(array.dtype).tobytes(), name


def _probe(context: Context, choice: random.Random) -> Probe:
    return Probe("read arrays", {"given.npz": _file(choice)}, lambda folder: _compare(folder / "given.npz"))


def _case(context: Context, choice: random.Random) -> Case:
    files = {"given.npz": _file(choice), "given.pte": golden("add_u55")}
    option = choice.choice(("--inputs", "--expect"))
    words = ("run", "given.pte", "--simulator", "host", option, "given.npz", "-o", "out")
    return Case(f"run with {option}", files, words, judge=_judge(option))


def _judge(option: str) -> Callable[[Ended, Path], list[str]]:
    def judge(ended: Ended, folder: Path) -> list[str]:
        if (folder / EVIL).exists():
            return ["a pickle was loaded"]
        if ended.code == 0 and option == "--expect":
            with np.load(folder / "out" / "outputs.npz") as arrays:
                got = arrays["output0"]
            try:
                want = npz.read_npz(folder / "given.npz").get("output0")
            except InputError:
                want = None
            if want is None or want.tobytes() != got.tobytes():
                return ["exit code 0 with an expectation that is not met"]
        return []

    return judge


KIND = Kind("npz", _case, _probe)
