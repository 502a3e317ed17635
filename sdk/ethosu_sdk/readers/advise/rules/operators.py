"""Operators on the CPU between two delegates, and programs that delegate nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from ethosu_sdk.readers.advise.advice import (
    COMPUTING_OPERATORS,
    CPU_OPERATORS,
    DELEGATES,
    Advice,
    change,
    figure,
)
from ethosu_sdk.readers.advise.facts import Facts
from ethosu_sdk.readers.advise.rules import cpu
from ethosu_sdk.readers.advise.rules.replacements import REPLACEMENTS
from ethosu_sdk.records.compile import Site
from ethosu_sdk.records.profile import Operation
from ethosu_sdk.results.source_place import module

# It holds for an estimate alone: who tries the change knows its cycles.
NOT_ESTIMATED = (
    "the NPU takes cycles for it, which nothing here estimates, and saves those of a delegate's border"
)
Modules = Mapping[str, str]  # name in the model → class


@dataclass(frozen=True)
class _Island:
    """Rows of the CPU between two delegates, and the modules that they are from."""

    rows: tuple[Operation, ...]
    modules: Modules


def replaced_operators(facts: Facts) -> list[Advice]:
    """CPU operators between two delegates that come from modules for which there is one that is delegated."""
    placed = list(with_sites(facts))
    islands = list(_islands(placed))
    found = []
    for modules in {tuple(sorted(row.modules.items())): row.modules for row in islands}.values():
        rows = [row for island in islands if island.modules == modules for row in island.rows]
        rows += [row for row in placed if _is_elsewhere(row, modules, rows)]
        count = sum(island.modules == modules for island in islands)
        lines = _lines(modules, rows)
        if lines is not None:
            found.append(_advice(facts, modules, rows, count, lines))
    return found


def _is_elsewhere(row: Operation, modules: Modules, rows: Sequence[Operation]) -> bool:
    """Whether `row` makes constants for `modules`, which the program does in front of everything else."""
    return row.runs_on == "CPU" and module(row.source) in modules and row not in rows


def _islands(placed: Sequence[Operation]) -> Iterator[_Island]:
    groups = [
        (runs_on, tuple(rows)) for runs_on, rows in itertools.groupby(placed, key=lambda row: row.runs_on)
    ]
    for place, (runs_on, rows) in enumerate(groups):
        modules = _modules(rows) if runs_on == "CPU" and 0 < place < len(groups) - 1 else None
        if modules:
            yield _Island(rows, modules)


def with_sites(facts: Facts) -> Iterator[Operation]:
    """The profile's rows, each of the CPU's with its place in the model and the reason, where they can be told."""
    return (row for row, _ in sited(facts))


def sited(facts: Facts) -> Iterator[tuple[Operation, Site | None]]:
    """The same rows, each with what the record of `compile` has of its call.

    Calls of an operator run in the order in which their places are listed, but those of modules called repeatedly.
    """
    sites = {
        row.name: _repeated(row.sites)
        for row in facts.compiled.cpu_operators
        if not {module(site.source) for site in row.sites} & _called_repeatedly(facts)
    }
    for row in facts.profile.operations:
        site = next(sites.get(row.name, iter(())), None) if row.runs_on == "CPU" else None
        if site is None:
            yield row, None
        else:
            yield replace(row, reason=row.reason or site.reason, source=row.source or site.source), site


def _repeated(sites: Sequence[Site]) -> Iterator[Site]:
    """Each site as often as it calls; one by one, since a record can state any number."""
    return (site for site in sites for _ in range(site.calls))


def _called_repeatedly(facts: Facts) -> set[str]:
    """The modules that call none of their operators once alone."""
    calls: dict[str, int] = {}
    for row in facts.compiled.cpu_operators:
        for site in row.sites:
            name = module(site.source)
            calls[name] = min(calls.get(name, site.calls), site.calls)
    return {name for name, least in calls.items() if least > 1}


def _modules(rows: Sequence[Operation]) -> Modules | None:
    """The modules that called the operators of `rows`; None when one of them is not known or has no replacement."""
    found: dict[str, str] = {}
    for source in (row.source for row in rows if not cpu.is_conversion(row)):
        kind = source.module_type if source is not None else None
        if kind is None or kind not in REPLACEMENTS or not module(source):
            return None
        found[module(source)] = kind
    return found


def _lines(modules: Modules, rows: Sequence[Operation]) -> tuple[str, ...] | None:
    """The code that replaces `modules`, whose calls are among `rows`; None where one of them cannot be."""
    found: list[str] = []
    for name, kind in modules.items():
        own = [row for row in rows if module(row.source) == name]
        lines = REPLACEMENTS[kind].lines(name, own)
        if lines is None:
            return None
        found += lines
    return tuple(found)


def _advice(
    facts: Facts, modules: Modules, rows: Sequence[Operation], count: int, lines: tuple[str, ...]
) -> Advice:
    kinds = list(dict.fromkeys(modules.values()))
    delegates = len(facts.profile.delegates)
    calls = sum(row.calls for row in facts.cpu_rows)
    own = sum(row.calls for row in rows)
    names = list(dict.fromkeys(row.name for row in rows if not cpu.is_conversion(row)))
    return Advice(
        finding=f"{', '.join(names)} run on the CPU between two delegates; "
        f"{'; '.join(REPLACEMENTS[kind].words for kind in kinds)} is delegated",
        where=", ".join(modules),
        evidence=(
            figure("delegates", delegates, "delegates"),
            figure("calls on the CPU there, conversions among them", own, "calls"),
        ),
        code=lines,
        gains=(
            change(DELEGATES, delegates, delegates - count, "the delegates on both sides become one"),
            *cpu.without(facts, rows),
            change(CPU_OPERATORS, calls, calls - own, "these calls and their conversions fall away"),
        ),
        limits=(
            NOT_ESTIMATED,
            "values are quantised where they were floating point: `ethosu-sdk debug` shows what that costs",
        ),
    )


def quantise(facts: Facts) -> list[Advice]:
    """A floating-point program, of which the NPU gets nothing."""
    rows = [row for row in facts.cpu_rows if not cpu.is_conversion(row)]
    is_float = any(row.dtype == "float32" for row in facts.compiled.inputs)
    options = facts.compiled.options
    asked = options.quantize == "none" and options.delegate and not facts.compiled.prequantized
    if not asked or facts.compiled.delegates or not is_float or not rows:
        return []
    calls = sum(row.calls for row in rows)
    return [
        Advice(
            finding=f"the program is floating point: all of its {calls} operator calls run on the CPU",
            evidence=(figure("operators that compute on the CPU", calls, "calls"),),
            command=facts.compiled_again(quantize="int8"),
            gains=(change(COMPUTING_OPERATORS, calls, 0, "if every operator is one that is delegated"),),
            limits=(
                "quantisation needs samples (--calibration F.npz) and costs accuracy: `compile --evaluate` says what",
                "inputs and outputs are converted on the CPU then, unless --io int8 is given",
            ),
        )
    ]
