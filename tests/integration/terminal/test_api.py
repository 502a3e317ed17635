"""The SDK as a Python package: its functions in a fresh process, as a user's script has them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import ethosu_sdk
from ethosu_sdk.base.errors import InputError
from tests.places import GOLDEN_PTE
from tests.records import read

ADD = GOLDEN_PTE / "add_u55.pte"

SCRIPT = """
import json, sys
from pathlib import Path

import ethosu_sdk

firmware = ethosu_sdk.build(sys.argv[1], out=Path("built"))
done = ethosu_sdk.run(sys.argv[1], ethosu_sdk.RunOptions(repeat=2), out=Path("done"))
what = ethosu_sdk.inspect(sys.argv[1])
print(json.dumps({
    "elf": firmware.elf.is_file(),
    "board": firmware.board,
    "status": done.status,
    "cycles": done.npu_cycles,
    "repeats": done.record["repeats"]["count"],
    "outputs": {name: list(array.shape) for name, array in done.outputs.items()},
    "methods": what.methods,
}))
"""


@pytest.mark.toolchain
@pytest.mark.qemu
def test_build_run_and_inspect_give_what_the_commands_write(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(ADD)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
    )
    found = json.loads(done.stdout)
    record = read(tmp_path / "done" / "run.json")
    assert found == {
        "elf": True,
        "board": "corstone-300",
        "status": "pass",
        "cycles": record["npu"]["cycles"]["value"],
        "repeats": 2,
        "outputs": {"output0": record["outputs"][0]["shape"]},
        "methods": ["forward"],
    }


def test_errors_are_those_of_the_commands(tmp_path: Path) -> None:
    (tmp_path / "not.pte").write_bytes(b"nothing")
    with pytest.raises(InputError, match="not"):
        ethosu_sdk.inspect(tmp_path / "not.pte")
    assert InputError.exit_code == 3


def test_what_is_public_is_known_and_documented() -> None:
    from ethosu_sdk import api

    for name in ethosu_sdk.__all__:
        assert getattr(ethosu_sdk, name) is getattr(api, name)
        assert name in dir(ethosu_sdk)
        assert getattr(api, name).__doc__
    with pytest.raises(AttributeError):
        ethosu_sdk.nothing  # noqa: B018


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, ethosu_sdk; print([m for m in sys.modules if m.startswith('ethosu_sdk.') or m == 'numpy'])"
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
