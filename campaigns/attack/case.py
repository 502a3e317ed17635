"""What a case of a campaign is: files, a command, and what must hold beside the general rules."""

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from campaigns.attack.process import Ended, Limits


def nothing(ended: Ended, folder: Path) -> list[str]:
    """No further rule."""
    return []


@dataclass(frozen=True)
class Case:
    """A command in a folder with `files`. `words` follow `ethosu-sdk`; `argv`, when given, is the whole command line.

    `judge` names what is wrong beside what :mod:`oracle` finds.
    """

    title: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    words: Sequence[str | Path] = ()
    argv: Sequence[str | Path] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    judge: Callable[[Ended, Path], list[str]] = nothing


class TooSlow(Exception):  # noqa: N818 - an event
    """A probe takes longer than it may. It gets a second chance: a machine that stood still is no finding."""


@dataclass(frozen=True)
class Probe:
    """A case for a function of the package, here: `call` raises SdkError to refuse, another exception when wrong."""

    title: str
    files: Mapping[str, bytes]
    call: Callable[[Path], None]


@dataclass(frozen=True)
class Context:
    """What all cases share: the command under attack, and a folder for what is prepared once."""

    command: tuple[str, ...] = (str(Path(sys.executable).with_name("ethosu-sdk")),)
    shared: Path = Path()
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """A kind of attack. `case` makes one for a fresh process, `probe` a cheap one, for this process."""

    name: str
    case: Callable[[Context, random.Random], Case] | None = None
    probe: Callable[[Context, random.Random], Probe] | None = None
