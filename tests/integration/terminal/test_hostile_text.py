"""Names and texts of others that hold terminal codes, markup or forged messages: none reaches a terminal as such."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.integration.cli import Outcome, sdk
from tests.places import ROOT
from tests.records import read

PTE = ROOT / "tests" / "golden" / "pte"
EXAMPLES = ROOT / "schemas" / "examples" / "valid"
# Screen cleared, title set, bell, back over what was written, 8-bit control, direction of writing turned.
CODES = "\x1b[2J\x1b]0;owned\x07\b\r\x9b31m\u202e\u2066\u2028"
FORGED = "a\nerror: forged\nhint: run this"
COLOURED = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "200"}


def assert_harmless(outcome: Outcome, code: int, *words: str) -> None:
    """Nothing but printable characters and line ends, no forged message, and the words."""
    said = outcome.out + outcome.err
    assert outcome.code == code, said
    odd = {character for character in said if not character.isprintable()} - {"\n"}
    assert odd == set(), said
    assert not [line for line in said.splitlines() if line.startswith(("error: forged", "hint: run this"))], (
        said
    )
    assert "Traceback" not in said
    for word in words:
        assert word in said, said


def damaged(path: Path, old: bytes, new: bytes) -> Path:
    """A copy of a golden program with a name of the same length in another's place."""
    assert len(old) == len(new)
    content = (PTE / "softmax.pte").read_bytes()
    assert old in content
    path.write_bytes(content.replace(old, new))
    return path


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        (b"aten::_softmax", b"\x1b[2J\x07\xe2\x80\xae\r\n\x08abc", r"\x1b[2J\x07\u202e\x0d\x0a\x08abc"),
        (b"aten::_softmax", b"[/bold] [red]\\", "[/bold] [red]\\.out"),
        (b"aten::_softmax", b"[link=x]:bug:a", "[link=x]:bug:a.out"),
        (b"forward", b"\x1b]0;xx\x07", r"\x1b]0;xx\x07"),
        (b"forward", b"[/bold]", "[/bold]"),
        (b"forward", b"../../x", "../../x"),
    ],
)
def test_names_in_a_program(old: bytes, new: bytes, shown: str, tmp_path: Path) -> None:
    path = damaged(tmp_path / "net.pte", old, new)
    assert_harmless(sdk("inspect", path, cwd=tmp_path, env={"COLUMNS": "200"}), 0, shown)
    # What refuses the program quotes the name.
    assert_harmless(sdk("build", path, "-o", "out", cwd=tmp_path, env={"COLUMNS": "200"}), 3)
    if old == b"forward":  # the files of a method have its name
        host = sdk("run", path, "--simulator", "host", "-o", "out", cwd=tmp_path, env={"COLUMNS": "200"})
        assert_harmless(host, 3, "is not an identifier")


def test_a_terminal_with_colours_gets_those_of_the_sdk_alone(tmp_path: Path) -> None:
    path = damaged(tmp_path / "net.pte", b"aten::_softmax", b"\x1b[2J[red]\xc2\x9b\x07\x08a")
    done = sdk("inspect", path, cwd=tmp_path, env=COLOURED)
    assert done.code == 0
    assert "\x1b[1m" in done.out  # the SDK's own
    assert not [code for code in ("\x1b[2J", "\x1b[31m", "\x07", "\x08", "\x9b") if code in done.out]


def test_file_names(tmp_path: Path) -> None:
    for name in (f"{CODES}.pte", f"{FORGED}.pte", "[bold][red]\\.pte"):
        assert_harmless(sdk("build", name, cwd=tmp_path), 3, ".pte")
        assert_harmless(sdk("run", name, "--json", cwd=tmp_path), 3)
        assert_harmless(sdk("explain", name, cwd=tmp_path), 2)
        assert_harmless(sdk("zoo", f"--{name}", cwd=tmp_path), 2)
        (tmp_path / name).write_bytes((PTE / "softmax.pte").read_bytes())
        assert_harmless(sdk("inspect", name, cwd=tmp_path, env={"COLUMNS": "200"}), 0, ".pte")


def test_members_of_an_npz(tmp_path: Path) -> None:
    for name in (f"input0{CODES}", FORGED, "[/red]\\"):
        member = io.BytesIO()
        np.save(member, np.zeros(3, np.float32))
        with zipfile.ZipFile(tmp_path / "in.npz", "w") as archive:
            archive.writestr(f"{name}.npy", member.getvalue())
        done = sdk("run", PTE / "add_u55.pte", "--inputs", "in.npz", "-o", "out", cwd=tmp_path)
        assert_harmless(done, 3)


def test_records(tmp_path: Path) -> None:
    record = read(EXAMPLES / "error.json")
    record["error"]["message"] = f"{CODES}| [l](javascript:x) <b> @all\n### ok"
    (tmp_path / "error.json").write_text(json.dumps(record))
    assert_harmless(sdk("summary", "error.json", cwd=tmp_path), 0, "`\\x1b[2J")
    assert_harmless(sdk("validate", "error.json", cwd=tmp_path), 0)
    for key in (CODES, FORGED, "[/red]"):
        (tmp_path / "bad.json").write_text(json.dumps({**record, key: 1, "status": key}))
        assert_harmless(sdk("validate", "bad.json", cwd=tmp_path), 3)
        (tmp_path / "bad.json").write_text(json.dumps({**record, "schema": key}))
        assert_harmless(sdk("validate", "bad.json", cwd=tmp_path), 3)


def test_lines_of_a_log(tmp_path: Path) -> None:
    text = (ROOT / "tests" / "golden" / "logs" / "mobilenet_v2_sram_only_pmu.log").read_text()
    first, rest = text.split("\n", 1)
    (tmp_path / "uart.log").write_text(f"{first}\nE [runner.cpp:12] failed: [/red][bold] {CODES}\n{rest}")
    assert_harmless(sdk("parse-log", "uart.log", cwd=tmp_path, env={"COLUMNS": "400"}), 7, "[/red][bold]")
    assert_harmless(sdk("parse-log", "uart.log", "--json", cwd=tmp_path), 7)
