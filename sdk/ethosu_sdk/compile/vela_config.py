"""What a user may ask of Vela: a configuration in place of its own, the target that it describes, and flags."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.base import board_profiles, filesystem, targets
from ethosu_sdk.base.board_profiles import BoardProfile
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.compile.program_options import ProgramOptions
from ethosu_sdk.npu.timing import systems
from ethosu_sdk.npu.timing.systems import VelaIni


@dataclass(frozen=True)
class VelaConfig:
    """A configuration that was read: what is in it, its content, and the board profile that it is of, if any."""

    content: bytes
    ini: VelaIni
    board: BoardProfile | None = None

    @property
    def stored_name(self) -> str:
        """The name that the program keeps of the configuration: with its digest."""
        return targets.stored_name(filesystem.sha256_bytes(self.content))


def read_config(path: Path) -> VelaConfig:
    """Read a configuration file. InputError when it cannot be read, or is none (:func:`systems.parse`)."""
    content = filesystem.file_text(path, systems.LARGEST_BYTES)
    return VelaConfig(content.encode(), systems.parse(content, str(path)))


def _config_of_profile(profile: BoardProfile) -> VelaConfig:
    text = profile.vela_ini()
    return VelaConfig(text.encode(), systems.parse(text, profile.ini_source), profile)


def chosen_config(options: ProgramOptions) -> VelaConfig | None:
    """The configuration in place of Vela's own. InputError for a file that is none, UsageError for two of them."""
    if options.system is not None and options.vela_config is not None:
        raise UsageError(
            "--system and --vela-config both give Vela's configuration", "leave one of the two out"
        )
    if options.system is not None:
        return _config_of_profile(board_profiles.find_profile(options.system))
    return None if options.vela_config is None else read_config(options.vela_config)


def resolve_target(
    name: str | None, system_config: str | None, memory_mode: str | None, options: ProgramOptions
) -> targets.AnyTarget:
    """The target that a user asked for; with a configuration file or a board profile in `options`, its names count.
    What is not given is the profile's default. Without a profile it is DEFAULT_TARGET, and the family's default if
    the file has that, or the file's only one. UsageError for a name that does not exist or an NPU that the board does
    not have, for options of an NPU beside a processor, and InputError for a file that is none."""
    config = chosen_config(options)
    if name in targets.cores():
        return _core(targets.cores()[name], config, system_config, memory_mode, options)
    if config is not None and config.board is not None:
        return _on_board(config.board, name, system_config, memory_mode)
    name = name or targets.DEFAULT_TARGET
    if config is None:
        return targets.parse_target(name, system_config, memory_mode)
    return target_in(config, name, system_config, memory_mode)


def _core(
    core: targets.Core,
    config: VelaConfig | None,
    system_config: str | None,
    memory_mode: str | None,
    options: ProgramOptions,
) -> targets.Core:
    """The target `core`. UsageError for options that only an NPU has, and for a board with another processor."""
    given = {
        "--system-config": system_config,
        "--memory-mode": memory_mode,
        "--vela-config": options.vela_config,
        "--extra-vela-flag": options.vela_flags,
        "--require-full-delegation": options.require_full_delegation,
        "--fallback": options.fallback,
        "--as-written": options.as_written,
    }
    for option in (name for name, value in given.items() if value):
        raise UsageError(
            f"{option} is for a target with an NPU, and {core.name} has none", f"leave {option} out"
        )
    if config is not None and config.board is not None and config.board.cpu.core != core.name:
        board = config.board
        raise UsageError(
            f"{board.name} has a {board.cpu.core}, not a {core.name}", f"--target {board.cpu.core}"
        )
    return core


def target_in(
    config: VelaConfig, name: str, system_config: str | None, memory_mode: str | None
) -> targets.Target:
    """The target with the names of `config`; see :func:`resolve_target`."""
    if config.board is not None:
        return _on_board(config.board, name, system_config, memory_mode)
    family, macs = targets.parse_name(name)
    return targets.Target(
        npu=family.name,
        macs=macs,
        system_config=config.ini.chosen(systems.SYSTEM, system_config, family.default_system_config),
        memory_mode=config.ini.chosen(systems.MODE, memory_mode, family.default_memory_mode),
        vela_config=config.stored_name,
    )


def _on_board(
    profile: BoardProfile, name: str | None, system_config: str | None, memory_mode: str | None
) -> targets.Target:
    family, macs = targets.parse_name(name or profile.npus[0])
    if name is not None and name not in profile.npus:
        raise UsageError(
            f"{profile.name} has no {name}",
            f"leave --target out, or {targets.suggestion(name, profile.npus)}",
        )
    system = profile.default_system if system_config is None else profile.system(system_config)
    if system is None:
        known = [row.name for row in profile.systems]
        raise UsageError(
            f"{profile.name} has no system configuration '{system_config}'",
            targets.suggestion(str(system_config), known),
        )
    mode = memory_mode or system.memory_modes[0]
    if mode not in system.memory_modes:
        raise UsageError(
            f"memory mode '{mode}' cannot be used with {system.name} of {profile.name}",
            targets.suggestion(mode, system.memory_modes),
        )
    return targets.Target(
        npu=family.name,
        macs=macs,
        system_config=system.name,
        memory_mode=mode,
        vela_config=_config_of_profile(profile).stored_name,
    )


