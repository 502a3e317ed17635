"""Sweeps on a Dask cluster that runs already: a scheduler and workers of their own, with TLS and without."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli import sdk
from tests.integration.sweep.sweeps import LONGEST_S, SMALL, by_cell, sweep, wait_for, write
from tests.records import read

pytestmark = [pytest.mark.torch]

_SETTINGS = "DASK_DISTRIBUTED__COMM__TLS__"


@contextlib.contextmanager
def _cluster(folder: Path, *options: str) -> Iterator[str]:
    """The address of a scheduler on loopback, with workers."""
    told = folder / "scheduler.json"
    local = ("--host", "127.0.0.1")
    with contextlib.ExitStack() as stack:
        begin = ("--port", "0", "--scheduler-file", str(told))
        stack.enter_context(_dask("scheduler", *local, *begin, *options))
        wait_for(lambda: told.is_file() and told.read_bytes().endswith(b"}"), "the scheduler", 120)
        address: str = read(told)["address"]
        for _ in range(2):
            work = ("--nthreads", "1", "--no-nanny", "--local-directory", str(folder))
            stack.enter_context(_dask("worker", address, *local, *work, *options))
        yield address


@contextlib.contextmanager
def _dask(kind: str, *words: str) -> Iterator[None]:
    argv = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *words, "--no-dashboard"]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(argv, stdout=quiet, stderr=quiet, start_new_session=True)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _certificates(folder: Path) -> dict[str, str]:
    """An authority and a certificate by it, as the guide makes them: the options of Dask's programs."""
    begin = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    days = ["-days", "30", "-subj"]
    signed = ["-CA", "ca.pem", "-CAkey", "ca-key.pem"]
    for argv in (
        [*begin, *days, "/CN=sweep authority", "-keyout", "ca-key.pem", "-out", "ca.pem"],
        [*begin, *days, "/CN=sweep", *signed, "-keyout", "key.pem", "-out", "cert.pem"],
    ):
        subprocess.run(argv, cwd=folder, check=True, capture_output=True, timeout=60)
    names = {"ca-file": "ca.pem", "cert": "cert.pem", "key": "key.pem"}
    return {name: str(folder / file) for name, file in names.items()}


def test_without_tls_it_is_warned_of(small: Path, tmp_path: Path) -> None:
    file = write(tmp_path, SMALL)
    with _cluster(tmp_path) as address:
        done = sweep(file, tmp_path / "out", "--scheduler", address)
    assert done.code == 0, done.err
    assert f"warning: {address} is neither encrypted nor authenticated" in done.err
    assert by_cell(tmp_path / "out") == by_cell(small / "out")


@pytest.mark.thorough
def test_with_tls_nobody_else_is_answered(small: Path, tmp_path: Path) -> None:
    file = write(tmp_path, SMALL)
    own = _certificates(tmp_path)
    options = [word for name, path in own.items() for word in (f"--tls-{name}", path)]
    settings = {
        f"{_SETTINGS}CA_FILE": own["ca-file"],
        f"{_SETTINGS}CLIENT__CERT": own["cert"],
        f"{_SETTINGS}CLIENT__KEY": own["key"],
    }
    with _cluster(tmp_path, "--protocol", "tls", *options) as address:
        assert address.startswith("tls://")
        words = ("sweep", file, "-o", tmp_path / "out", "--scheduler", address)
        done = sdk(*words, cwd=tmp_path, env=settings, timeout_s=LONGEST_S)
        assert (done.code, "warning" in done.err) == (0, False), done.err
        assert by_cell(tmp_path / "out") == by_cell(small / "out")
        (tmp_path / "other").mkdir()
        other = _certificates(tmp_path / "other")
        write(tmp_path, SMALL.replace("ethos-u55-*", "ethos-u85-256"))
        pair = {f"{_SETTINGS}CLIENT__CERT": other["cert"], f"{_SETTINGS}CLIENT__KEY": other["key"]}
        forged = {**settings, **pair}
        strange = sdk(*words, cwd=tmp_path, env=forged, timeout_s=LONGEST_S)
        plain = sdk(*words[:-1], address.replace("tls", "tcp"), cwd=tmp_path, timeout_s=LONGEST_S)
        without = sdk(*words, cwd=tmp_path, timeout_s=LONGEST_S)
    for refused in (strange, plain, without):
        assert (refused.code, "Traceback" in refused.err) == (4, False), refused.err
        assert "no Dask scheduler answers at t" in refused.err
    assert "CA_FILE" in without.err


def test_a_scheduler_that_is_not_there(tmp_path: Path) -> None:
    file = write(tmp_path, SMALL)
    done = sweep(file, tmp_path / "out", "--scheduler", "tcp://127.0.0.1:9")
    assert (done.code, "Traceback" in done.err) == (4, False), done.err
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in done.err
    assert os.listdir(tmp_path / "out" / ".workers") == []
