"""Signals at random moments over a compilation, builds, runs and an installation."""

import random
from pathlib import Path

from campaigns.attack import oracle
from campaigns.attack.case import Context
from campaigns.attack.process import Ended
from tests.integration.children import kills
from tests.pte_files import golden

_SPANS_S = {"compile": 20.0, "cold build": 10.0, "run": 8.0, "fvp install": 5.0, "host run": 8.0}


def attack(context: Context, choice: random.Random, folder: Path) -> tuple[str, Ended, list[str]]:
    """Kill one command; its title, how it ended, and what is wrong."""
    pte = folder / "given.pte"
    pte.write_bytes(golden("add_u55"))
    commands = kills.commands(folder, pte, Path(context.command[0]), warm=context.shared / "warm")
    name = choice.choice(sorted(commands))
    number, after_s = choice.choice(kills.SIGNALS), choice.uniform(0.0, _SPANS_S[name])
    done = kills.kill(commands[name], number, after_s, patience_s=60.0)
    ended = Ended(done.code, done.said, "", after_s, 0, done.survivors)
    found = done.problems()
    found += oracle.unsound(folder, killed=True) if not found else []
    return f"{number.name} to {name} after {after_s:.2f} s", ended, found
