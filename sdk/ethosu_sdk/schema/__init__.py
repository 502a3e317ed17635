"""Validation of records: JSON Schema 2020-12 first, then named rules that a schema cannot state."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from ethosu_sdk import resources
from ethosu_sdk.errors import InputError
from ethosu_sdk.records import Record
from ethosu_sdk.schema import advice, comparison, figures, sweeps

Rule = Callable[[Record], list[str]]
_MOST_PROBLEMS = 1000  # a list of a million wrong items is one mistake
_PROBLEMS_SHOWN = 8


def schema_names() -> tuple[str, ...]:
    """The `schema` values that exist, such as ``run-result/1``."""
    return tuple(sorted(_documents()))


@functools.cache
def _documents() -> dict[str, dict[str, Any]]:
    """All schema documents by the `schema` value of their records; ``common`` is among them."""
    found = {}
    for path in sorted(resources.directory("schemas").glob("*.schema.json")):
        name, version = path.name.removesuffix(".schema.json").rsplit(".v", 1)
        found[f"{name}/{version}"] = json.loads(path.read_text(encoding="utf-8"))
    return found


@functools.cache
def _validator(name: str) -> Any:
    # jsonschema takes a tenth of a second to import: only where a record is written or checked.
    from jsonschema import Draft202012Validator
    from referencing import Registry, Resource

    registry: Any = Registry().with_resources(
        (document["$id"], Resource.from_contents(document)) for document in _documents().values()
    )
    return Draft202012Validator(_documents()[name], registry=registry)


def problems(record: Record) -> list[str]:
    """What is wrong with `record`, one sentence each, the first thousand; empty when it is valid."""
    name = record.get("schema")
    if not isinstance(name, str) or name not in _documents() or name.startswith("common/"):
        known = ", ".join(key for key in schema_names() if not key.startswith("common/"))
        return [f"/schema: {name!r} is not a known record type (known: {known})"]
    found = itertools.islice(_validator(name).iter_errors(record), _MOST_PROBLEMS)
    errors = sorted(found, key=lambda error: list(map(str, error.absolute_path)))
    if errors:
        return [f"/{'/'.join(map(str, error.absolute_path))}: {error.message}"[:400] for error in errors]
    return [f"{rule.__name__}: {text}" for rule in RULES.get(name, ()) for text in _told(rule, record)]


def _told(rule: Rule, record: Record) -> list[str]:
    try:
        return rule(record)
    except OverflowError:  # JSON has numbers without end, floats do not
        return ["a number is too large to be judged"]


def check(record: Record, what: str) -> None:
    """Raise InputError, with the first problems, when `record` is not valid."""
    found = problems(record)
    if found:
        more = f"\n  and {len(found) - _PROBLEMS_SHOWN} more" if len(found) > _PROBLEMS_SHOWN else ""
        raise InputError(f"{what} is not a valid record:\n  " + "\n  ".join(found[:_PROBLEMS_SHOWN]) + more)


def _status_follows_checks(record: Record) -> list[str]:
    checks = record["verdict"]["checks"]
    expected = "pass" if all(row["status"] != "fail" for row in checks) else "fail"
    if record["verdict"]["status"] != expected or record["status"] != expected:
        return [f"the checks say '{expected}', the record says '{record['status']}'"]
    return []


def _indices_count_up(record: Record) -> list[str]:
    return [
        f"{key} are not numbered 0, 1, 2 …"
        for key in ("inputs", "outputs")
        if [row["index"] for row in record[key]] != list(range(len(record[key])))
    ]


def _use_fits_size(record: Record) -> list[str]:
    rows = record["memory"]["regions"] + record["memory"]["pools"]
    return [
        f"{row['name']} uses {row['used_bytes']} of {row['size_bytes']} bytes"
        for row in rows
        if row["used_bytes"] > row["size_bytes"]
    ]


def _unavailable_is_absent(record: Record) -> list[str]:
    """What is listed as unavailable must not be in the record as well."""
    return [
        f"{row['path']} is listed and present" for row in record["unavailable"] if _has(record, row["path"])
    ]


def _has(value: Any, pointer: str) -> bool:
    for part in pointer.strip("/").split("/"):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return False
    return True


def _npu_calls_have_cycles(record: Record) -> list[str]:
    npu = record.get("npu")
    if (
        npu is not None
        and npu["delegate_calls"] > 0
        and "cycles" not in npu
        and not any(row["path"] == "/npu/cycles" for row in record["unavailable"])
    ):
        return ["the NPU ran, but its cycles are neither given nor listed as unavailable"]
    return []


_DISTANCES = ("sqnr_db", "cosine", "max_abs_error", "lsb_histogram")


def _status_follows_accuracy(record: Record) -> list[str]:
    verdict = record.get("accuracy", {}).get("verdict", {"status": "pass", "checks": []})
    missed = any(row["status"] == "fail" for row in verdict["checks"])
    expected = "fail" if missed else "pass"
    if verdict["status"] != expected:
        return [f"the thresholds say '{expected}', the record says '{verdict['status']}'"]
    if record["check"]["status"] == "fail":
        expected = "fail"
    if record["status"] != expected:
        return [f"check and thresholds say '{expected}', the record says '{record['status']}'"]
    return []


def _check_follows_its_figures(record: Record) -> list[str]:
    """An output passes when no figure exceeds its limit, and the check when all outputs do."""
    check = record["check"]
    if "outputs" not in check:
        return []
    found = []
    for number, row in enumerate(check["outputs"]):
        figures = [row[name] for name in ("rms", "largest", "differing") if name in row]
        beyond = row["not_finite"] > 0 or any(part["executed"] > part["limit"] for part in figures)
        if row["index"] != number or row["status"] != ("fail" if beyond else "pass"):
            found.append(f"output {number} of the check has figures that do not go with '{row['status']}'")
    failed = any(row["status"] == "fail" for row in check["outputs"])
    if check["status"] != ("fail" if failed else "pass"):
        found.append(f"the check's outputs say otherwise than '{check['status']}'")
    return found


def _figures_are_known_or_explained(record: Record) -> list[str]:
    """Each pair has every figure, or the reason why it has not. Labels have a top-1 alone."""
    explained = {row["path"] for row in record["unavailable"]}
    found = []
    for number, row in enumerate(record.get("accuracy", {}).get("pairs", ())):
        for name in ("top1", *(_DISTANCES if row["reference"] != "labels" else ())):
            if name not in row and f"/accuracy/pairs/{number}/{name}" not in explained:
                found.append(f"pair {number} has neither {name} nor a reason")
        if row["reference"] == row["candidate"]:
            found.append(f"pair {number} compares '{row['reference']}' with itself")
    return found


def _repeats_count_what_changed(record: Record) -> list[str]:
    """Outputs that changed between repeats cannot be part of a pass, unless each went on from the state before."""
    repeats = record.get("repeats")
    if repeats is None:
        return []
    found = [
        f"{name} agree: {repeats[name]['agree']}, but {repeats[name]['changed']} changed"
        for name in ("outputs", "counters")
        if repeats[name]["agree"] != (repeats[name]["changed"] == 0)
    ]
    independent = repeats.get("state") != "kept"
    if independent and not repeats["outputs"]["agree"] and record["status"] == "pass":
        found.append("outputs changed between repeats, but the record says 'pass'")
    return found


def _groups_hold_every_counter(record: Record) -> list[str]:
    """Either all counters were read together, or each says in which group."""
    npu = record.get("npu", {"counters": []})
    groups = [row["group"] for row in npu.get("groups", ())]
    found = []
    if groups != list(range(len(groups))) or bool(groups) != ("groups_agree" in npu):
        found.append("groups of events are not numbered 0, 1, 2 …, or groups_agree is missing")
    for row in npu["counters"]:
        if row.get("group", -1) not in (groups or [-1]):
            found.append(f"{row['event']} is in group {row.get('group')} of {len(groups)}")
    return found


def _status_follows_the_log(record: Record) -> list[str]:
    expected = "fail" if record["failures"] else "pass" if record["complete"] else "incomplete"
    if record["status"] != expected:
        return [f"the log says '{expected}', the record says '{record['status']}'"]
    return []


def _status_follows_differences(record: Record) -> list[str]:
    expected = "fail" if any(row["status"] == "differs" for row in record["checks"]) else "pass"
    if record["status"] != expected:
        return [f"the checks say '{expected}', the record says '{record['status']}'"]
    return []


def _status_follows_tools(record: Record) -> list[str]:
    expected = (
        "fail" if any(row["required"] and row["status"] != "found" for row in record["checks"]) else "pass"
    )
    if record["status"] != expected:
        return [f"the tools say '{expected}', the record says '{record['status']}'"]
    return []


def _model_is_that_of_the_provenance(record: Record) -> list[str]:
    digests = {row["sha256"] for row in record["provenance"]["inputs"] if row["role"] == "model"}
    if digests and digests != {record["model"]["sha256"]}:
        return ["the model's SHA-256 is not that of the model among the inputs of the provenance"]
    return []


def _runtime_is_that_of_the_provenance(record: Record) -> list[str]:
    known = {row["sha256"] for row in record["provenance"]["inputs"] if row["role"] in ("firmware", "runner")}
    runtimes = [record.get("runtime", {}), record.get("second_opinion", {}).get("runtime", {})]
    return [
        f"the ELF of the runtime '{row['name']}' is not among the inputs of the provenance"
        for row in runtimes
        if "elf_sha256" in row and row["elf_sha256"] not in known
    ]


def _second_opinion_is_of_another(record: Record) -> list[str]:
    """A runtime cannot confirm itself, and has as many outputs as the other."""
    opinion = record.get("second_opinion")
    if opinion is None:
        return []
    found = []
    if opinion["runtime"]["name"] == record.get("runtime", {}).get("name"):
        found.append(f"both runtimes are '{opinion['runtime']['name']}'")
    if [row["index"] for row in opinion["outputs"]] != [row["index"] for row in record["outputs"]]:
        found.append("the second opinion has other outputs than the run")
    return found


def _pass_has_outputs_and_checks(record: Record) -> list[str]:
    """Nothing came back, or nothing was checked: no evidence of a pass."""
    if record["status"] != "pass":
        return []
    missing = [
        name
        for name, rows in (("outputs", record["outputs"]), ("checks", record["verdict"]["checks"]))
        if not rows
    ]
    return [f"the record says 'pass' and has no {name}" for name in missing]


def _files_stay_in_the_folder(record: Record) -> list[str]:
    """Files are named by their path from the record's folder, and lie in it; the model's source need not, and of what
    shaped the result the record has the name alone."""
    return [
        f"{path} leaves the record's folder: {value[:80]!r}"
        for path, value in _texts(record)
        if (path.endswith(("/file", "/path")) or path.split("/")[-2] == "files")
        and not path.startswith("/unavailable")
        and not path.endswith("/source/file")
        and (leaves(value) if not path.startswith("/provenance/") else "/" in value)
    ]


def leaves(name: str) -> bool:
    """Whether `name`, of a file in a record's folder, could lead out of it on some system."""
    path = PurePosixPath(name)
    windows = "\\" in name or PureWindowsPath(name).drive != ""
    return path.is_absolute() or ".." in path.parts or windows


