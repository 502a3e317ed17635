"""The Dask cluster of a sweep: an embedded one, or one that runs already.

The embedded one is threads of this process, which hand each task to a warm process over a socket pair: nothing of it
listens anywhere, so that nobody else on the machine can send it work. Dask's own HTTP servers would listen on every
network, with or without a dashboard; they are not started.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ethosu_sdk import extras, provenance
from ethosu_sdk.errors import ToolError
from ethosu_sdk.sweep import work

ATTEMPTS = 3
_CONNECT_S = 15.0
_CLOSE_S = 5.0
_ENCRYPTED = ("tls://", "wss://")
_TLS_SETTINGS = "docs/guide/sweep.md names the settings of TLS (DASK_DISTRIBUTED__COMM__TLS__CA_FILE, …)"


def warning(scheduler: str | None) -> str:
    """The warning about a scheduler's address; empty for an address with TLS."""
    if scheduler is None or scheduler.startswith(_ENCRYPTED):
        return ""
    return (
        f"{scheduler} is neither encrypted nor authenticated: anyone who can reach the ports of the "
        "scheduler or of a worker, including other users of these machines, can run code as the user of "
        "the workers and of this command; use tls:// (docs/guide/sweep.md)"
    )


@contextlib.contextmanager
def client(scheduler: str | None, jobs: int, store: Path, token: str) -> Iterator[Any]:
    """A client of the cluster at the address `scheduler`, or of an embedded one with `jobs` workers.

    Scratch space lies in the folder `store`. ToolError when Dask is not there or its scheduler cannot be reached.
    """
    distributed = extras.load("distributed", extras.SWEEP)
    dask = importlib.import_module("dask")
    settings = {
        "distributed.scheduler.allowed-failures": ATTEMPTS - 1,
        "distributed.worker.profile.enabled": False,
        "distributed.comm.timeouts.connect": f"{_CONNECT_S:g}s",
        # Elsewhere it would be in /tmp, under a name that others can take first; Dask imports from there.
        "temporary-directory": str(work.scratch(store)),
    }
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with dask.config.set(settings), contextlib.ExitStack() as stack:
        if scheduler is not None:
            yield stack.enter_context(_connected(distributed, scheduler))
        else:
            cluster = _embedded(distributed, jobs)
            stack.callback(_end, cluster, token)
            yield stack.enter_context(distributed.Client(cluster))


@contextlib.contextmanager
def _connected(distributed: Any, address: str) -> Iterator[Any]:
    try:
        connected = distributed.Client(address, timeout=_CONNECT_S)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        if address.startswith(_ENCRYPTED):
            hint = f"scheduler, workers and this command need certificates: {_TLS_SETTINGS}"
        else:
            hint = "start one with `dask scheduler`, and workers with `dask worker ADDRESS --nthreads 1`"
        raise ToolError(f"no Dask scheduler answers at {address}: {error}", hint) from error
    with connected:
        try:
            connected.wait_for_workers(1, timeout=_CONNECT_S)
        except TimeoutError as error:
            hint = f"start some: dask worker {address} --nthreads 1"
            raise ToolError(f"the Dask scheduler at {address} has no workers", hint) from error
        yield connected


def _embedded(distributed: Any, jobs: int) -> Any:
    """A cluster of `jobs` threads in this process."""
    provenance.tool()  # what starts a program does so before there are threads: see proc.spawn_own
    common = {"protocol": "inproc://", "dashboard": False}
    worker = {**common, "nthreads": 1, "memory_limit": 0, "silence_logs": logging.CRITICAL}
    return distributed.SpecCluster(
        scheduler={"cls": _without_http(distributed.Scheduler), "options": common},
        workers={
            number: {"cls": _without_http(distributed.Worker), "options": worker} for number in range(jobs)
        },
        silence_logs=logging.CRITICAL,
    )


def _without_http(server: Any) -> Any:
    """The class `server` of Dask without its HTTP server."""
    return type(server.__name__, (server,), {"start_http_server": lambda *_, **__: None})


def _end(cluster: Any, token: str) -> None:
    """End the cluster, whatever its workers are at."""
    work.end(token)
    with contextlib.suppress(Exception):
        cluster.close(timeout=_CLOSE_S)
