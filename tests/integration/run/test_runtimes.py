"""`run --runtime executorch|both`: programs on Arm's own build of ExecuTorch, the same and beside our interpreter.

The runner, its driver and its kernels are Arm's binaries: nothing of the SDK's firmware takes part in what they give.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from ethosu_sdk.base import filesystem, npz
from ethosu_sdk.records import validation
from ethosu_sdk.simulate import arm_runners
from tests import processes
from tests.conftest import ZooPte
from tests.integration.cli import Outcome, assert_clear, sdk
from tests.integration.hostile import added, delegating
from tests.own_qemu import VARIABLE
from tests.places import GOLDEN_PTE, ROOT
from tests.pte_files import golden
from tests.unit.npu.streams import stream

PACKAGE = "mlia-ethos-u"
SOFTMAX = GOLDEN_PTE / "softmax.pte"
OFM_BASE0 = 0x4010  # the register, as a command with an address has it
# Zoo models of Ethos-U55, cheap ones: only NPU, only CPU, one delegate, two with kernels between them, wide layers.
MODELS = ("add", "softmax", "digits_cnn", "ds_cnn", "resnet8")

pytestmark = [pytest.mark.torch, pytest.mark.qemu, pytest.mark.toolchain]


@pytest.fixture(scope="module", autouse=True)
def _package() -> None:
    try:
        importlib.metadata.distribution(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{PACKAGE} is not installed: scripts/setup does that")


def run(program: Path, folder: Path, *options: str | Path, **more: Any) -> tuple[Outcome, dict[str, Any]]:
    outcome = sdk("run", program, "-o", folder / "out", "--json", *options, cwd=folder, **more)
    record = json.loads(outcome.out) if outcome.out else {}
    assert not record or validation.record_problems(record) == []
    return outcome, record


def arrays(path: Path) -> list[bytes]:
    with np.load(path) as content:
        return [content[name].tobytes() for name in sorted(content)]


@pytest.mark.parametrize("name", MODELS)
def test_arms_runner_and_our_firmware_agree(name: str, zoo_pte: ZooPte, tmp_path: Path) -> None:
    """Outputs byte for byte and every counter, also where kernels compute in floating point."""
    outcome, record = run(zoo_pte(name).pte, tmp_path, "--runtime", "both")
    assert outcome.code == 0, outcome.err
    opinion = record["second_opinion"]
    assert (record["runtime"]["name"], opinion["runtime"]["name"]) == ("own", "executorch")
    assert [row["differing"] for row in opinion["outputs"]] == [0] * len(record["outputs"])
    assert arrays(tmp_path / "out" / "outputs.npz") == arrays(tmp_path / "out" / "outputs-executorch.npz")
    if "npu" in record:
        assert opinion["npu"]["cycles"] == record["npu"]["cycles"]
        assert opinion["npu"]["counters"] == record["npu"]["counters"]
        assert len(opinion["npu"]["counters"]) >= 3


def test_the_record_says_what_ran_the_program(zoo_pte: ZooPte, tmp_path: Path) -> None:
    outcome, record = run(zoo_pte("digits_cnn").pte, tmp_path, "--runtime", "executorch")
    assert outcome.code == 0, outcome.err
    runner = arm_runners.runner_for("ethos-u55")
    loaded = record["runtime"].pop("loaded")
    assert record["runtime"] == {
        "name": "executorch",
        "version": "evaluation kit 25.12.0",
        "elf_sha256": runner.sha256,
    }
    with arm_runners.runner_executable(runner).open("rb") as stream:
        parts = [row.data() for row in ELFFile(stream).iter_segments("PT_LOAD") if row["p_filesz"]]
    assert [row["sha256"] for row in loaded["segments"]] == [filesystem.sha256_bytes(part) for part in parts]
    roles = {row["role"]: row["sha256"] for row in record["provenance"]["inputs"]}
    assert roles == {"model": record["model"]["sha256"], "runner": runner.sha256}
    assert {row["name"] for row in record["provenance"]["tools"]} == {PACKAGE, "qemu"}
    assert "Inference completed." in (tmp_path / "out" / "uart.log").read_text(encoding="utf-8")
    assert_clear(sdk("verify", tmp_path / "out" / "run.json", cwd=tmp_path), 3, "Arm's prebuilt runner")


def test_inputs_reach_the_runner_in_their_order(tmp_path: Path) -> None:
    """An input of another kind than the example: the sum of what was given, and of nothing else."""
    given = np.array([-(2**30), 7, 0, 12345, -1], np.int32)
    npz.write_npz(tmp_path / "in.npz", {"input0": given})
    npz.write_npz(tmp_path / "want.npz", {"output0": given + given})
    options = ("--inputs", "in.npz", "--expect", "want.npz", "--runtime", "executorch")
    outcome, record = run(GOLDEN_PTE / "add_u55.pte", tmp_path, *options)
    assert (outcome.code, record["status"]) == (0, "pass"), outcome.err
    npz.write_npz(tmp_path / "want.npz", {"output0": given + given + 1})
    outcome, record = run(GOLDEN_PTE / "add_u55.pte", tmp_path, *options)
    assert (outcome.code, record["status"]) == (7, "fail")


def test_a_wrong_constant_of_our_kernels_is_seen(tmp_path: Path) -> None:
    """The negative control: a sum of our softmax does not begin at zero."""
    tree = tmp_path / "firmware"
    shutil.copytree(ROOT / "firmware", tree)
    source = tree / "kernels" / "operators" / "softmax.cpp"
    text = source.read_text(encoding="utf-8")
    fault = ("Float sum = 0;", "Float sum = static_cast<Float>(0.001);")
    assert text.count(fault[0]) == 1
    source.write_text(text.replace(*fault), encoding="utf-8")
    outcome, record = run(SOFTMAX, tmp_path, "--runtime", "both", env={"ETHOSU_SDK_FIRMWARE": str(tree)})
    assert (outcome.code, record["status"]) == (7, "fail")
    assert "output0 is the same on both runtimes" in outcome.err
    assert "first at [0, 0]" in outcome.err
    assert record["second_opinion"]["outputs"][0]["differing"] > 0


@pytest.mark.parametrize(
    ("program", "options", "code", "said"),
    [
        (GOLDEN_PTE / "conv_u65_int8.pte", (), 2, "no ExecuTorch runner for ethos-u65"),
        (GOLDEN_PTE / "add_u85_segment.pte", (), 4, "scripts/setup --corstone-320"),
        (SOFTMAX, ("--repeat", "2"), 2, "one inference per boot, but 2 were requested"),
        (SOFTMAX, ("--resident",), 2, "leave --resident out"),
        (SOFTMAX, ("--board", "corstone-320"), 2, "built for corstone-300, not corstone-320"),
        (SOFTMAX, ("--simulator", "fvp"), 2, "runs on qemu, not on fvp"),
        (SOFTMAX, ("--simulator", "host"), 2, "chooses what runs on a board"),
    ],
)
def test_what_the_runner_cannot_do_is_refused(
    program: Path, options: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    only_debians = {"ETHOSU_SDK_QEMU_CORSTONE": "", "ETHOSU_SDK_CACHE": str(tmp_path / "cache")}
    for runtime in ("executorch", "both"):
        outcome, _ = run(program, tmp_path, "--runtime", runtime, *options, env=only_debians)
        assert (outcome.code, said in outcome.err) == (code, True), outcome.err
        assert not (tmp_path / "out" / "run.json").exists()
        assert not list(tmp_path.rglob("*.elf"))  # nothing was built for it


def test_an_unknown_runtime_has_a_suggestion(tmp_path: Path) -> None:
    outcome, _ = run(SOFTMAX, tmp_path, "--runtime", "executorh")
    assert outcome.code == 2
    assert "did you mean 'executorch'?" in outcome.err


def test_a_run_that_does_not_end_is_cut(own_qemu: Path, tmp_path: Path) -> None:
    hour = stream(*[added((1 << 12, 1 << 12, 1))] * 5000)  # of work for the NPU, in 16 MiB
    program = delegating(tmp_path / "net.pte", hour, 16 << 20)
    outcome, _ = run(
        program, tmp_path, "--runtime", "executorch", "--timeout", "3", env={VARIABLE: str(own_qemu)}
    )
    assert (outcome.code, "the time limit was reached" in outcome.err) == (6, True), outcome.err
    assert not (tmp_path / "out" / "run.json").exists()


def test_a_damaged_command_stream_ends_as_on_the_host(tmp_path: Path) -> None:
    program = golden("add_u55")
    stored, damaged = (struct.pack("<II", OFM_BASE0, offset) for offset in (0, 0x1040))
    assert program.count(stored) == 1
    (tmp_path / "net.pte").write_bytes(program.replace(stored, damaged))
    outcome, _ = run(tmp_path / "net.pte", tmp_path, "--runtime", "executorch")
    assert_clear(outcome, 3, "OFM access to bytes 0x1040 to 0x1054 of region 1, which has 0x40 bytes")
    assert not (tmp_path / "out" / "run.json").exists()


def planned(program: bytes, size_bytes: int) -> bytes:
    """`program`, softmax's, with another size of its planned memory."""
    known = (320).to_bytes(8, "little")
    assert program.count(known) == 1
    return program.replace(known, size_bytes.to_bytes(8, "little"))


