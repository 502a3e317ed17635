"""The SDK as a Python package: its functions in a fresh process, as a user's script has them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ethosu_sdk
from ethosu_sdk.base.errors import InputError, UsageError
from tests.places import GOLDEN_PTE
from tests.records import read

ADD = GOLDEN_PTE / "add_u55.pte"

SCRIPT = """
import json, sys

import ethosu_sdk

firmware = ethosu_sdk.build(sys.argv[1], out="built")
done = ethosu_sdk.run(sys.argv[1], repeat=2, out="done")
what = ethosu_sdk.inspect(sys.argv[1])
print(json.dumps({
    "elf": firmware.elf.is_file(),
    "board": firmware.board,
    "status": done.status,
    "cycles": done.npu_cycles,
    "repeats": done.record["repeats"]["count"],
    "outputs": {name: list(array.shape) for name, array in done.outputs.items()},
    "methods": what.methods,
}))
"""


@pytest.mark.toolchain
@pytest.mark.qemu
def test_build_run_and_inspect_give_what_the_commands_write(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(ADD)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
    )
    found = json.loads(done.stdout)
    record = read(tmp_path / "done" / "run.json")
    assert found == {
        "elf": True,
        "board": "corstone-300",
        "status": "pass",
        "cycles": record["npu"]["cycles"]["value"],
        "repeats": 2,
        "outputs": {"output0": record["outputs"][0]["shape"]},
        "methods": ["forward"],
    }


@pytest.mark.torch
def test_a_module_of_this_process_is_compiled_and_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In training mode, with inputs by name, calibrated; it stays as it was. Eager PyTorch judges the outputs."""
    import torch

    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.find = torch.nn.Conv2d(1, 4, 3, padding=1)
            self.drop = torch.nn.Dropout(0.9)

        def forward(self, image, scale):
            return self.drop(torch.relu(self.find(image))) * scale

    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    samples = [(torch.randn(1, 1, 8, 8), torch.rand(1, 4, 1, 1)) for _ in range(4)]
    model = Scaled().train()
    inputs = {"scale": samples[0][1].numpy(), "image": samples[0][0]}
    compiled = ethosu_sdk.compile(model, inputs, target="ethos-u55-32", calibration=samples)
    assert model.training
    assert compiled.pte == Path("build/Scaled-ethos-u55-32-calibrated/Scaled.pte")
    assert compiled.record["calibration"]["samples"] == len(samples)
    assert [row["verdict"] for row in compiled.record["chain"]["links"][:2]] == ["equal", "equal"]

    done = ethosu_sdk.run(
        compiled, tuple(torch.stack(row) for row in zip(*samples, strict=True)), simulator="host"
    )
    with torch.no_grad():
        expected = torch.stack([model.eval()(*row) for row in samples]).numpy()
    assert np.abs(done.outputs["output0"] - expected).max() < 0.05 * np.abs(expected).max()
    assert repr(done).startswith("Run(pass: ")
    assert "<table>" in done._repr_html_()
    assert done.time_ms is None
    assert done.npu_cycles == done.to_dataframe()["npu_cycles"].sum()


def wrong_calls() -> list[tuple[str, str, str]]:
    return [
        (
            "run('zoo:digits_cnn', taget='ethos-u55-128')",
            "run() has no option 'taget'",
            "did you mean 'target'?",
        ),
        ("run('zoo:digits_cnn', quantize='int4')", "quantize cannot be 'int4'", "did you mean 'int8'?"),
        ("run('zoo:digits_cnn', repeat='2')", "repeat is a whole number, not '2'", ""),
        ("run('zoo:digits_cnn', repeat=0)", "repeat cannot be 0", "give 1 or more"),
        (
            "run('zoo:digits_cnn', target='ethos-u55-512')",
            "ethos-u55-512",
            "with 512 there are ethos-u65-512",
        ),
        ("run('zoo:digits_cnn', {'input0': [1, 2]})", "inputs['input0'] is a list", "give tensors or arrays"),
        ("compile('zoo:digits_cnn', calibration=[])", "calibration has no samples", "leave it out"),
        ("profile(3)", "a model cannot be 3", "give an nn.Module"),
        ("report(output='page.pdf')", "page.pdf", ".html"),
        ("sweep({'models': 'zoo:digits_cnn', 'targts': 'ethos-u55-*'})", "targts", "did you mean 'targets'?"),
    ]


@pytest.mark.parametrize(("call", "message", "hint"), wrong_calls(), ids=[row[0] for row in wrong_calls()])
def test_a_wrong_option_is_refused_at_once(
    call: str, message: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((UsageError, InputError)) as caught:
        eval(f"ethosu_sdk.{call}")
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert not (tmp_path / "build").exists()


def test_errors_are_those_of_the_commands(tmp_path: Path) -> None:
    (tmp_path / "not.pte").write_bytes(b"nothing")
    with pytest.raises(InputError, match="not"):
        ethosu_sdk.inspect(tmp_path / "not.pte")
    assert InputError.exit_code == 3


def test_what_is_public_is_known_and_documented() -> None:
    from ethosu_sdk import api

    for name in ethosu_sdk.__all__:
        assert getattr(ethosu_sdk, name) is getattr(api, name)
        assert name in dir(ethosu_sdk)
        assert getattr(api, name).__doc__
    with pytest.raises(AttributeError):
        ethosu_sdk.nothing  # noqa: B018


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, ethosu_sdk; print([m for m in sys.modules if m.startswith('ethosu_sdk.') or m == 'numpy'])"
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"
