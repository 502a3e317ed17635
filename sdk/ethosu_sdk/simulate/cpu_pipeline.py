"""A core's pipeline: what each instruction waits for by its operands, and when a sequence of them issues."""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ethosu_sdk.simulate.llvm_figures import Core, Instruction

# Which registers an instruction reads and writes, from its text, and in which role.

_MVE_SETS_P0 = ("vcmp", "vctp", "vpt", "vpst")
_STORES = ("str", "stm", "stl", "push", "vstr", "vst", "vpush", "vstm")
_NO_RESULT = ("cmp", "cmn", "tst", "teq", *_MVE_SETS_P0, "cb", "tb", "msr", "vmsr", "it", "pl", "le")
# The result is also an operand. Accumulators first: some cores take these later than other operands.
_ACCUMULATES = re.compile(
    r"v?(q?r?d?mla|q?r?d?mls|fma|fms|fnma|fnms|nmla|nmls|cmla|addva|addlva|mladava|mlava|mlaldava|mlalva|"
    r"rmlaldava|rmlalva|mlsdava|mlsldava|abav|maxv|minv|maxav|minav|qdmla|qdmls|qrdmla|qrdmls)|[su]mlal|smla|smls|umaal"
)
_UPDATES = re.compile(
    r"movt|bf[ic]|v(s[lr]i|q?r?shru?n|q?movu?n|shlc|ins)|[lr]s[lr]l|asrl|[su]q?r?sh[lr]l?\b|vmov\.?(8|16|32)? q"
)
_ADDS_TO_FIRST = re.compile(r"(adc|add|and|asr|bic|eor|lsl|lsr|mul|orn|orr|ror|rsb|sbc|sub)s?w?(\.[nw])?$")
_SETS_FLAGS = re.compile(
    r"(adc|add|and|asr|bic|eor|lsl|lsr|mov|mul|mvn|orn|orr|ror|rsb|rrx|sbc|sub)s(\.[nw])?$|cm[pn]|tst|teq"
)
_READS_FLAGS = re.compile(
    r"b(eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)(\.[nw])?$|cs(el|inc|inv|neg)|cset|cinc|adc|sbc|it"
)
_SHIFTED = re.compile(r"(\w+), (?:lsl|lsr|asr|ror) #\d+$")
_REGISTER = re.compile(r"\b(r\d+|sp|lr|pc|[sdq]\d+)\b")
_RANGE = re.compile(r"\b([rsdq])(\d+) ?- ?[rsdq](\d+)\b")
_NAMES = {"sp": 13, "lr": 14, "pc": 15, "sb": 9, "sl": 10, "fp": 11, "ip": 12}
_SPAN = {"s": 1, "d": 2, "q": 4}
_FIRST_VECTOR = 32  # number of s0 among the registers
FLAGS, P0 = 100, 101  # numbers of the condition flags and of MVE's predicate


@dataclass(frozen=True)
class Operands:
    """Numbers of registers: r0 to r15 as they are, from 32 the 32-bit lanes of the vector registers."""

    written: tuple[int, ...] = ()
    bases: tuple[int, ...] = ()  # written back by a load or store
    values: tuple[int, ...] = ()
    addresses: tuple[int, ...] = ()
    stored: tuple[int, ...] = ()
    accumulators: tuple[int, ...] = ()
    shifted: tuple[int, ...] = ()  # by an immediate


