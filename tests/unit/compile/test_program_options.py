"""The options of a compilation: what is part of its shape, and the way through JSON."""

import json
from pathlib import Path
from typing import Any

from ethosu_sdk.compile import compile_facts
from ethosu_sdk.compile.program_options import ProgramOptions
from tests.tables import each

CHANGED: dict[str, Any] = {
    "system": "alif-e8-hp",
    "quantize": "int16",
    "quantize_per": "tensor",
    "calibration": (Path("a.npz"), Path("b.npz")),
    "inputs": Path("a.npz"),
    "io": "int8",
    "delegate": False,
    "fallback": "cortex-m",
    "as_written": True,
    "vela_config": Path("a.ini"),
    "vela_flags": ("--optimise=Size",),
    "require_full_delegation": True,
    "etrecord": True,
    "check": False,
    "trust": True,
}
# They change no program, or do it by what their files hold.
NOT_OF_THE_SHAPE = {
    "system",
    "calibration",
    "inputs",
    "require_full_delegation",
    "etrecord",
    "check",
    "trust",
}


def test_every_option_is_here() -> None:
    assert CHANGED.keys() == vars(ProgramOptions()).keys()


@each("name", CHANGED)
def test_an_option_comes_back_from_json(name: str) -> None:
    options = ProgramOptions(**{name: CHANGED[name]})
    assert options != ProgramOptions()
    assert compile_facts.from_json(ProgramOptions, json.loads(compile_facts.to_json(options))) == options


@each("name", CHANGED)
def test_an_option_that_changes_the_program_is_part_of_its_shape(name: str) -> None:
    same = ProgramOptions(**{name: CHANGED[name]}).shape() == ProgramOptions().shape()
    assert same == (name in NOT_OF_THE_SHAPE)
