"""Damaged `.pte` files on the firmware's interpreter, under the address and undefined-behaviour sanitizers."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from ethosu_sdk import pte
from ethosu_sdk.errors import InputError
from tests.conftest import ZooPte
from tests.interpreter_models import Array
from tests.interpreter_programs import every_feature
from tests.interpreter_runner import FIRMWARE, Interpreter, Run, build_runner, same_bits

pytestmark = pytest.mark.torch

# Every error's name; a damaged file must end in one of them.
_KERNEL_API = (FIRMWARE / "kernels" / "kernel_api.hpp").read_text(encoding="utf-8")
STATUS_NAMES = frozenset(
    re.findall(r"^  (\w+),", _KERNEL_API.partition("enum class Status")[2], re.MULTILINE)
)
RUN_LIMIT_S = 20.0


Programs = dict[str, tuple[bytes, list[Array]]]


@pytest.fixture(scope="module")
def interpreter(shared_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    return Interpreter(build_runner(shared_folder / "pte-host-runner"), tmp_path_factory.mktemp("damage"))


@pytest.fixture(scope="module")
def programs(zoo_pte: ZooPte) -> Programs:
    return every_feature(zoo_pte)


def _planned(program: bytes) -> list[int]:
    try:
        return list(pte.parse(program).plan().non_const_buffer_sizes[1:])
    except InputError:  # the test backend's payloads are none of Vela's
        return [4096]


def _survives(interpreter: Interpreter, program: bytes, inputs: list[Array], planned: list[int]) -> Run:
    """Crashes, sanitizer reports and hangs fail inside of run(); what is left is a result or a named error."""
    run = interpreter.run(program, "forward", inputs, planned=planned, timeout_s=RUN_LIMIT_S)
    assert run.status in STATUS_NAMES
    assert run.status == "ok" or len(run.reason) > len("load: ")
    return run


def test_single_byte_damage(interpreter: Interpreter, programs: Programs) -> None:
    """One byte changed: never a crash or a hang under the address and undefined-behaviour sanitizers.

    A changed constant or size can be a valid program with another result, which only the model's digest can show;
    so the bytes of the result are compared only where the change is undone (the control at the end).
    """
    generator = random.Random(20260101)
    statuses: dict[str, int] = {}
    for program, inputs in programs.values():
        planned = _planned(program)
        original = _survives(interpreter, program, inputs, planned)
        assert original.status == "ok", original.reason
        for _ in range(60):
            # Structure lies at the front of the file, and is what can mislead a reader.
            position = generator.randrange(min(len(program), 4096))
            damaged = bytearray(program)
            damaged[position] ^= generator.choice([0x01, 0x80, 0xFF, generator.randrange(1, 256)])
            run = _survives(interpreter, bytes(damaged), inputs, planned)
            statuses[run.status] = statuses.get(run.status, 0) + 1
        again = _survives(interpreter, program, inputs, planned)
        assert all(
            same_bits(found, first) for found, first in zip(again.outputs, original.outputs, strict=True)
        )
    assert sum(statuses.values()) == 360
    # The damage was felt: errors of several kinds, and not everything was refused.
    assert len(statuses) >= 4, statuses
    assert statuses["ok"] < 300, statuses


def test_truncation(interpreter: Interpreter, programs: Programs) -> None:
    """A file cut anywhere is refused, unless only padding behind its last byte is lost."""
    generator = random.Random(7)
    for program, inputs in programs.values():
        planned = _planned(program)
        original = _survives(interpreter, program, inputs, planned)
        lengths = [
            0,
            1,
            7,
            8,
            39,
            40,
            len(program) - 1,
            *(generator.randrange(len(program)) for _ in range(12)),
        ]
        for length in lengths:
            run = _survives(interpreter, program[:length], inputs, planned)
            if run.status == "ok":
                assert all(same_bits(a, b) for a, b in zip(run.outputs, original.outputs, strict=True)), (
                    length
                )
            else:
                assert run.reason.startswith("load: "), run.reason
