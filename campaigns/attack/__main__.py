"""scripts/attack: a campaign for a given time. Exit code 1 when anything was found."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from campaigns.attack.campaign import KINDS, Campaign
from campaigns.attack.case import Context


def main() -> int:
    """Attack as the command line says."""
    parser = argparse.ArgumentParser(prog="scripts/attack", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, metavar="N")
    parser.add_argument("--seed", default=str(int(time.time())), help="the same seed makes the same cases")
    parser.add_argument("--only", metavar="KIND,…", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--findings", type=Path, default=Path("build/attack"), metavar="DIR")
    arguments = parser.parse_args()
    kinds = arguments.only.split(",")
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown:
        parser.error(f"unknown kind {unknown[0]!r}: one of {', '.join(KINDS)}")
    with tempfile.TemporaryDirectory(prefix="attack-shared-") as name:
        env = {"ETHOSU_SDK_CACHE": str(Path(name, "cache"))}
        folder = arguments.findings.absolute() / arguments.seed
        campaign = Campaign(arguments.seed, folder, Context(shared=Path(name), env=env))
        print(f"seed {arguments.seed}, {arguments.minutes:g} minutes: {', '.join(kinds)}", flush=True)
        found = campaign.run(kinds, arguments.minutes * 60)
    for kind, tally in campaign.tallies.items():
        print(f"{kind:<10}{tally}")
    total = sum(tally.cases for tally in campaign.tallies.values())
    print(f"{total:,} cases, {found} findings" + (f", in {folder}" if found else ""))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