def operands_of(text: str) -> Operands:
    """The operands of an instruction, by its text in LLVM's syntax. None for instructions without registers."""
    mnemonic, _, rest = text.partition(" ")
    outside, inside, is_updated = _address(mnemonic, rest)
    fields = _fields(outside)
    if mnemonic.startswith(_STORES):
        return Operands(
            bases=inside if is_updated else (),
            addresses=inside,
            stored=tuple(number for field in fields for number in field),
        )
    results = _results(mnemonic, fields)
    written = tuple(number for field in fields[:results] for number in field)
    sources = tuple(number for field in fields[results:] for number in field)
    accumulators: tuple[int, ...] = ()
    if _ACCUMULATES.match(mnemonic) and results and not (mnemonic.startswith("mla") or "addv." in mnemonic):
        accumulators = written
    elif _UPDATES.match(text) or (rest.count(",") == 1 and _ADDS_TO_FIRST.match(mnemonic)):
        sources += written
    if mnemonic.startswith(("mla", "mls")) and len(fields) == 4:
        sources, accumulators = sources[:-1], fields[3]
    if mnemonic.startswith("le") and "lr" in rest:
        written, sources = (14,), (14,)
    if _SETS_FLAGS.match(mnemonic):
        written += (FLAGS,)
    if _READS_FLAGS.match(mnemonic):
        sources += (FLAGS,)
    return Operands(
        written=written + ((P0,) if mnemonic.startswith(_MVE_SETS_P0) else ()),
        bases=inside[:1] if is_updated else (),
        values=sources + ((P0,) if mnemonic.startswith("vpsel") else ()),
        addresses=inside,
        accumulators=accumulators,
        shifted=_numbers(shifted[1]) if (shifted := _SHIFTED.search(outside)) else (),
    )


def _results(mnemonic: str, fields: list[tuple[int, ...]]) -> int:
    if mnemonic.startswith(_NO_RESULT) and not mnemonic.startswith(("lea", "plx")):
        return 0
    if re.match(r"b[a-z]*(\.[nw])?$", mnemonic) and not mnemonic.startswith(("bic", "bfi", "bfc")):
        return 0
    if re.match(
        r"[su]ml?al|[su]mull|smlsl|smlal|umaal|ldrd|ldrexd|[lr]s[lr]l|asrl|vr?mlal[dv]|vrmlsl|vmlsld|vaddlv|[su]q?r?sh[lr]l",
        mnemonic,
    ):
        return 2
    if not mnemonic.startswith("vmov"):
        return 1
    to_two_of_three = len(fields) == 3 and max(fields[0] + fields[1]) < _FIRST_VECTOR
    to_two_of_four = len(fields) == 4 and fields[0][0] < _FIRST_VECTOR
    return 2 if to_two_of_three or to_two_of_four else 1


def _address(mnemonic: str, rest: str) -> tuple[str, tuple[int, ...], bool]:
    """The text outside of an address, the registers of the address, and whether the base is written back."""
    if mnemonic.startswith(("push", "pop", "vpush", "vpop")):
        return rest, (13,), True
    if mnemonic.startswith(("ldm", "stm", "vldm", "vstm", "vlldm", "vlstm")):
        base, _, registers = rest.partition(",")
        return registers, _numbers(base), "!" in base
    match = re.search(r"\[[a-z][^\]]*\]", rest)  # and not a lane, such as q0[2]
    if match is None or mnemonic.startswith("tb"):
        return rest, (), False
    behind = rest[match.end() :]
    return rest[: match.start()], _numbers(match[0] + behind), behind.startswith(("!", ","))


def _fields(text: str) -> list[tuple[int, ...]]:
    """The registers of each operand; a list in braces is one operand."""
    grouped = re.findall(r"\{[^}]*\}|[^,{}]+", text)
    return [numbers for operand in grouped if (numbers := _numbers(operand))]


def _numbers(text: str) -> tuple[int, ...]:
    spread = _RANGE.sub(lambda m: ", ".join(f"{m[1]}{n}" for n in range(int(m[2]), int(m[3]) + 1)), text)
    return tuple(number for name in _REGISTER.findall(spread) for number in _lanes(name))


def _lanes(name: str) -> tuple[int, ...]:
    if name in _NAMES:
        return (_NAMES[name],)
    kind, index = name[0], int(name[1:])
    if kind == "r":
        return (index,)
    span = _SPAN[kind]
    return tuple(_FIRST_VECTOR + index * span + lane for lane in range(span))


