"""Machine code of a few instructions, by LLVM's assembler."""

import re

from tests import processes

_ENCODING = re.compile(r"@ encoding: \[([^\]]*)\]")


def assemble(text: str) -> bytes:
    """The code of `text`, instructions with ``;`` between them."""
    done = processes.run(
        ["llvm-mc-19", "-triple=thumbv8.1m.main-none-eabi", "-mcpu=cortex-m85", "--show-encoding"],
        given=text.replace(";", "\n") + "\n",
        check=True,
    )
    parts = [match.split(",") for match in _ENCODING.findall(done.stdout)]
    return bytes(int(byte, 16) for part in parts for byte in part)
