"""The firmware of one program: check, plan, generate, compile, publish."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ethosu_sdk import __version__
from ethosu_sdk.base import boards
from ethosu_sdk.base.errors import BuildError, InputError, UsageError
from ethosu_sdk.base.targets import MemoryAreas, Target, suggestion
from ethosu_sdk.firmware_build import board_fit, cmake, executable, generated_files, memory_fit
from ethosu_sdk.firmware_build.board_fit import NamedBoard
from ethosu_sdk.firmware_build.executable import Executable, Recipe, Section, section_bytes
from ethosu_sdk.firmware_build.memory_fit import MemoryFitError, aligned, memory_mode
from ethosu_sdk.program import protocol, pte
from ethosu_sdk.program.execution_plan import ExecutionPlan
from ethosu_sdk.program.named_data import DataFile
from ethosu_sdk.records.run import MemoryRole, MemoryUse
from ethosu_sdk.simulate.program_board import choose_board
from ethosu_sdk.simulate.simulators import OWN_MEMORIES

DEFAULT_NPU_TIMEOUT_MS = 10_000
_MODEL_SECTION = ".model"  # app/model.S
_DATA_SECTION = ".model_data"  # generated_files.data_files
_WORK = "firmware"  # the folder beside the ELF
WORK_FILES = (f"{_WORK}/{cmake.LOG_NAME}", f"{_WORK}/{executable.STAMP_NAME}")


@dataclass(frozen=True)
class Pool:
    """One memory pool at its final address; `used_bytes` is what the model is known to need of it."""

    name: str
    memory: str
    address: int
    used_bytes: int
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class FirmwareBuild(Executable):
    """The firmware of one program."""

    board_reason: str  # why it is this board
    methods: tuple[str, ...]
    pools: tuple[Pool, ...]
    notes: tuple[str, ...]  # of the board, and all that `spilled` says
    spilled: tuple[str, ...]  # what lies elsewhere than the memory mode has it
    uses: tuple[MemoryUse, ...]
    uses_of: str  # the board that these are of: the one that the user named, if any


_ROLES: dict[str, MemoryRole] = {
    "model": "model",
    "model_data": "data",
    "scratch": "scratch",
    "fast_scratch": "fast_scratch",
    "planned": "planned",
    "method_pool": "method_pool",
    "input_image": "harness",
}


def _uses(made: Executable, pools: Iterable[Pool]) -> tuple[MemoryUse, ...]:
    """What lies in each memory of the board that the firmware was built for, by its role. Values that start-up code
    copies take room twice: as code, and as the firmware's own data."""
    memories = boards.board_named(made.board).memories
    own = {f".{row.name}": row for row in pools}
    used: Counter[tuple[str, MemoryRole]] = Counter()
    for section in made.sections:
        pool = own.get(section.name)
        if pool is not None:
            role = _ROLES[pool.name]
            used[pool.memory, role] += pool.size_bytes if role == "harness" else pool.used_bytes
            continue
        places: list[tuple[int, MemoryRole]] = [(section.address, "code" if section.in_file else "firmware")]
        if section.in_file and section.load_address != section.address:
            places = [(section.address, "firmware"), (section.load_address, "code")]
        for address, role in places:
            memory = next(row for row in memories if row.holds(address))
            used[memory.name, role] += section.bytes
    sizes = {row.name: row.size_bytes for row in memories}
    return tuple(
        MemoryUse(memory=name, role=role, used_bytes=size, size_bytes=sizes[name])
        for (name, role), size in used.items()
    )


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """What :func:`build_firmware` may be asked for.

    `board` is the name of one of `BOARDS`, by default the one that carries the program's NPU; `simulator`, such as
    ``qemu``, is where the firmware is to run, if that is known (:func:`choose_board`). `methods` are those that it
    loads, by default ``forward`` or the only one: the first runs, unless an input image calls others. `inferences` is
    how many one run must be able to take (its inputs lie in memory together). `npu_timeout_ms` bounds one NPU job in
    the board's own time. `fast_scratch_bytes` is what the command streams need of region 2, by default the most that
    the memory mode allows them. `allow_spill` lets a model or scratch that is too large for where its memory mode has
    it lie in the large memory, with a note.
    `named` is the board that the user named: the program has to fit that, unless `allow_spill`, and a simulator whose
    memories are the SDK's takes the room that it needs.
    `extra_image_bytes` is what the input image holds beside inputs. `areas` say where the memory mode has things,
    where its name does not. `data_files` are those of the program, which lie in the memory called `data_memory`, by
    default where the memory mode has the program.
    """

    board: str | None = None
    simulator: str | None = None
    methods: tuple[str, ...] = ()
    inferences: int = 1
    npu_timeout_ms: int = DEFAULT_NPU_TIMEOUT_MS
    fast_scratch_bytes: int | None = None
    allow_spill: bool = False
    extra_image_bytes: int = 0
    areas: MemoryAreas | None = None
    data_files: tuple[DataFile, ...] = ()
    data_memory: str | None = None
    named: NamedBoard | None = None


