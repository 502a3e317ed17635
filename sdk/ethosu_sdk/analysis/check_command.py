"""`ethosu-sdk check`: what of a program would fail on a board, before it is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.analysis import stream_findings
from ethosu_sdk.analysis.export_command import RUNNER_POOLS, pool_sizes
from ethosu_sdk.analysis.options import CheckOptions
from ethosu_sdk.analysis.stream_findings import INVOKE, Finding
from ethosu_sdk.base import board_profiles, targets
from ethosu_sdk.base.board_profiles import BoardMemory, BoardProfile
from ethosu_sdk.base.errors import InputError, SdkError, UsageError, VerdictError
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.firmware_build import generated_files, program_checks
from ethosu_sdk.npu.vela_blocks import VelaBlocks
from ethosu_sdk.program import cop1, pte, tflite, vela_output
from ethosu_sdk.program.pte import Pte
from ethosu_sdk.records import bundle, check, provenance, result_files, validation
from ethosu_sdk.records.build import Size, SizeName
from ethosu_sdk.records.check import CheckName, Row
from ethosu_sdk.records.run import MemoryUse

_ALIGNMENT = 16  # of what the NPU's base registers hold
_READ_BY_NPU = ("model", "data", "scratch", "fast_scratch")
_VALUES = "wrong values, or a bus error"
_FIGURES = ("memory", "place", "pools")  # whose rows are shown where they pass, too
_MAKE_AGAIN = "compile the model again with `ethosu-sdk compile`"
_VELA = "ethos-u-vela"
# Versions of Vela that write wrong programs whatever the model, and what is wrong.
_WRONG_VELA = {
    "4.1": "writes outputs with other shapes than the model's (pytorch/executorch, issues 7160 and 7198)"
}


@dataclass(frozen=True)
class _Subject:
    """A program that is checked: a .pte, or what Vela left in a .tflite. `version` is Vela's."""

    program: Pte
    version: str | None
    operators: tuple[str, ...]
    of_tflm: bool = False


def _address(text: str) -> int:
    """The address that the user means. UsageError for what is none."""
    try:
        address = int(text, 0)
    except ValueError:
        address = -1
    if not 0 <= address < 1 << 32:
        raise UsageError(f"'{text[:40]}' is not an address", "such as --address 0x3AB7B000")
    return address


def check_program(path: Path, board: str, options: CheckOptions, data: Sequence[Path] = ()) -> check.Check:
    """The record of the program at `path` on a board. InputError for a damaged file, UsageError for no board."""
    profile = board_profiles.find_profile(board)
    subject = _read(path, data)
    rows = list(_rows(subject, profile, options))
    program = subject.program
    record = check.Check(
        status="fail" if any(row.status == "fail" for row in rows) else "pass",
        **provenance.origin(result_files.program_entries(path, program), []),
        model=check.File(name=path.name, sha256=program.sha256, bytes=program.size),
        accelerators=tuple(dict.fromkeys(targets.accelerator(row.config_word) for row in _velas(program))),
        board=check.Board(
            name=profile.name,
            title=profile.title,
            sha256=profile.sha256,
            npus=profile.npus,
            hardware=profile.untested,
        ),
        checks=tuple(rows),
        sizes=_sizes(program),
        host=provenance.this_host(),
    )
    validation.check_record(record.to_json(), "the check")
    return record


def show(record: check.Check, reporter: Reporter) -> None:
    """Print what was found, and the record. VerdictError if something would fail."""
    reporter.show(*_shown(record))
    reporter.emit(record.to_json())
    failed = [row for row in record.checks if row.status == "fail"]
    if failed:
        raise VerdictError(
            f"{record.model.name} would fail on {record.board.name}: {failed[0].detail}",
            failed[0].way_out or "",
            recorded=True,
        )


