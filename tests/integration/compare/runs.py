"""Runs to compare, and faults planted in them."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ethosu_sdk.base import filesystem
from ethosu_sdk.npu import program
from ethosu_sdk.npu.config import NpuConfig
from ethosu_sdk.npu.operation import BlockOp
from ethosu_sdk.program import pte
from tests.integration.cli import Outcome, sdk, sdk_ok
from tests.records import read

Record = dict[str, Any]
MODEL = "digits_cnn"
SCALE_BYTES = 10  # a channel's: 40 bits of bias, 32 of multiplier, then the shift


@dataclass(frozen=True)
class Compared:
    """How `compare` ended, and its record."""

    done: Outcome
    record: Record

    @property
    def only(self) -> Record:
        """The one comparison."""
        (row,) = self.record["comparisons"]
        return dict(row)

    def metric(self, name: str) -> Record:
        """A figure that differs."""
        return next(row for row in self.only["metrics"] if row["name"] == name)


def compare(*words: str | Path, cwd: Path) -> Compared:
    """`compare` with `words`, and the record that it wrote."""
    done = sdk("compare", *words, "-o", "out", cwd=cwd)
    return Compared(done, read(cwd / "out" / "compare.json"))


def changed(source: Path, target: Path, change: Callable[[Record], None]) -> Path:
    """A copy of the record `source` after `change`."""
    record = read(source)
    change(record)
    target.write_text(json.dumps(record), encoding="utf-8")
    return target


def run_on_host(folder: Path) -> None:
    """Run the program of `folder` on the host simulator, with the example inputs beside it."""
    sdk_ok("run", folder / f"{MODEL}.pte", "--simulator", "host", "-q", "-o", folder, cwd=folder)


def with_another_scale(source: Path, folder: Path, layer: int) -> Path:
    """A copy of the compilation `source` whose layer number `layer` with weights shifts its sums by one bit less."""
    folder.mkdir()
    for name in (f"{MODEL}.pte", f"{MODEL}.io.npz", f"{MODEL}.compile.json"):
        shutil.copy(source / name, folder / name)
    path = folder / f"{MODEL}.pte"
    digest = filesystem.sha256_file(path)
    data = bytearray(path.read_bytes())
    (delegate,) = pte.parse(bytes(data)).delegates
    vela = delegate.vela
    assert vela is not None
    segment = program.described(bytes(vela.command_stream), NpuConfig.from_word(vela.config_word))
    layers = [row for row in segment.operations if isinstance(row, BlockOp) and row.scales is not None]
    stream = layers[layer].scales.streams[0]
    start = data.find(bytes(vela.weights)) + stream.address
    for place in range(
        start + SCALE_BYTES - 1, start + stream.length // SCALE_BYTES * SCALE_BYTES, SCALE_BYTES
    ):
        assert 1 <= data[place] < 64
        data[place] -= 1
    path.write_bytes(data)
    text = (folder / f"{MODEL}.compile.json").read_text(encoding="utf-8")
    (folder / f"{MODEL}.compile.json").write_text(
        text.replace(digest, filesystem.sha256_file(path)), encoding="utf-8"
    )
    return folder
