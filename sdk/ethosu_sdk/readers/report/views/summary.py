"""The figures at the top: the verdict, what ran where, how fast, and with how much memory."""

from __future__ import annotations

from collections.abc import Iterator

from ethosu_sdk.readers.report.inputs import PROFILE, Inputs
from ethosu_sdk.records import Record

_MILLION = 1e6
_BAND = "cycles: "  # in front of the error band, in what a record says of its simulator's fidelity


def cards(inputs: Inputs) -> list[dict[str, str]]:
    """The few figures that are read first: name, text and a note each."""
    run, profile = inputs.run, inputs.record(PROFILE)
    found = [{"name": "verdict", "text": run["verdict"]["status"], "note": _checks(run)}]
    cycles = run.get("npu", {}).get("cycles")
    if cycles is not None:
        found.append(
            {"name": "NPU cycles", "text": f"{cycles['value']:,}", "note": _believed(run, cycles["source"])}
        )
    for row in profile.get("totals", {}).get("speed", [])[:1]:
        text, note = f"{row['inferences_per_s']:,.1f}", f"the NPU alone, {_clock(profile)}, {row['source']}"
        found.append({"name": "inferences/s", "text": text, "note": note})
    fullest = max(_regions(run), key=lambda row: row["used_bytes"] / row["size_bytes"], default=None)
    if fullest is not None:
        text = f"{fullest['used_bytes'] / fullest['size_bytes']:.0%}"
        found.append({"name": f"{fullest['name']} used", "text": text, "note": _used(fullest)})
    return found


def rows(inputs: Inputs) -> list[tuple[str, str]]:
    """All figures of the summary, by name."""
    run, profile = inputs.run, inputs.record(PROFILE)
    return [*_what(run), *_speed(run, profile), *_work(profile), *_memory(run)]


def _what(run: Record) -> Iterator[tuple[str, str]]:
    yield "verdict", run["verdict"]["status"]
    yield "model", f"{run['model']['file']} ({run['model']['bytes']:,} bytes)"
    target = run.get("target")
    if target:
        yield "target", f"{target['npu']}-{target['macs']}"
        yield "system configuration", str(target["system_config"])
        yield "memory mode", str(target["memory_mode"])
    yield "board", str(run["board"])
    simulator = run["simulator"]
    yield "simulator", f"{simulator['name']} {simulator['version']}"
    yield "fidelity", simulator["fidelity"].partition(f"; {_BAND}")[0]
    yield "inferences", f"{run['inferences']:,}"


def _speed(run: Record, profile: Record) -> Iterator[tuple[str, str]]:
    cycles = run.get("npu", {}).get("cycles")
    if cycles is not None:
        yield "NPU cycles", f"{cycles['value']:,} ({_believed(run, cycles['source'])})"
    if "clock" in profile:
        yield "NPU clock", f"{_clock(profile)} ({profile['clock']['source']})"
    for row in profile.get("totals", {}).get("speed", ()):
        yield (
            f"speed ({row['source']})",
            f"{row['inferences_per_s']:,.1f} inferences/s, {row['inference_s'] * 1e3:,.3f} ms each: the NPU alone",
        )


def _work(profile: Record) -> Iterator[tuple[str, str]]:
    totals = profile.get("totals")
    if totals is None:
        return
    yield "NPU operations", f"{totals['npu']['operations']:,}"
    yield "MACs", f"{totals['npu']['macs']:,}"
    per_cycle = totals["npu"]["macs_per_cycle"]
    for source in (name for name in per_cycle if name != "ideal"):
        share = (
            f" ({per_cycle[source] / per_cycle['ideal']:.1%} of {per_cycle['ideal']})"
            if per_cycle["ideal"]
            else ""
        )
        yield f"MACs per cycle ({source})", f"{per_cycle[source]:,.1f}{share}"
    yield "CPU operators", f"{totals['cpu']['operators']:,}"
    counted = totals["cpu"].get("instructions")
    if counted is not None:
        yield "CPU instructions", f"{counted['value']:,} ({counted['source']})"


def _memory(run: Record) -> Iterator[tuple[str, str]]:
    for row in _regions(run):
        yield f"{row['name']} used", _used(row)


def _regions(run: Record) -> list[Record]:
    return [row for row in run.get("memory", {}).get("regions", ()) if row["size_bytes"]]


def _used(row: Record) -> str:
    return f"{row['used_bytes']:,} of {row['size_bytes']:,} bytes"


def _believed(run: Record, source: str) -> str:
    """Where cycles come from, with the error band that the record quotes for modelled ones."""
    band = run["simulator"]["fidelity"].partition(_BAND)[2]
    return f"{source}, {band}" if band and source == "modelled" else source


def _checks(run: Record) -> str:
    checks = run["verdict"]["checks"]
    passed = sum(row["status"] == "pass" for row in checks)
    return f"{passed} of {len(checks)} checks passed"


def _clock(profile: Record) -> str:
    return f"{profile['clock']['hz'] / _MILLION:,.0f} MHz" if "clock" in profile else "clock not known"
