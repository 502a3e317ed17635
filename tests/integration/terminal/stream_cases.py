"""Commands with standard streams that do not work: for each a child, forked from a process that has all imported.

``python -m tests.integration.terminal.stream_cases CASES`` takes a JSON list of [words, condition] and prints
a JSON list of [exit code, what came on standard error]. A fresh interpreter for each would take minutes.
"""

import contextlib
import importlib
import json
import os
import sys
import tempfile

FULL, GONE, CLOSED, NO_STDERR, ALL_CLOSED = "full", "reader gone", "closed", "stderr full", "all closed"

PRELOADED = (
    "jsonschema",
    "numpy",
    "ethosu_sdk.run.run_command",
    "ethosu_sdk.analysis.verify_command",
    "ethosu_sdk.reporting.parse_log_command",
    "ethosu_sdk.analysis.inspect_command",
)


def arrange(condition: str) -> None:
    """Make the standard streams of this process what `condition` says."""
    if condition == FULL:
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    elif condition == GONE:
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 1)
    elif condition == CLOSED:
        os.close(1)
        sys.stdout = None  # type: ignore[assignment] # as Python does at its start
    elif condition == NO_STDERR:
        os.dup2(os.open("/dev/full", os.O_WRONLY), 2)
    elif condition == ALL_CLOSED:
        for descriptor in (0, 1, 2):
            os.close(descriptor)
        sys.stdin = sys.stdout = sys.stderr = None  # type: ignore[assignment]


def main() -> None:
    """Try all cases. In each child this returns as the command does: through Python's own clean-up."""
    from ethosu_sdk import cli

    for name in PRELOADED:
        importlib.import_module(name)

    answers = []
    for words, condition in json.loads(sys.argv[1]):
        with tempfile.TemporaryFile() as said:
            sys.stdout.flush()
            child = os.fork()
            if child == 0:
                os.dup2(said.fileno(), 2)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                arrange(condition)
                sys.argv = ["ethosu-sdk", *words]
                cli.main()
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said.seek(0)
            answers.append([code, said.read().decode(errors="replace")])
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(answers))


if __name__ == "__main__":
    main()
