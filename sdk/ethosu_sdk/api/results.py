"""What the functions return: a record with the figures that people look for, short as text and as HTML."""

from __future__ import annotations

import dataclasses
import functools
import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ethosu_sdk.base import filesystem, npz
from ethosu_sdk.base.errors import ToolError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.plain_text import counted
from ethosu_sdk.records import (
    answers,
    compile_words,
    kinds,
    profile_words,
    result_files,
    run_facts,
    time_line,
    wording,
)
from ethosu_sdk.records.profile import Profile as ProfileRecord
from ethosu_sdk.records.run import Run as RunRecord
from ethosu_sdk.run import run_command
from ethosu_sdk.sweep import cell_query, store

if TYPE_CHECKING:
    from numpy.typing import NDArray

_FRAME = "width: 100%; height: 42em; border: 1px solid #8888"
_NO_TIME = "not known: name a board, such as system='alif-e8-hp'"
_MOST_ROWS = 5
_MOST_PAGE_BYTES = 1 << 28


@dataclass(frozen=True, repr=False)
class _Made:
    """What a function made, with the command's record of it."""

    record: Record

    def _facts(self) -> Iterator[tuple[str, str]]:
        """Name and text of what people look for; the first two are the answer."""
        raise NotImplementedError

    def _rows(self) -> Sequence[dict[str, Any]]:
        """The rows of :meth:`to_dataframe`."""
        raise NotImplementedError

    def __repr__(self) -> str:
        answer = [text for _, text in self._facts()][:2]
        return f"{type(self).__name__}({'; '.join(answer)})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        rows = "".join(
            f"<tr><th style='text-align: left'>{html.escape(name)}</th>"
            f"<td style='text-align: left'>{html.escape(text)}</td></tr>"
            for name, text in self._facts()
        )
        return f"<table>{rows}</table>"

    def to_dataframe(self) -> Any:
        """The rows of the record as a table of pandas. ToolError where pandas is not installed."""
        try:
            import pandas
        except ImportError as error:
            raise ToolError("to_dataframe() needs pandas", "pip install pandas") from error
        return pandas.DataFrame(list(self._rows()))


def _time_ms(record: RunRecord | ProfileRecord) -> float | None:
    found = time_line.headline(record)
    return None if found is None else found.total.duration_s * 1e3


def _time_words(record: RunRecord | ProfileRecord) -> str:
    found = time_line.headline(record)
    if found is None:
        return _NO_TIME
    total, band = found.total, ""
    if total.least_s is not None and total.most_s is not None:
        band = f", {wording.milliseconds(total.least_s)} to {wording.milliseconds(total.most_s)}"
    sums = wording.time_sums(found)
    return f"{wording.milliseconds(total.duration_s)} on {found.place} ({total.source}{band}): {sums}"


@dataclass(frozen=True, repr=False)
class Compiled(_Made):
    """A program: `pte` is the file, `record` its ``compile-result/1``. Every function takes it as a model."""

    pte: Path

    def __fspath__(self) -> str:
        return str(self.pte)

    @property
    def example_io(self) -> Path:
        """The example inputs, and the outputs of the quantised model in PyTorch for them: an `.npz`."""
        return result_files.example_io_path(self.pte)

    @property
    def cpu_operators(self) -> dict[str, int]:
        """Calls in one inference of each operator that stays on the CPU."""
        return {row["name"]: row["calls"] for row in self.record["cpu_operators"]}

    def _facts(self) -> Iterator[tuple[str, str]]:
        record = kinds.COMPILE.convert(self.record)
        yield "program", f"{record.model.file}, {record.model.bytes:,} bytes"
        yield "target", record.target_words
        yield "quantised", compile_words.quantised_words(record)
        yield "on the CPU", compile_words.cpu_words(record)
        yield "file", str(self.pte)

    def _rows(self) -> Sequence[dict[str, Any]]:
        return [_flat(row) for row in self.record["cpu_operators"]]


@dataclass(frozen=True, repr=False)
class Firmware(_Made):
    """A bare-metal firmware: `elf` is the file, `record` its ``build-result/1``."""

    elf: Path

    @property
    def board(self) -> str:
        """The board that it is linked for."""
        return str(self.record["board"])

    @property
    def memory(self) -> dict[str, Record]:
        """The board's memories by name: ``used_bytes`` and ``size_bytes``."""
        return {row["name"]: row for row in self._rows()}

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "firmware", f"{self.elf.name} for {self.board}"
        yield "file", str(self.elf)

    def _rows(self) -> Sequence[dict[str, Any]]:
        return list(self.record["memory"]["regions"])


