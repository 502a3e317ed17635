"""`ethosu-sdk verify`: rebuild and rerun from scratch what a record describes, and compare."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import convert
from rich.table import Table

from ethosu_sdk import provenance, pte, records, schema, tools
from ethosu_sdk.console.reporter import Reporter
from ethosu_sdk.console.terminal import escape
from ethosu_sdk.errors import InputError, VerdictError
from ethosu_sdk.files import hashing
from ethosu_sdk.records import kinds
from ethosu_sdk.records.build import Build
from ethosu_sdk.records.printed.verify import Check, CheckStatus, Record, Verification
from ethosu_sdk.records.run import Run
from ethosu_sdk.results import host_facts, locations, program_files
from ethosu_sdk.results.reading import Reading, read_record
from ethosu_sdk.steps.verify import figures, rebuilding
from ethosu_sdk.steps.verify.rebuilding import Rebuilt

# Names of `provenance.tools` that are not those of tools.toml.
_PROGRAMS = {"qemu": "qemu-system-arm"}
_DIGEST_DIGITS = 64
_SHOWN = 16  # digits of a digest
_NAMED = 8  # in the error
_MOST_FIGURES = 50  # that are named; the digest over all of them counts


@dataclass(frozen=True)
class Given:
    """Files that the user names: the `.pte` (None: the file of the record's model beside the record), the inputs of
    the run, the Vela configuration file that the `.pte` was compiled with (None: as `run` finds it), its data."""

    model: Path | None = None
    inputs: Path | None = None
    vela_config: Path | None = None
    data: tuple[Path, ...] = ()


def verify(path: Path, given: Given, reading: Reading, reporter: Reporter) -> None:
    """Build and run again what the record at `path` describes. Compare digests, figures and tools' versions.

    Raises VerdictError when something differs, InputError for a record or model that is missing, damaged, or of no
    firmware.
    """
    start = time.monotonic()
    record = _read(path, reading)
    reading.warn(reporter)
    pte_path = _model(path, record, given.model)
    checks = [_check("model", record.model.sha256, hashing.sha256_file(pte_path))]
    causes = []
    if _same(checks):
        program = rebuilding.Program(pte_path, pte.read(pte_path, given.data))
        program_files.check_data(program.content, record.provenance.inputs)
        ran = " and running it" if isinstance(record, Run) else ""
        with reporter.stage(f"rebuilding it from scratch{ran}"):
            if isinstance(record, Run):
                rebuilt = rebuilding.run(record, program, given.inputs, given.vela_config)
            else:
                rebuilt = rebuilding.build(record, program, given.vela_config)
        checks += [*_digests(record, rebuilt), *_figures(record, rebuilt)]
        causes = list(_causes(record, rebuilt, checks))
    else:
        causes = ["the model is not the one that the record is about: nothing was built"]
    about = {
        "file": path.name,
        "schema": (kinds.RUN if isinstance(record, Run) else kinds.BUILD).schema,
        "sha256": hashing.sha256_file(path),
        **reading.mark(path),
    }
    result = Verification(
        status="pass" if _same(checks) else "fail",
        created=records.timestamp(),
        tool=provenance.tool(),
        record=convert(about, Record),
        checks=tuple(checks),
        causes=tuple(causes),
        wall_time_s=round(time.monotonic() - start, 3),
        host=host_facts.this_host(),
    )
    schema.check(result.to_json(), "the result of verify")
    _show(result, reporter)
    reporter.emit(result.to_json())
    if result.status != "pass":
        names = [row.name for row in _differing(checks)]
        differing = ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
        raise VerdictError(
            f"{path} is not reproduced: differences in {differing}", "; ".join(causes), recorded=True
        )


def _read(path: Path, reading: Reading) -> Run | Build:
    record = read_record(path, reading)
    if not isinstance(record, Run | Build):
        raise InputError(
            f"{path} is a {kinds.schema(record)}",
            f"give a {kinds.BUILD.schema} or {kinds.RUN.schema}: build.json or run.json",
        )
    if isinstance(record, Build):
        return record
    if any(row.role == "runner" for row in record.provenance.inputs):
        raise InputError(
            f"{path} describes a run on Arm's prebuilt runner",
            "its firmware is Arm's: there is nothing to build again",
        )
    script = next((row.file for row in record.provenance.inputs if row.role == "script"), None)
    if script is not None:
        raise InputError(
            f"{path} describes a call of the script {script}: it begins with what the calls before it left",
            f"run the script again (`run --script {script}`) and compare the outputs' digests",
        )
    if rebuilding.firmware(record) is None:
        raise InputError(
            f"{path} describes a run without a firmware, on the simulator '{record.simulator.name}'",
            "there is nothing to build; run it again and compare the outputs' digests",
        )
    return record


def _model(path: Path, record: Run | Build, model: Path | None) -> Path:
    beside = path.parent / record.model.file
    if model is None and not beside.is_file():
        raise InputError(
            f"the record's model, {beside.name}, is not beside it", "name it with --model FILE.pte"
        )
    return locations.require_pte(model or beside)


def _digests(record: Run | Build, rebuilt: Rebuilt) -> list[Check]:
    checks = []
    if isinstance(record, Build):
        checks += [
            _check("elf", record.elf.sha256, rebuilt.elf),
            _check("map", record.map.sha256, rebuilt.map),
        ]
    elif (firmware := rebuilding.firmware(record)) is not None:
        checks.append(_check("elf", firmware.sha256, rebuilt.elf))
    for row in record.provenance.tools:
        known = tools.table().get(_PROGRAMS.get(row.name, row.name))
        found = tools.probe(known.name).version if known is not None else ""
        checks.append(_check(f"version of {row.name}", row.version, found))
    return checks


def _figures(record: Run | Build, rebuilt: Rebuilt) -> list[Check]:
    """One check over all figures, and one for each that differs."""
    recorded = figures.of(record)
    if rebuilt.figures is None:
        return [_check("figures", figures.digest(recorded), "")]
    rows = list(figures.differences(recorded, rebuilt.figures))[:_MOST_FIGURES]
    return [
        _check("figures", figures.digest(recorded), figures.digest(rebuilt.figures)),
        *(_check(name, before, found) for name, before, found in rows),
    ]


def _check(name: str, recorded: str, found: str) -> Check:
    if not found:
        return Check(name=name, status="unknown", recorded=recorded)
    status: CheckStatus = "agrees" if recorded == found else "differs"
    return Check(name=name, status=status, recorded=recorded, found=found)


def _differing(checks: Sequence[Check]) -> list[Check]:
    return [row for row in checks if row.status == "differs"]


def _same(checks: Sequence[Check]) -> bool:
    return not _differing(checks)


def _causes(record: Run | Build, rebuilt: Rebuilt, checks: Sequence[Check]) -> Iterator[str]:
    """Why something differs or is not known, as far as that can be told."""
    if rebuilt.no_figures:
        yield f"outputs and figures were not compared: {rebuilt.no_figures}"
    others = [row for row in _differing(checks) if row.name.startswith("version of")]
    for row in others:
        yield f"{row.name} is {row.found} here, {row.recorded} in the record"
    if all(row.status == "agrees" for row in checks if row.name in ("elf", "map")):
        if not _same(checks) and not others:
            yield "the same firmware gives other figures here: the record was changed, or the SDK is another"
        return
    here, there = provenance.tool(), record.tool
    if here != there:
        words = [" ".join(filter(None, (row.version, row.git))) for row in (here, there)]
        yield f"ethosu-sdk is {words[0]} here, {words[1]} in the record"
    if isinstance(record, Build) and record.build_key == rebuilt.build_key:
        yield "sources, settings and tools are the same: the build is not reproducible, or the record is wrong"
    elif isinstance(record, Build):
        yield "the firmware's sources, its settings or the tools are not those of the record (build_key)"


def table(result: Verification) -> Table:
    """What was compared: digests by their first digits, all else whole."""
    colours = {"agrees": "green", "differs": "red", "unknown": "yellow"}
    found = Table("", "", "recorded", "here", box=None, pad_edge=False)
    for row in result.checks:
        colour = colours[row.status]
        found.add_row(
            escape(row.name),
            f"[{colour}]{row.status}[/{colour}]",
            escape(_value_text(row.recorded)),
            escape(_value_text(row.found or "")),
        )
    return found


def _show(result: Verification, reporter: Reporter) -> None:
    reporter.show(table(result))
    for cause in result.causes:
        reporter.show(f"why: {escape(cause)}")
    if result.status == "pass":
        reporter.show(f"{escape(result.record.file)}: {_found_again(result)}")


def _value_text(value: str) -> str:
    """A digest by its first digits, a whole number with its thousands apart, anything else as it is."""
    if len(value) == _DIGEST_DIGITS and set(value) <= set("0123456789abcdef"):
        return value[:_SHOWN]
    return f"{int(value):,}" if value.isdecimal() and value.isascii() else value


def _found_again(result: Verification) -> str:
    built = "the firmware was built again, byte for byte"
    known = all(row.status == "agrees" for row in result.checks if row.name == "figures")
    if result.record.schema != kinds.RUN.schema:
        return f"{built}."
    return f"{built}, and gave the same outputs and figures." if known else f"{built}; it was not run."
