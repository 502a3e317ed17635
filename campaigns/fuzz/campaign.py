"""Running damaged samples: each ends in a result or a named error, in time, and leaves memory outside alone.

Usage: python -m campaigns.fuzz.campaign FOLDER COUNT SEED. FOLDER holds payloads (``*.bin``) as Vela made
them. Prints one JSON line: how often each outcome was met, and the slowest run in seconds of this process's time (a
busy machine is not the model's fault).
"""

import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from campaigns.fuzz.mutations import Sample, mutations, sample
from ethosu_sdk import npu
from ethosu_sdk.base.errors import SdkError
from ethosu_sdk.npu import vela_blocks
from ethosu_sdk.npu.machine import Machine
from ethosu_sdk.npu.memory import Bytes, FixedRegions
from ethosu_sdk.npu.weight_cache import WeightCache

TIME_LIMIT_S = 5.0
_GUARD_BYTES = 4096
_GUARD = 0x5A
_FAST_SCRATCH_BYTES = 1 << 16


class TooSlow(Exception):  # noqa: N818 - an event, not an error of the package
    """A run took longer than it may."""


class Escaped(Exception):  # noqa: N818 - likewise
    """A run changed memory outside of its regions, or the constants."""


@dataclass(frozen=True)
class Seed:
    """An intact payload to start from."""

    config: npu.NpuConfig
    sample: Sample
    scratch_bytes: int


@dataclass
class Tally:
    """What a campaign met."""

    outcomes: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0


def seed_of(payload: bytes) -> Seed:
    """The seed that a payload gives."""
    blocks = vela_blocks.parse(payload)
    given = sample(bytes(blocks.command_stream), bytes(blocks.weights))
    return Seed(npu.NpuConfig.from_word(blocks.config_word), given, blocks.scratch_bytes)


class _Guarded:
    """A region between two guards."""

    def __init__(self, content: Bytes) -> None:
        self._whole = np.full(content.size + 2 * _GUARD_BYTES, _GUARD, np.uint8)
        self.region: Bytes = self._whole[_GUARD_BYTES : _GUARD_BYTES + content.size]
        self.region[:] = content

    def check(self) -> None:
        """Raise Escaped unless both guards are as they were."""
        if (self._whole[:_GUARD_BYTES] != _GUARD).any() or (self._whole[-_GUARD_BYTES:] != _GUARD).any():
            raise Escaped("memory outside of a region was written")


def run_sample(seed: Seed, given: Sample) -> str:
    """Run a sample; the name of its outcome. Raises TooSlow or Escaped, and whatever else must not happen."""
    zeros = (np.zeros(size, np.uint8) for size in (seed.scratch_bytes, _FAST_SCRATCH_BYTES))
    guarded = [_Guarded(content) for content in (given.weights, *zeros)]
    guarded[0].region.flags.writeable = False
    machine = Machine(
        seed.config, FixedRegions({i: item.region for i, item in enumerate(guarded)}), WeightCache()
    )
    signal.setitimer(signal.ITIMER_PROF, TIME_LIMIT_S)
    try:
        machine.run(given.stream)
    except SdkError as error:
        return type(error).__name__
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        for item in guarded:
            item.check()
    return "result"


def _too_slow(*_: Any) -> None:
    raise TooSlow


def run_campaign(seeds: Sequence[Seed], count: int, random_seed: int) -> Tally:
    """Run `count` damaged samples. Raises what the first that misbehaves raised, with a note on how to repeat it."""
    signal.signal(signal.SIGPROF, _too_slow)
    tally = Tally()
    for number in range(count):
        random = np.random.default_rng([random_seed, number])
        seed, other = (seeds[int(random.integers(len(seeds)))] for _ in range(2))
        ways = mutations(seed.config.generation)
        given = seed.sample
        for _ in range(random.integers(1, 4)):
            if given.commands:
                given = ways[int(random.integers(len(ways)))](random, given, other.sample)
        start = time.process_time()
        try:
            tally.outcomes[run_sample(seed, given)] += 1
        except Exception as error:
            error.add_note(f"sample {number} of seed {random_seed} on {seed.config.npu}-{seed.config.macs}")
            raise
        tally.slowest_s = max(tally.slowest_s, time.process_time() - start)
    return tally


def main() -> None:
    """Run the campaign that the command line describes."""
    folder, count, random_seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    seeds = [seed_of(path.read_bytes()) for path in sorted(folder.rglob("*.bin"))]
    tally = run_campaign(seeds, count, random_seed)
    print(json.dumps({"outcomes": dict(tally.outcomes), "slowest_s": round(tally.slowest_s, 3)}))


if __name__ == "__main__":
    main()