@dataclass(frozen=True, repr=False)
class Run(_Made):
    """A run that is over: `record` is its ``run-result/1``, in `folder`. ``report`` and ``profile`` take it."""

    folder: Path

    def __fspath__(self) -> str:
        return str(self.folder)

    @property
    def status(self) -> str:
        """``pass``: a run that fails raises."""
        return str(self.record["status"])

    @functools.cached_property
    def outputs(self) -> dict[str, NDArray[Any]]:
        """``output0`` …, with a leading axis where the inputs had one."""
        return npz.read_npz(self.folder / run_command.OUTPUTS_NAME)

    @property
    def npu_cycles(self) -> int | None:
        """Cycles of the NPU in one inference; `record` says whether they are modelled or measured. None: unknown."""
        cycles = self.record.get("npu", {}).get("cycles")
        return None if cycles is None else int(cycles["value"])

    @property
    def time_ms(self) -> float | None:
        """Milliseconds of one inference, NPU and CPU. None without a board (`system`), or where it is not known."""
        return _time_ms(self._typed)

    @property
    def memory(self) -> dict[str, Record]:
        """The board's memories by name: ``used_bytes`` (of the program, for a named board) and ``size_bytes``."""
        totals = run_facts.memory_totals(self._typed.memory.uses or ())
        rows = [dataclasses.asdict(row) for row in totals] or self.record["memory"]["regions"]
        return {row["name"]: row for row in rows}

    @functools.cached_property
    def _typed(self) -> RunRecord:
        return kinds.RUN.convert(self.record)

    def _facts(self) -> Iterator[tuple[str, str]]:
        run = self._typed
        yield "verdict", f"{run.status}: {', '.join(answers.compared_words(run, None))}"
        yield "time", _time_words(run)
        target = "no NPU" if run.target is None else run.target.name
        yield "ran", f"{run.model.file} for {target} on {run.board}, {run.simulator.name}"
        if run.npu is not None and run.npu.cycles is not None:
            yield "NPU", f"{run.npu.cycles.value:,} cycles ({run.npu.cycles.source})"
        rows = self.memory.values()
        sizes = [(row["name"], row["used_bytes"], row["size_bytes"]) for row in rows if row["used_bytes"]]
        words = (f"{name} {used:,}" + (f" of {size:,}" if size else "") for name, used, size in sizes)
        yield "memory", " · ".join(words)
        yield "folder", str(self.folder)

    def _rows(self) -> Sequence[dict[str, Any]]:
        return [_flat(row) for row in self.record["operators"]]


def _flat(row: Record) -> Record:
    """A row in which a figure with its unit and source is the figure alone."""
    return {
        name: value["value"] if isinstance(value, dict) and "value" in value else value
        for name, value in row.items()
        if not isinstance(value, list)
    }


@dataclass(frozen=True, repr=False)
class Inspection(_Made):
    """What a `.pte` holds: `record` is its ``inspect-result/1``."""

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the program's methods."""
        return tuple(method["name"] for method in self.record["methods"])

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "methods", ", ".join(self.methods)

    def _rows(self) -> Sequence[dict[str, Any]]:
        return [_flat(row) for row in self.record["methods"]]


@dataclass(frozen=True, repr=False)
class Profile(_Made):
    """Where an inference's cycles and bytes go: `record` is its ``profile/1``, in `folder`."""

    folder: Path

    def __fspath__(self) -> str:
        return str(self.folder)

    @property
    def operations(self) -> list[Record]:
        """The rows: NPU operations and CPU operators, in the order in which they run."""
        return list(self.record["operations"])

    @property
    def npu_cycles(self) -> dict[str, int]:
        """Cycles of the NPU in one inference by their source: ``modelled``, ``estimated``, ``measured``."""
        return {row["source"]: int(row["value"]) for row in self.record["totals"]["npu"]["cycles"]}

    @property
    def time_ms(self) -> float | None:
        """Milliseconds of one inference, NPU and CPU. None without a board (`system`), or where it is not known."""
        return _time_ms(kinds.PROFILE.convert(self.record))

    def _facts(self) -> Iterator[tuple[str, str]]:
        profile = kinds.PROFILE.convert(self.record)
        yield "profile", f"{profile.model.file}, {counted(len(profile.operations), 'operation')}"
        yield "time", _time_words(profile)
        for source, value in self.npu_cycles.items():
            yield "NPU", f"{value:,} cycles ({source})"
        rows = answers.slowest_rows(profile, _MOST_ROWS)
        yield "slowest", ", ".join(f"{row.name} {row.cost}" for row in rows)
        yield "folder", str(self.folder)

    def _rows(self) -> Sequence[dict[str, Any]]:
        return [profile_words.csv_row(row) for row in kinds.PROFILE.convert(self.record).operations]


