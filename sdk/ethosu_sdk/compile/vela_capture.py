"""Runs Vela for each delegate, ExecuTorch's own or another version, and keeps what it reads and writes. ExecuTorch
1.5.1 can dump these files itself, but then the folder's path becomes part of the `.pte`, and with several delegates
the last one overwrites the others. So its call of Vela is wrapped instead."""

from __future__ import annotations

import contextlib
import csv
import io
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ethosu_sdk.base import filesystem, plain_text
from ethosu_sdk.base.errors import BuildError
from ethosu_sdk.compile import tool_hooks
from ethosu_sdk.compile.tool_hooks import LOG_HINT, patched
from ethosu_sdk.compile.vela_config import VelaConfig
from ethosu_sdk.records.common import Estimate

# Reports beside the stream. Given to Vela alone, not to the compile specs, they leave the `.pte` unchanged.
REPORT_FLAGS = ("--verbose-performance", "--enable-debug-db")
VELA_REFUSED = "Vela refused: "
# Columns of Vela's summary that name things instead of counting them.
_TEXT_COLUMNS = {
    *("experiment", "network", "accelerator_configuration", "system_config", "memory_mode"),
    *("weights_storage_area", "feature_map_storage_area"),
}

_KIB = 1024.0
_GIB = float(1 << 30)  # Vela divides by it for what it prints as GB/s
_AREAS = ("sram", "dram", "on_chip_flash", "off_chip_flash")
_TRAFFIC = (
    ("feature_map_read_bytes", "feature_map_read"),
    ("feature_map_write_bytes", "feature_map_write"),
    ("weight_read_bytes", "weight_read"),
    ("weight_write_bytes", "weight_write"),
    ("total_bytes", "traffic"),
)


def _columns() -> Iterator[tuple[str, str, str, float]]:
    """(Vela 5.1.0's column, our name, unit, factor to it) of its summary CSV; traffic is that of one inference."""
    yield "cycles_total", "total_cycles", "cycles", 1.0
    yield "cycles_npu", "npu_cycles", "cycles", 1.0
    for area in _AREAS:
        yield f"cycles_{area}_access", f"{area}_access_cycles", "cycles", 1.0
    yield "nn_macs", "macs", "operations", 1.0
    yield "inference_time", "inference_time", "s", 1.0
    yield "core_clock", "core_clock", "Hz", 1.0
    for area in _AREAS:
        yield f"{area}_memory_used", f"{area}_used", "bytes", _KIB
    for area in _AREAS:
        yield f"{area}_bandwidth", f"{area}_peak_bandwidth", "bytes/s", _GIB
    for area in _AREAS:
        for column, name in _TRAFFIC:
            yield f"{area}_{column}", f"{area}_{name}", "bytes", 1.0
    yield "total_original_weights", "original_weights", "bytes", 1.0
    yield "total_npu_encoded_weights", "encoded_weights", "bytes", 1.0


@dataclass(frozen=True)
class VelaCapture:
    """One Vela run: its input, the payload that ExecuTorch packed, and the reports. `nodes` has the `meta` of
    the torch.fx node behind each TOSA tensor (:mod:`ethosu_sdk.compile.tool_hooks`)."""

    payload_sha256: str
    payload_bytes: int
    tosa: bytes
    summary_csv: bytes
    per_layer_csv: bytes
    debug_xml: bytes
    scratch_bytes: int
    scratch_fast_bytes: int
    nodes: Mapping[str, Mapping[str, Any]]

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        return summary_estimates(self.summary_csv)


def summary_estimates(summary_csv: bytes) -> tuple[Estimate, ...]:
    """What Vela estimates of a network, from its summary."""
    found = parse_summary(summary_csv.decode())
    return tuple(
        Estimate(name=name, value=found[column] * factor, unit=unit, source="estimated")
        for column, name, unit, factor in _columns()
        if column in found
    )


def run_turns(payloads: Iterable[bytes], captures: Sequence[VelaCapture]) -> list[int]:
    """For each payload the number of its Vela run, by SHA-256. BuildError for a payload of no run."""
    found = {capture.payload_sha256: turn for turn, capture in enumerate(captures)}
    given = [found.get(filesystem.sha256_bytes(payload)) for payload in payloads]
    for index, turn in enumerate(given):
        if turn is None:
            raise BuildError(f"delegate {index} of the program was not compiled in this run")
    return [turn for turn in given if turn is not None]


