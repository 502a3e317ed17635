"""What an instruction costs a core: LLVM's scheduling model by way of llvm-mca, after the rows of cpu_cores.toml."""

from __future__ import annotations

import functools
import math
import re
import struct
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from ethosu_sdk.base import filesystem, proc, tools
from ethosu_sdk.base.errors import ToolError, UsageError


@dataclass(frozen=True)
class Replacement:
    """A row of `replaced`: what stands in for LLVM's figures of instructions whose text matches `match`."""

    match: re.Pattern[str]
    source: str
    latency: int = 0
    occupies: int = 0
    per_register: float = 0.0


@dataclass(frozen=True)
class Core:
    """A core's facts; cpu_cores.toml explains and gives the source of each. Times are cycles."""

    name: str
    issue_width: int
    pairs_only_narrow: bool
    address_delay: int
    gather_delay: int
    shift_delay: int
    stored_advance: int
    accumulator_advance: int
    base_latency: int
    taken: int
    mispredicted: int
    loop_entry: int
    replaced: tuple[Replacement, ...]


@functools.cache
def _cores() -> Mapping[str, Core]:
    table = tomllib.loads((Path(__file__).parent / "cpu_cores.toml").read_text(encoding="utf-8"))
    found = {}
    for name, facts in table.items():
        rows = facts.pop("replaced")
        replaced = tuple(Replacement(re.compile(row.pop("match")), **row) for row in rows)
        found[name] = Core(name=name, replaced=replaced, **facts)
    return found


CORES: tuple[str, ...] = tuple(_cores())


def core_of(name: str) -> Core:
    """The core called `name`. UsageError that names the known ones."""
    if name not in _cores():
        raise UsageError(f"there is no price list for the core '{name}'", f"known are {', '.join(CORES)}")
    return _cores()[name]


# Thumb machine code as text. LLVM disassembles; an instruction is known by its encoding alone.

_WIDE = 0b11101  # the five highest bits of the first halfword of a 32-bit instruction: this or more
_MOST = 1 << 16  # instructions at a time: what a marker can number
_NOP = "[0x00 0xbf]"
_LINE = re.compile(r"^\s*(?P<text>\S.*?)\s*@ encoding: \[(?P<bytes>0x[0-9a-f]{2}(,0x[0-9a-f]{2})*)\]")
_MARKER_REGISTER = 12


def split_instructions(code: bytes) -> Iterator[bytes]:
    """The encodings of the instructions in `code`, of two or four bytes; a cut one at the end is left out."""
    at = 0
    while at + 2 <= len(code):
        size = 4 if code[at + 1] >> 3 >= _WIDE else 2
        if at + size > len(code):
            return
        yield code[at : at + size]
        at += size


def disassembly_input(encodings: Sequence[bytes]) -> str:
    """The input of ``llvm-mc --disassemble`` for `encodings`.

    Behind each stand instructions that use up an IT or VPT block, and a marker with its number.
    """
    lines = []
    for number, encoding in enumerate(encodings):
        lines += [_bracketed(encoding), *[_NOP] * 4, _bracketed(_marker(number))]
    return "\n".join(lines) + "\n"


def disassembled_texts(encodings: Sequence[bytes], disassembly: str) -> list[str] | None:
    """The text of each of `encodings`, in LLVM's syntax; empty where LLVM knows no such instruction.

    None for a disassembly that lacks one of the markers.
    """
    found = [""] * len(encodings)
    number, is_behind = 0, False  # the instruction whose lines these are; whether a filler was seen
    for line in disassembly.splitlines():
        match = _LINE.match(line)
        if match is None or number == len(encodings):
            continue
        encoding = bytes(int(word, 16) for word in match["bytes"].split(","))
        if is_behind and encoding == _marker(number):
            number, is_behind = number + 1, False
        elif not is_behind and encoding == encodings[number] and not found[number]:
            found[number] = re.sub(r"\s+", " ", match["text"])
        else:
            is_behind = is_behind or encoding == b"\x00\xbf"
    return found if number == len(encodings) else None


