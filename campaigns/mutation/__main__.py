"""scripts/mutation: plant faults in a copy of the tree, one at a time, and note which tests find each.

scripts/mutation list                 the faults
scripts/mutation check                can each be planted; do the tests that found one pass without it
scripts/mutation run --jobs 2         into campaigns/mutation/after.json; goes on where it ended
scripts/mutation table                campaigns/mutation/README.md, from before.json and after.json
"""

import argparse
import json
import re
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from campaigns.mutation import faults, table
from campaigns.mutation.faults import Fault
from campaigns.mutation.trying import Copy, copy_of

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent


def main() -> int:
    """Do what the command line says."""
    options = _parser().parse_args()
    chosen = _chosen(faults.read(), options.only)
    if options.action == "list":
        for fault in chosen:
            print(f"{fault.id:<36}{fault.area:<28}{fault.breaks}")
        return 0
    if options.action == "table":
        (HERE / "README.md").write_text(table.page(faults.read(), HERE), encoding="utf-8")
        return 0
    wrong = [text for fault in chosen for text in faults.problems(fault, options.tree, options.before)]
    print("\n".join(wrong) or f"{len(chosen)} faults can be planted", flush=True)
    if wrong:
        return 1
    return _check(chosen, options) if options.action == "check" else _run(chosen, options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/mutation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("list", "check", "run", "table"))
    parser.add_argument("--only", metavar="WORD,…", help="faults whose id or area begins with one of these")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the tree whose last commit is tested")
    parser.add_argument(
        "--before", action="store_true", help="take `tests_before`, and the tests by candidate"
    )
    parser.add_argument("--results", type=Path, metavar="FILE", help="default: after.json, or before.json")
    parser.add_argument("--again", action="store_true", help="also what is in the results already")
    parser.add_argument("--fresh", action="store_true", help="an empty cache of the tests for every fault")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument(
        "--maxfail", type=int, default=3, metavar="N", help="failing tests that end a stage (3)"
    )
    parser.add_argument("--limit", type=float, default=1200, metavar="S", help="seconds for a fault (1200)")
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="keeps the copies, and what they built")
    return parser


def _chosen(known: dict[str, Fault], only: str | None) -> list[Fault]:
    starts = tuple(only.split(",")) if only else ("",)
    return [fault for fault in known.values() if fault.id.startswith(starts) or fault.area.startswith(starts)]


class Results:
    """What each fault was found by, in a JSON file that is whole after every fault."""

    def __init__(self, path: Path, order: Sequence[str]) -> None:
        self._path = path
        self._order = order
        self._lock = threading.Lock()

    def read(self) -> dict[str, Any]:
        """Rows by fault."""
        return json.loads(self._path.read_text(encoding="utf-8")) if self._path.exists() else {}

    def add(self, fault: str, row: dict[str, Any]) -> None:
        """Replace the fault's row. Another process may have added rows meanwhile."""
        with self._lock:
            rows = {**self.read(), fault: row}
            ordered = {name: rows[name] for name in self._order if name in rows}
            self._path.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _results(options: argparse.Namespace) -> Results:
    path = options.results or HERE / ("before.json" if options.before else "after.json")
    return Results(path, list(faults.read()))


def _copies(options: argparse.Namespace, scratch: Path) -> Iterator[Copy]:
    for number in range(options.jobs):
        yield copy_of(
            options.tree.resolve(), (options.scratch or scratch).resolve() / str(number), options.maxfail
        )


def _run(chosen: Sequence[Fault], options: argparse.Namespace) -> int:
    results = _results(options)
    known = {} if options.again else results.read()
    waiting = iter([fault for fault in chosen if fault.id not in known])
    lock = threading.Lock()

    def work(copy: Copy) -> None:
        while True:
            with lock:
                fault = next(waiting, None)
            if fault is None:
                return
            row = copy.try_fault(fault, options.before, options.limit, fresh=options.fresh)
            results.add(fault.id, row)
            print(f"{fault.id:<36}{row['found'] or row.get('why') or 'not found':<14}", end="")
            print(f"{row.get('seconds', 0):6} s  {' '.join(row.get('by', [])[:1])}", flush=True)

    with tempfile.TemporaryDirectory(prefix="mutation-") as name, ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(work, list(_copies(options, Path(name)))))
    rows = results.read()
    missed = [fault.id for fault in chosen if not rows[fault.id]["found"]]
    print(
        f"{len(chosen) - len(missed)} of {len(chosen)} faults found; not found: {', '.join(missed) or 'none'}"
    )
    return 1 if missed else 0


def _check(chosen: Sequence[Fault], options: argparse.Namespace) -> int:
    """The tests that found a fault, on the tree without it: all must pass."""
    rows = _results(options).read()
    found = [test for fault in chosen for test in rows.get(fault.id, {}).get("by", [])]
    tests = list(dict.fromkeys(re.sub(r" \((setup|teardown)\)$", "", test) for test in found))
    if not tests:
        print("no test has found a fault yet")
        return 0
    options.jobs = 1
    by_file: dict[str, list[str]] = {}
    for test in tests:
        by_file.setdefault(test.partition("::")[0], []).append(test)
    failed = []
    with tempfile.TemporaryDirectory(prefix="mutation-") as name:
        (copy,) = _copies(options, Path(name))
        for path, names in by_file.items():
            wrong = copy.failures(names, options.limit)
            failed += wrong
            print(f"{path}: {wrong or 'passed'}", flush=True)
    print(f"{len(tests)} tests found faults; without the faults, {len(failed)} of them failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