def parse_summary(text: str) -> dict[str, float]:
    """The numeric columns of Vela's ``*_summary_*.csv``, which has one row. BuildError for another form."""
    rows = list(csv.DictReader(io.StringIO(text)))
    if len(rows) != 1:
        raise BuildError(f"Vela's summary has {len(rows)} rows instead of one")
    try:
        return {
            key: float(value)
            for key, value in rows[0].items()
            if key not in _TEXT_COLUMNS and value not in ("", None)
        }
    except ValueError as error:
        raise BuildError(f"Vela's summary holds a column that is not a number: {error}") from error


def spaceless_directory() -> Path:
    """A folder for temporary files whose path has no space: Vela's caller joins its arguments with spaces."""
    for candidate in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        if " " not in candidate and Path(candidate).is_dir():
            return Path(candidate)
    raise BuildError("no folder for temporary files has a path without a space", "set TMPDIR to one")


@contextlib.contextmanager
def runs_captured(config: VelaConfig | None = None) -> Iterator[list[VelaCapture]]:
    """While the block runs, Vela's runs are added to the list; `config` is what compile specs call `stored_name`."""
    from executorch.backends.arm.ethosu import backend

    captures: list[VelaCapture] = []
    with tool_hooks.lowering_traced() as trace:
        original = backend.vela_compile

        def vela_compile(
            tosa_flatbuffer: bytes,
            args: list[str],
            verbose: bool = False,
            intermediate_path: str | None = None,
            block_placements: Any = None,
        ) -> Any:
            del verbose, intermediate_path
            tosa, nodes = bytes(tosa_flatbuffer), trace.take()
            with _working_folder() as folder:
                arguments = [*with_config(args, config, folder), *REPORT_FLAGS]
                with _refusals_explained():
                    result = original(
                        tosa, arguments, intermediate_path=str(folder), block_placements=block_placements
                    )
                captures.append(read_capture(tosa, nodes, bytes(result.processed_bytes), folder))
            return result

        with patched(backend, vela_compile=vela_compile):
            yield captures


@contextlib.contextmanager
def _working_folder() -> Iterator[Path]:
    parent = spaceless_directory()
    try:
        with tempfile.TemporaryDirectory(prefix="ethosu-vela-", dir=parent) as folder:
            yield Path(folder)
    except OSError as error:
        raise BuildError(
            f"Vela's files cannot be written: {error.strerror or error}",
            f"free some space in {parent} and in the output folder, or set TMPDIR to another folder",
        ) from error


def with_config(args: Sequence[str], config: VelaConfig | None, folder: Path) -> list[str]:
    """`args` with the user's configuration file, copied where its path has no space."""
    if config is None:
        return list(args)
    copy = folder / config.stored_name
    copy.write_bytes(config.content)
    return [f"--config={copy}" if arg == f"--config={config.stored_name}" else arg for arg in args]


@contextlib.contextmanager
def _refusals_explained() -> Iterator[None]:
    """Vela refuses its options by ending the process and a graph by an exception: both become BuildError."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            yield
    except OSError:
        raise
    except (Exception, SystemExit) as error:
        lines = printed.getvalue().strip().splitlines() if isinstance(error, SystemExit) else []
        reason = lines[-1] if lines else plain_text.error(error)
        raise BuildError(f"{VELA_REFUSED}{reason}", LOG_HINT) from error
    finally:
        with contextlib.suppress(OSError):  # the log's disk may be full
            sys.stderr.write(printed.getvalue())


def read_capture(
    tosa: bytes, nodes: Mapping[str, Mapping[str, Any]], payload: bytes, folder: Path
) -> VelaCapture:
    """What Vela left in `folder`, in which ExecuTorch made it work."""
    output = folder / "output"
    with np.load(output / "out_vela.npz", allow_pickle=False) as arrays:
        scratch = int(np.atleast_1d(arrays["scratch_shape"])[0])
        fast = int(np.atleast_1d(arrays["scratch_fast_shape"])[0]) if "scratch_fast_shape" in arrays else 0
    return VelaCapture(
        payload_sha256=filesystem.sha256_bytes(payload),
        payload_bytes=len(payload),
        tosa=tosa,
        summary_csv=read_report(output, "*_summary_*.csv"),
        per_layer_csv=read_report(output, "*_per-layer.csv"),
        # The folder's random name is in it: without, the report is the same in each run.
        debug_xml=read_report(output, "*_debug.xml").replace(f"{folder}/".encode(), b""),
        scratch_bytes=scratch,
        scratch_fast_bytes=fast,
        nodes=nodes,
    )


def read_report(folder: Path, pattern: str) -> bytes:
    """The only file in `folder` with a name like `pattern`. BuildError when there is not one."""
    matches = sorted(folder.glob(pattern))
    if len(matches) != 1:
        raise BuildError(f"Vela wrote {len(matches)} files like {pattern} instead of one")
    return matches[0].read_bytes()
