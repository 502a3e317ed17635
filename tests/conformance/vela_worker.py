"""Runs Vela on files that are named on standard input: a process of its own, for another Vela's interpreter too.

Each line is JSON, [model, accelerator, folder, [further options]]; the answer is one line of JSON: the npz file's
name or null, and Vela's message. Vela may end the process.
"""

import contextlib
import io
import json
import sys
from pathlib import Path


def compiled(model: str, accelerator: str, folder: str, options: list[str]) -> tuple[str | None, str]:
    """The npz file that Vela wrote, and what it said."""
    from ethosu.vela import vela

    said = io.StringIO()
    arguments = [
        model,
        f"--accelerator-config={accelerator}",
        "--output-format=raw",
        f"--output-dir={folder}",
    ]
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            vela.main([*arguments, *options])
    except (Exception, SystemExit) as error:
        return None, f"{type(error).__name__}: {error} {said.getvalue()[-300:]}"
    made = Path(folder) / f"{Path(model).stem}_vela.npz"
    return (str(made) if made.exists() else None), said.getvalue()[-300:]


if __name__ == "__main__":
    answers = sys.stdout
    for line in sys.stdin:
        print(json.dumps(compiled(*json.loads(line))), file=answers, flush=True)
