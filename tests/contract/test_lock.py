"""The locks agree with what they lock, and the tools that read them notice when they do not."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT

COMPARED = (
    "pyproject.toml",
    "toolchain.lock.json",
    "Dockerfile",
    "scripts/apt-packages.txt",
    "scripts/apt-packages-cpu-cycles.txt",
    "qemu/apt-packages.txt",
    "sdk/ethosu_sdk/base/tools.toml",
)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files that are compared, to be damaged."""
    for name in (*COMPARED, "scripts/lock", *(path.name for path in ROOT.glob("requirements-*.lock"))):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_the_locks_agree_with_what_they_lock() -> None:
    command = [sys.executable, ROOT / "scripts" / "lock", "check"]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (outcome.returncode, outcome.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "pattern", "replacement", "said"),
    [
        ("pyproject.toml", r'"numpy>=[^"]*"', '"numpy>=99"', "pyproject.toml wants numpy>=99"),
        ("pyproject.toml", r'"rich>=', '"unheard-of>=1", "rich>=', "unheard-of"),
        ("pyproject.toml", "executorch\\[ethos-u\\]==[0-9.]+", "executorch[ethos-u]==1.0.0", "executorch"),
        ("requirements-full.lock", r"^torch==(\S+)\+cpu", r"torch==\1", "not a CPU build"),
        ("requirements-full.lock", r"^(torch==\S+ \\\n.*) \\\n.*", r"\1", "no digest for each architecture"),
        (
            "requirements-full.lock",
            r"^torch==",
            "nvidia-nccl-cu13==1 \\\\\n    --hash=sha256:0\ntorch==",
            "CUDA",
        ),
        ("requirements-slim.lock", r"^numpy==.*\n(    --hash.*\n)+", "numpy==2.1.3\n", "without hash"),
        ("requirements-slim.lock", r"^typer==\S+", "typer==0.12.0", "typer is 0.12.0 in slim"),
        ("sdk/ethosu_sdk/base/tools.toml", 'exact = "5.1.0"', 'exact = "5.0.0"', "ethos-u-vela 5.0.0"),
        ("pyproject.toml", 'mlia-ethos-u==0.1.0"', 'mlia-ethos-u==0.2.0"', "wants mlia-ethos-u 0.1.0"),
        ("scripts/apt-packages.txt", "^cmake\n", "", "cmake"),
        ("qemu/apt-packages.txt", "^meson\n", "", "qemu/apt-packages.txt and the lock differ in ['meson']"),
        ("toolchain.lock.json", '"for": "host image"', '"for": "host"', "is not in the image"),
        ("Dockerfile", "@sha256:[0-9a-f]{64}", "@sha256:" + "0" * 64, "the Dockerfile does not say"),
    ],
)
def test_a_difference_is_named(
    copy: Path,
    name: str,
    pattern: str,
    replacement: str,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (copy / name).read_text(encoding="utf-8")
    changed, count = re.subn(pattern, replacement, text, count=1, flags=re.MULTILINE)
    assert count == 1
    (copy / name).write_text(changed, encoding="utf-8")
    lock = runpy.run_path(str(copy / "scripts" / "lock"))
    with pytest.raises(SystemExit, match="hint: scripts/lock refresh"):
        lock["check"]()
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_the_image_installs_what_the_lock_says(architecture: str, tmp_path: Path) -> None:
    """container/install-apt reads JSON with sed: it must see what a JSON reader sees."""
    dpkg = tmp_path / "dpkg"  # a double: it names the architecture that is asked for
    dpkg.write_text(f"#!/bin/sh\necho {architecture}\n")
    dpkg.chmod(0o755)
    lock = ROOT / "toolchain.lock.json"
    rows = json.loads(lock.read_text(encoding="utf-8"))["apt"][architecture]
    for purpose in ("host", "image", "builder", "qemu", "full"):
        shown = subprocess.run(
            [ROOT / "container" / "install-apt", lock, purpose, "--list"],
            env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        expected = [f"{row['name']}={row['version']}" for row in rows if purpose in row["for"].split()]
        assert expected
        assert shown.split() == expected, purpose
