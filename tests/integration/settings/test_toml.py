"""Every command that reads TOML of a user's: what costs Python's reader too much is refused first, by its line."""

from pathlib import Path

import pytest

from tests.integration.cli import assert_clear, sdk
from tests.integration.hostile import watched
from tests.places import GOLDEN_PTE, ROOT
from tests.tables import each

PTE = GOLDEN_PTE / "add_u55.pte"
RECORD = ROOT / "schemas" / "examples" / "valid" / "run-ds_cnn.json"
READERS: dict[str, tuple[str | Path, ...]] = {
    "sweep": ("sweep", "given.toml", "--dry-run"),
    "board": ("boards", "given.toml"),
    "script": ("run", PTE, "--simulator", "host", "--script", "given.toml"),
    "timing": ("run", PTE, "--simulator", "host", "--memory-timing", "given.toml"),
    "policy": ("compare", RECORD, RECORD, "--policy", "given.toml"),
}
DEEP = ".".join("a" * 12_000)
FORMS = {
    "a key": f"x = 1\n{DEEP} = 1\n",
    "a table": f"x = 1\n[{DEEP}]\n",
    "an array of tables": f"x = 1\n[[{DEEP}]]\n",
    "a key in an inline table": f"x = 1\ny = [{{b = 1}}, {{{DEEP} = 1}}]\n",
    "quoted": "x = 1\n" + " . ".join(("'a#'", '"\\"b"', "c") * 3) + " = 1\n",
}
CALL = "[[call]]\nmethod = 'forward'\n"


@pytest.mark.parametrize("reader", READERS)
def test_a_key_of_thousands_of_parts_is_refused_in_little_memory(reader: str, tmp_path: Path) -> None:
    (tmp_path / "given.toml").write_text(FORMS["a key"])
    outcome = watched(*READERS[reader], cwd=tmp_path)
    assert_clear(outcome, 3, "given.toml:2: a key has more than 8 parts")
    assert outcome.peak_bytes < 300 << 20


@each("form", FORMS)
def test_deep_keys_are_found_wherever_they_stand(form: str, tmp_path: Path) -> None:
    (tmp_path / "given.toml").write_text(FORMS[form])
    assert_clear(sdk(*READERS["board"], cwd=tmp_path), 3, "given.toml:2: a key has more than 8 parts")


@each(
    "text",
    [
        "# a.b.c.d.e.f.g.h.i.j",
        "x = 'a.b.c.d.e.f.g.h.i.j'",
        'x = "#.b.c.d.e.f.g.h.i.j"',
        'x = """\na.b.c.d.e.f.g.h.i.j = "" \\""" a.b.c.d.e.f.g.h.i.j"""""',
        "x = '''\na.b.c.d.e.f.g.h.i.j'' '''",
        "x = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 1979-05-27T07:32:00.5]",
        "x.b.c.d.e.f.g.h = 0xffff_ffff_ffff_ffff",
    ],
)
def test_what_is_no_deep_key_is_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "given.toml").write_text(text + "\nx2 = 1\n")
    said = "a script has no 'x2'" if text.startswith("#") else "a script has no 'x'"
    line = 2 if text.startswith("#") else 1
    assert_clear(sdk(*READERS["script"], cwd=tmp_path), 3, f"given.toml:{line}: {said}")


@each("reader", READERS)
def test_a_number_that_cannot_be_printed_is_refused(reader: str, tmp_path: Path) -> None:
    (tmp_path / "given.toml").write_text("[axi0]\nbwcap = 0x" + "f" * 5000 + "\n[axi1]\n")
    assert_clear(sdk(*READERS[reader], cwd=tmp_path), 3, "given.toml:2: a number has more than 128 digits")


@pytest.mark.parametrize(
    ("value", "line"),
    [("[\n" + "1,\n" * 4000 + "]", 4004), ('"""\n' + "[\n" * 4000 + '"""', 4004)],
    ids=["an array", "a text"],
)
def test_the_line_behind_a_long_value_is_soon_found(value: str, line: int, tmp_path: Path) -> None:
    (tmp_path / "given.toml").write_text(f"{CALL}inputs = {value}\ntimes = 1\n")
    outcome = watched(*READERS["script"], cwd=tmp_path)
    assert_clear(outcome, 3, f"given.toml:{line + 1}: [[call]] has no 'times'")
    assert outcome.cpu_s < 10
