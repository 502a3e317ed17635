"""The large campaign: python -m tests.conformance.fuzz [COUNT] [SEED]. Exit code 1 when a sample misbehaves."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.conformance.conftest import lower, read_delegates
from tests.conformance.lower import compile_missing
from tests.conformance.selection import Pair, pairs

_GROUPS = ("networks", "numeric")
_DEFAULT_COUNT = 100_000


def chosen() -> list[Pair]:
    """The models whose streams are damaged: those of the groups, on a configuration per profile."""
    return [pair for pair in pairs(full=False) if pair.group in _GROUPS]


def main() -> int:
    """Lower the models, share the samples between processes, add their reports up."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else _DEFAULT_COUNT
    random_seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    processes = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as scratch:
        corpus = Path(os.environ.get("ETHOSU_SDK_CORPUS", scratch)) / "quick"
        seeds = Path(scratch, "seeds")
        corpus.mkdir(parents=True, exist_ok=True)
        seeds.mkdir()
        print("lowering the models ...", flush=True)
        lowerings = [pair.lowering for pair in chosen()]
        for pair in chosen():
            place = corpus / pair.group / pair.model
            lower(corpus, pair.lowering, lowerings)
            compile_missing(place, pair)
            for number, delegate in enumerate(read_delegates(place, pair.target)):
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
                "tests.conformance.fuzz.campaign",
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