def _bracketed(encoding: bytes) -> str:
    return "[" + " ".join(f"{byte:#04x}" for byte in encoding) + "]"


def _marker(number: int) -> bytes:
    """MOVW r12, #number (encoding T3)."""
    first = 0xF240 | (number >> 11 & 1) << 10 | number >> 12
    second = (number >> 8 & 7) << 12 | _MARKER_REGISTER << 8 | number & 0xFF
    return struct.pack("<HH", first, second)


_TRIPLE = "thumbv8.1m.main-none-eabi"
_TIMEOUT_S = 300.0
_KNOWN = "nop"
_DISASSEMBLER, _ANALYSER = "llvm-mc-19", "llvm-mca-19"
_LONGEST_CYCLES = 100  # LLVM's longest on these cores are the 30 of VDIV.F64
_MOST_UNITS = 8
_MEMORY = re.compile(r"\[(?!pc)[a-z]|^(push|pop|ldm|stm|vpush|vpop|vldm|vstm)")
_GATHER = re.compile(r"v(ld|st)r.*\[.*q\d")
_VECTOR = re.compile(r"\bq\d|^v")
_BRACES = re.compile(r"\{([^}]*)\}")
_CONDITIONS = "eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le"
_PAIRS = ("eq ne", "hs lo", "mi pl", "vs vc", "hi ls", "ge lt", "gt le")
_OPPOSITE = {a: b for pair in _PAIRS for a, b in (pair.split(), pair.split()[::-1])}
_KINDS: Mapping[str, re.Pattern[str]] = {
    "conditional": re.compile(rf"b({_CONDITIONS})(\.[nw])? |cbn?z "),
    "loop end": re.compile(r"le(tp)? "),
    "loop start": re.compile(r"[dw]ls(tp\.\d+)? "),
    "branch": re.compile(
        r"b(l|x|lx|xns|lxns|xaut|f|fl)?(\.[nw])? |(pop|ldm).*\bpc\b|ldr.* pc,|mov pc|tb[bh] "
    ),
}


Cycles = Annotated[int, msgspec.Meta(ge=0, le=_LONGEST_CYCLES)]
Unit = tuple[str, Annotated[int, msgspec.Meta(ge=1, le=_MOST_UNITS)], Cycles]


@dataclass(frozen=True)
class Instruction:
    """An instruction and its figures, in cycles.

    `units` has how many instances of each unit it occupies and how long; `occupies` is for how long nothing else
    issues. `kind` is empty but for branches. Without a `text` neither LLVM nor the SDK knows the instruction.
    """

    text: str
    size: int
    kind: str
    latency: Cycles
    units: tuple[Unit, ...] = ()
    occupies: Cycles = 0
    is_single: bool = False

    @property
    def is_vector(self) -> bool:
        """Whether MVE or the floating-point unit executes it."""
        return self.text.startswith("v")


_UNKNOWN = Instruction("", 2, "", 1, is_single=True)


def llvm_version() -> str:
    """Versions and digests of LLVM's two programs. ToolError when one is missing or too old."""
    found = [tools.require(name) for name in (_ANALYSER, _DISASSEMBLER)]
    return " ".join(f"{row.version} {filesystem.sha256_file(row.path)}" for row in found if row.path)


def figures_of(
    encodings: Sequence[bytes], core: Core, timeout_s: float = _TIMEOUT_S
) -> dict[bytes, Instruction]:
    """The figures of each of `encodings`. ToolError when LLVM is missing, fails, or answers with what are none."""
    found: dict[bytes, Instruction] = {}
    for at in range(0, len(encodings), _MOST):
        part = encodings[at : at + _MOST]
        words = _texts(part, core, timeout_s)
        scheduled = _scheduled([text for text in words if text], core, timeout_s)
        for encoding, text in zip(part, words, strict=True):
            found[encoding] = _instruction(encoding, text, scheduled.get(text), core) if text else _UNKNOWN
    return found


