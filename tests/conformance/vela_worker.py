"""Runs Vela on files that are named on standard input: a process of its own, for another Vela's interpreter too.

Each line is JSON, [model, accelerator, folder]; the answer is one line of JSON: whether Vela wrote its .tflite into
the folder, and the end of what it said. Vela may end the process.
"""

import contextlib
import io
import json
import os
import sys
from pathlib import Path


def compiled(model: str, accelerator: str, folder: str) -> tuple[bool, str]:
    """Whether there is an output, and what Vela said."""
    from ethosu.vela import vela

    said = io.StringIO()
    made = Path(folder) / f"{Path(model).stem}_vela.tflite"
    made.unlink(missing_ok=True)
    arguments = [model, f"--accelerator-config={accelerator}", f"--output-dir={folder}"]
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            vela.main(arguments)
    except (Exception, SystemExit) as error:
        print(type(error).__name__, error, file=said)
    return made.exists(), said.getvalue()[-300:]


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Vela's C++ part prints too
    for line in sys.stdin:
        print(json.dumps(compiled(*json.loads(line))), file=answers, flush=True)
