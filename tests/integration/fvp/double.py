"""A stand-in for Arm's FVP, which is licensed and cannot be here: NOT an FVP, a double with an FVP's manners.

It takes an FVP's command line, prints an FVP's own lines, and has the SDK's launcher run the firmware, so that what
it prints in between is what this firmware really prints. $FVP_DOUBLE says how it behaves.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

VERSION = "11.27.42"
HEAD = """telnetterminal0: Listening for serial connection on port 5000
telnetterminal5: Listening for serial connection on port 5003

    Ethos-U rev 136b7d75 --- Apr 12 2023 13:44:01
    (C) COPYRIGHT 2019-2023 Arm Limited
    ALL RIGHTS RESERVED

"""
TAIL = "\nInfo: /OSCI/SystemC: Simulation stopped by user.\n[warning ][main@0][01 ns] Simulation stopped by user\n"
TIME_OVER = "\nInfo: Simulation is stopping. Reason: {} has been exceeded.\n"
ERROR_LINE = (
    "E [executorch:arm_executor_runner.cpp:900 main()] Execution of method forward failed with status 0x1\n"
)


def install(folder: Path, program: str) -> Path:
    """Put the double into `folder` under the name of an FVP."""
    path = folder / program
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{__file__}" {program} "$@"\n')
    path.chmod(0o755)
    return path


def say(text: str | bytes) -> None:
    """Print as an FVP does: at once."""
    sys.stdout.buffer.write(text.encode() if isinstance(text, str) else text)
    sys.stdout.buffer.flush()


def firmware_output(program: str, words: list[str]) -> bytes:
    """What the firmware prints: the SDK's launcher runs it."""
    command = [sys.executable, "-P", "-m", "ethosu_sdk.simulate.fvp_launcher", program, *words]
    return subprocess.run(command, check=True, capture_output=True).stdout


def main() -> int:
    """Behave."""
    program, *words = sys.argv[1:]
    behaviour = os.environ["FVP_DOUBLE"]
    if behaviour == "missing library":
        sys.stderr.write(
            f"{program}: error while loading shared libraries: libpython3.9.so.1.0: "
            "cannot open shared object file: No such file or directory\n"
        )
        return 127
    if "--version" in words:
        say(
            f"Fast Models [{VERSION} (Sep 17 2024)]\nCopyright 2000-2024 ARM Limited.\nAll Rights Reserved.\n"
        )
        return 0
    say(HEAD)
    if behaviour.endswith("limit"):
        say(
            TIME_OVER.format({"time limit": "CPU time", "simulated limit": "Simulated time"}[behaviour])
            + TAIL
        )
        return 0
    if behaviour.startswith("replay "):
        printed = Path(behaviour.removeprefix("replay ")).read_bytes()
    else:
        printed = firmware_output(program, words)
    half = printed[: len(printed) // 2]
    say(
        {"half a log": half, "hang": half, "error then success": ERROR_LINE.encode() + printed}.get(
            behaviour, printed
        )
    )
    if behaviour == "hang":
        time.sleep(600)
    say(TAIL)
    return {"exits non-zero": 3}.get(behaviour, 0)


if __name__ == "__main__":
    sys.exit(main())