@dataclass(frozen=True, repr=False)
class Comparison(_Made):
    """What became better or worse from the first run to each of the others: `record` is its ``compare/1``."""

    @property
    def status(self) -> str:
        """``pass``; ``fail`` when a figure is worse than the policy tolerates; ``blocked`` when runs cannot be
        compared."""
        return str(self.record["status"])

    @property
    def changes(self) -> list[Record]:
        """The figures that differ, of all comparisons: name, before, after, change and status."""
        return [row for part in self.record["comparisons"] for row in part["metrics"]]

    @property
    def regressions(self) -> list[Record]:
        """Figures that are worse than the policy tolerates, and those of single operators beyond their rules."""
        parts = (part for row in self.operators for part in row["figures"])
        return [row for row in (*self.changes, *parts) if row.get("status") == "regression"]

    @property
    def operators(self) -> list[Record]:
        """The operators that differ, with the figures that changed, of all comparisons."""
        return [row for part in self.record["comparisons"] for row in part["operators"]]

    def _facts(self) -> Iterator[tuple[str, str]]:
        changed, worse = counted(len(self.changes), "figure"), counted(len(self.regressions), "regression")
        yield "comparison", f"{self.status}: {changed} changed, {worse}"
        for row in self.changes[:_MOST_ROWS]:
            yield str(row["name"]), f"{row.get('before')} → {row.get('after')}"

    def _rows(self) -> Sequence[dict[str, Any]]:
        return self.changes


@dataclass(frozen=True, repr=False)
class Debugged(_Made):
    """The numerics inside of delegates: `record` is its ``debug/1``."""

    @property
    def layers(self) -> list[Record]:
        """The tensors that the NPU wrote, in the order in which they were begun."""
        return list(self.record["layers"])

    def first_break(self, against: str = "quantised") -> Record | None:
        """The layer that breaks first against the ``quantised`` or ``float`` model; None when none does."""
        for row in self.record["comparisons"]:
            if row["against"] == against and "first_break" in row:
                layer: Record = self.layers[row["first_break"]["layer"]]
                return layer
        return None

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "layers", counted(len(self.layers), "layer")
        for against in [row["against"] for row in self.record["comparisons"]]:
            found = self.first_break(against)
            yield f"against {against}", "no layer breaks" if found is None else f"breaks at {found['name']}"

    def _rows(self) -> Sequence[dict[str, Any]]:
        return [_flat(row) for row in self.layers]


@dataclass(frozen=True, repr=False)
class Advice(_Made):
    """What to change about a program: `record` is its ``advice/1``, in `folder`."""

    folder: Path

    @property
    def advice(self) -> list[Record]:
        """The suggestions, the largest gain first: finding, evidence, command or code, gains and costs."""
        return list(self.record["advice"])

    @property
    def trials(self) -> list[Record]:
        """What came of the changes that were tried, the best first; none without `try_changes`."""
        return list(self.record.get("tried", {}).get("trials", ()))

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield (
            "advice",
            f"{counted(len(self.advice), 'suggestion')}, {counted(len(self.trials), 'change')} tried",
        )
        for row in self.trials[:_MOST_ROWS]:
            saved = f", saves {100 * row['gain']:.0f} %" if row.get("gain") else ""
            yield row["state"], f"{row['change']}{saved}"
        for row in self.advice[:_MOST_ROWS]:
            yield row["rule"], row["finding"]

    def _rows(self) -> Sequence[dict[str, Any]]:
        return [_flat(row) for row in self.trials or self.advice]


@dataclass(frozen=True, repr=False)
class Generated(_Made):
    """What a language model generated: `record` is its ``generate/1``."""

    @property
    def tokens(self) -> list[int]:
        """The tokens that the model chose."""
        return list(self.record["tokens"])

    @property
    def text(self) -> str | None:
        """The same as text. None without a tokenizer."""
        found = self.record.get("text")
        return None if found is None else str(found["generated"])

    def _facts(self) -> Iterator[tuple[str, str]]:
        yield "generated", self.text or " ".join(map(str, self.tokens))
        yield from wording.generate_rows(kinds.GENERATE.convert(self.record))

    def _rows(self) -> Sequence[dict[str, Any]]:
        return [{"token": token} for token in self.tokens]


@dataclass(frozen=True, repr=False)
class Page:
    """A page that `report` wrote: a file that needs no network. A notebook shows it."""

    path: Path

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Page({str(self.path)!r})"

    def _repr_html_(self) -> str:
        page = filesystem.file_text(self.path, _MOST_PAGE_BYTES)
        return f'<iframe srcdoc="{html.escape(page)}" style="{_FRAME}"></iframe>'


@dataclass(frozen=True, repr=False)
class Swept(_Made):
    """A sweep: `record` is its record, in `folder`, with the page of its results."""

    folder: Path

    @property
    def cells(self) -> list[Record]:
        """One row for each model with its settings: status, cycles, time, memory."""
        return list(self._rows())

    @property
    def page(self) -> Page:
        """The page of its results."""
        return Page(self.folder / store.PAGE_NAME)

    def _facts(self) -> Iterator[tuple[str, str]]:
        passed = sum(row["status"] == "pass" for row in self.cells)
        yield "sweep", f"{passed} of {counted(len(self.cells), 'cell')} passed"
        yield "page", str(self.page.path)

    def _rows(self) -> Sequence[dict[str, Any]]:
        rows: list[dict[str, Any]] = cell_query.read_table(self.folder).to_pylist()
        return rows
