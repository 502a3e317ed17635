"""`convert` to ExecuTorch's formats: its Inspector and its runtime open them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ethosu_sdk.base import filesystem, npz
from tests import warm
from tests.integration.convert.reading import convert, refused
from tests.places import GOLDEN_PTE
from tests.records import example

SOFTMAX = GOLDEN_PTE / "softmax.pte"

Record = dict[str, Any]


def _compiled(folder: Path) -> Path:
    """A folder as `compile` leaves one of the softmax program, with outputs that NumPy computed."""
    record = example("compile-digits_cnn-evaluated")
    digest = filesystem.sha256_file(SOFTMAX)
    record["model"] |= {"file": "softmax.pte", "sha256": digest, "bytes": SOFTMAX.stat().st_size}
    record["files"] |= {"pte": "softmax.pte", "io": "softmax.io.npz"}
    folder.mkdir()
    (folder / "softmax.pte").write_bytes(SOFTMAX.read_bytes())
    (folder / "softmax.compile.json").write_text(json.dumps(record), encoding="utf-8")
    given = np.random.default_rng(1).normal(size=(4, 10)).astype(np.float32)
    powers = np.exp(given)
    expected = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)
    npz.write_npz(folder / "softmax.io.npz", {"input0": given, "output0": expected})
    return folder


@pytest.mark.torch
@pytest.mark.toolchain
def test_executorch_opens_an_etdump_and_a_bundle(tmp_path: Path) -> None:
    record = example("profile-digits_cnn")
    dump, bundle = tmp_path / "dump.etdp", tmp_path / "softmax.bpte"
    dump.write_bytes(convert(record, "etdump", tmp_path))
    folder = _compiled(tmp_path / "compiled")
    bundle.write_bytes(convert(folder, "bpte", tmp_path))
    arguments = (dump, bundle, folder / "softmax.pte", folder / "softmax.io.npz")
    done = warm.python("-m", "tests.integration.convert.executorch_child", *arguments)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    _check_events(record, found["events"])
    assert found["bundle"] == {"same": True, "executed": True}


def _check_events(record: Record, events: list[Record]) -> None:
    """Start and operations of the delegate are there in order, with their cycles, which are the record's total."""
    (total,) = [row["value"] for row in record["totals"]["npu"]["cycles"] if row["source"] == "modelled"]
    assert sum(row["cycles"] for row in events) == total
    assert all(row["delegated"] for row in events)
    (delegate,) = record["delegates"]
    start, *rest = events
    assert (start["name"], start["cycles"]) == ("start of delegate 0", delegate["start_cycles"])
    operations = [row for row in record["operations"] if row["runs_on"] == "NPU"]
    assert [(row["instruction"], row["cycles"]) for row in rest] == [
        (row["instruction"], row["cycles"][0]["value"]) for row in operations
    ]
    names = [row["name"] for row in rest]
    assert all(row["tosa"]["operator"] in name for row, name in zip(operations, names, strict=True))


@pytest.mark.toolchain
def test_a_program_without_an_npu_has_no_times(tmp_path: Path) -> None:
    record = example("profile-digits_cnn")
    record["operations"] = [row for row in record["operations"] if row["runs_on"] == "CPU"]
    (tmp_path / "profile.json").write_text(json.dumps(record), encoding="utf-8")
    refused(tmp_path, tmp_path / "profile.json", "--to", "etdump")


def test_bundles_of_changed_or_lost_files_are_refused(tmp_path: Path) -> None:
    folder = _compiled(tmp_path / "compiled")
    (folder / "softmax.io.npz").write_bytes(b"PK\x03\x04")
    refused(tmp_path, folder, "--to", "bpte")
    (folder / "softmax.io.npz").unlink()
    assert "cannot read" in refused(tmp_path, folder, "--to", "bpte")
    (folder / "softmax.pte").write_bytes((GOLDEN_PTE / "add_u55.pte").read_bytes())
    assert "is not the program of" in refused(tmp_path, folder, "--to", "bpte")