_SWITCH = "no value"
_COUNT = "a whole number"
_NUMBER = "a number"

# The flags of Vela 5.1.0 that a user may add, and what each takes: one of the kinds above, or the words that Vela
# knows. From the option list of vela.py. Vela itself ends the process for a flag that it does not know and accepts
# abbreviations; so a flag is judged here, by its whole name, before anything runs.
ALLOWED_FLAGS: dict[str, str | tuple[str, ...]] = {
    "--optimise": ("Size", "Performance"),
    "--arena-cache-size": _COUNT,
    "--tensor-allocator": ("LinearAlloc", "Greedy", "HillClimb"),
    "--hillclimb-max-iterations": _COUNT,
    "--max-block-dependency": ("0", "1", "2", "3"),
    "--force-symmetric-int-weights": _SWITCH,
    "--experimental-softmax-int16-neg-exp-range": _NUMBER,
    "--disable-chaining": _SWITCH,
    "--disable-fwd": _SWITCH,
    "--disable-cascading": _SWITCH,
    "--disable-buffering": _SWITCH,
    "--disable-ifm-reuse": _SWITCH,
    "--show-cpu-operations": _SWITCH,
    "--timing": _SWITCH,
    **{
        f"--verbose-{what}": _SWITCH
        for what in (
            *("all", "allocation", "config", "cycle-estimate", "graph", "high-level-command-stream"),
            *("performance", "quantization", "register-command-stream", "schedule"),
            *("tensor-format", "weights"),
        )
    },
}

_OTHER_OPTION = "the SDK has an option of its own for it"
_FORMAT = "the firmware reads only one format of command stream"
_ENDS = "Vela compiles nothing with it"
REFUSED_FLAGS: dict[str, str] = {
    "--accelerator-config": f"{_OTHER_OPTION}: --target",
    "--system-config": f"{_OTHER_OPTION}: --system-config",
    "--memory-mode": f"{_OTHER_OPTION}: --memory-mode",
    "--config": f"{_OTHER_OPTION}: --vela-config",
    "--output-dir": f"{_OTHER_OPTION}: -o",
    "--output-format": "ExecuTorch reads only Vela's raw format",
    "--cop-format": _FORMAT,
    "--separate-io-regions": _FORMAT,
    "--cpu-tensor-alignment": "the firmware aligns tensors as Vela does by default",
    "--ignore-ops": "a delegate loses the operators that Vela leaves to the CPU",
    "--enable-debug-db": "the SDK sets it already",
    "--debug-force-legacy-core": "Vela's old core does not read TOSA",
    "--debug-force-regor": "only this core of Vela reads TOSA",
    "--recursion-limit": "it would change the limit of the whole compiler process",
    "--version": _ENDS,
    "--api-version": _ENDS,
    "--supported-ops-report": _ENDS,
    "--list-config-files": _ENDS,
    "--list-configs": _ENDS,
}


def check_flags(flags: Iterable[str]) -> None:
    """UsageError unless each of `flags` is one, written ``--NAME`` or ``--NAME=VALUE``, that may be added."""
    for flag in flags:
        name, separator, value = flag.partition("=")
        if re.search(r"\s", flag) or not name.startswith("--"):
            raise UsageError(
                f"'{flag}' is not a single flag of Vela", "write --extra-vela-flag=--NAME or --NAME=VALUE"
            )
        if name in REFUSED_FLAGS:
            raise UsageError(f"Vela's flag {name} cannot be added: {REFUSED_FLAGS[name]}")
        if name not in ALLOWED_FLAGS:
            raise UsageError(
                f"Vela has no flag {name}, or it cannot be added", targets.suggestion(name, ALLOWED_FLAGS)
            )
        wanted = ALLOWED_FLAGS[name]
        if not _fits(wanted, bool(separator), value):
            words = wanted if isinstance(wanted, str) else "one of: " + ", ".join(wanted)
            raise UsageError(f"Vela's flag {name} takes {words}, not '{value}'")


def _fits(wanted: str | tuple[str, ...], given: bool, value: str) -> bool:
    if wanted == _SWITCH:
        return not given
    if wanted == _COUNT:
        return re.fullmatch(r"\d+", value, re.ASCII) is not None
    if wanted == _NUMBER:
        return re.fullmatch(r"\d+(\.\d+)?", value, re.ASCII) is not None and 0 < float(value) < 65535
    return value in wanted
