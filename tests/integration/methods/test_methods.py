"""Programs with several methods: one at a time, and scripts of calls, on the host and on QEMU."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from ethosu_sdk.base import npz
from ethosu_sdk.program import pte
from ethosu_sdk.program.execution_plan import shares_state
from ethosu_sdk.records import validation
from tests.conftest import KeptFolder
from tests.integration import guide
from tests.integration.cli import assert_clear, sdk, sdk_ok
from tests.integration.methods import models
from tests.records import printed, read, valid

pytestmark = [pytest.mark.qemu, pytest.mark.toolchain, pytest.mark.torch]
SIMULATORS = ("host", "qemu")
STEPS, HALF = 32, 16
Array = npt.NDArray[Any]


@pytest.fixture(scope="session")
def decoder(kept_folder: KeptFolder) -> Path:
    """The compiled decoder, with the inputs of all its steps beside it."""
    return compiled(kept_folder, "decoder", models.DECODER, "--target", "ethos-u85-256")


def compiled(kept_folder: KeptFolder, name: str, source: str, *options: str) -> Path:
    def make(folder: Path) -> None:
        (folder / f"{name}.py").write_text(source)
        sdk_ok("compile", f"{name}.py", *options, "-o", ".", "-q", cwd=folder)

    return kept_folder(f"methods-{name}", make, source, *options) / f"{name}.pte"


def values(name: str, source: str, folder: Path) -> Any:
    """The model's file as a module."""
    path = folder / f"{name}_source.py"
    path.write_text(source)
    sys.path.insert(0, str(folder))
    try:
        return __import__(path.stem)
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(path.stem, None)


def run(program: Path, folder: Path, script: str, simulator: str) -> list[Array]:
    """The first output of each call of `script`, whose records are valid."""
    (folder / "calls.toml").write_text(script)
    results = folder / f"{simulator}-{len(list(folder.iterdir()))}"
    record = printed(
        sdk(
            *("run", program, "--script", "calls.toml", "--simulator", simulator, "--json", "-o", results),
            cwd=folder,
        )
    )
    found = []
    for row in record["calls"]:
        call = valid(results / row["folder"] / "run.json")
        assert call["model"]["entry"] == row["method"]
        found.append(npz.read_npz(results / row["folder"] / "outputs.npz")["output0"])
    return found


def inputs(folder: Path) -> None:
    model = values("decoder", models.DECODER, folder)
    x, places = model.X.numpy(), model.PLACES.numpy()
    steps = {"input0": x.reshape(STEPS, 1, 1, -1), "input1": places.reshape(STEPS, 1)}
    npz.write_npz(folder / "prompt.npz", {"input0": x[:, :HALF], "input1": places[:HALF]})
    npz.write_npz(folder / "all.npz", steps)
    npz.write_npz(folder / "rest.npz", {name: rows[HALF:] for name, rows in steps.items()})


PREFILL = '[[call]]\nmethod = "prefill"\ninputs = "prompt.npz"\n'
REST = '[[call]]\nmethod = "decode"\ninputs = "rest.npz"\nsteps = 16\n'
ALL = '[[call]]\nmethod = "decode"\ninputs = "all.npz"\nsteps = 32\n'


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_prefill_and_decode_share_a_cache(decoder: Path, tmp_path: Path, simulator: str) -> None:
    inputs(tmp_path)
    (steps,) = run(decoder, tmp_path, ALL, simulator)
    prefill, decode = run(decoder, tmp_path, PREFILL + REST, simulator)
    assert prefill.reshape(steps[:HALF].shape).tobytes() == steps[:HALF].tobytes()
    assert decode.tobytes() == steps[HALF:].tobytes()
    model = values("decoder", models.DECODER, tmp_path)
    wanted = model.model.attend(model.X, model.PLACES).detach().numpy().reshape(steps.shape)
    noise = float(np.square(steps - wanted).sum() / np.square(wanted).sum())
    assert 10 * np.log10(1 / noise) > 25
    # Without the prefill, the same decode sees an empty cache.
    (alone,) = run(decoder, tmp_path, REST, simulator)
    assert alone.tobytes() != decode.tobytes()


