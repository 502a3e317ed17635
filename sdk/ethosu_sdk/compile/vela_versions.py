"""Other versions of Vela: cached, installed from the package index, and programs compiled again with them."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ethosu_sdk.base import cache, filesystem, forks, plain_text, proc, tools
from ethosu_sdk.base.errors import BuildError, SdkError, ToolError, UsageError
from ethosu_sdk.base.forks import Task
from ethosu_sdk.compile import compile_facts, vela_capture, vela_checks, vela_delegates
from ethosu_sdk.compile.graphs.source_lines import SourceFinder
from ethosu_sdk.compile.tool_hooks import patched
from ethosu_sdk.compile.vela_capture import VelaCapture
from ethosu_sdk.compile.vela_config import VelaConfig
from ethosu_sdk.program.execution_plan import ENTRY
from ethosu_sdk.records.compile import Delegate

VELA_PACKAGE = "ethos-u-vela"
_RUN = "import sys; from ethosu.vela.vela import main; sys.exit(main(sys.argv[1:]))"
_VERSION = re.compile(r"[1-9]\d?\.\d{1,2}\.\d{1,2}", re.ASCII)
_TIMEOUT_S = 600.0
RECOMPILE_LOG = "vela.log"
_RECOMPILE_TIMEOUT_S = 3600.0
# Packages that a version needs besides those of the SDK, by its first number.
_NEEDS = {"4": ("lxml<6.0.1",)}
_MARK = "ethosu"  # the package's own folder


def parse_versions(text: str) -> tuple[str, ...]:
    """The versions in a list such as ``4.5.0,5.1.0``. UsageError for what is no version, or for a single one."""
    versions = tuple(part.strip() for part in text.split(","))
    for version in versions:
        if _VERSION.fullmatch(version) is None:
            raise UsageError(
                f"--vela: '{version[:40]}' is not a version of Vela", "such as --vela 5.0.0,5.1.0"
            )
    if len(set(versions)) != len(versions) or len(versions) < 2:
        raise UsageError("--vela takes two or more versions, each once", "such as --vela 5.0.0,5.1.0")
    return versions


def is_version(text: str) -> bool:
    return _VERSION.fullmatch(text) is not None


def own_version() -> str:
    return tools.package_version(VELA_PACKAGE) or ""


def is_cached(version: str) -> bool:
    return version == tools.package_version(VELA_PACKAGE) or (_place(version) / _MARK).is_dir()


def python_path(version: str) -> str:
    """PYTHONPATH for a process that is to find `version`; empty for the SDK's own. ToolError when it is not in the
    cache and cannot be installed."""
    if version == tools.package_version(VELA_PACKAGE):
        return ""
    place = _place(version)
    with filesystem.locked_folder(place.parent):
        if not (place / _MARK).is_dir():
            _install(version, place)
    return str(place)


def _place(version: str) -> Path:
    return cache.directory("vela") / version


def _install(version: str, place: Path) -> None:
    try:
        with filesystem.temporary_directory(".install-", place.parent) as temporary:
            target = temporary / version
            _pip(target, f"{VELA_PACKAGE}=={version}", "--no-deps")
            if extra := _NEEDS.get(version.partition(".")[0]):
                _pip(target, *extra)
            target.replace(place)
    except OSError as error:
        raise ToolError(f"cannot keep Vela {version} in {place.parent}: {error.strerror}") from error
    except SdkError as error:
        raise ToolError(
            f"Vela {version} is not in the cache and could not be installed: {_last_line(error.message)}",
            f"pip installs other versions of Vela from the package index, once, into {place.parent}: give pip "
            "access to the index",
        ) from error


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"


def _pip(target: Path, *words: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--retries", "1"]
    proc.run([*command, "--target", str(target), *words], timeout_s=_TIMEOUT_S, error=ToolError)


def run_vela(path: str, arguments: Sequence[str], folder: Path) -> None:
    """Run the Vela in `path` (:func:`python_path`) with `arguments` in `folder`. ToolError when it fails."""
    command = [sys.executable, "-c", _RUN, *arguments]
    environment = {**os.environ, **({"PYTHONPATH": path} if path else {})}
    done = proc.run(command, cwd=folder, env=environment, timeout_s=_TIMEOUT_S, error=ToolError, check=False)
    if done.returncode:
        raise ToolError(f"Vela ended with exit status {done.returncode}: {_last_line(done.output)}")


def compile_by_version(
    tosa: bytes, flags: Sequence[str], path: str, config: VelaConfig | None = None
) -> tuple[bytes, VelaCapture]:
    """The payload of a TOSA graph by the Vela in `path`, a process of its own, and what that reports. `path` is as
    :func:`python_path` gives it, `config` the configuration file that the flags call by its `stored_name`. BuildError
    when that Vela refuses the graph or its results cannot be packed."""
    from executorch.backends.arm import arm_vela

    with tempfile.TemporaryDirectory(prefix="ethosu-vela-", dir=vela_capture.spaceless_directory()) as name:
        folder = Path(name)
        other = SimpleNamespace(main=lambda words: run_vela(path, words, folder))
        try:
            words = [*vela_capture.with_config(flags, config, folder), *vela_capture.REPORT_FLAGS]
            with patched(arm_vela, vela=other):
                payload = bytes(arm_vela.vela_compile(tosa, words, intermediate_path=name).processed_bytes)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise BuildError(f"Vela's results cannot be packed: {error}") from error
        return payload, vela_capture.read_capture(tosa, {}, payload, folder)


@dataclass(frozen=True)
class RecompiledProgram:
    """A program by one version of Vela: its delegates, or the `reason` why there is none."""

    version: str
    delegates: tuple[Delegate, ...]
    reason: str = ""


def recompile_program(
    program: Path, graphs: Sequence[Path], folders: Mapping[str, Path]
) -> list[RecompiledProgram]:
    """The program in a file, whose delegates were made of the TOSA `graphs`, by the versions of Vela whose results go
    to `folders`, under the same names. ToolError when a version or ExecuTorch is not there."""
    if importlib.util.find_spec("executorch") is None:
        raise ToolError("packing programs needs ExecuTorch's package", "pip install 'ethosu-sdk[compile]'")
    paths = {version: python_path(version) for version in folders}
    log = next(iter(folders.values())) / RECOMPILE_LOG
    log.unlink(missing_ok=True)
    task = {"program": str(program.resolve()), "graphs": [str(path.resolve()) for path in graphs]}
    found = []
    with forks.server(__name__, log) as server:
        for version, folder in folders.items():
            more = {"path": paths[version], "folder": str(folder.resolve())}
            answer = server.call({**task, **more}, _RECOMPILE_TIMEOUT_S, None)
            result = answer.result or {"error": f"the process ended ({answer.end}) {answer.detail}".rstrip()}
            if "error" in result:
                raise BuildError(
                    f"the program's payloads could not be replaced: {result['error']}",
                    f"{folder / RECOMPILE_LOG} holds what the tools printed",
                )
            delegates = compile_facts.from_json(tuple[Delegate, ...], result["delegates"])
            found.append(RecompiledProgram(version, delegates, result["reason"]))
    return found


def prepare() -> None:
    import executorch.backends.arm.ethosu
    import executorch.exir._serialize._program

    del executorch


def perform(task: Task) -> dict[str, Any]:
    """Write the program of `task` by one version of Vela; its facts, or why there are none."""
    folder, path = Path(task["folder"]), Path(task["program"])
    with filesystem.open_replacing(folder / RECOMPILE_LOG) as stream:
        for number in (1, 2):
            os.dup2(stream.fileno(), number)
    content = path.read_bytes()
    if _bytes(_read(content)) != content:
        text = f"{path.name} was not written by this version of ExecuTorch: its payloads cannot be replaced"
        return {"error": text}
    try:
        graphs = [Path(graph).read_bytes() for graph in task["graphs"]]
        made = _recompiled(content, graphs, task["path"], folder, path.name)
        return {"delegates": json.loads(compile_facts.to_json(made)), "reason": ""}
    except SdkError as error:
        return {"delegates": [], "reason": error.message}
    except Exception as error:  # a version may write anything: the others go on
        traceback.print_exc()
        return {"delegates": [], "reason": f"Vela's results cannot be read: {plain_text.error(error)}"}


def _read(content: bytes) -> Any:
    from executorch.exir._serialize._program import deserialize_pte_binary

    return deserialize_pte_binary(content)


def _bytes(file: Any) -> bytes:
    from executorch.exir._serialize._program import serialize_pte_binary

    return bytes(serialize_pte_binary(file))


def _recompiled(
    content: bytes, graphs: Sequence[bytes], vela: str, folder: Path, name: str
) -> tuple[Delegate, ...]:
    """Write the program by the Vela in the path `vela` to `folder`, with its artefacts."""
    from executorch.backends.arm.ethosu import EthosUCompileSpec

    file = _read(content)
    facts = []
    (plan,) = (plan for plan in file.program.execution_plan if plan.name == ENTRY)
    for index, (delegate, graph) in enumerate(zip(plan.delegates, graphs, strict=True)):
        flags = EthosUCompileSpec._from_list(list(delegate.compile_specs)).compiler_flags
        payload, reports = compile_by_version(graph, flags, vela)
        file.program.backend_delegate_data[delegate.processed.index].data = payload
        facts.append(vela_delegates.write_delegate(folder, index, reports, SourceFinder(None)))
        vela_checks.check_tables(facts[-1], payload)
    filesystem.write_bytes(folder / name, _bytes(file))
    return tuple(facts)
