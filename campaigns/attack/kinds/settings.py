"""TOML of strangers, for every command that reads some: keys, nests and numbers that cost a reader too much."""

import random
from pathlib import Path

from campaigns.attack import damage
from campaigns.attack.case import Case, Context, Kind, Probe
from campaigns.attack.process import Limits
from ethosu_sdk.base import toml_source
from tests.places import ROOT
from tests.pte_files import golden

_LIMITS = Limits(seconds=60.0, memory_bytes=1 << 30)
_RECORD = ROOT / "schemas" / "examples" / "valid" / "run-ds_cnn.json"
_READERS: tuple[tuple[str | Path, ...], ...] = (
    ("sweep", "given.toml", "--dry-run"),
    ("boards", "given.toml"),
    ("run", "given.pte", "--simulator", "host", "-o", "out", "--script", "given.toml"),
    ("run", "given.pte", "--simulator", "host", "-o", "out", "--memory-timing", "given.toml"),
    ("run", "given.pte", "--simulator", "host", "-o", "out", "--system", "given.toml"),
    ("compare", _RECORD, _RECORD, "-o", "out", "--policy", "given.toml"),
)
_KIND = toml_source.TomlKind("an attack", most_bytes=1 << 20, most_lines=20_000)
_NAMES = (
    "a",
    "call",
    "metrics",
    "axi0",
    "axi1",
    "title",
    "models",
    '"a.b"',
    "'#'",
    "method",
    "steps",
    "bwcap",
)
_VALUES = (
    "1",
    "-0.0",
    "nan",
    "5e-324",
    "0xffff",
    "true",
    '"x"',
    '"""\n"\n"""',
    "[]",
    "{}",
    "1979-05-27",
    "'''\n'''",
)
_COUNTS = (1, 2, 8, 9, 300, 12_000)


def _key(choice: random.Random) -> str:
    return choice.choice((".", " . ")).join(
        choice.choices(_NAMES, k=choice.choice((1, 1, 1, 2, choice.choice(_COUNTS))))
    )


def _value(choice: random.Random) -> str:
    count = choice.choice(_COUNTS)
    return choice.choice(
        (
            choice.choice(_VALUES),
            "[" * count + "]" * count,
            "[\n" + "1,\n" * (count // 8) + "]",
            "0x" + "f" * count,
            "1" + "0" * count,
            f"{{{_key(choice)} = 1}}",
            '"' + "\\u001b" * count + '"',
        )
    )


def _text(choice: random.Random) -> bytes:
    rows = []
    for _ in range(choice.randint(1, 6)):
        key = _key(choice)
        rows.append(choice.choice((f"{key} = {_value(choice)}", f"[{key}]", f"[[{key}]]", f"# {key}")))
    content = ("\n".join(rows) + "\n").encode()
    return damage.damaged(choice, content) if choice.random() < 0.2 else content


def _probe(context: Context, choice: random.Random) -> Probe:
    content = _text(choice)

    def call(folder: Path) -> None:
        source, tables = toml_source.read_toml(folder / "given.toml", _KIND)
        for key, value in tables.items():
            place = (key, 0) if isinstance(value, list) and value else (key,)
            assert 1 <= int(source.locate(place).rpartition(":")[2]) <= source.text.count("\n") + 1

    return Probe("a TOML file", {"given.toml": content}, call)


def _case(context: Context, choice: random.Random) -> Case:
    words = choice.choice(_READERS)
    files = {"given.toml": _text(choice), "given.pte": golden("add_u55")}
    return Case(f"{words[0]} {words[-2]}", files, words, limits=_LIMITS)


KIND = Kind("settings", _case, _probe)
