"""Prices of instructions: damaged ones in the cache, and answers of LLVM's tools that are cut or out of range."""

import functools
import json
import os
import random
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from campaigns.attack import damage
from campaigns.attack.case import Case, Context, Kind, Probe
from campaigns.attack.process import Ended, Limits
from ethosu_sdk.base import cache, filesystem, tools
from ethosu_sdk.simulate import cpu_cycles
from ethosu_sdk.simulate.block_counts import Block
from tests.pte_files import golden

_TOOLS = ("llvm-mc-19", "llvm-mca-19")
_PLUGIN = "block-counts.so"
# add r0, r1; vadd.i32 q0, q1, q2; ldr r0, [r1]; vmul.i32 q0, q1, q2; bne
_CODE = bytes.fromhex("084422ef44080868 22ef5409 fcd1".replace(" ", ""))
_BLOCK = Block(0x1000, 0x1000 + len(_CODE), 5, _CODE, 100)
_CORES = ("cortex-m55", "cortex-m85")
_LIMITS = Limits(seconds=180.0)
_VALUES = ("-1", "NaN", "Infinity", "1e300", "900000000000", "-0.5", '"x"', "null", "[]", "{}", "1" * 400)
_FIELDS = ("Latency", "ResourceUsage", "ResourceIndex")
# What a stand-in does with the answer of the real tool: none of it may end as another price.
_DOUBLE = """#!{python}
import re, subprocess, sys
done = subprocess.run([{real!r}, *sys.argv[1:]], capture_output=True)
text, code, way = done.stdout, done.returncode, {way!r}
if "--version" not in sys.argv:
    if way == "cut":
        text = text[: int(len(text) * {share})]
    elif way == "value":
        text = re.sub(rb'("{field}": )[-0-9.]+', lambda m: m[1] + {value!r}, text)
    elif way == "empty":
        text = b""
    elif way == "garbage":
        text = bytes((byte * 7 + {number}) % 256 for byte in text)
    elif way in ("without", "twice"):
        lines = text.splitlines(True)
        last = next((n for n, line in enumerate(lines) if b"SimulationParameters" in line), len(lines))
        at = int(last * {share})  # the names of units, which come behind, have no check
        text = b"".join([*lines[:at], *lines[at : at + 1] * (2 if way == "twice" else 0), *lines[at + 1 :]])
    if way == "code" or {number} % 3 == 0:
        code = {code}
sys.stdout.buffer.write(text)
sys.stderr.buffer.write(done.stderr)
sys.exit(code)
"""


def _double(choice: random.Random) -> tuple[str, str]:
    """A tool and the text of its stand-in."""
    program = choice.choice(_TOOLS)
    text = _DOUBLE.format(
        python=sys.executable,
        real=shutil.which(program),
        way=choice.choice(("cut", "value", "empty", "garbage", "without", "twice", "code")),
        share=round(choice.uniform(0.0, 0.99), 3),
        field=choice.choice(_FIELDS),
        value=choice.choice(_VALUES).encode(),
        number=choice.randrange(1, 256),
        code=choice.choice((0, 1, 2, 139)),
    )
    return program, text


@functools.cache
def _true(folder: Path) -> dict[str, float]:
    """The cycles of the block on each core, by the tools as they are; their prices are in `folder` then."""
    with cache.elsewhere(folder):
        return {core: cpu_cycles.cycles_of([_BLOCK], core)[0] for core in _CORES}


@contextmanager
def _path(folder: Path) -> Iterator[None]:
    with mock.patch.dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}"):
        tools.probe.cache_clear()
        try:
            yield
        finally:
            tools.probe.cache_clear()


def _damaged(choice: random.Random, data: bytes) -> bytes:
    """Anyhow, or with other digits, which are prices as well."""
    if choice.random() < 0.5:
        return damage.damaged(choice, data)
    changed = bytearray(data)
    places = [place for place, byte in enumerate(data) if chr(byte) in "0123456789"]
    for place in choice.sample(places, min(len(places), choice.choice((1, 4, 16)))):
        changed[place] = ord(choice.choice("123456789"))
    return bytes(changed)


def _probe(context: Context, choice: random.Random) -> Probe:
    core = choice.choice(_CORES)
    if choice.random() < 0.25:
        program, text = _double(choice)

        def ask(folder: Path) -> None:
            _lay(folder / program, text.encode())
            true = _true(context.shared / "true prices")[core]
            with cache.elsewhere(folder / "cache"), _path(folder):
                assert cpu_cycles.cycles_of([_BLOCK], core) == [true]
                assert cpu_cycles.cycles_of([_BLOCK], core) == [true]  # from the cache

        return Probe(f"{program} that answers otherwise", {"given.tool": text.encode()}, ask)
    seed = choice.random()

    def read(folder: Path) -> None:
        true = _true(context.shared / "true prices")[core]
        with cache.elsewhere(folder / "cache"):
            shutil.copytree(context.shared / "true prices", folder / "cache")
            (place,) = (folder / "cache").glob(f"cpu-cycles/{core}-*.json")
            place.write_bytes(_damaged(random.Random(seed), place.read_bytes()))
            assert cpu_cycles.cycles_of([_BLOCK], core) == [true]
            cache.take_notes()

    return Probe(f"damaged prices of {core}", {"given.seed": str(seed).encode()}, read)


def _lay(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    filesystem.make_executable(path)


def _case(context: Context, choice: random.Random) -> Case:
    """A run on the board, once with the tools as they are, and once with a stand-in."""
    program, text = _double(choice)
    plugin = tools.probe(_PLUGIN).path
    run = [*context.command, "run", "given.pte", "--cpu-cycles", "-q", "--timeout", "60"]
    lines = [
        f"mkdir given-tools && cp given.tool given-tools/{program} && chmod +x given-tools/{program}",
        f"{shlex.join([*run, '-o', 'true'])} || exit",
        f'PATH="$PWD/given-tools:$PATH" exec {shlex.join([*run, "-o", "out"])}',
    ]
    return Case(
        f"run with {program} that answers otherwise",
        {"given.pte": golden("add_u55"), "given.tool": text.encode()},
        argv=("sh", "-c", "\n".join(lines)),
        env={} if plugin is None else {"ETHOSU_SDK_QEMU_PLUGIN": str(plugin)},
        limits=_LIMITS,
        judge=_judged,
    )


def _judged(ended: Ended, folder: Path) -> list[str]:
    """Refused with the documented code, or the same cycles."""
    if ended.code == 4:
        return []
    if ended.code != 0:
        return [f"exit code {ended.code} for a broken tool"]
    true, found = (
        json.loads((folder / name / "run.json").read_bytes())["cpu"].get("cycles") for name in ("true", "out")
    )
    return [] if found in (None, true) else [f"exit code 0, with {found} instead of {true}"]


KIND = Kind("prices", _case, _probe)