_DEFAULTS = BuildOptions()


def build_firmware(pte_path: Path, out_dir: Path, options: BuildOptions = _DEFAULTS) -> FirmwareBuild:
    """Build the firmware of the program at `pte_path` and put ELF and map into `out_dir`.

    Raises InputError for a damaged or unusable program, UsageError for a board or simulator without its NPU,
    BuildError when an operator has no kernel, the model does not fit or a tool fails, ToolError when one is missing.
    """
    if options.inferences < 1:
        raise InputError(
            f"a run of {options.inferences} inferences cannot be built", "give at least one input set"
        )
    data = _read(pte_path)
    program = pte.parse(data, options.data_files)
    _check_data_files(program, options)
    plans = [program.plan(name) for name in _method_names(program, options.methods)]
    operators = (row.full_name for plan in plans for row in plan.operators)
    selected = generated_files.select_kernels(operators, generated_files.known_kernels())
    needs = needs_of(program, options)
    choice = choose_board(program.npu(), options.board, options.simulator)
    layout = _layout(program, needs, choice.board, options)
    board = boards.board_named(choice.board)
    configuration = generated_files.ModelConfiguration(
        version=__version__,
        methods=memory_fit.memory_of_methods(plans)[0],
        npu_settings=memory_mode(needs.memory_mode, needs.areas).settings,
        npu_timeout_ms=options.npu_timeout_ms,
        data_files=len(program.data_files),
    )
    recipe = Recipe(
        name=cmake.EXECUTABLE,
        board=board,
        kernels=selected,
        files={
            "model_config.hpp": generated_files.model_config(configuration, layout).encode(),
            "placement.ld": generated_files.placement_script(layout).encode(),
            "model.pte": data,
            **generated_files.data_files(program.data_files),
        },
        symbols=(protocol.INPUT_IMAGE_SYMBOL,),
    )
    made = executable.make_executable(recipe, out_dir, out_dir / _WORK)
    _check_content(made.elf, data, options.data_files)
    pools = _pools(layout, made.sections)
    firmware = FirmwareBuild(
        **vars(made),
        board_reason=choice.reason,
        methods=tuple(plan.name for plan in plans),
        pools=pools,
        uses=_uses(made, pools),
        uses_of=made.board,
        notes=choice.notes + layout.notes + layout.room,
        spilled=layout.notes,
    )
    return firmware if options.named is None else _judged(firmware, needs, options.named, options.allow_spill)


def _judged(
    firmware: FirmwareBuild, needs: memory_fit.Requirements, named: NamedBoard, allow_spill: bool
) -> FirmwareBuild:
    """`firmware` with what it takes of the board that the user named. MemoryFitError where it does not fit that with
    its code."""
    code_bytes = sum(row.used_bytes for row in firmware.uses if row.role == "code")
    misfit = board_fit.misfit(named, needs, code_bytes)
    if misfit is not None and not allow_spill:
        raise misfit
    spilled = () if misfit is None else (misfit.message,)
    return replace(
        firmware,
        uses_of=named.profile.name,
        uses=named.uses(needs, code_bytes),
        notes=firmware.notes + spilled,
        spilled=spilled,
    )


def check_fit(program: pte.Pte, options: BuildOptions) -> None:
    """What of :func:`build_firmware` is known before anything is built. MemoryFitError for a program that does not
    fit the board."""
    needs = needs_of(program, options)
    choice = choose_board(program.npu(), options.board, options.simulator)
    _layout(program, needs, choice.board, options)


def check_named(program: pte.Pte, options: BuildOptions) -> None:
    """MemoryFitError for a program that does not fit the board that the user named, if any."""
    _refuse_misfit(needs_of(program, options), options)


def _refuse_misfit(needs: memory_fit.Requirements, options: BuildOptions) -> None:
    named = options.named
    misfit = None if named is None else board_fit.misfit(named, needs)
    if misfit is not None and not options.allow_spill:
        raise misfit


def needs_of(program: pte.Pte, options: BuildOptions) -> memory_fit.Requirements:
    """What the methods of `program` that `options` name ask of the memory."""
    plans = [program.plan(name) for name in _method_names(program, options.methods)]
    return replace(
        requirements(program.size, plans, program.target(), options.fast_scratch_bytes, options.areas),
        extra_image_bytes=options.extra_image_bytes,
        data_bytes=tuple(row.size for row in program.data_files),
        data_memory=(options.data_memory or "").upper(),
    )


