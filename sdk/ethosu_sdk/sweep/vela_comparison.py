"""One model by several versions of Vela, for `compare --vela`: a sweep over them on the host simulator."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.errors import BuildError, UsageError, VerdictError
from ethosu_sdk.base.targets import Target
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile import compile_command, vela_versions
from ethosu_sdk.compile.front_ends.model_spec import parse_model_spec
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.run.options import HOST
from ethosu_sdk.sweep import cell_query, cell_rows, sweep_command
from ethosu_sdk.sweep.options import SweepOptions

# What versions of Vela make of one model is another program.
ALLOWED_DIFFERENCES = ("model", "versions")


class VersionRuns(NamedTuple):
    folders: Sequence[Path]
    failed: Mapping[str, str]  # why some versions have none


def runs_by_version(
    models: Sequence[str], names: str, options: CompileOptions, out_dir: Path, reporter: Reporter
) -> VersionRuns:
    """Compile the only one of `models` with each version of Vela in the list `names`, and run what comes of it on the
    host simulator.

    Raises ToolError for a version that is not in the cache and cannot be installed, BuildError when no version makes
    a program that runs.
    """
    if len(models) != 1:
        example = "ethosu-sdk compare --vela 5.0.0,5.1.0 MODEL"
        raise UsageError(f"--vela takes one model, not {len(models)}", example)
    if models[0].endswith(".pte"):
        raise UsageError(f"--vela compiles again: {models[0]} is compiled already", "give the model itself")
    wanted = vela_versions.parse_versions(names)
    model, target = parse_model_spec(models[0]), compile_command.target_of(options)
    if not isinstance(target, Target):
        raise UsageError(
            f"{target.name} has no NPU: Vela compiles nothing for it", "give a target with an NPU"
        )
    for version in wanted:  # before a model is compiled for nothing
        if not vela_versions.is_cached(version):
            with reporter.stage(f"installing Vela {version} from the package index (the first time only)"):
                vela_versions.python_path(version)
    source = models[0] if model.path is None else str(model.path.absolute())
    values = {
        "models": source + (f":{model.entry}" if model.path is not None and model.entry is not None else ""),
        "targets": target.name,
        "system_configs": options.system_config,
        "memory_modes": options.memory_mode,
        "simulators": HOST,
        "vela": list(wanted),
    }
    # JSON's texts and lists of texts are TOML's.
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items() if value is not None]
    file = filesystem.make_directory(out_dir) / "vela.toml"
    filesystem.write_bytes(file, "\n".join((*lines, "")).encode())
    sweep_options = SweepOptions(system=options.system, trust=options.trust, retry=True)
    with contextlib.suppress(VerdictError):  # for cells that fail, which are told below
        sweep_command.sweep(file, sweep_options, out_dir / "sweep", reporter.for_step())
    folders, failed = [], {}
    rows = {row["vela"]: row for row in cell_query.read_table(out_dir / "sweep").to_pylist()}
    for row in (rows[version] for version in wanted):
        folder = out_dir / f"vela-{row['vela']}"
        if row["status"] != cell_rows.PASS:
            failed[folder.name] = row["message"] or row["status"]
            continue
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(out_dir / "sweep" / row["folder"], folder)
        folders.append(folder)
    if not folders:
        reasons = [f"\n  {name}: {reason}" for name, reason in failed.items()]
        raise BuildError(
            f"no version of Vela made a program that runs:{''.join(reasons)}", f"the logs are in {out_dir}"
        )
    return VersionRuns(folders, failed)
