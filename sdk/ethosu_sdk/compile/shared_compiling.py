"""A lowered program, compiled by Vela for a target, in a process that may import torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ethosu_sdk.base import filesystem
from ethosu_sdk.compile import lowering, vela_capture, vela_config, vela_delegates, vela_versions
from ethosu_sdk.compile.compile_facts import CompileOutput, CompileRequest
from ethosu_sdk.compile.front_ends.model_spec import parse_model_spec
from ethosu_sdk.compile.front_ends.table import TFLITE
from ethosu_sdk.compile.graphs.source_lines import SourceFinder
from ethosu_sdk.compile.pipeline import StageClock
from ethosu_sdk.compile.shared_lowering import Lowered, LoweredDelegate
from ethosu_sdk.compile.tflite import stages as tflite
from ethosu_sdk.compile.vela_capture import VelaCapture
from ethosu_sdk.compile.vela_config import VelaConfig
from ethosu_sdk.program.execution_plan import ENTRY
from ethosu_sdk.records.common import SourceLine

_ORIGIN = "ethosu_sdk_origin"


@dataclass(frozen=True)
class _KnownLines(SourceFinder):
    def find(self, meta: Mapping[str, Any]) -> SourceLine | None:
        line: SourceLine | None = meta.get(_ORIGIN)
        return line


def compile_lowered(lowered: Lowered, request: CompileRequest, version: str) -> CompileOutput:
    """Compile `lowered` for the target of `request` with the Vela of that `version` into its folder, which exists.
    BuildError when Vela refuses or gives a delegate something else than its graph, InputError when it loses a look-up
    table, ToolError when that version is not there."""
    path = vela_versions.python_path(version)
    source, spec_of_model = lowered.output, parse_model_spec(request.model)
    if spec_of_model.kind == TFLITE:  # which has nothing that is lowered once
        output = tflite.run_stages(
            replace(request, check_folder=None), spec_of_model, StageClock(print), path
        )
        return replace(output, check=source.check, chain=source.chain)
    from executorch.exir._serialize._program import deserialize_pte_binary, serialize_pte_binary

    name = f"{source.name}.pte"
    file = deserialize_pte_binary((lowered.folder / name).read_bytes())
    (plan,) = (plan for plan in file.program.execution_plan if plan.name == ENTRY)
    config = vela_config.chosen_config(request.options)
    ini = lowering.VELA_CONFIG if config is None else config.stored_name
    spec = [] if request.target is None else lowering.compile_spec(request.target, ini)._to_list()
    # Vela numbers what it makes: in the order of a compilation, its names are the same.
    order = sorted(range(len(lowered.delegates)), key=lambda index: lowered.delegates[index].turn)
    compiled = {index: _compiled(lowered.delegates[index], spec, path, config) for index in order}
    facts = []
    with vela_delegates.published_folder(request.out_dir) as folder:
        for index, (delegate, given) in enumerate(zip(plan.delegates, lowered.delegates, strict=True)):
            payload, made = compiled[index]
            file.program.backend_delegate_data[delegate.processed.index].data = payload
            # ExecuTorch adds some of its own, which stay.
            values = {row.key: row.value for row in spec}
            old = delegate.compile_specs
            delegate.compile_specs = [type(row)(row.key, values.get(row.key, row.value)) for row in old]
            finder = _KnownLines(None)
            checked = vela_delegates.write_checked_delegate
            facts.append(checked(folder, index, payload, made, finder, given.arguments))
        data = bytes(serialize_pte_binary(file))
        filesystem.write_bytes(folder / name, data)
        fed = () if source.fed is None or not source.fed.file else (source.fed.file,)
        for copied in (source.io.name, *fed):
            filesystem.copy_file(lowered.folder / copied, folder / copied)
    return replace(
        source,
        pte=request.out_dir / name,
        pte_sha256=filesystem.sha256_bytes(data),
        pte_bytes=len(data),
        io=request.out_dir / source.io.name,
        log=request.out_dir / vela_delegates.LOG_NAME,
        model_source=request.model,
        target=request.target,
        core=request.core,
        delegates=tuple(facts),
        versions={**source.versions, vela_versions.VELA_PACKAGE: version},
        timings_s={"check": 0.0},
    )


def _compiled(
    given: LoweredDelegate, spec: Sequence[Any], path: str, config: VelaConfig | None
) -> tuple[bytes, VelaCapture]:
    """The payload of a graph by the Vela in `path`, empty for the SDK's own, and what that reports."""
    from executorch.backends.arm.ethosu import EthosUCompileSpec, backend

    tosa = given.tosa.read_bytes()
    flags = list(EthosUCompileSpec._from_list(list(spec)).compiler_flags)
    nodes = {name: {_ORIGIN: line} for name, line in given.sources.items()}
    if path:
        payload, made = vela_versions.compile_by_version(tosa, flags, path, config)
    else:
        with vela_capture.runs_captured(config) as captures:
            payload = bytes(backend.vela_compile(tosa, flags).processed_bytes)
        (made,) = captures
    return payload, replace(made, nodes=nodes)
