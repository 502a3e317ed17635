"""`python -m ethosu_sdk.fvp_launcher PROGRAM …`: what an installed launcher executes."""

from __future__ import annotations

import os
import signal
import sys
import types

from ethosu_sdk.errors import INTERRUPTED_EXIT_CODE, SdkError
from ethosu_sdk.fvp_launcher.launcher import launch


def _terminated(_number: int, _frame: types.FrameType | None) -> None:
    raise KeyboardInterrupt  # the same way out as Ctrl-C: `finally` blocks run, QEMU dies


def _main() -> int:
    program, *words = sys.argv[1:]
    signal.signal(signal.SIGTERM, _terminated)
    try:
        return launch(program, words)
    except SdkError as error:
        sys.stderr.write(f"{program}: error: {error.message}\n")
        if error.hint:
            sys.stderr.write(f"{program}: hint: {error.hint}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT_CODE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


sys.exit(_main())
