"""The QEMU of our own build, made when it is missing."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.places import ROOT

VARIABLE = "ETHOSU_SDK_QEMU_CORSTONE"
_BUILD_S = 3600
_PACKAGES_MISSING = 4


def built() -> Path:
    """What the environment names, else the one in the user's cache: it takes long, and serves all checkouts."""
    if chosen := os.environ.get(VARIABLE):
        return Path(chosen)
    command = ["env", "-u", "ETHOSU_SDK_CACHE", str(ROOT / "scripts" / "build-qemu")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_S, check=False)
    if done.returncode == _PACKAGES_MISSING:
        pytest.skip(f"{done.stderr.splitlines()[0]}: scripts/setup --corstone-320 installs them")
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def environment(board: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """What names the QEMU of `board` to a command: nothing for Corstone-300, which Debian's has."""
    return {} if board == "corstone-300" else {VARIABLE: str(request.getfixturevalue("own_qemu"))}