@pytest.mark.parametrize(
    ("size_bytes", "code", "said"),
    [
        (
            3 << 20,
            5,
            "planned memory takes 3,145,728 bytes, but Arm's runner for corstone-300 has room for 2,097,152",
        ),
        ((2 << 20) - 64, 6, "Arm's runner failed: "),  # its own objects have no room left: it says so itself
    ],
)
def test_memory_that_the_runner_lacks_is_named(size_bytes: int, code: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "big.pte").write_bytes(planned(SOFTMAX.read_bytes(), size_bytes))
    outcome, _ = run(tmp_path / "big.pte", tmp_path, "--runtime", "executorch")
    assert (outcome.code, said in outcome.err) == (code, True), outcome.err
    assert not (tmp_path / "out" / "run.json").exists()


def elsewhere(folder: Path, version: str, *, content: bytes | None) -> Path:
    """A package of the runner's name: its metadata, and a runner with `content` if that is given."""
    metadata = filesystem.make_directory(folder / f"mlia_ethos_u-{version}.dist-info")
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {version}\n")
    if content is not None:
        runner = arm_runners.runner_for(None)
        place = folder / "mlia" / "resources" / "backends" / "applications" / runner.folder
        filesystem.write_bytes(filesystem.make_directory(place) / "mlek_inference_runner.axf", content)
    return folder


