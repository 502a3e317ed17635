"""The SDK's wheel in an empty environment of another processor: a Debian with scripts/apt-packages.txt, and pip."""

from pathlib import Path

import numpy as np
import pytest

from ethosu_sdk.base import npz
from tests.container.conftest import Image
from tests.container.test_commands import comparable, put, read
from tests.integration.cli import sdk

pytestmark = pytest.mark.container

MODEL = "add_u55"


def test_a_ready_program_runs_from_an_empty_environment(wheel: Image, work: Path, tmp_path: Path) -> None:
    code = "import importlib.util as util; print([n for n in ('torch', 'executorch') if util.find_spec(n)])"
    outcome = wheel.run("-c", code, options=("--entrypoint", "/opt/empty/bin/python"))
    assert (outcome.out.strip(), outcome.err) == ("[]", "")
    given = np.array([-(2**30), 7, 0, 12345, -1], np.int32)
    npz.write_npz(work / "in.npz", {"input0": given})
    npz.write_npz(work / "sum.npz", {"output0": given + given})
    npz.write_npz(work / "other.npz", {"output0": given + given + 1})
    arguments = ("run", put(MODEL, work), "--inputs", "in.npz", "--expect")
    outcome = wheel.run(*arguments, "sum.npz", "-o", "out", work=work)
    assert outcome.code == 0, outcome.err
    assert wheel.run(*arguments, "other.npz", "-o", "wrong", work=work).code == 7
    host = sdk(*arguments, "sum.npz", "-o", tmp_path / "host", cwd=work)
    assert host.code == 0, host.err
    got, expected = work / "out", tmp_path / "host"
    assert read(got / "run.json")["verdict"]["status"] == "pass"
    for name in ("outputs.npz", "executor_runner.elf"):
        assert (got / name).read_bytes() == (expected / name).read_bytes()
    assert comparable(got)["npu"] == comparable(expected)["npu"]
