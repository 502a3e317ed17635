"""Runs Vela on a `.tflite`, in a process of its own, and reads what it makes of it: operators that the NPU does as
``ethos-u``, and those that stay on the CPU as they were, each with Vela's reason."""

from __future__ import annotations

import os
import re
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ethosu_sdk.base import filesystem, proc
from ethosu_sdk.base.errors import InputError
from ethosu_sdk.base.targets import Target
from ethosu_sdk.compile import vela_capture
from ethosu_sdk.compile.vela_config import VelaConfig
from ethosu_sdk.program.tflite import TfliteModel, read_tflite

_RUN = "import sys; from ethosu.vela.vela import main; sys.exit(main(sys.argv[1:]))"
_TIMEOUT_S = 3600.0
_NAME = "network"  # not that of the user's file, which is an argument and a part of paths
VELA_CONFIG = "Arm/vela.ini"  # the configuration file that comes with Vela
# Vela 5.1.0: the operator and its output, then why it stays on the CPU.
_LEFT = re.compile(
    r"^Warning \(supported operators\) operator: (\w+), ofm: '(.*)'\nReason: (.+)$", re.MULTILINE
)


@dataclass(frozen=True)
class VelaOutput:
    """The `network` that Vela wrote, its reports, and why operators stay on the CPU, by the name of their output."""

    network: TfliteModel
    summary_csv: bytes
    per_layer_csv: bytes
    debug_xml: bytes
    reasons: Mapping[str, str]
    printed: str


def _refusal(model: TfliteModel, done: proc.ProcResult) -> InputError:
    lines = [line for line in done.output.splitlines() if line.strip()]
    if done.returncode < 0:
        return InputError(
            f"Vela crashes on {model.path.name} ({signal.Signals(-done.returncode).name})",
            "the file is damaged, or has an operator in a form that Vela does not expect; compile.log has its output",
        )
    return InputError(
        f"Vela refuses {model.path.name}: {lines[-1] if lines else 'it says nothing'}",
        "compile.log has its whole output",
    )


def vela_flags(target: Target, config: VelaConfig | None, flags: Sequence[str]) -> list[str]:
    """Vela's flags, in the order in which ExecuTorch gives them."""
    return [
        *flags,
        f"--accelerator-config={target.name}",
        f"--config={VELA_CONFIG if config is None else config.stored_name}",
        "--output-format=raw",
        f"--system-config={target.system_config}",
        f"--memory-mode={target.memory_mode}",
    ]


def compile_network(
    model: TfliteModel,
    flags: Sequence[str],
    config: VelaConfig | None,
    python_path: str = "",
) -> VelaOutput:
    """Compile `model` with `flags`, by the Vela in `python_path`, which is empty for the SDK's own.
    InputError when Vela refuses it, or crashes."""
    # Its raw format has one block of operators for the NPU; this one has all, and what is between them.
    words = ["--output-format=tflite" if flag.startswith("--output-format=") else flag for flag in flags]
    with tempfile.TemporaryDirectory(prefix="ethosu-vela-", dir=vela_capture.spaceless_directory()) as name:
        folder = Path(name)
        source, output = folder / f"{_NAME}.tflite", folder / "output"
        filesystem.write_bytes(source, bytes(model.data))
        arguments = [*vela_capture.with_config(words, config, folder), *vela_capture.REPORT_FLAGS]
        done = proc.run(
            [sys.executable, "-P", "-c", _RUN, *arguments, f"--output-dir={output}", str(source)],
            env={**os.environ, **({"PYTHONPATH": python_path} if python_path else {})},
            timeout_s=_TIMEOUT_S,
            check=False,
        )
        print(done.output)  # into the log of the compilation
        made = output / f"{_NAME}_vela.tflite"
        if done.returncode or not made.is_file():
            raise _refusal(model, done)
        # The folder's random name is in it: without, the report is the same in each run.
        debug = vela_capture.read_report(output, "*_debug.xml").replace(f"{folder}/".encode(), b"")
        return VelaOutput(
            network=read_tflite(made),
            summary_csv=vela_capture.read_report(output, "*_summary_*.csv"),
            per_layer_csv=vela_capture.read_report(output, "*_per-layer.csv"),
            debug_xml=debug,
            reasons={found[2]: found[3] for found in _LEFT.finditer(done.output)},
            printed=done.output,
        )