def _shown(record: check.Check) -> Iterator[RenderableType]:
    failed = sum(row.status == "fail" for row in record.checks)
    verdict = f"FAIL: {counted(failed, 'check')}" if failed else "PASS"
    mark = "" if record.board.hardware is None else f", {record.board.hardware}"
    yield escape(
        f"{verdict}: {record.model.name} on {record.board.name} ({', '.join(record.board.npus)}){mark}"
    )
    table = Table(box=None, show_header=False, pad_edge=False)
    for row in sorted(record.checks, key=lambda row: ("fail", "unknown", "pass").index(row.status)):
        if row.status == "pass" and row.name not in _FIGURES:
            continue
        table.add_row(row.status, row.name, escape(row.detail))
        for label, text in (("shown", row.shown), ("do", row.way_out)):
            if text is not None:
                table.add_row("", label, escape(text))
    yield table
    fine = [row.name for row in record.checks if row.status == "pass" and row.name not in _FIGURES]
    yield f"pass: {', '.join(fine)}"


def _read(path: Path, data: Sequence[Path]) -> _Subject:
    if path.suffix == tflite.SUFFIX:
        return _read_tflite(path)
    if cop1.is_stream(path) or path.suffix == vela_output.RAW_SUFFIX:
        return _Subject(vela_output.read(path), None, ())
    path = result_files.require_pte(path)
    program = pte.read(path, data)
    record = result_files.compile_record_path(path)
    compiled = bundle.compilation_of(record, program.sha256) if record.is_file() else None
    tools = {} if compiled is None else {row.name: row.version for row in compiled.provenance.tools}
    operators = dict.fromkeys(name for plan in program.plans for name in plan.called_operators())
    return _Subject(program, tools.get(_VELA), tuple(operators))


def _read_tflite(path: Path) -> _Subject:
    """Vela's operators of a .tflite as delegates of a program. InputError for one without any."""
    program, model = vela_output.read(path), tflite.read_tflite(path)
    others = dict.fromkeys(row.name for row in model.main.operators if row not in model.npu_operators)
    return _Subject(program, model.vela_version, tuple(others), of_tflm=True)


def _velas(program: Pte) -> list[VelaBlocks]:
    return [row.vela for row in program.delegates if row.vela is not None]


def _rows(subject: _Subject, profile: BoardProfile, options: CheckOptions) -> Iterator[Row]:
    program, velas = subject.program, _velas(subject.program)
    fits = f"{counted(len(velas), 'command stream')} for {' or '.join(profile.npus)}"
    yield from _judged("npu", (row for vela in velas for row in _npu(vela, profile)), fits)
    yield _vela_version(subject.version)
    yield from _system(program)
    known = [vela for vela in velas if _is_known(vela)]
    if len(known) < len(velas):
        detail = "a command stream is for an NPU that does not exist, and cannot be decoded"
        yield Row(name="commands", status="unknown", detail=detail)
    undecodable = {id(vela): list(_undecodable(vela)) for vela in known}
    found = (row for rows in undecodable.values() for row in rows)
    yield from _judged("commands", (*found, *_commands(program)), "every command can be decoded")
    readable = [vela for vela in known if not undecodable[id(vela)]]
    found = (row for vela in readable for row in stream_findings.address_findings(vela))
    yield from _judged(
        "addresses", (*found, *_payloads(program)), "aligned, in regions that every runtime sets"
    )
    yield from _judged("hazards", (row for vela in readable for row in _hazards(vela)), "none")
    yield from _kernels(subject)
    yield from _judged("data files", _data_files(program), "all data of the program is there")
    yield from _memories(subject, profile, options)
    yield from _pools(program, profile, options)


def _judged(name: CheckName, found: Iterable[Finding], fine: str) -> Iterator[Row]:
    """A row for each finding, or one that says what is `fine`."""
    rows = list(dict.fromkeys(found))
    for row in rows:
        yield Row(name=name, status="fail", detail=row.problem, shown=row.shown, way_out=row.way_out)
    if not rows:
        yield Row(name=name, status="pass", detail=fine)


def _npu(vela: VelaBlocks, profile: BoardProfile) -> Iterator[Finding]:
    own = targets.accelerator(vela.config_word)
    npu = own if own in profile.npus else profile.npus[0]
    yield from stream_findings.npu_findings(vela.config_word, vela.arch_word, npu)


def _vela_version(version: str | None) -> Row:
    if version is None:
        return Row(
            name="vela", status="unknown", detail="the file does not say which version of Vela made it"
        )
    wrong = next((text for known, text in _WRONG_VELA.items() if f"{version}.".startswith(f"{known}.")), None)
    if wrong is None:
        return Row(name="vela", status="pass", detail=f"Vela {version}")
    return Row(
        name="vela",
        status="fail",
        detail=f"Vela {version} {wrong}",
        shown="Byte size mismatch: tensor N, Vela N; or wrong values",
        way_out=f"{_MAKE_AGAIN}, which has a newer Vela",
    )