def test_the_record_of_the_compilation_has_each_method(decoder: Path) -> None:
    record = read(decoder.parent / "decoder.compile.json")
    assert record["model"]["entry"] == "prefill"
    (decode,) = record["other_methods"]
    assert decode["name"] == "decode"
    assert [row["name"] for row in record["state"]] == ["keys", "values"]
    assert record["state"] == decode["state"]
    assert {record["check"]["status"], decode["check"]["status"]} == {"pass"}
    assert decode["chain"]["links"][0]["link"] == "graph"
    assert (decoder.parent / decode["io"]).is_file()
    program = pte.read(decoder)
    assert shares_state([program.plan(name) for name in program.methods])


def test_one_method_runs_by_its_name(decoder: Path, tmp_path: Path) -> None:
    record = printed(sdk("run", decoder, "--method", "decode", "--json", "-o", tmp_path / "r", cwd=tmp_path))
    assert record["model"]["entry"] == "decode"
    assert record["reference"]["file"] == "decoder.decode.io.npz"
    assert any(row["name"] == "the firmware's evidence is complete" for row in record["verdict"]["checks"])


def test_one_method_is_profiled_by_its_name(decoder: Path, tmp_path: Path) -> None:
    """Its own operations, and nothing of the first method's in the record of the compilation."""
    found = {}
    for name in ("prefill", "decode"):
        done = sdk_ok("profile", decoder, "--method", name, "--json", "-o", tmp_path / name, cwd=tmp_path)
        found[name] = json.loads(done.out)
        assert validation.record_problems(found[name]) == []
        run_record = read(tmp_path / name / "run.json")
        assert found[name]["model"] == run_record["model"]
        assert run_record["model"]["entry"] == name
        assert found[name]["totals"]["npu"]["cycles"][0]["value"] == run_record["npu"]["cycles"]["value"]
    assert found["prefill"]["totals"]["npu"]["macs"] > found["decode"]["totals"]["npu"]["macs"] > 0
    assert "vela" in found["prefill"]
    gaps = {row["path"]: row["reason"] for row in found["decode"]["unavailable"]}
    assert "estimates of its first method, not of decode" in gaps["/vela"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "the program has 2 methods: decode, prefill"),
        (("--method", "decoed"), "did you mean 'decode'"),
        (("--script", "a.toml", "--method", "decode"), "--method cannot be combined with --script"),
        (("--script", "a.toml", "--repeat", "2"), "--repeat cannot be combined with --script"),
        (("--script", "a.toml", "--runtime", "executorch"), "leave --runtime out"),
        (("--script", "a.toml", "--state", "s.npz"), "--state cannot be combined with --script"),
        (("--script", "a.toml", "--save-state", "s.npz"), "--save-state cannot be combined with --script"),
        (("--script", "a.toml", "--atol", "5"), "--atol cannot be combined with --script"),
        (("--script", "a.toml", "--events", "NOPE"), "unknown PMU event"),
    ],
)
def test_wrong_options_are_refused(decoder: Path, tmp_path: Path, options: Sequence[str], words: str) -> None:
    (tmp_path / "a.toml").write_text('[[call]]\nmethod = "decode"\n')
    assert_clear(sdk("run", decoder, *options, "-o", tmp_path / "r", cwd=tmp_path), 2, words)


DECODE = '[[call]]\nmethod = "decode"\n'


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("", "has no calls"),
        ("call = 3", "call must be a list of tables"),
        ("[[call]]\nmethod = 'prefil'", "calls.toml:2: the program has no method 'prefil'"),
        ("[[call]]\nsteps = 1", "calls.toml:1: [[call]] has no method"),
        (DECODE + "times = 2", "calls.toml:3: [[call]] has no 'times'"),
        (DECODE + "steps = 0", "steps must be a whole number from 1 to 65,536"),
        (DECODE + "steps = true", "steps must be a whole number"),
        (DECODE + "inputs = 'none.npz'", "calls.toml:3: there is no file"),
        (DECODE + "inputs = 7", "inputs must be the name of an .npz file"),
        (DECODE + "feed = 'output0:input0'", "feed must be a list of texts"),
        (DECODE + "feed = ['output0']", "'output0' is not a feed"),
        (DECODE + "feed = ['output7:input0']\nsteps = 2", "the program has no output7"),
        (DECODE + "take = ['output0:input0']", "the first call has no call before it"),
        (DECODE + DECODE + "take = ['step:input1']", "cannot be taken from another call"),
        (DECODE + DECODE + "take = ['output0:input1']", "the output is float32[1, 1, 16]"),
        (DECODE + "[extra]\na = 1", "a script has no 'extra'"),
        ("[[call]\n", "this is not TOML"),
    ],
)
def test_damaged_scripts_are_refused(decoder: Path, tmp_path: Path, script: str, words: str) -> None:
    (tmp_path / "calls.toml").write_text(script)
    assert_clear(sdk("run", decoder, "--script", "calls.toml", "-o", tmp_path / "r", cwd=tmp_path), 3, words)


