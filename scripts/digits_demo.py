"""The main job, end to end, on scikit-learn's real digits: what `scripts/quickstart` runs after the set-up.

Trains zoo:digits_cnn (seconds, cached), compiles it int8 for ethos-u55-128, builds the firmware, runs held-back
images through the simulated board and prints what came out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table

from ethosu_sdk.base import filesystem, interrupts, npz
from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.base.json_text import Record
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile import zoo
from ethosu_sdk.compile.program_options import CompileOptions
from ethosu_sdk.run import run_command

_TARGET = "ethos-u55-128"
_SHADES = " ░▒▓█"


def main() -> int:
    """Run the demonstration; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=200, help="held-back images to run (default: 200)")
    parser.add_argument("-o", "--output", type=Path, default=Path("build") / f"digits_cnn-{_TARGET}")
    arguments = parser.parse_args()
    try:
        _demonstrate(arguments.images, arguments.output)
    except SdkError as error:
        sys.stderr.write(f"error: {error.message}\nhint: {error.hint}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return interrupts.EXIT_CODE
    return 0


def _demonstrate(count: int, folder: Path) -> None:
    images, labels = zoo.digits.held_back()
    images, labels = images[:count], labels[:count]
    filesystem.make_directory(folder)
    inputs = folder / "held_back.npz"
    npz.write_npz(inputs, {"input0": images[:, None]})  # one more axis: that many inferences
    options = run_command.RunOptions(inputs=inputs)
    compile_options = CompileOptions(target=_TARGET)
    record = run_command.run("zoo:digits_cnn", compile_options, options, folder, Reporter()).record.to_json()
    scores = np.load(folder / "outputs.npz")["output0"]
    _show(images, labels, scores.reshape(len(labels), -1).argmax(axis=1), record, folder)


def _picture(image: npt.NDArray[np.float32]) -> str:
    pixels = image.reshape(8, 8)
    levels = np.clip((pixels - pixels.min()) / max(float(np.ptp(pixels)), 1e-6) * 4, 0, 4).astype(int)
    return "\n".join("".join(_SHADES[level] * 2 for level in row) for row in levels)


def _show(
    images: npt.NDArray[np.float32],
    labels: npt.NDArray[np.int64],
    predictions: npt.NDArray[np.int64],
    record: Record,
    folder: Path,
) -> None:
    console = Console(highlight=False)
    shown = min(4, len(labels))
    gallery = Table(box=None, show_header=False, padding=(0, 2))
    gallery.add_row(*[_picture(images[index]) for index in range(shown)])
    gallery.add_row(*[f"board says {predictions[i]}, label {labels[i]}" for i in range(shown)])
    right = int((predictions == labels).sum())
    console.print(gallery)
    console.print(f"[bold]{right} of {len(labels)} held-back images right: {right / len(labels):.1%}[/bold]")
    console.print(f"records: {folder}/run.json, build.json, digits_cnn.compile.json (all schema-valid)")
    if record["status"] != "pass":
        raise SdkError("the run did not pass")


if __name__ == "__main__":
    sys.exit(main())
