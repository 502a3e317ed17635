"""Arm's TOSA reference model as the oracle for a delegate, in one child process for many requests."""

import os
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ethosu_sdk.base import proc

_WORKER = Path(__file__).with_name("tosa_worker.py")


class OracleError(Exception):
    """The oracle itself could not answer: never a verdict on what is tested."""


class TosaModel:
    """The running reference model. Made by :func:`tosa_model`."""

    def __init__(self, connection: Connection, log: IO[bytes]) -> None:
        self._connection = connection
        self._log = log

    def run(self, tosa: bytes, inputs: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
        """Outputs of the TOSA flatbuffer `tosa`, with its shapes and in its order. `inputs` are in its order
        and may have any shape: their bytes count. Raises OracleError."""
        try:
            self._connection.send((tosa, [np.ascontiguousarray(array).tobytes() for array in inputs]))
            reply = self._connection.recv()
        except (EOFError, OSError) as error:
            self._log.seek(0)
            printed = proc.tail(self._log.read().decode(errors="replace"))
            raise OracleError(f"the TOSA reference model ended its process\n{printed}") from error
        if isinstance(reply, str):
            raise OracleError(reply)
        result: list[NDArray[Any]] = reply
        return result


@contextmanager
def tosa_model() -> Iterator[TosaModel]:
    """A reference model for the time of a `with` block."""
    ours, theirs = socket.socketpair()
    with theirs, tempfile.TemporaryFile() as log, Connection(os.dup(ours.fileno())) as connection:
        ours.close()
        # -P: the folder of the worker holds this file, which is not the `tosa` package that it imports.
        argv = [sys.executable, "-P", str(_WORKER), str(theirs.fileno())]
        with proc.spawn(argv, pass_fds=(theirs.fileno(),), stdout=log):
            theirs.close()
            yield TosaModel(connection, log)