def _texts(part: Sequence[bytes], core: Core, timeout_s: float) -> list[str]:
    """The text of each encoding; empty for one that llvm-mc warned of, because it does not know it."""
    # For an encoding that it does not know, llvm-mc prints a warning, goes on, and ends with exit status 1.
    options = (f"-triple={_TRIPLE}", "--disassemble", "--show-encoding")
    content = disassembly_input(part)
    printed, said = _run_llvm(_DISASSEMBLER, options, content, core, timeout_s, may_end_with=(0, 1))
    words = disassembled_texts(part, printed)
    if words is None or sum(not text for text in words) > said.count("warning: "):
        raise _unusable(_DISASSEMBLER, "did not print every instruction that it was given")
    return words


def _unusable(program: str, reason: str) -> ToolError:
    return ToolError(f"{program} {reason}: nothing is priced by it", tools.tool_table()[program].fix)


def _run_llvm(
    program: str,
    options: Sequence[str],
    content: str,
    core: Core,
    timeout_s: float,
    may_end_with: tuple[int, ...] = (0,),
) -> tuple[str, str]:
    """What `program` prints for a file with `content`, and its warnings. ToolError when it fails.

    The warnings are kept apart: they would stand in the middle of lines. An option `-o` is no help, since
    llvm-mc removes the file when it ends with another status than 0.
    """
    with tempfile.TemporaryDirectory(prefix="ethosu-sdk-llvm-") as name:
        folder = Path(name)
        filesystem.write_bytes(folder / "in.s", content.encode())
        argv = [str(tools.require(program).path), f"-mcpu={core.name}", *options, "in.s"]
        with tempfile.TemporaryFile(dir=folder) as warnings:
            with proc.spawn(argv, cwd=folder, stderr=warnings) as process:
                try:
                    printed, _ = process.communicate(timeout=timeout_s)
                except subprocess.TimeoutExpired as expired:
                    raise ToolError(f"{program} did not end within {timeout_s:g} s") from expired
            warnings.seek(0)
            said = warnings.read().decode(errors="replace")
    if process.returncode not in may_end_with:
        raise ToolError(f"{program} failed with exit status {process.returncode}\n{proc.tail(said)}")
    return printed.decode(errors="replace"), said


class _View(msgspec.Struct, rename="pascal"):
    """A part of llvm-mca's answer. Its names are in Pascal case, but for `mayLoad` and `mayStore`."""


class _Figures(_View):
    latency: Cycles


class _InstructionInfo(_View):
    instruction_list: Annotated[list[_Figures], msgspec.Meta(min_length=1)]


class _Usage(_View):
    instruction_index: int
    resource_index: Annotated[int, msgspec.Meta(ge=0)]
    resource_usage: Annotated[float, msgspec.Meta(ge=0, le=_LONGEST_CYCLES)]


class _Pressure(_View):
    resource_pressure_info: list[_Usage]


class _Region(_View):
    name: str
    instructions: Annotated[list[str], msgspec.Meta(min_length=1)]
    instruction_info_view: _InstructionInfo
    resource_pressure_view: _Pressure


class _Target(_View):
    resources: list[str]
    cpu: str = msgspec.field(name="CPUName")


class _Answer(_View):
    code_regions: list[_Region]
    target_info: _Target


# LLVM's latency of an instruction, and its units as `Instruction` has them.
_Scheduled = tuple[int, tuple[tuple[str, int, int], ...]]


