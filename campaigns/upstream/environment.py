"""What upstream's tests look for: FVPs on PATH, and an executor_runner for each board."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from ethosu_sdk.base import filesystem
from ethosu_sdk.base.terminal import Reporter
from ethosu_sdk.compile.vela_capture import spaceless_directory
from ethosu_sdk.firmware_build import resident_firmware
from ethosu_sdk.installation import install_fvp
from tests.places import ROOT

# executorch/backends/arm/test/runner_utils.py, _elf_path_candidates. The launcher for SSE-320 puts an Ethos-U85 into
# a Corstone-300, so one firmware serves all three.
_BOARDS = ("corstone-300", "corstone-300-u65", "corstone-320")
_KINDS = ("", "portable-ops_")


def make(folder: Path) -> Mapping[str, str]:
    """Put launchers and the resident firmware below `folder`; the environment variables that lead to them."""
    launchers = folder / "launchers"
    install_fvp.install_launchers(launchers, Reporter(quiet=True), force=True)
    elf = resident_firmware.build_resident(folder).elf
    for board in _BOARDS:
        for kind in _KINDS:
            place = folder / "arm_test" / f"arm_semihosting_executor_runner_{kind}{board}"
            filesystem.make_directory(place)
            link = place / "arm_executor_runner"
            link.unlink(missing_ok=True)
            link.symlink_to(os.path.relpath(elf, place))
    filesystem.make_directory(folder / "examples" / "arm")  # by it the tests know the folder
    return {
        "PATH": f"{launchers}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "EXECUTORCH_ROOT": str(folder),
    }


@contextlib.contextmanager
def for_session(found: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The environment of one pytest session; the files that the tests leave behind go with the block."""
    with tempfile.TemporaryDirectory(prefix="upstream-", dir=spaceless_directory()) as temporary:
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        # The tests' models are small, and there is a process for each core.
        own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        yield {**own, **found, "TMPDIR": temporary, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
