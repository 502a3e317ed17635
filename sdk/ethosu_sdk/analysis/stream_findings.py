"""What of a command stream would fail on a board: facts in, findings out, for `inspect --system` and `check`.

Arm's driver compares the words CONFIG and ID that Vela wrote into the driver actions with the NPU's registers, and
refuses the job where they do not fit (ethos-u-core-driver 25.11). What it does not check, the NPU does wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from ethosu_sdk.base import targets
from ethosu_sdk.base.board_profiles import BoardProfile
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.compile import pricing_system
from ethosu_sdk.firmware_build import board_fit, generated_files, program_checks, program_firmware
from ethosu_sdk.npu.vela_blocks import REGION_FAST_SCRATCH, REGION_SCRATCH, REGION_WEIGHTS, VelaBlocks
from ethosu_sdk.program import cop1
from ethosu_sdk.program.pte import Pte
from ethosu_sdk.records.run import MemoryUse

# Regions whose bases every runtime passes to the driver. Others need one that passes inputs and outputs as well.
_USUAL_REGIONS = (REGION_WEIGHTS, REGION_SCRATCH, REGION_FAST_SCRATCH)
_ALIGNMENT = 16  # of the region bases and of what the NPU reads in bricks or decodes
INVOKE = "Invoke failed"
_MOST_OFFSETS = 3


class Finding(NamedTuple):
    """`problem` in a sentence, what the board would show instead of it, and what to change."""

    problem: str
    shown: str
    way_out: str


def program_findings(program: Pte, profile: BoardProfile, mode: str = "") -> Iterator[Finding]:
    """What of `program` would fail on the board of `profile`, in the memory mode `mode` or the program's own."""
    for row in program.delegates:
        if row.vela is not None:
            own = targets.accelerator(row.vela.config_word)
            npu = own if own in profile.npus else profile.npus[0]
            yield from npu_findings(row.vela.config_word, row.vela.arch_word, npu)
            yield from address_findings(row.vela)
    yield from memory_findings(uses_on_board(program, profile, mode), profile.name)
    operators = (name for plan in program.plans for name in plan.called_operators())
    yield from operator_findings(operators, generated_files.known_kernels())


def uses_on_board(program: Pte, profile: BoardProfile, mode: str = "") -> tuple[MemoryUse, ...]:
    """What lies where: of the system of the program's names, or else the profile's default. Empty where the profile
    does not say which memories its areas are."""
    try:
        target = program.target()
    except InputError:  # of another build, which does not record it
        target = None
    system = profile.default_system if target is None else profile.system(target.system_config)
    system = system or profile.default_system
    mode = mode or ("" if target is None else target.memory_mode)
    mode = mode if mode in system.memory_modes else system.memory_modes[0]
    board = board_fit.named_board(profile, pricing_system.system_of_board(profile, system.name, mode))
    if board is None:
        return ()
    plans = [program.plan(name) for name in program.methods]
    fast = program_checks.fast_scratch_bytes(plans)
    needs = program_firmware.requirements(program.size, plans, target, fast)
    needs = replace(needs, data_bytes=tuple(row.size for row in program.data_files))
    if program.is_stream:  # of one without weights, those that it reads are somewhere else
        velas = [row.vela for row in program.delegates if row.vela is not None]
        weights = sum(cop1.reached_bytes(vela)[REGION_WEIGHTS] for vela in velas if not vela.weights)
        needs = replace(needs, model_bytes=program.size + weights, method_pool_bytes=0)
    return board.uses(needs)


def npu_findings(config_word: int, arch_word: int, npu: str) -> Iterator[Finding]:
    """Where the words CONFIG and ID of a stream do not fit the board's `npu`, such as ``ethos-u55-256``."""
    family, macs = targets.parse_name(npu)
    config, product = family.products[macs].config_word, targets.accelerator(config_word)
    again = f"compile for {npu}: --target {npu}, or Vela's --accelerator-config"
    fields = {"product": (28, 0xF), "macs_per_cc": (0, 0xF), "cmd_stream_version": (4, 0xF)}
    if family.generation == "u85":
        fields |= {"num_axi_sram": (8, 0x3), "num_axi_ext": (10, 0x1)}
    for name, (first, mask) in fields.items():
        own, wanted = config >> first & mask, config_word >> first & mask
        if own != wanted:
            yield Finding(
                f"the command stream is for {product} (CONFIG {config_word:#010x}), and the board has {npu} "
                f"({config:#010x}): {name} is {wanted}, not {own}",
                f"NPU config mismatch. npu.{name}={own}, optimizer.{name}={wanted}; {INVOKE}",
                again,
            )
            return
    own_arch, wanted_arch = _arch(family.id_word), _arch(arch_word)
    if own_arch[0] != wanted_arch[0] or own_arch[1] < wanted_arch[1]:
        has, needs = (".".join(map(str, row)) for row in (own_arch, wanted_arch))
        yield Finding(
            f"the command stream is for architecture {needs}, and the NPU of the board has {has}",
            f"NPU arch mismatch. npu.arch={has}, optimizer.arch={needs}; {INVOKE}",
            "compile with a version of Vela for this NPU",
        )