SCRIPT = """
[[call]]
method = "encode"

[[call]]
method = "score"
steps = 4
take = ["argmax(output0):input0"]
feed = ["argmax(output0):input0"]
"""


def expected(folder: Path) -> Array:
    """What eager PyTorch gives for SCRIPT."""
    model = values("memory", models.MEMORY, folder)
    token, rows = model.model.encode(model.X).argmax(-1, keepdim=True), []
    for _ in range(4):
        scores = model.model.score(token)
        token = scores.argmax(-1, keepdim=True)
        rows.append(scores.detach().numpy())
    return np.stack(rows)


@pytest.mark.parametrize(
    ("options", "most"), [(("--quantize", "none", "--no-delegate"), 1e-6), ((), 0.05)], ids=["float", "int8"]
)
def test_a_method_reads_what_another_wrote(
    kept_folder: KeptFolder, tmp_path: Path, options: Sequence[str], most: float
) -> None:
    name = f"memory{len(options)}"
    program = compiled(kept_folder, name, models.MEMORY, "--target", "ethos-u55-128", *options)
    wanted = expected(tmp_path)
    assert len({int(row.argmax()) for row in wanted}) > 1  # the choices matter
    found = [run(program, tmp_path, SCRIPT, simulator)[1] for simulator in SIMULATORS]
    assert found[0].tobytes() == found[1].tobytes()
    assert np.abs(found[0] - wanted).max() < most * np.abs(wanted).max()


def test_the_page_command_by_command(tmp_path: Path) -> None:
    """Each decode step takes the choice of the step before, the first one the choice behind the prompt."""
    guide.run("methods.md", tmp_path, count=3)
    record = valid(tmp_path / "build" / "script" / "script.json")
    folders = [tmp_path / "build" / "script" / row["folder"] for row in record["calls"]]
    prompt, steps = (npz.read_npz(folder / "outputs.npz")["output0"] for folder in folders)
    (alone,) = npz.read_npz(tmp_path / "build" / "prefill" / "outputs.npz").values()
    assert prompt.tobytes() == alone.tobytes()
    chosen = [int(prompt[0, 3].argmax()), *(int(row.argmax()) for row in steps[:-1])]
    places = np.arange(4, 4 + len(steps), dtype=np.int64)
    taken = {"input0": np.array(chosen, np.int64).reshape(-1, 1, 1), "input1": places.reshape(-1, 1)}
    npz.write_npz(tmp_path / "taken.npz", taken)
    call = '[[call]]\nmethod = "prefill"\n[[call]]\nmethod = "decode"\ninputs = "taken.npz"\nsteps = 16\n'
    given = run(tmp_path / "build" / "decoder.pte", tmp_path, call, "host")[1]
    assert given.tobytes() == steps.tobytes()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--board", "corstone-42"), "corstone-42"),
        (("--simulator", "host", "--board", "corstone-300"), "leave --board out"),
        (("--simulator", "qemu", "--fast"), "--fast is for the FVP"),
        (("--memory-timing", "none.toml"), "none.toml"),
    ],
)
def test_wrong_options_are_not_said_of_a_call(
    decoder: Path, tmp_path: Path, options: Sequence[str], words: str
) -> None:
    """No line of the script is to blame, and nothing has run."""
    (tmp_path / "a.toml").write_text(DECODE)
    done = sdk("run", decoder, "--script", "a.toml", *options, "-o", tmp_path / "r", cwd=tmp_path)
    assert_clear(done, 3 if "none.toml" in options else 2, words)
    assert "a.toml:" not in done.err
    assert not list(tmp_path.glob("r/**/run.json"))


def test_modules_with_a_buffer_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "two.py").write_text(
        "import torch\n"
        "class Last(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.register_buffer('last', torch.zeros(1, 4))\n"
        "    def forward(self, x):\n"
        "        y = x + self.last\n"
        "        self.last.copy_(x)\n"
        "        return y\n"
        "methods = {'a': (Last(), torch.ones(1, 4)), 'b': (Last(), torch.ones(1, 4))}\n"
    )
    assert_clear(sdk("compile", "two.py", "-o", "out", cwd=tmp_path), 3, "each changes a buffer 'last'")
    assert not (tmp_path / "out" / "two.pte").exists()