def _scheduled(words: Sequence[str], core: Core, timeout_s: float) -> dict[str, _Scheduled]:
    """LLVM's figures by text; without instructions that its model lacks."""
    if not words:
        return {}
    asked = [*words, _KNOWN]  # it fails when it knows none of them
    regions = "\n".join(
        "\n".join((f"# LLVM-MCA-BEGIN {number}", text, *_followers(text), "# LLVM-MCA-END"))
        for number, text in enumerate(asked)
    )
    options = (f"-mtriple={_TRIPLE}", "-iterations=1", "-skip-unsupported-instructions=any", "--json")
    printed, said = _run_llvm(_ANALYSER, options, regions + "\n", core, timeout_s)
    try:
        answer = msgspec.json.decode(printed, type=_Answer)
        names = [name.split(".\0")[0].split(".\1")[0] for name in answer.target_info.resources]
        found = {int(row.name): _figures(row, names) for row in answer.code_regions}
        is_whole = all(_is_of(row, asked[int(row.name)]) for row in answer.code_regions)
    except (ValueError, LookupError) as error:
        raise _unusable(_ANALYSER, f"did not answer with figures ({error})") from error
    left_out = said.count("note: instruction:")  # it says so of each that its model lacks
    is_whole = is_whole and len(words) in found and len(found) == len(answer.code_regions)
    if not is_whole or len(asked) - len(found) > left_out or answer.target_info.cpu != core.name:
        raise _unusable(_ANALYSER, f"did not answer for each instruction on {core.name}")
    return {words[number]: row for number, row in found.items() if number < len(words)}


def _is_of(region: _Region, text: str) -> bool:
    """Whether `region` is of the instruction `text`. Where that cannot be scheduled, it is of the one behind it."""
    return " ".join(region.instructions[0].split()) in (text, *_followers(text))


def _followers(text: str) -> Iterator[str]:
    """What must stand behind an IT or VPT instruction for the assembler."""
    mnemonic, _, condition = text.partition(" ")
    if block := re.fullmatch(r"i(t[te]*)", mnemonic):
        opposite = _OPPOSITE.get(condition, condition)
        for letter in block[1]:
            yield f"add{condition if letter == 't' else opposite} r0, r0, r0"
    elif block := re.match(r"vps?(t[te]*)(\.|$)", mnemonic):
        for letter in block[1]:
            yield f"vadd{letter}.i32 q0, q0, q0"


def _figures(region: _Region, names: Sequence[str]) -> _Scheduled:
    used: dict[str, list[float]] = {}
    for usage in region.resource_pressure_view.resource_pressure_info:
        if usage.instruction_index == 0:
            used.setdefault(_pool(names[usage.resource_index], names), []).append(usage.resource_usage)
    units = tuple((name, len(cycles), math.ceil(max(cycles))) for name, cycles in used.items())
    return region.instruction_info_view.instruction_list[0].latency, units


def _pool(name: str, names: Sequence[str]) -> str:
    """The unit that `name` is an instance of: one of two alike, or the half for high or low beats."""
    both = name[:-1] + "H" in names and name[:-1] + "L" in names
    return name[:-1] if both else name


def _instruction(encoding: bytes, text: str, llvm: _Scheduled | None, core: Core) -> Instruction:
    size = len(encoding)
    kind = next((name for name, pattern in _KINDS.items() if pattern.match(text)), "")
    latency, occupies = 1, 0
    units: tuple[tuple[str, int, int], ...] = ()
    if llvm is not None and kind in ("", "conditional"):
        latency, units = _own_latency(text, llvm, core), llvm[1]
    elif kind == "loop end":
        latency = 0
    for row in core.replaced:
        if row.match.fullmatch(text):
            braces = _BRACES.search(text)
            registers = len(braces[1].split(",")) if braces else 0
            latency = row.latency or latency
            occupies = row.occupies or math.ceil(row.per_register * registers)
            break
    return Instruction(text, size, kind, latency, units, occupies, _is_single(text, size, core))


def _own_latency(text: str, llvm: _Scheduled, core: Core) -> int:
    """LLVM's latency without the delay of an address or a shifted operand, which llvm-mca adds to it."""
    latency, units = llvm
    delay = core.shift_delay if any("Shift" in name for name, _, _ in units) else 0
    if _MEMORY.search(text):
        delay = core.gather_delay if _GATHER.search(text) else core.address_delay
    return max(latency - delay, 1)


def _is_single(text: str, size: int, core: Core) -> bool:
    if core.pairs_only_narrow:
        return size == 4 or bool(_VECTOR.search(text))
    several = ("push", "pop", "ldm", "stm", "vldm", "vstm", "vpush", "vpop")
    return bool(_GATHER.search(text)) or text.startswith(several)