def _system(program: Pte) -> Iterator[Row]:
    try:
        target = program.target()
    except InputError as error:
        yield Row(name="system", status="unknown", detail=error.message)
        return
    if target is not None:
        yield Row(name="system", status="pass", detail=f"{target.system_config}, {target.memory_mode}")


def _is_known(vela: VelaBlocks) -> bool:
    from ethosu_sdk.npu.config import NpuConfig  # NumPy comes with it

    try:
        NpuConfig.from_word(vela.config_word)
    except UsageError:
        return False
    return True


def _undecodable(vela: VelaBlocks) -> Iterator[Finding]:
    from ethosu_sdk.npu import program  # NumPy comes with it
    from ethosu_sdk.npu.config import NpuConfig

    try:
        program.steps(bytes(vela.command_stream), NpuConfig.from_word(vela.config_word))
    except SdkError as error:
        yield Finding(error.message, f"{INVOKE}: the NPU stops with a parse error, or never", _MAKE_AGAIN)


def _commands(program: Pte) -> Iterator[Finding]:
    try:
        program_checks.refuse_lost_tables(program.plans)
    except InputError as error:
        yield Finding(error.message, "wrong values", error.hint)
    for plan in program.plans:
        try:
            plan.check_backends()
        except InputError as error:
            yield Finding(error.message, "0x20 (NotFound): no such backend", error.hint)


def _payloads(program: Pte) -> Iterator[Finding]:
    """Delegates that do not begin where the NPU's base registers can point."""
    for index, row in enumerate(program.delegates):
        if row.vela is not None and row.payload_offset % _ALIGNMENT:
            yield Finding(
                f"the payload of delegate {index} begins at byte {row.payload_offset:,} of the file, not at a "
                f"multiple of {_ALIGNMENT}",
                f"{INVOKE}: a base address that is not aligned",
                "compile again with segments for delegates, which are aligned",
            )


def _hazards(vela: VelaBlocks) -> Iterator[Finding]:
    for text in program_checks.hazard_sentences(vela):
        yield Finding(text, "wrong values on hardware, now and then", _MAKE_AGAIN)


def _kernels(subject: _Subject) -> Iterator[Row]:
    names = ", ".join(subject.operators)
    if subject.of_tflm:
        detail = f"the resolver of TensorFlow Lite Micro needs the custom operator {tflite.NPU_OPERATOR}"
        yield Row(name="kernels", status="pass", detail=f"{detail}, {names}" if names else detail)
        return
    found = stream_findings.operator_findings(subject.operators, generated_files.known_kernels())
    yield from _judged("kernels", found, f"the CPU runs {names}" if names else "none is needed")


def _data_files(program: Pte) -> Iterator[Finding]:
    try:
        program.check_data()
    except InputError as error:
        yield Finding(error.message, "0x24 (InvalidExternalData), or 0x20 (NotFound)", error.hint)


def _memories(subject: _Subject, profile: BoardProfile, options: CheckOptions) -> Iterator[Row]:
    try:
        uses = stream_findings.uses_on_board(subject.program, profile, options.memory_mode or "")
    except InputError as error:
        yield Row(name="memory", status="unknown", detail=error.message)
        return
    if not uses:
        detail = f"the pack of {profile.name} does not say which memories its areas are"
        yield Row(name="memory", status="unknown", detail=detail)
    for name in dict.fromkeys(row.memory for row in uses):
        memory = profile.memory(name)
        yield from _memory([row for row in uses if row.memory == name], memory, profile.name)
    yield from _judged("reach", _unreached(uses, profile), "the NPU reaches each memory that it uses")
    model = next((row for row in uses if row.role == "model"), None)
    memory = None if model is None else profile.memory(model.memory)
    if memory is not None:
        yield from _place(
            subject.program.size, memory, None if options.address is None else _address(options.address)
        )


