"""Damaged `.pte` files on the firmware's interpreter, under the address and undefined-behaviour sanitizers."""

import random
import re
from pathlib import Path

import pytest

from ethosu_sdk.base import proc
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.program import pte
from tests.conftest import ZooPte
from tests.kernels.interpreter.models import Array
from tests.kernels.interpreter.programs import FEATURES, every_feature
from tests.kernels.interpreter.runner import FIRMWARE, Interpreter, Run, built, same_bits

pytestmark = pytest.mark.torch

# Every error's name; a damaged file must end in one of them.
_KERNEL_API = (FIRMWARE / "kernels" / "support" / "kernel_api.hpp").read_text(encoding="utf-8")
STATUS_NAMES = frozenset(
    re.findall(r"^  (\w+),", _KERNEL_API.partition("enum class Status")[2], re.MULTILINE)
)
RUN_LIMIT_S = 60.0


Programs = dict[str, tuple[bytes, list[Array]]]


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Interpreter:
    return Interpreter(built(), tmp_path_factory.mktemp("damage"))


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


@pytest.mark.parametrize("name", FEATURES)
def test_damage(programs: Programs, tmp_path: Path, name: str) -> None:
    _check_damage(programs, tmp_path, name, 1000)


@pytest.mark.thorough
def test_much_damage(programs: Programs, tmp_path: Path) -> None:
    for name in FEATURES:
        _check_damage(programs, tmp_path, name, 5000)


def _check_damage(programs: Programs, tmp_path: Path, name: str, files: int) -> None:
    """Bits, bytes and words changed, alone and several at once: no crash, no hang, no error without a reason.

    Changed constants and sizes can make a valid program with another result, which only the model's digest can
    show; so results are not compared here, but one run each must have been fine and one refused.
    """
    program, _ = programs[name]
    (tmp_path / "model.pte").write_bytes(program)
    planned = sum(_planned(program))
    argv = [str(built("runtime_damage_test")), str(tmp_path / "model.pte")]
    result = proc.run([*argv, str(planned), str(files), "1"], timeout_s=500, check=False)
    assert result.returncode == 0, result.output[-3000:]
    outcomes = {line.partition(" ")[2]: int(line.split()[0]) for line in result.output.splitlines()}
    assert sum(outcomes.values()) == files
    assert set(outcomes) <= {f"{stage} {status}" for stage in ("load", "execute") for status in STATUS_NAMES}
    assert outcomes["execute ok"] > 0
    assert outcomes["load bad_program"] > files // 100


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
