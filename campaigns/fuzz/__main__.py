"""The large campaign: scripts/npu-fuzz. Exit code 1 when a sample misbehaves."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from campaigns.grid import names
from tests.conformance.conftest import delegates_of
from tests.conformance.selection import Pair, pairs

_GROUPS = ("networks", "numeric")
_DEFAULT_COUNT = 100_000


def chosen(models: Sequence[str]) -> list[Pair]:
    """The models whose streams are damaged: those of the groups or those named, on a configuration per profile."""
    return [
        pair for pair in pairs(full=False) if pair.group in _GROUPS and pair.model in (models or [pair.model])
    ]


def main() -> int:
    """Lower the models, share the samples between processes, add their reports up."""
    parser = argparse.ArgumentParser(prog="scripts/npu-fuzz", description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=_DEFAULT_COUNT, metavar="COUNT")
    parser.add_argument("seed", type=int, nargs="?", default=int(time.time()), metavar="SEED")
    parser.add_argument(
        "--models", type=names, default=[], metavar="NAME,…", help="damage only these models' streams"
    )
    given = parser.parse_args()
    count, random_seed, wanted = given.count, given.seed, chosen(given.models)
    processes = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as scratch:
        seeds = Path(scratch)
        print("lowering the models ...", flush=True)
        for pair in wanted:
            for number, delegate in enumerate(delegates_of(pair, wanted)):
                (seeds / f"{pair}-{number}.bin").write_bytes(delegate.payload)
        print(
            f"{count} samples from {len(list(seeds.iterdir()))} streams, seed {random_seed} ...", flush=True
        )
        return _campaigns(seeds, count, random_seed, processes)


def _campaigns(seeds: Path, count: int, random_seed: int, processes: int) -> int:
    shares = [count // processes + (index < count % processes) for index in range(processes)]
    running = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "campaigns.fuzz.campaign",
                str(seeds),
                str(share),
                str(random_seed + index),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for index, share in enumerate(shares)
    ]
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    failed = False
    for process in running:
        printed, _ = process.communicate()
        failed |= process.returncode != 0
        if process.returncode == 0:
            report = json.loads(printed)
            outcomes.update(report["outcomes"])
            slowest = max(slowest, report["slowest_s"])
    for name, number in outcomes.most_common():
        print(f"{number:8} {name}")
    print(
        f"slowest: {slowest:.2f} s; {'FAILED' if failed else 'every sample ended in a result or a named error'}"
    )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
