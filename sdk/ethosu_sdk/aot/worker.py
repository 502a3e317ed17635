"""The process that compiles: ``python -m ethosu_sdk.aot.worker REQUEST_JSON RESULT_FD``.

torch, torchao, Vela and the user's own file print as they like; this process has only a log to print on. What
the parent must know goes through RESULT_FD as JSON lines: ``{"stage": …}`` as the work goes on, then
``{"output": …}`` or ``{"error": …}``.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

from ethosu_sdk.aot import pipeline
from ethosu_sdk.aot.api import CompileRequest
from ethosu_sdk.errors import BuildError, SdkError, ToolError


def main() -> None:
    """Run the request of the command line and report through the pipe."""
    request = CompileRequest.from_json(json.loads(sys.argv[1]))
    with os.fdopen(int(sys.argv[2]), "w", encoding="utf-8") as stream:

        def send(message: dict[str, Any]) -> None:
            stream.write(json.dumps(message) + "\n")
            stream.flush()

        try:
            output = pipeline.run(request, lambda stage: send({"stage": stage}))
        except SdkError as error:
            traceback.print_exc()
            send(_error(error))
        except ImportError as error:
            traceback.print_exc()
            send(
                _error(
                    ToolError(
                        f"the compiler's packages do not import: {error}", "pip install 'ethosu-sdk[compile]'"
                    )
                )
            )
        except MemoryError:
            traceback.print_exc()
            send(_error(BuildError("the machine's memory does not suffice to compile this model")))
        except Exception as error:
            traceback.print_exc()
            send(_error(BuildError(f"compilation failed: {type(error).__name__}: {error}")))
        else:
            send({"output": output.to_json()})


def _error(error: SdkError) -> dict[str, Any]:
    return {"error": {"class": type(error).__name__, "message": error.message, "hint": error.hint}}


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads that the user's file started do not keep the process
