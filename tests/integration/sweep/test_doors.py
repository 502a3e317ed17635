"""What another user of the same machine reaches of a sweep that runs: nothing."""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from ethosu_sdk.base import cache
from tests import processes
from tests.integration.sweep.sweeps import family, listening, start, wait_for, warm, write
from tests.places import ROOT

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user"),
]

# It holds a secret in memory, in a memory file and in shared memory while it is looked at.
SLEEPER = """import os, time
from multiprocessing import shared_memory
secret = b"s" * 4096
shared = shared_memory.SharedMemory(create=True, size=4096)
descriptor = os.memfd_create("secret")
os.write(descriptor, secret)
open("loaded", "w").close()
time.sleep(600)
"""


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that everybody can enter, unlike pytest's own, and a cache that is to be made in it."""
    with tempfile.TemporaryDirectory(prefix="sweep-doors-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        before = os.umask(0o022)
        monkeypatch.setenv(cache.CACHE_VARIABLE, str(folder / "cache"))
        try:
            yield folder
        finally:
            os.umask(before)


def _intrude(asked: dict[str, list[str]]) -> list[str]:
    done = processes.run(
        [sys.executable, "-m", "tests.integration.sweep.intruder"],
        cwd=ROOT,
        given=json.dumps(asked),
        timeout_s=300,
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def _of_processes(pids: list[int]) -> list[str]:
    """The memory, environment and descriptors of processes."""
    names = [f"/proc/{pid}/{name}" for pid in pids for name in ("mem", "environ", "maps")]
    for pid in pids:
        names += [f"/proc/{pid}/fd/{name}" for name in os.listdir(f"/proc/{pid}/fd")]
    return names


def _below(folder: Path, kind: str) -> list[str]:
    return [str(path) for path in (folder, *folder.rglob("*")) if getattr(path, kind)()]


def test_another_user_reaches_nothing(public: Path) -> None:
    (cache.directory("part") / "kept").write_text("from a compilation", encoding="utf-8")
    shared = set(os.listdir("/dev/shm"))
    scratch = set(Path("/tmp").glob("*"))
    write(public, SLEEPER, "sleeper.py")
    file = write(public, 'models = ["sleeper.py"]\ntargets = ["ethos-u55-*"]\n')
    process = start(file, public / "out", "-j", "2")
    try:
        wait_for(lambda: (public / "loaded").exists() or process.poll() is not None, "the model")
        pids = [process.pid, *family(process)]
        assert warm(process)
        own, cached = public / "out" / ".workers", public / "cache"
        files = [*_below(own, "is_file"), *_below(cached, "is_file"), *_of_processes(pids)]
        files += [f"/dev/shm/{name}" for name in set(os.listdir("/dev/shm")) - shared]
        files += [str(path) for path in set(Path("/tmp").glob("*dask*")) - scratch]
        assert any("/dev/shm" in name for name in files)
        reached = _intrude(
            {
                "addresses": sorted(listening(pids)),
                "files": [*files, str(file)],  # the last one shows that it would be told
                "folders": [*_below(own, "is_dir"), *_below(cached, "is_dir")],
                "written": _below(public / "out", "is_file"),
            }
        )
    finally:
        process.kill()
        process.communicate()
        for name in set(os.listdir("/dev/shm")) - shared:
            os.unlink(f"/dev/shm/{name}")
    assert reached == [f"read {file}"]