def _memory(rows: list[MemoryUse], memory: BoardMemory | None, board: str) -> Iterator[Row]:
    """Whether a memory of `board` holds `rows`. Models in it may not lie at its beginning."""
    name, size = rows[0].memory, rows[0].size_bytes
    terms = " + ".join(f"{row.role.replace('_', ' ')} {row.used_bytes:,}" for row in rows)
    if size is None:
        yield Row(name="memory", status="unknown", detail=f"{name}, whose size is not public: {terms} bytes")
        return
    offset = (memory.model_offset or 0) if memory is not None else 0
    left = size - offset
    rows = [row if offset == 0 else _smaller(row, left) for row in rows]
    total = sum(row.used_bytes for row in rows)
    fine = f"{name}: {terms} of {left:,} bytes, {left - total:,} free"
    yield from _judged("memory", stream_findings.memory_findings(rows, board), fine)


def _smaller(row: MemoryUse, size: int) -> MemoryUse:
    return MemoryUse(memory=row.memory, role=row.role, used_bytes=row.used_bytes, size_bytes=size)


def _unreached(uses: Iterable[MemoryUse], profile: BoardProfile) -> Iterator[Finding]:
    for row in uses:
        memory = profile.memory(row.memory)
        if row.role in _READ_BY_NPU and memory is not None and memory.npu is False:
            yield Finding(
                f"the {row.role.replace('_', ' ')} would lie in {row.memory}, which the NPU does not reach",
                _VALUES,
                "choose another system configuration or memory mode, or correct the pack's areas",
            )


def _place(size: int, memory: BoardMemory, address: int | None) -> Iterator[Row]:
    """Whether a program of `size` may lie at `address` of the memory; where it may, without one."""
    offset, alignment = memory.model_offset or 0, max(_ALIGNMENT, memory.model_alignment or 0)
    bases = [base for base in (memory.base, memory.secure_base) if base is not None]
    if not bases or memory.size_bytes is None:
        if address is not None:
            detail = f"the pack does not say where {memory.name} begins and ends"
            yield Row(name="place", status="unknown", detail=detail)
        return
    begin = " or ".join(f"{base + offset:#010x}" for base in bases)
    rule = f"in {memory.name} at {begin} or above, at a multiple of {alignment:,}"
    if address is None:
        yield Row(name="place", status="pass", detail=f"write the program {rule}")
        return
    inside = any(base + offset <= address <= base + memory.size_bytes - size for base in bases)
    if inside and address % alignment == 0:
        yield Row(name="place", status="pass", detail=f"{address:#010x} is {rule}")
        return
    yield Row(
        name="place",
        status="fail",
        detail=f"a program of {size:,} bytes cannot lie at {address:#010x}: it has to be {rule}, and to end there",
        shown="0x23 (InvalidProgram), Program loading failed, or firmware that does not start",
        way_out=f"write it to {bases[-1] + -(-offset // alignment) * alignment:#010x}",
    )


def _sizes(program: Pte) -> tuple[Size, ...]:
    try:
        return tuple(pool_sizes(program, program.plan().name, None).values())
    except (InputError, UsageError):
        return ()


def _pools(program: Pte, profile: BoardProfile, options: CheckOptions) -> Iterator[Row]:
    """ExecuTorch's pools in the application of the user or the vendor, against what the program needs at least."""
    needed = {} if program.is_stream else {row.name: row.bytes for row in _sizes(program)}
    pools: dict[SizeName, tuple[int | None, int | None]] = {
        "executorch_method": (options.method_pool, profile.pools.executorch_method),
        "executorch_temp": (options.temp_pool, profile.pools.executorch_temp),
    }
    for name, (given, vendors) in pools.items():
        if name not in needed:
            continue
        setting, least, own = RUNNER_POOLS[name], needed[name], vendors if given is None else given
        if own is None:
            detail = f"{setting} has to be {least:,} bytes at least"
            yield Row(name="pools", status="pass", detail=detail)
        elif own >= least:
            detail = f"{setting} is {own:,} bytes, and {least:,} at least are needed"
            yield Row(name="pools", status="pass", detail=detail)
        else:
            yield Row(
                name="pools",
                status="fail",
                detail=f"{setting} is {own:,} bytes, and {least:,} at least are needed",
                shown="0x21 (MemoryAllocationFailed)",
                way_out=f"give it {least:,} bytes or more; `ethosu-sdk export --run` has what a run used",
            )
