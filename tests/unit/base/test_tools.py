"""What is known of installed programs."""

import shutil
from pathlib import Path

import pytest

from ethosu_sdk.base import cache, proc, tools


def test_a_program_is_asked_its_version_again_when_its_file_was_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ninja"
    asked: list[str] = []

    def run(argv: list[str], **_settings: object) -> proc.ProcResult:
        asked.append(argv[0])
        return proc.ProcResult(tuple(argv), 0, f"1.{10 + len(asked)}", 0.0)

    def version(*, anew: bool = False) -> str:
        tools.probe.cache_clear()
        found = tools.probe("ninja", anew=anew)
        tools.probe.cache_clear()
        assert (found.status, found.path) == ("found", program)
        return found.version

    shutil.copyfile("/bin/true", program)
    program.chmod(0o755)
    monkeypatch.setattr(proc, "run", run)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(cache.CACHE_VARIABLE, str(tmp_path / "cache"))
    assert [version(), version()] == ["1.11", "1.11"]
    assert [version(anew=True), version()] == ["1.12", "1.12"]
    with program.open("ab") as file:
        file.write(b"another")
    assert [version(), version()] == ["1.13", "1.13"]
    note = cache.place("programs") / "versions.json"
    note.write_text(note.read_text().replace("1.13", "newest"))
    assert [version(), version()] == ["1.14", "1.14"]
    program.write_text("#!/bin/sh\n")  # a script starts another program each time
    assert [version(), version()] == ["1.15", "1.16"]
    assert len(asked) == 6
