"""What stands for the interpreter of the compiler: it asks the server for it, and is the real one for all else.

Usage: ``python -I -S interpreter.py PYTHON SOCKET ARGUMENT…``. It imports little: it is started for each compiler.
"""

import json
import os
import signal
import socket
import sys

WORKER = ["-P", "-m", "ethosu_sdk.compile.worker"]


def main() -> None:
    """Ask for a compiler and end as it ends; or become the interpreter."""
    python, address, *arguments = sys.argv[1:]
    if arguments[:3] != WORKER:
        os.execv(python, [python, *arguments])
    request, result = arguments[3:]
    content = {"folder": os.getcwd(), "environment": dict(os.environ), "request": request}
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        socket.send_fds(server, [json.dumps(content).encode() + b"\n"], [1, 2, int(result)])
        os.close(int(result))
        with server.makefile("rb") as stream:
            status = int(stream.readline() or signal.SIGKILL)
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
