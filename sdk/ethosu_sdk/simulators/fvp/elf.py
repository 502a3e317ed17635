"""Which board a firmware is linked for: the one that finds a vector table where it looks after reset."""

from __future__ import annotations

from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from ethosu_sdk.errors import InputError
from ethosu_sdk.files import opening
from ethosu_sdk.simulators.fvp.models import models


def board_of(elf: Path) -> str | None:
    """The board, such as ``"corstone-300"``, that the firmware `elf` starts on; None when it is for none of them.

    InputError when the file cannot be read.
    """
    try:
        with opening.regular(elf) as stream:
            spans = [
                (row["p_paddr"], row["p_paddr"] + row["p_filesz"])
                for row in ELFFile(stream).iter_segments()
                if row["p_type"] == "PT_LOAD"
            ]
    except OSError as error:
        raise InputError(f"cannot read {elf}: {error.strerror}") from error
    except (ELFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{elf} is not an ELF file that can be read: {error}") from error
    for model in models().values():
        if any(start <= address < end for start, end in spans for address in model.vectors):
            return model.board
    return None
