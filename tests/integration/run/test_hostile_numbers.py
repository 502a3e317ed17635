"""Numbers that nobody can mean: infinite limits, thousands of digits, what JSON has not. Each is a named error."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.program.output_comparison import Tolerance, compare
from tests import installed
from tests.integration.cli import Outcome, sdk
from tests.places import GOLDEN_PTE
from tests.tables import each
from tests.unit.run import wire

ADD = GOLDEN_PTE / "add_u55.pte"
VELA_INI = installed.folder("ethosu") / "config_files" / "Arm" / "vela.ini"
LONG = "7" * 5000


def assert_named(outcome: Outcome, code: int, *words: str) -> None:
    said = outcome.out + outcome.err
    assert outcome.code == code, said[:2000]
    assert "internal error" not in said
    assert "Traceback" not in said
    for word in words:
        assert word in said, said[:2000]


@pytest.mark.parametrize(
    "option",
    [
        *("--atol inf", "--rtol inf", "--atol 1e999", "--atol nan", "--rtol=-1"),
        *("--timeout inf", "--timeout nan", "--timeout 1e300", "--simulated-limit inf"),
    ],
)
def test_a_limit_that_nothing_exceeds(option: str, tmp_path: Path) -> None:
    assert_named(sdk("run", ADD, *option.split(), cwd=tmp_path), 2, "Invalid value for")


def test_a_share_of_infinity_does_not_allow_everything() -> None:
    one, infinite = np.float32([1]), np.float32([np.inf])
    assert not compare("x", one, infinite, Tolerance(rtol=0.1)).passed
    assert compare("x", infinite, infinite, Tolerance(rtol=0.1)).passed
    assert not compare("x", -infinite, infinite, Tolerance(atol=1.0, rtol=0.1)).passed


@pytest.mark.parametrize(
    "line",
    [
        f"Operator(s) total: {LONG} CPU cycles",
        f"PTE in 0x0 Size: {LONG} bytes",
        f"ethosu_pmu_cycle_cntr : {LONG}",
        f"method_allocator_used:     {LONG} / 1 free: 1",
    ],
)
def test_a_number_in_a_log(line: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(f"Running method forward\n{line}\nProgram complete, exiting.\n")
    assert_named(sdk("parse-log", "a.log", cwd=tmp_path), 3, "line 2 of the log has a number of 5,000 digits")


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("pmu", {"counters": [1]}, "a 'pmu' record's counters is [1]"),
        ("pmu", {"counters": [["a", -1]]}, "a 'pmu' record's counters is"),
        ("output", {"shape": [None]}, "a 'output' record's shape is [None]"),
        ("pmu", {"cycles": float("nan")}, "NaN is not a number in JSON"),
    ],
)
def test_a_record_of_the_firmware(name: str, change: dict[str, Any], words: str, tmp_path: Path) -> None:
    rows = [(kind, {**payload, **change} if kind == name else payload) for kind, payload in wire.good_rows()]
    (tmp_path / "uart.log").write_bytes(wire.uart(rows))
    assert_named(sdk("parse-log", "uart.log", cwd=tmp_path), 7, words)


def test_a_long_number_in_a_record_of_the_firmware(tmp_path: Path) -> None:
    content = wire.uart(wire.good_rows())
    long, count = re.subn(rb'"protocol":\d+', b'"protocol":' + LONG.encode(), content)
    assert count == 1
    (tmp_path / "uart.log").write_bytes(long)
    assert_named(sdk("parse-log", "uart.log", cwd=tmp_path), 3, "no line of a known firmware")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f'{{"a": {LONG}}}', "a number has 5000 digits"),
        (f'{{"a": [{1 << 64}]}}', "the whole number 18446744073709551616 needs more than 64 bits"),
        ('{"a": NaN}', "NaN is not a number in JSON"),
        ('{"a": -Infinity}', "-Infinity is not a number in JSON"),
        ('{"a": 1e999}', "the number 1e999 is too large"),
        ('{"schema": "run-result/1", "schema": "build-result/1"}', "the key 'schema' occurs twice"),
        ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", "it is nested more than 64 levels deep"),
        ('{"a": ' + "[" * 900 + "]" * 900 + "}", "it is nested more than 64 levels deep"),
    ],
)
def test_what_is_no_json(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "record.json").write_text(text)
    for command in ("validate", "summary"):
        assert_named(sdk(command, "record.json", cwd=tmp_path), 3, f"record.json is not JSON: {words}")


@each(
    ("key", "value", "allowed"),
    [
        ("Sram_clock_scale", "5e-324", "a number from 0.0001 to 1000"),
        ("OffChipFlash_clock_scale", "1e-300", "a number from 0.0001 to 1000"),
        ("core_clock", "5e-324", "a number from 1000 to 1e+11"),
    ],
)
def test_a_clock_at_which_cycles_overflow(key: str, value: str, allowed: str, tmp_path: Path) -> None:
    text = re.sub(rf"(?m)^{key} *=.*", f"{key} = {value}", VELA_INI.read_text(encoding="utf-8"))
    (tmp_path / "given.ini").write_text(text)
    options = ("--simulator", "host", "--vela-config", "given.ini")
    assert_named(sdk("run", ADD, *options, cwd=tmp_path), 3, f"{key} in [", f"is '{value}'", allowed)