# Members of runs and profiles with figures of the simulator.
_OWN_FIGURES = (
    *("npu", "cpu", "operators", "pieces", "second_opinion"),
    *("operations", "delegates", "totals"),
)


def _measured_on_the_fvp_alone(record: Record) -> list[str]:
    """QEMU and the host run the NPU model: what they say is modelled."""
    name = record["simulator"]["name"]
    if name == "fvp":
        return []
    rows = _texts({key: record[key] for key in _OWN_FIGURES if key in record})
    return [
        f"{path} is 'measured' on {name}"
        for path, value in rows
        if (path.rpartition("/")[2], value) == ("source", "measured")
    ]


def _operators_add_up(record: Record) -> list[str]:
    """The NPU's cycles of one inference hold those of its operators."""
    npu = record.get("npu", {})
    if record["inferences"] != 1 or "repeats" in record or "cycles" not in npu:
        return []
    total = sum(row["npu_cycles"]["value"] for row in record["operators"] if "npu_cycles" in row)
    if total > npu["cycles"]["value"]:
        return [f"its operators took {total} cycles of the NPU, all of it {npu['cycles']['value']}"]
    return []


def _texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text in a record, with its JSON pointer."""
    if isinstance(value, str):
        yield path, value
        return
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in rows:
        yield from _texts(part, f"{path}/{key}")


RULES: dict[str, tuple[Rule, ...]] = {
    "run-result/1": (
        _status_follows_checks,
        _indices_count_up,
        _use_fits_size,
        _unavailable_is_absent,
        _npu_calls_have_cycles,
        _repeats_count_what_changed,
        _groups_hold_every_counter,
        _model_is_that_of_the_provenance,
        _runtime_is_that_of_the_provenance,
        _second_opinion_is_of_another,
        _pass_has_outputs_and_checks,
        _files_stay_in_the_folder,
        _measured_on_the_fvp_alone,
        _operators_add_up,
    ),
    "log-result/1": (_status_follows_the_log, _unavailable_is_absent),
    "build-result/1": (
        _use_fits_size,
        _unavailable_is_absent,
        _model_is_that_of_the_provenance,
        _files_stay_in_the_folder,
    ),
    "compile-result/1": (
        _unavailable_is_absent,
        _files_stay_in_the_folder,
        _status_follows_accuracy,
        _check_follows_its_figures,
        _figures_are_known_or_explained,
    ),
    "profile/1": (
        _unavailable_is_absent,
        _model_is_that_of_the_provenance,
        _measured_on_the_fvp_alone,
        figures.npu_operations_are_whole,
        figures.cycles_are_given_once,
        figures.profile_adds_up,
    ),
    "advice/1": (_unavailable_is_absent, _model_is_that_of_the_provenance, advice.gains_are_gains),
    "bundle/1": (_files_stay_in_the_folder, comparison.paths_are_listed_once),
    "compare/1": (comparison.follows_its_rows, comparison.names_what_is_there),
    "debug/1": (_unavailable_is_absent, _model_is_that_of_the_provenance, figures.debug_layers_exist),
    "sweep/1": (_files_stay_in_the_folder, sweeps.counts_every_cell),
    "sweep-cell/1": (sweeps.has_an_error_or_passes,),
    "sweep-compare/1": (sweeps.comparison_follows_its_cells,),
    "doctor-report/1": (_status_follows_tools,),
    "verify-result/1": (_status_follows_differences,),
}
