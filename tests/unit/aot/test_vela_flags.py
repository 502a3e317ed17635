"""Flags that a user adds to Vela's: a whole table, compared with Vela's own."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from ethosu_sdk.aot.vela import vela_flags
from ethosu_sdk.errors import UsageError


def flags_of_vela() -> set[str]:
    """The options in Vela's source, read as text: importing it takes a second."""
    package = find_spec("ethosu")
    assert package is not None
    assert package.submodule_search_locations is not None
    source = Path(next(iter(package.submodule_search_locations)), "vela", "vela.py").read_text(
        encoding="utf-8"
    )
    return set(re.findall(r'add_argument\(\s*"(--[a-z0-9-]+)"', source))


def test_every_flag_of_vela_is_either_allowed_or_refused() -> None:
    known = flags_of_vela()
    assert len(known) > 40
    deprecated = {
        "--verbose-packing",
        "--verbose-tensor-purpose",
        "--verbose-operators",
        "--verbose-progress",
    }
    deprecated |= {"--show-subgraph-io-summary"}
    assert set(vela_flags.ALLOWED) | set(vela_flags.REFUSED) == known - deprecated
    assert not set(vela_flags.ALLOWED) & set(vela_flags.REFUSED)


@pytest.mark.parametrize(
    "flag",
    [
        "--optimise=Size",
        "--tensor-allocator=LinearAlloc",
        "--arena-cache-size=65536",
        "--max-block-dependency=0",
        "--disable-chaining",
        "--experimental-softmax-int16-neg-exp-range=12.5",
        "--verbose-schedule",
    ],
)
def test_what_may_be_added(flag: str) -> None:
    vela_flags.check([flag])


@pytest.mark.parametrize("name", vela_flags.REFUSED)
def test_what_breaks_the_contract_is_refused_by_name(name: str) -> None:
    for flag in (name, f"{name}=x"):
        with pytest.raises(UsageError, match=f"Vela's flag {name} cannot be added: "):
            vela_flags.check(["--disable-fwd", flag])


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--nonsense", "Vela has no flag --nonsense"),
        ("--out=x", "Vela has no flag --out"),  # argparse would take it for --output-dir or --output-format
        ("--optimise", "takes one of: Size, Performance"),
        ("--optimise=size", "takes one of: Size, Performance, not 'size'"),
        ("--arena-cache-size=-1", "takes a whole number, not '-1'"),
        ("--arena-cache-size=", "takes a whole number"),
        ("--disable-fwd=1", "takes no value"),
        ("--experimental-softmax-int16-neg-exp-range=0", "takes a number"),
        ("--experimental-softmax-int16-neg-exp-range=1e9", "takes a number"),
        ("--optimise Size", "is not a single flag of Vela"),
        ("--optimise=Size\n--cop-format=COP2", "is not a single flag of Vela"),
        ("network.tosa", "is not a single flag of Vela"),
        ("", "is not a single flag of Vela"),
        ("-o", "is not a single flag of Vela"),
    ],
)
def test_what_is_refused(flag: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        vela_flags.check([flag])
    assert words in caught.value.message


def test_the_nearest_flag_is_suggested() -> None:
    with pytest.raises(UsageError) as caught:
        vela_flags.check(["--optimize=Size"])
    assert caught.value.hint.startswith("did you mean '--optimise'?")