# In-order issue: when each instruction of a sequence starts, by its operands, its units and the issue width.

_PAIRED = {f"M85Unit{name}" for name in ("ALU", "Load", "Store", "VFPA", "VFPB", "VFPC", "VPort")}
_SETTLED = (2, 6)  # turns of a loop between which it is measured
_operands = functools.lru_cache(maxsize=1 << 16)(operands_of)


class _Pipeline:
    """The state while a sequence issues. Cycles count from 0."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._cycle = 0  # of the last issue
        self._issued = 0  # in that cycle
        self._is_closed = False  # nothing else may issue in that cycle
        self._ready: defaultdict[int, int] = defaultdict(int)
        self._is_vector: set[int] = set()  # registers whose newest value a vector instruction makes
        self._free: dict[str, list[int]] = {}

    @property
    def next_cycle(self) -> int:
        """The first cycle after the last issue."""
        return self._cycle + 1 if self._issued else self._cycle

    def issue_all(self, instructions: Sequence[Instruction]) -> None:
        for instruction in instructions:
            if instruction.kind != "loop end":
                self._issue(instruction)

    def _issue(self, instruction: Instruction) -> None:
        operands = _operands(instruction.text)
        cycle = max(self._earliest(instruction), self._wanted(instruction, operands))
        for name, count, _ in instruction.units:
            cycle = max(cycle, sorted(self._instances(name))[count - 1])
        self._issued = self._issued + 1 if cycle == self._cycle else 1
        self._cycle, self._is_closed = cycle, instruction.is_single
        for name, count, cycles in instruction.units:
            free = self._instances(name)
            free.sort()
            free[:count] = [cycle + cycles] * count
        for number in operands.bases:
            self._ready[number] = cycle + self._core.base_latency
        for number in operands.written:
            self._ready[number] = cycle + instruction.latency
            (self._is_vector.add if instruction.is_vector else self._is_vector.discard)(number)
        if instruction.occupies > 1:
            self._cycle, self._issued, self._is_closed = cycle + instruction.occupies - 1, 1, True

    def _earliest(self, instruction: Instruction) -> int:
        fits = self._issued < self._core.issue_width and not self._is_closed
        if not self._issued or (fits and not instruction.is_single):
            return self._cycle
        return self._cycle + 1

    def _wanted(self, instruction: Instruction, operands: Operands) -> int:
        core = self._core
        advance = core.stored_advance if instruction.is_vector else 0
        cycles = [self._ready[number] for number in operands.values]
        cycles += [self._ready[number] - core.accumulator_advance for number in operands.accumulators]
        cycles += [
            self._ready[number] + core.shift_delay for number in operands.shifted if self._ready[number]
        ]
        for number in operands.addresses:
            delay = core.gather_delay if number >= _FIRST_VECTOR else core.address_delay
            cycles.append(self._ready[number] + (delay if self._ready[number] else 0))
        for number in operands.stored:
            cycles.append(self._ready[number] - (advance if number in self._is_vector else 0))
        return max(cycles, default=0)

    def _instances(self, name: str) -> list[int]:
        """The cycles from which each instance of a unit is free."""
        return self._free.setdefault(name, [0, 0] if name in _PAIRED else [0])


def straight_cycles(instructions: Sequence[Instruction], core: Core) -> float:
    """Cycles from the first issue to the first that a following instruction can have, with all operands there."""
    pipeline = _Pipeline(core)
    pipeline.issue_all(instructions)
    return float(pipeline.next_cycle)


def repeated_cycles(instructions: Sequence[Instruction], core: Core) -> float:
    """Cycles of one turn when the sequence repeats itself, after the first turns."""
    first, last = _SETTLED
    pipeline, ends = _Pipeline(core), []
    for _ in range(last + 1):
        pipeline.issue_all(instructions)
        ends.append(pipeline.next_cycle)
    return (ends[last] - ends[first]) / (last - first)
