"""What needs no torch to be refused is refused before it is imported: half a second on a quiet machine."""

import resource
import zipfile
from pathlib import Path

import pytest

from tests.integration.cli import Outcome, sdk

# A module of this name that fails: whoever imports torch fails with it.
_NO_TORCH = "raise RuntimeError('torch was imported')\n"
_LIMIT_S = 3.0  # of processor time, which counts for less on a busy machine; torch alone takes longer


def quick(folder: Path, *arguments: str) -> Outcome:
    """The command's outcome; it was quick, and did not import torch."""
    (folder / "hidden" / "torch").mkdir(parents=True, exist_ok=True)
    (folder / "hidden" / "torch" / "__init__.py").write_text(_NO_TORCH)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    outcome = sdk(*arguments, cwd=folder, env={"PYTHONPATH": str(folder / "hidden")})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "torch was imported" not in outcome.err
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < _LIMIT_S
    return outcome


def zipped(path: Path, *names: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, "x")


FILES = {
    "syntax.py": b"import torch\nclass Net(torch.nn.Module:\n    pass\n",
    "missing.py": b'"""A net."""\nimport torch\nfrom no_such_package.nn import Layer\n',
    "weights.py": b"\x1c\0\0\0TFL3" + bytes(20),
    "net.tflite": b"\x1c\0\0\0TFL3" + bytes(20),
    "net.pte": b"\x1c\0\0\0TFL3" + bytes(20),
    "ready.pte": b"\x1c\0\0\0ET12" + bytes(20),
    "odd.xyz": b"nothing known",
}


@pytest.mark.parametrize(
    ("arguments", "code", "first", "remedy"),
    [
        ("compile syntax.py", 3, "syntax.py, line 2: SyntaxError: ", "py_compile syntax.py"),
        (
            "compile missing.py",
            3,
            "missing.py, line 3: the Python package 'no_such_package' is not installed",
            "pip install",
        ),
        (
            "compile weights.py",
            3,
            "weights.py is a TensorFlow Lite model (.tflite), not a Python file",
            "its name must end in .tflite",
        ),
        ("compile script.pt2", 3, "script.pt2 is a TorchScript module", "torch.export.save of it"),
        ("compile net.tflite", 3, "net.tflite: damaged .tflite file", "convert the model again"),
        ("compile ready.pte", 3, "ready.pte is a compiled ExecuTorch program", "`ethosu-sdk run ready.pte`"),
        (
            "compile odd.xyz",
            3,
            "odd.xyz is not a model that can be compiled: its format is not recognised",
            "FILE.pt2",
        ),
        ("run net.tflite", 3, "net.tflite: damaged .tflite file", "convert the model again"),
        (
            "run net.pte",
            3,
            "net.pte is a TensorFlow Lite model (.tflite), not a .pte file",
            "must end in .tflite",
        ),
        (
            "build syntax.py",
            3,
            "syntax.py is a Python file, not a .pte file",
            "`ethosu-sdk compile syntax.py`",
        ),
        ("inspect script.pt2", 3, "script.pt2 is a TorchScript module", "torch.export.save of it"),
        (
            "compile zoo:add --target ethos-u55-129",
            2,
            "unknown target 'ethos-u55-129'",
            "did you mean 'ethos-u55-128'",
        ),
        (
            "compile zoo:add --system-config Ethos_U55",
            2,
            "system configuration 'Ethos_U55'",
            "Ethos_U55_Deep_Embedded",
        ),
        (
            "compile absent.h5",
            2,
            "'absent.h5' is not a model that can be compiled: its name",
            "tf.lite.TFLiteConverter",
        ),
    ],
)
def test_refused_before_torch(arguments: str, code: int, first: str, remedy: str, tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    zipped(tmp_path / "script.pt2", "script/data.pkl", "script/constants.pkl", "script/code/__torch__.py")
    outcome = quick(tmp_path, *arguments.split())
    assert outcome.code == code
    lines = outcome.err.splitlines()
    assert lines[0].startswith(f"error: {first}")
    assert lines[1].startswith("hint: ")
    assert remedy in lines[1]
    assert not (tmp_path / "build").exists()