def _layout(
    program: pte.Pte, needs: memory_fit.Requirements, board_name: str, options: BuildOptions
) -> memory_fit.Layout:
    """Where the program lies on the simulated board, if it fits the one that is judged."""
    board, named = boards.board_named(board_name), options.named
    _check_data_memory(options.data_memory, board)
    _refuse_misfit(needs, options)
    try:
        return memory_fit.fitting_layout(
            needs,
            board,
            options.inferences,
            allowed_modes(program.target()),
            allow_spill=options.allow_spill,
            npu=program.npu(),
            named=named.profile.name if named is not None and options.simulator == OWN_MEMORIES else "",
        )
    except MemoryFitError as error:
        if named is None:
            raise
        fixed, way = f"firmware for every {board_name}", "leave --board out where QEMU is installed"
        if options.simulator:
            fixed, way = options.simulator.upper(), f"--simulator {OWN_MEMORIES}"
        raise MemoryFitError(
            f"{error.message}. {named.profile.name} has room, but the memories of {fixed} cannot be changed",
            f"{way}: QEMU takes the room that the run needs; or {error.hint}",
        ) from error


def _check_data_files(program: pte.Pte, options: BuildOptions) -> None:
    program.check_data()
    if options.data_memory is not None and not program.data_files:
        raise UsageError("--data-memory is for a program with data files (.ptd)", "leave it out")
    if len(program.data_files) > protocol.MAX_DATA_FILES:
        raise InputError(
            f"the program has {len(program.data_files)} data files, but a firmware takes {protocol.MAX_DATA_FILES}",
            "write fewer of them: give several parts of the program the same tag",
        )


def _check_data_memory(name: str | None, board: boards.Board) -> None:
    names = [row.name.lower() for row in memory_fit.data_memories(board)]
    if name is not None and name not in names:
        raise UsageError(f"unknown memory '{name}' for --data-memory", suggestion(name, names))


def _check_content(elf: Path, program: bytes, files: Sequence[DataFile]) -> None:
    """BuildError unless the firmware contains the program and these data files, and no others."""
    alike = section_bytes(elf, _MODEL_SECTION) == program
    if files:
        *others, last = (bytes(row.data) for row in files)
        padded = (content + bytes(-len(content) % memory_fit.MODEL_ALIGNMENT) for content in others)
        alike = alike and section_bytes(elf, _DATA_SECTION) == b"".join(padded) + last
    if not alike:
        raise BuildError(
            f"{elf} contains a different program than the one given: the build failed",
            f"remove {elf.parent} and the cache's folder 'firmware', and build again",
        )


def allowed_modes(target: Target | None) -> tuple[str, ...]:
    """The memory modes that the program could be compiled for; of a user's Vela configuration file, none is known."""
    if target is None or target.vela_config:
        return ()
    return target.family.system_configs.get(target.system_config, ())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def _method_names(program: pte.Pte, requested: Sequence[str]) -> Sequence[str]:
    names = requested or (program.plan().name,)
    if len(names) > protocol.MAX_METHODS:
        raise InputError(f"{len(names)} methods, but the firmware loads {protocol.MAX_METHODS} at most")
    return [program.plan(name).name for name in names]  # names that are identifiers: they become C++ source


def requirements(
    data_bytes: int,
    plans: Sequence[ExecutionPlan],
    target: Target | None,
    fast_scratch_bytes: int | None,
    areas: MemoryAreas | None = None,
) -> memory_fit.Requirements:
    """What a program of `data_bytes` whose methods `plans` are loaded asks of the memory.

    InputError when it delegates to anything but an Ethos-U.
    """
    for plan in plans:
        plan.check_backends()
    rows = (row for plan in plans for row in plan.delegates)
    scratch = (row.vela.scratch_bytes for row in rows if row.vela is not None)
    methods, planned = memory_fit.memory_of_methods(plans)
    inputs = [tuple(tensor.nbytes for tensor in plan.input_tensors()) for plan in plans]
    return memory_fit.Requirements(
        model_bytes=data_bytes,
        memory_mode=target.memory_mode if target else None,
        scratch_bytes=max(scratch, default=0),
        planned_bytes=planned,
        method_pool_bytes=sum(row.method_pool_bytes for row in methods),
        input_bytes=max(inputs, key=lambda sizes: sum(map(aligned, sizes))),
        fast_scratch_bytes=fast_scratch_bytes,
        areas=areas,
    )


def _pools(layout: memory_fit.Layout, found: Iterable[Section]) -> tuple[Pool, ...]:
    """The planned pools as the linker placed them; each has a section of its own, named after it."""
    sections = {section.name: section for section in found}
    rows = []
    for row in layout.placements:
        section = sections.get(f".{row.name.lower()}")
        if section is not None and row.size_bytes:
            used = min(row.used_bytes, section.bytes)
            rows.append(Pool(row.name.lower(), row.memory.name, section.address, used, section.bytes))
    return tuple(rows)
