"""Large temporary files lie in the folder of results: what a killed command left there goes with the next one."""

from pathlib import Path

import pytest

from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.errors import InputError
from ethosu_sdk.files import writing
from ethosu_sdk.steps.compile import check, compile_command
from ethosu_sdk.steps.compile.options import CompileOptions
from ethosu_sdk.steps.debug import debug_command
from ethosu_sdk.steps.debug.options import DebugOptions


def _abandoned(folder: Path, name: str) -> Path:
    left = writing.make_directory(folder / name)
    (left / "values.npy").write_bytes(b"large")
    return left


def test_of_the_check_of_compile(tmp_path: Path) -> None:
    left = _abandoned(tmp_path, ".check-dead")
    with check.prepared(True, tmp_path, Reporter(quiet=True)) as wanted:
        assert wanted is not None
        assert [wanted.folder] == list(tmp_path.resolve().iterdir())
    assert not left.exists()
    assert list(tmp_path.iterdir()) == []


def test_of_debug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_options: object) -> Path:
        (own,) = tmp_path.iterdir()
        assert own != left
        raise InputError("nothing is compiled here")

    left = _abandoned(tmp_path, ".debug-dead")
    monkeypatch.setattr(compile_command, "compile_model", refuse)
    with pytest.raises(InputError, match="nothing is compiled here"):
        debug_command.debug("zoo:add", CompileOptions(), DebugOptions(), tmp_path, Reporter(quiet=True))
    assert not left.exists()
    assert list(tmp_path.iterdir()) == []
