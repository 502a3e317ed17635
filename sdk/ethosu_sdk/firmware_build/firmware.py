"""`.pte` → firmware: check, plan, generate, compile, publish."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk import __version__, pte, records, resources
from ethosu_sdk.errors import BuildError, InputError
from ethosu_sdk.firmware_build import boards, cache, cmake, fit, generate, kernels, layout
from ethosu_sdk.firmware_build.board_choice import BoardChoice, choose_board
from ethosu_sdk.firmware_build.elf import (
    Image,
    RegionUse,
    Section,
    Symbol,
    read_elf,
    region_use,
    section_bytes,
)
from ethosu_sdk.firmware_build.memory_modes import memory_mode, memory_modes
from ethosu_sdk.firmware_build.method_pool import method_pool_bytes
from ethosu_sdk.targets import Target

DEFAULT_METHOD = "forward"
DEFAULT_NPU_TIMEOUT_MS = 10_000
INPUT_IMAGE_SYMBOL = "input_image"  # app/pools.cpp
_MODEL_SECTION = ".model"  # app/model.S
_ELF, _MAP, _WORK = "executor_runner.elf", "executor_runner.map", "firmware"
_METHOD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")


@dataclass(frozen=True)
class Pool:
    """One memory pool at its final address; `used_bytes` is what the model is known to need of it."""

    name: str
    memory: str
    address: int
    used_bytes: int
    size_bytes: int


@dataclass(frozen=True)
class FirmwareBuild:
    """A firmware that is ready to run, and what is known of it."""

    elf: Path
    map: Path
    elf_sha256: str
    build_key: str
    cached: bool  # nothing had to be compiled
    board: str
    board_reason: str  # why it is this board
    method: str
    model_sha256: str
    model_bytes: int
    target: Target | None  # None when nothing is delegated
    regions: tuple[RegionUse, ...]
    pools: tuple[Pool, ...]
    sections: tuple[Section, ...]
    symbols: dict[str, Symbol]
    kernels: tuple[kernels.Kernel, ...]  # exactly those that are linked
    delegates: int
    toolchain: dict[str, str]  # program → version
    notes: tuple[str, ...]  # of the board, and all that `spilled` says
    spilled: tuple[str, ...]  # what lies elsewhere than the memory mode has it
    wall_time_s: float


@dataclass(frozen=True)
class BuildOptions:
    """What :func:`build` may be asked for.

    `board` is the name of one of `BOARDS`, by default the one that carries the program's NPU; `simulator`, such as
    ``qemu``, is where the firmware is to run, if that is known (:func:`choose_board`). `method` is the one to run: by
    default ``forward``, or the only one. `inferences` is how many one run must be able to take (its inputs lie in
    memory together). `npu_timeout_ms` bounds one NPU job in the board's own time. `fast_scratch_bytes` is what the
    command streams need of region 2, by default the most that the memory mode allows them. `allow_spill` lets a model
    or scratch that is too large for where its memory mode has it lie in the large memory, with a note.
    """

    board: str | None = None
    simulator: str | None = None
    method: str | None = None
    inferences: int = 1
    npu_timeout_ms: int = DEFAULT_NPU_TIMEOUT_MS
    fast_scratch_bytes: int | None = None
    allow_spill: bool = False


_DEFAULTS = BuildOptions()


@dataclass(frozen=True)
class _Recipe:
    """All that shapes the firmware."""

    choice: BoardChoice
    board: boards.Board
    program: pte.Pte
    data: bytes
    method: str
    target: Target | None
    kernels: tuple[kernels.Kernel, ...]
    delegates: int
    layout: layout.Layout
    files: dict[str, bytes]  # generated files by name, the model among them


def build(pte_path: Path, out_dir: Path, options: BuildOptions = _DEFAULTS) -> FirmwareBuild:
    """Build the firmware of the program at `pte_path` and put ELF and map into `out_dir`.

    Raises InputError for a damaged or unusable program, UsageError for a board or simulator without its NPU,
    BuildError when an operator has no kernel, the model does not fit or a tool fails, ToolError when one is missing.
    """
    start = time.monotonic()
    recipe = _recipe(pte_path, options)
    toolchain = cmake.find_toolchain()
    source = resources.directory("firmware")
    configuration = cmake.Configuration(cache.sources(source), recipe.board.preset, toolchain)
    key = cache.build_key(
        {
            "files": cache.hashes(recipe.files),
            "sources": cache.hashes(configuration.sources),
            "preset": configuration.preset,
            "toolchain": toolchain.versions(),
        }
    )
    products = {_ELF: out_dir / _ELF, _MAP: out_dir / _MAP}
    with records.locked(out_dir / _WORK):
        stamp = out_dir / _WORK / "current.json"
        cached = cache.is_current(stamp, key, products)
        if not cached:
            shared = cache.work_directory({"source": str(source), "preset": configuration.preset})
            cmake.publish(configuration, recipe.files, out_dir / _WORK, shared, tuple(products.values()))
            cache.remember(stamp, key, products)
    return _describe(recipe, products, key, cached, toolchain, time.monotonic() - start)


def _recipe(path: Path, options: BuildOptions) -> _Recipe:
    if options.inferences < 1:
        raise InputError(f"a run of {options.inferences} inferences cannot be built", "one at least")
    data = _read(path)
    program = pte.parse(data)
    name = _method_name(program, options.method)
    plan = program.plan(name)
    target = program.target()
    known = kernels.manifest(resources.directory("firmware") / "kernels" / "kernels.toml")
    selected = kernels.select((row.full_name for row in plan.operators), known)
    needs = requirements(len(data), plan, target, options.fast_scratch_bytes)
    choice = choose_board(target.npu if target else None, options.board, options.simulator)
    board = boards.board(choice.board)
    modes = allowed_modes(target)
    memory = fit.plan(needs, board, options.inferences, modes, allow_spill=options.allow_spill)
    configuration = generate.Configuration(
        version=__version__,
        method=name,
        delegates=len(plan.delegates),
        npu_settings=memory_mode(needs.memory_mode).settings,
        planned_bytes=_planned(plan),
        npu_timeout_ms=options.npu_timeout_ms,
    )
    files = {
        "model_config.hpp": generate.model_config(configuration, memory).encode(),
        "placement.ld": generate.placement_script(memory).encode(),
        "selected_kernels.cpp": generate.selected_kernels(selected).encode(),
        "model.pte": data,
    }
    return _Recipe(choice, board, program, data, name, target, selected, len(plan.delegates), memory, files)


def allowed_modes(target: Target | None) -> tuple[str, ...]:
    """The memory modes that the program could be compiled for; with a Vela configuration of its own, any."""
    if target is None:
        return ()
    return target.family.system_configs.get(target.system_config, tuple(memory_modes()))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def _method_name(program: pte.Pte, wish: str | None) -> str:
    names = [plan.name for plan in program.plans]
    name = wish or (names[0] if len(names) == 1 else DEFAULT_METHOD)
    if not _METHOD_NAME.fullmatch(name):  # it becomes C++ source
        raise InputError(f"the method name {name!r} is not an identifier")
    return name


def _planned(plan: pte.ExecutionPlan) -> tuple[int, ...]:
    return tuple(plan.non_const_buffer_sizes[1:])  # ExecuTorch reserves the first


def requirements(
    data_bytes: int, plan: pte.ExecutionPlan, target: Target | None, fast_scratch_bytes: int | None
) -> layout.Requirements:
    """What a program of `data_bytes` asks of the memory. InputError when it delegates to anything but an Ethos-U."""
    foreign = sorted({row.id for row in plan.delegates} - {pte.ETHOSU_BACKEND})
    if foreign:
        raise InputError(
            f"the program delegates to {', '.join(foreign)}, which no Ethos-U board has",
            "compile it for an Ethos-U target",
        )
    scratch = (row.vela.scratch_bytes for row in plan.delegates if row.vela is not None)
    return layout.Requirements(
        model_bytes=data_bytes,
        memory_mode=target.memory_mode if target else None,
        scratch_bytes=max(scratch, default=0),
        planned_bytes=_planned(plan),
        method_pool_bytes=method_pool_bytes(plan),
        input_bytes=tuple(tensor.nbytes for tensor in plan.input_tensors()),
        fast_scratch_bytes=fast_scratch_bytes,
    )


def _describe(
    recipe: _Recipe,
    products: dict[str, Path],
    key: str,
    cached: bool,
    toolchain: cmake.Toolchain,
    wall_time_s: float,
) -> FirmwareBuild:
    image = read_elf(products[_ELF])
    image.symbol(INPUT_IMAGE_SYMBOL)  # without it no input would reach the firmware
    if section_bytes(products[_ELF], _MODEL_SECTION) != recipe.data:
        raise BuildError(
            f"{products[_ELF]} holds another program than the one that was given: the build went wrong",
            f"remove {products[_ELF].parent} and the cache's folder 'firmware', and build again",
        )
    return FirmwareBuild(
        elf=products[_ELF],
        map=products[_MAP],
        elf_sha256=records.sha256_file(products[_ELF]),
        build_key=key,
        cached=cached,
        board=recipe.board.name,
        board_reason=recipe.choice.reason,
        method=recipe.method,
        model_sha256=recipe.program.sha256,
        model_bytes=len(recipe.data),
        target=recipe.target,
        regions=region_use(image, recipe.board),
        pools=_pools(recipe, image),
        sections=image.sections,
        symbols=image.symbols,
        kernels=recipe.kernels,
        delegates=recipe.delegates,
        toolchain=toolchain.versions(),
        notes=recipe.choice.notes + recipe.layout.notes,
        spilled=recipe.layout.notes,
        wall_time_s=wall_time_s,
    )


def _pools(recipe: _Recipe, image: Image) -> tuple[Pool, ...]:
    """The planned pools as the linker placed them; each has a section of its own, named after it."""
    sections = {section.name: section for section in image.sections}
    rows = []
    for row in recipe.layout.placements:
        section = sections.get(f".{row.name.lower()}")
        if section is not None and row.size_bytes:
            used = min(row.used_bytes, section.bytes)
            rows.append(Pool(row.name.lower(), row.memory.name, section.address, used, section.bytes))
    return tuple(rows)