def _arch(word: int) -> tuple[int, int, int]:
    return word >> 28, word >> 20 & 0xFF, word >> 16 & 0xF


def address_findings(vela: VelaBlocks) -> Iterator[Finding]:
    """Addresses that the NPU cannot use, and regions that not every runtime has. SdkError for a stream that cannot be
    decoded."""
    from ethosu_sdk.npu import program  # NumPy comes with it
    from ethosu_sdk.npu.config import NpuConfig

    config = NpuConfig.from_word(vela.config_word)
    stream = bytes(vela.command_stream)
    found = [
        (row.offset, words)
        for row in program.described(stream, config).operations
        for words in _unaligned(row)
    ]
    if found:
        places = ", ".join(
            f"{words} of the operation at byte {offset}" for offset, words in found[:_MOST_OFFSETS]
        )
        more = f", and {len(found) - _MOST_OFFSETS} more" if len(found) > _MOST_OFFSETS else ""
        yield Finding(
            f"{counted(len(found), 'address')} of the command stream cannot be used: {places}{more}",
            "wrong values, or a bus error",
            "compile again: Vela aligns all of them; the file is damaged or was edited",
        )
    regions = sorted(set(program.reached_bytes(stream, config)) - set(_USUAL_REGIONS))
    if regions:
        yield Finding(
            f"the command stream uses {counted(len(regions), 'region')} beside weights, scratch and fast scratch: "
            + ", ".join(map(str, regions)),
            f"{INVOKE}, or wrong values: the base of the region is not set",
            "compile without Vela's --separate-io-regions, or use a runtime that passes these bases",
        )


def _unaligned(op: object) -> Iterator[str]:
    """The addresses of an operation that are not multiples of what the NPU moves at once."""
    from ethosu_sdk.npu.operation import BlockOp

    if not isinstance(op, BlockOp):
        return
    for name, part in (("weights", op.weights), ("scales", op.scales)):
        for row in part.streams if part is not None else ():
            if row.address % _ALIGNMENT or row.length % _ALIGNMENT:
                yield f"{name} at {row.address:#x} with {row.length:,} bytes"
    for name, feature_map in (("IFM", op.ifm), ("OFM", op.ofm), ("IFM2", op.ifm2)):
        if feature_map is not None and feature_map.chain is None:
            step = _ALIGNMENT if feature_map.bricks else feature_map.dtype.itemsize
            yield from (f"{name} at {base:#x}" for base in feature_map.bases if base % step)


def memory_findings(rows: Iterable[MemoryUse], board: str) -> Iterator[Finding]:
    """Memories of `board` that do not hold what would lie in them; those whose sizes are not public hold all."""
    uses = list(rows)
    for name, size in {row.memory: row.size_bytes for row in uses if row.size_bytes is not None}.items():
        own = [row for row in uses if row.memory == name]
        total = sum(row.used_bytes for row in own)
        if total > size:
            terms = " + ".join(f"{row.role.replace('_', ' ')} {row.used_bytes:,}" for row in own)
            yield Finding(
                f"{name} of {board} has {size:,} bytes, and {terms} = {total:,} would lie there",
                "the linker refuses it, or AllocateTensors() failed",
                "choose another memory mode, --optimise Size, or a smaller model or input",
            )


def operator_findings(operators: Iterable[str], known: Iterable[str]) -> Iterator[Finding]:
    """Operators that the CPU would have to run and that are not among the `known` ones."""
    missing = sorted(set(operators) - set(known))
    if missing:
        yield Finding(
            f"the firmware has no kernel for {', '.join(missing)}",
            "0x14 (operator missing), or Didn't find op for builtin opcode",
            "`ethosu-sdk advise` names a form for the NPU; other kernels are to be added",
        )