@pytest.mark.parametrize(
    ("version", "content", "said"),
    [
        ("0.1.0", b"\x7fELF of somebody else", "its SHA-256 is"),
        ("0.1.0", None, "has no runner for corstone-300"),
        ("0.0.9", b"\x7fELF", "is broken (0.0.9, 0.1.0 is needed)"),
    ],
)
def test_another_runner_than_arms_is_not_run(
    version: str, content: bytes | None, said: str, tmp_path: Path
) -> None:
    package = elsewhere(tmp_path / "package", version, content=content)
    outcome, _ = run(SOFTMAX, tmp_path, "--runtime", "executorch", env={"PYTHONPATH": str(package)})
    assert (outcome.code, said in outcome.err) == (4, True), outcome.err
    assert "pip install" in outcome.err


def test_without_the_package_the_fix_is_named(tmp_path: Path) -> None:
    """An interpreter that sees what this one sees, but for the package."""
    folder = filesystem.make_directory(tmp_path / "packages")
    others = []
    for place in map(Path, sys.path):
        if place.name != "site-packages":
            others.append(str(place))
            continue
        for entry in place.iterdir():
            if not entry.name.startswith(("mlia", "__pycache__")) and not (folder / entry.name).exists():
                (folder / entry.name).symlink_to(entry)
    done = processes.run(
        [sys.executable, "-S", "-m", "ethosu_sdk", "run", SOFTMAX, "--runtime", "executorch", "-o", "out"],
        cwd=tmp_path,
        env={"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "sdk"), *others])},
    )
    assert done.returncode == 4, done.stderr
    assert "'mlia-ethos-u', needed for run --runtime executorch, is missing" in done.stderr
    assert "pip install --no-deps mlia-ethos-u==0.1.0" in done.stderr
