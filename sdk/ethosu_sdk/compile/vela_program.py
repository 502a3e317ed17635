"""What Vela itself wrote, as a `.pte` that runs: a delegate for each of its command streams, and kernels between."""

from __future__ import annotations

from pathlib import Path

from ethosu_sdk.base import filesystem, targets
from ethosu_sdk.base.errors import UsageError
from ethosu_sdk.base.targets import Target
from ethosu_sdk.base.terminal import Reporter, escape
from ethosu_sdk.compile import vela_config
from ethosu_sdk.compile.program_options import CompileOptions, ProgramOptions, option_fields, option_name
from ethosu_sdk.program import tflite, vela_output
from ethosu_sdk.program.pte_builder import ProgramBuilder
from ethosu_sdk.records import result_files

_TARGET_OPTIONS = ("target", "system_config", "memory_mode", "system", "vela_config", "trust")


def target_of(path: Path, config_word: int, options: CompileOptions) -> Target:
    """The NPU of the CONFIG word in `path`, with the system of `options` or the default. UsageError for another NPU
    or system."""
    npu = targets.accelerator(config_word)
    if options.target not in (None, npu):
        raise UsageError(f"{path.name} is for {npu}, not {options.target}", "leave --target out")
    found = vela_config.resolve_target(npu, options.system_config, options.memory_mode, options)
    assert isinstance(found, Target), "an NPU's name gives a target"
    return found


def names_a_system(options: CompileOptions) -> bool:
    """Whether the user said which system the file was compiled for."""
    return any(row is not None for row in (options.system, options.vela_config, options.system_config))


def write_program(path: Path, options: CompileOptions, out_dir: Path | None, reporter: Reporter) -> Path:
    """Write what Vela wrote to `path` as a `.pte`, into the folder of its results. UsageError for options of a
    compilation, InputError for what is malformed and for operators that no kernel does."""
    for name, row in option_fields(CompileOptions).items():
        if name not in _TARGET_OPTIONS and getattr(options, name) != row.default:
            raise UsageError(
                f"{path.name} is compiled already, by Vela: {option_name(row)} has no effect",
                f"leave {option_name(row)} out",
            )
    program = vela_output.read(path)
    target = target_of(path, vela_output.config_word(program), options)
    if not names_a_system(options):
        name = escape(path.name)
        reporter.warn(
            f"{name} does not say which system it was compiled for: {target.system_config} with "
            f"{target.memory_mode} is taken; --system or --system-config names another"
        )
    content = program_bytes(path, target, options)
    folder = filesystem.make_directory(result_files.place_for_model(path.stem, target, out_dir))
    made = folder / f"{path.stem}.pte"
    with filesystem.locked_folder(folder):
        filesystem.write_bytes(made, content)
    return made


def program_bytes(path: Path, target: Target, options: ProgramOptions) -> bytes:
    """The `.pte` of Vela's output at `path`, for `target`."""
    from ethosu_sdk.compile.tflite import stages, vela

    flags = vela.vela_flags(target, vela_config.chosen_config(options), ())
    if path.suffix == tflite.SUFFIX:
        model = tflite.read_tflite(path)
        return stages.build_program(model, model, {}, target, flags).data
    raw = vela_output.read_raw(path)
    builder = ProgramBuilder()
    for slots, numbers in ((raw.vela.inputs, builder.inputs), (raw.vela.outputs, builder.outputs)):
        numbers += [builder.tensor(*vela_output.slot_type(slot)) for slot in slots]
    builder.delegate(raw.payload, stages.delegate_specs(target, flags), (*builder.inputs, *builder.outputs))
    return builder.build()
