"""The `ethosu-sdk` command, and `python -m ethosu_sdk`: it takes charge of signals, then imports the command line."""

import gc

from ethosu_sdk.base import interrupts

# Objects; with Python's own 700 a short command spends a tenth of its time on what is imported and stays.
_COLLECT_AFTER = 50_000


def main() -> None:
    """Entry point of the `ethosu-sdk` command."""
    interrupts.end_at_once()
    gc.set_threshold(_COLLECT_AFTER)
    from ethosu_sdk.cli.entry import run

    interrupts.leave(run())


if __name__ == "__main__":
    main()
