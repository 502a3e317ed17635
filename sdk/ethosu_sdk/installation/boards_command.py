"""`ethosu-sdk boards`: the board profiles, one line each, or one with the source of each value."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import convert
from rich.console import RenderableType
from rich.table import Table

from ethosu_sdk.base import board_profiles
from ethosu_sdk.base.board_profiles import BoardMemory, BoardProfile, VelaSystem
from ethosu_sdk.base.boards import NO_DEVICE, Device
from ethosu_sdk.base.terminal import Ranked, Reporter, escape
from ethosu_sdk.installation import new_board
from ethosu_sdk.records import printed, provenance, validation

_UNKNOWN = "-"


def boards(word: str | None, reporter: Reporter, *, checked: bool = False) -> None:
    """List the packs of the SDK and the user's folder, show the one that `word` stands for, or what it lacks.

    UsageError for an unknown name, InputError for a file that is not a profile.
    """
    names = board_profiles.profile_names() if word is None else (word,)
    if checked:
        new_board.check_board(names[0])
    found = [board_profiles.find_profile(name) for name in names]
    record = printed.BoardList(
        status="pass",
        created=provenance.timestamp(),
        tool=provenance.tool(),
        boards=tuple(map(_board, found)),
    ).to_json()
    validation.check_record(record, "the list of boards")
    if word is None:
        reporter.show(_list(found))
    elif checked:
        reporter.show(*map(escape, new_board.state_of(found[0])))
    else:
        reporter.show(*_shown(found[0]))
    reporter.emit(record)


def _board(profile: BoardProfile) -> printed.Board:
    return printed.Board(
        name=profile.name,
        title=profile.title,
        sha256=profile.sha256,
        npus=profile.npus,
        npu_hz=profile.npu_hz,
        hardware=profile.hardware,
        npu=_device(profile.npu),
        console=_device(profile.console),
        cpu=convert(profile.cpu, printed.Cpu, from_attributes=True),
        memories=convert(profile.memories, tuple[printed.Memory, ...], from_attributes=True),
        systems=tuple(
            printed.System(
                name=row.name,
                memory_modes=row.memory_modes,
                settings=tuple(printed.Setting(key=key, value=value) for key, value in row.settings.items()),
                areas=convert(row.areas, printed.Areas) if row.areas else None,
            )
            for row in profile.systems
        ),
        sources=tuple(
            printed.Source(value=row[0], source=profile.source(row[0])) for row in profile.values()
        ),
    )


def _device(row: Device) -> printed.Device | None:
    return None if row == NO_DEVICE else convert(row, printed.Device, from_attributes=True)


def _list(found: list[BoardProfile]) -> Table:
    table = Ranked(box=None, pad_edge=False, drop=("CPU clock", "CPU"))
    for heading in ("name", "NPU", "NPU clock", "CPU", "CPU clock", "default for Vela"):
        is_figure = heading.endswith("clock")
        table.add_column(heading, no_wrap=heading == "name", justify="right" if is_figure else "left")
    for row in found:
        system, others = row.default_system, len(row.npus) - 1
        npus = row.npus[0] + (f", {others} more" if others else "")
        clocks = _clock(row.npu_hz), row.cpu.core, _clock(row.cpu.clock_hz)
        table.add_row(row.name, npus, *clocks, f"{system.name}, {system.memory_modes[0]}")
    return table


def _shown(profile: BoardProfile) -> Iterator[RenderableType]:
    facts = Table(box=None, show_header=False, pad_edge=False)
    cpu = profile.cpu
    for name, text in (
        ("board", profile.title),
        ("profile", f"{profile.name}, sha256 {profile.sha256[:12]}"),
        ("NPU", f"{', '.join(profile.npus)}; {_clock(profile.npu_hz)}"),
        ("CPU", f"{cpu.core}; {_clock(cpu.clock_hz)}"),
        ("NPU registers", _registers(profile.npu)),
        ("console", _registers(profile.console)),
        ("hardware", profile.hardware),
        ("caches", f"instructions {_size(cpu.icache_bytes)}, data {_size(cpu.dcache_bytes)}"),
        *((f"Vela: {row.name}", f"{', '.join(row.memory_modes)}{_areas(row)}") for row in profile.systems),
    ):
        facts.add_row(escape(name), escape(text))
    yield facts
    if profile.memories:
        yield from ("", _memories(profile.memories))
    yield from ("", _sources(profile))


def _registers(row: Device) -> str:
    parts = [row.device or "", *(f"{base:#010x}" for base in row.bases)]
    parts += [] if row.irq is None else [f"IRQ {row.irq}"]
    parts += [] if row.baud is None else [f"{row.baud} baud"]
    return ", ".join(filter(None, parts)) or _UNKNOWN


def _areas(row: VelaSystem) -> str:
    return "".join(f"; {area} in {memory}" for area, memory in row.areas.items())


def _memories(rows: tuple[BoardMemory, ...]) -> Table:
    table = Table(title="Memories", title_justify="left", box=None)
    figures = ("size", "read", "write", "CPU waits")
    for heading in ("name", "kind", "size", "NPU", "cached", "read", "write", "CPU waits"):
        table.add_column(heading, justify="right" if heading in figures else "left")
    for row in rows:
        clock, costs = f" {(row.cycles_of or '').upper()} cycles", (row.read_cycles, row.write_cycles)
        table.add_row(
            escape(row.name),
            row.kind,
            _size(row.size_bytes),
            *(_UNKNOWN if flag is None else "yes" if flag else "no" for flag in (row.npu, row.cached)),
            *(_UNKNOWN if count is None else f"{count}{clock}" for count in costs),
            _UNKNOWN if row.cpu_wait_cycles is None else f"{row.cpu_wait_cycles:g} cycles",
        )
    return table


def _sources(profile: BoardProfile) -> Table:
    """Each source with the values that it gives; what is not public last."""
    by_source: dict[str, list[str]] = {}
    for place, value in profile.values():
        source = profile.source(place)
        by_source.setdefault(source if value is not None else f"absent: {source}", []).append(place)
    table = Table(title="Sources", title_justify="left", box=None)
    for heading in ("source", "values"):
        table.add_column(heading, overflow="fold")
    for source in sorted(by_source, key=lambda text: text.startswith("absent: ")):
        table.add_row(escape(source), escape(", ".join(by_source[source])))
    return table


def _clock(hertz: int | None) -> str:
    return _UNKNOWN if hertz is None else f"{hertz / 1e6:g} MHz"


def _size(count: int | None) -> str:
    """A power of two's multiple as it is written in data sheets; otherwise bytes."""
    if count is None:
        return _UNKNOWN
    for unit, shift in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << shift and count % (1 << (shift - 1)) == 0:
            return f"{count / (1 << shift):g} {unit}"
    return f"{count:,} bytes"
