"""Runs upstream's tests and prints what they came to. See --help."""

import argparse
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from campaigns import grid
from campaigns.upstream import environment, report
from campaigns.upstream.report import Result
from ethosu_sdk.base import filesystem, proc
from ethosu_sdk.base.errors import SdkError, UsageError
from ethosu_sdk.base.targets import suggestion

_SAMPLE = Path(__file__).with_name("sample.txt")
_SELECTION = "u55 or u85"  # the pipelines that call an FVP; the others need other programs, or none
# Torch's memory grows from test to test, and an interrupted run loses at most a session.
_FILES_PER_SESSION = 8
_SECONDS_PER_SESSION = 7200.0


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = grid.parser(
        "upstream-tests",
        "Run the Ethos-U tests of executorch/backends/arm/test/ops, as the installed wheel has them, on "
        "the SDK's launchers and resident firmware. Prints passed, failed and skipped with reasons. Exit code 0 only "
        f"when {report.REQUIRED_PERCENT:g} % of those that would run on Arm's FVP pass. All of them take hours.",
        jobs=os.cpu_count() or 1,
    )
    parser.add_argument("--files", metavar="NAME,…", default="", help="only these, such as add,avg_pool2d")
    parser.add_argument("--sample", action="store_true", help="a fixed choice of tests, for CI")
    parser.add_argument("--count", type=int, metavar="N", help="with --sample: the first N of them")
    parser.add_argument(
        "--resume", action="store_true", help="keep the results of an earlier run and go on behind them"
    )
    return parser.parse_args()


def suite() -> Path:
    """The folder of the tests, in the installed wheel. UsageError without one."""
    spec = importlib.util.find_spec("executorch")
    for place in spec.submodule_search_locations or () if spec else ():
        folder = Path(place, "backends", "arm", "test", "ops")
        if folder.is_dir():
            return folder
    raise UsageError("no executorch with Arm's tests is installed", "scripts/setup installs it")


def files_of(names: str) -> list[Path]:
    """The files of tests that `names` lists, with commas between them; all of them for an empty text."""
    known = {path.stem.removeprefix("test_"): path for path in sorted(suite().glob("test_*.py"))}
    wanted = [name.removeprefix("test_").removesuffix(".py") for name in names.split(",") if name]
    for name in wanted:
        if name not in known:
            raise UsageError(f"there is no file of tests called {name!r}", suggestion(name, known))
    return [known[name] for name in wanted or known]


def sample() -> list[str]:
    """The tests of the sample, as pytest takes them."""
    lines = _SAMPLE.read_text(encoding="utf-8").splitlines()
    return [str(suite() / line) for line in lines if line and not line.startswith("#")]


def run_session(tests: Sequence[str], results: Path, found: Mapping[str, str], jobs: int) -> list[Result]:
    """Run `tests` in one pytest session and leave what they came to in the file `results`.

    SdkError when pytest itself fails.
    """
    part = results.with_suffix(".part")
    part.unlink(missing_ok=True)
    options = f"-q --no-header --no-summary --tb=short -c {os.devnull} -W ignore -p no:cacheprovider"
    argv = [sys.executable, "-m", "pytest", *options.split(), "-p", "campaigns.upstream.observer"]
    argv.append(f"--rootdir={suite()}")
    argv += ["-n", str(jobs), "--dist", "worksteal"] if jobs > 1 else []
    argv += ["-k", _SELECTION, *tests]
    with (
        environment.for_session(found) as variables,
        proc.spawn(
            argv, cwd=suite(), env={**variables, "UPSTREAM_RESULTS": str(part)}, stdout=None, stderr=None
        ) as session,
    ):
        status = session.wait(_SECONDS_PER_SESSION)
    if status not in (0, 1, 5):  # 1: tests failed, 5: none was selected
        raise SdkError(f"pytest ended with status {status}", "what it printed above says why")
    part.touch()
    part.replace(results)
    return report.read(results)


def run_files(files: Sequence[Path], found: Mapping[str, str], options: argparse.Namespace) -> list[Result]:
    """Run the tests of `files`, some files at a time."""
    results = []
    for start in range(0, len(files), _FILES_PER_SESSION):
        some = files[start : start + _FILES_PER_SESSION]
        kept = options.folder / f"{'-'.join((some[0].stem, some[-1].stem, str(len(some))))}.jsonl"
        if options.resume and kept.is_file():
            results += report.read(kept)
            continue
        results += run_session([str(path) for path in some], kept, found, options.jobs)
        print(
            f"==> {start + len(some)} of {len(files)} files: {report.percent(results):.2f} % passed",
            flush=True,
        )
    return results


def main() -> int:
    """Run what the command line asks for; the exit code."""
    options = arguments()
    options.folder = options.folder.absolute()
    filesystem.make_directory(options.folder)
    files = files_of(options.files)
    found = environment.make(options.folder)
    if options.sample:
        tests = sample()[: options.count]
        results = run_session(tests, options.folder / "sample.jsonl", found, options.jobs)
    else:
        results = run_files(files, found, options)
    print(report.summary(results))
    return 0 if report.percent(results) >= report.REQUIRED_PERCENT else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SdkError as error:
        sys.exit(f"error: {error.message}\n  {error.hint}" if error.hint else f"error: {error.message}")
